package device

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/bench/meter"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/device"
)

// bandwidths measures copies by the driver and combines by our kernels, at all
// sizes. A combine of one source is our copy.
func bandwidths(ctx context.Context, cfg Config, c cuda.Context, r *Report, t *table) (err error) {
	need := 0
	for _, size := range cfg.Sizes {
		for k := 1; k <= cfg.maxSources(); k++ {
			need = max(need, poolBytes(k, size, r.GPU.L2))
		}
	}
	p, err := newPool(cfg.Driver, cfg.Ordinal, need)
	if err != nil {
		return fmt.Errorf("memory for the buffers, choose a smaller size: %w", err)
	}
	defer func() { err = errors.Join(err, p.close()) }()
	tm, err := meter.NewTimer(cfg.Driver)
	defer func() { err = errors.Join(err, tm.Close()) }()
	if err != nil {
		return err
	}
	combiner, err := device.New(cfg.Driver, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, combiner.Close()) }()

	t.bandwidths()
	m := &mover{cfg: cfg, pool: p, timer: tm, cache: r.GPU.L2}
	for _, size := range cfg.Sizes {
		row, err := m.copy(size)
		if err != nil {
			return err
		}
		copied := row.Bandwidth
		r.Rows = append(r.Rows, row)
		t.row(&row)
		list, names := cfg.defined()
		for i, reducer := range list {
			for _, k := range cfg.Sources {
				if err := ctx.Err(); err != nil {
					return err
				}
				row, err := m.combine(combiner, reducer, names[i], k, size)
				if err != nil {
					return err
				}
				if copied > 0 {
					row.OfCopy = row.Bandwidth / copied
				}
				r.Rows = append(r.Rows, row)
				t.row(&row)
			}
		}
	}
	return nil
}

// A mover measures one row after the other in the same memory.
type mover struct {
	cfg   Config
	pool  *pool
	timer *meter.Timer
	cache int
}

// measure fills the sets, has launch move one set at a time and checks the
// results, computed by check in Go.
func (m *mover) measure(row Row, t kernels.DataType, launch func(*set) error,
	check func(dst []byte, srcs [][]byte)) (Row, error) {
	row.Moved = row.Size * int64(row.Sources+1)
	sets := m.pool.cut(row.Sources, row.Size, m.cache)
	block := randomBlock(t, int(min(blockBytes, row.Size)))
	// Filling and poisoning run on another stream than the measurement.
	err := errors.Join(m.pool.fill(sets, block), m.pool.poison(sets), m.cfg.Driver.CtxSynchronize())
	if err != nil {
		return row, err
	}
	row.Time, err = m.time(len(sets), func(i int) error { return launch(&sets[i%len(sets)]) })
	if err != nil {
		return row, err
	}
	if row.Median > 0 {
		row.Bandwidth = float64(row.Moved) / row.Median / 1e3
	}
	row.Checked, row.Wrong, err = m.pool.compare(sets, check)
	return row, err
}

const (
	targetMicroseconds = 20_000 // of one repetition
	maxLaunches        = 2000   // of one repetition
)

// time queues launch(0), launch(1), … back to back: least of them, or as many as
// take targetMicroseconds. On the emulator, where times mean nothing, it queues no
// more than least.
func (m *mover) time(least int, launch func(i int) error) (Time, error) {
	once := func(n int) (float64, error) {
		return m.timer.Once(n, launch, func() error { return m.cfg.Driver.StreamSynchronize(m.timer.Stream) })
	}
	us, err := once(least) // warm-up, and an estimate
	if err != nil {
		return Time{}, err
	}
	n, repetitions := least, m.cfg.Repetitions
	if m.cfg.Driver.Name() == "emu" {
		repetitions = 1
	} else {
		n = min(maxLaunches, max(n, int(targetMicroseconds/max(us, 0.1))))
	}
	all := make([]float64, max(1, repetitions))
	for i := range all {
		if all[i], err = once(n); err != nil {
			return Time{}, err
		}
	}
	return timeOf(all, n), nil
}

func (m *mover) copy(size int64) (Row, error) {
	row := Row{What: "copy", Sources: 1, Size: size}
	launch := func(s *set) error {
		return m.cfg.Driver.MemcpyAsync(s.dst.Ptr(), s.srcs[0].Ptr(), s.dst.Len(), m.timer.Stream)
	}
	return m.measure(row, kernels.Uint8, launch, func(dst []byte, srcs [][]byte) { copy(dst, srcs[0]) })
}

func (m *mover) combine(c *device.Combiner, r *kernels.Reducer, op string, k int, size int64) (Row, error) {
	row := Row{What: "combine", Type: r.Type().String(), Op: op, Sources: k, Size: size}
	kernel, err := c.Kernel(r)
	if err != nil {
		return row, err
	}
	contributions := uint64(1)<<k - 1
	launch := func(s *set) error {
		return kernel.Launch(m.timer.Stream, &device.Args{Dst: s.dst, Srcs: s.srcs, Contributions: contributions,
			Finish: true})
	}
	return m.measure(row, r.Type(), launch,
		func(dst []byte, srcs [][]byte) { r.CombineAll(dst, srcs, contributions, true) })
}
