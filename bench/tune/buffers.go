package tune

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/mem"
)

// buffers are one rank's memory on its GPU, which all communicators use in turn.
// They are zero, which every operator keeps zero.
type buffers struct {
	dev     *gpu.Device
	stream  gpu.Stream
	in, out mem.Region
}

func newBuffers(dev *gpu.Device, bytes int) (b *buffers, err error) {
	b = &buffers{dev: dev}
	if b.stream, err = dev.NewStream(); err != nil {
		return nil, err
	}
	for _, r := range []*mem.Region{&b.in, &b.out} {
		if *r, err = dev.Alloc(bytes); err != nil {
			return nil, errors.Join(err, b.close())
		}
		if err := dev.Set(r.Ptr(), 0, bytes, b.stream); err != nil {
			return nil, errors.Join(err, b.close())
		}
	}
	if err := dev.Synchronize(b.stream); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// register makes the memory known to all ranks, and reports whether that has an
// effect.
func (b *buffers) register(comm *ringo.Comm) (bool, error) {
	for _, r := range []mem.Region{b.in, b.out} {
		w, err := comm.Register(r)
		if err != nil || w.Reason() != "" {
			return false, err
		}
	}
	return true, nil
}

func (b *buffers) close() error {
	var errs []error
	for _, r := range []mem.Region{b.in, b.out} {
		if !r.IsNil() {
			errs = append(errs, b.dev.Free(r))
		}
	}
	return errors.Join(append(errs, b.dev.DestroyStream(b.stream))...)
}

// measure fills the column of an algorithm in all curves; or, unless blocks is negative, its
// times with the blocks-th of Config.Blocks.
func (t *tuning) measure(comms []*ringo.Comm, algo string, blocks int) error {
	errs := make([]error, len(comms))
	var wg sync.WaitGroup
	for i, comm := range comms {
		wg.Go(func() { errs[i] = t.measureRank(comm, t.buffers[i], algo, blocks) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (t *tuning) measureRank(comm *ringo.Comm, b *buffers, algo string, blocks int) error {
	m := &meter{comm: comm, buffers: b, each: t.each, graph: t.cfg.Graph}
	effective := true
	if slices.ContainsFunc(t.curves, func(k curve) bool { return slices.Index(k.algos, algo) >= k.registered }) {
		var err error
		if effective, err = b.register(comm); err != nil {
			return err
		}
	}
	for i := range t.curves {
		k := &t.curves[i]
		column := slices.Index(k.algos, algo)
		registered := column >= k.registered
		if column < 0 || registered && !effective {
			continue
		}
		for j, count := range k.counts {
			if blocks >= 0 && k.work[j][column] <= t.cfg.Blocks[blocks] {
				continue
			}
			bytes := count * t.cfg.Type.Size()
			if !slices.Contains(comm.DeviceAlgorithms(k.Kind, bytes, registered), algo) {
				continue
			}
			call := ringo.Call{Kind: k.Kind, Count: count, Type: t.cfg.Type, Op: ringo.Sum, Stream: b.stream}
			call.In = b.in.Slice(0, bytes*k.In.Blocks(comm.Rank(), 0, t.ranks))
			call.Out = b.out.Slice(0, bytes*k.Out.Blocks(comm.Rank(), 0, t.ranks))
			if registered && k.Kind == ringo.KindReduce {
				call.Out = b.out.Slice(0, bytes) // Out has to be in its window on all ranks
			}
			us, err := m.time(&call)
			if err != nil {
				return fmt.Errorf("%s by %s, %d bytes: %w", k.Name, algo, k.sizes[j], err)
			}
			switch {
			case comm.Rank() > 0:
			case blocks < 0:
				k.us[j][column] = us
			default:
				k.less[j][column][blocks] = us
			}
		}
	}
	return nil
}

// A meter times operations of one rank; all ranks do the same.
type meter struct {
	comm *ringo.Comm
	*buffers
	each  time.Duration // of a measurement, about
	graph int
}

// repeats is how often the launches of a graph are timed; the least time counts.
const repeats = 3

// time is the time of an operation in microseconds, the average of all ranks.
func (m *meter) time(call *ringo.Call) (float64, error) {
	do := func() error { return m.comm.Do(call) }
	if _, err := m.loop(1, do); err != nil { // the first time there is more to do
		return 0, err
	}
	once, err := m.loop(1, do)
	if err != nil {
		return 0, err
	}
	n := max(1, min(m.graph, int(m.each.Seconds()*1e6/once)))
	g, err := m.dev.Capture(m.stream, func() error {
		for range n {
			if err := do(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("capture: %w", err)
	}
	launch := func() error { return g.Launch(m.stream) }
	warm, err := m.loop(1, launch)
	launches := max(1, int(m.each.Seconds()*1e6/repeats/max(warm, 1e-3)))
	least := math.Inf(1)
	for range repeats {
		if err != nil {
			break
		}
		var us float64
		us, err = m.loop(launches, launch)
		least = min(least, us)
	}
	return least / float64(n), errors.Join(err, g.Close())
}

// loop is the time of each of n calls of f in microseconds, the average of all
// ranks, which begin together.
func (m *meter) loop(n int, f func() error) (float64, error) {
	if err := ringo.Barrier(m.comm); err != nil {
		return 0, err
	}
	start := time.Now()
	for range n {
		if err := f(); err != nil {
			return 0, err
		}
	}
	if err := m.comm.Synchronize(m.stream); err != nil {
		return 0, err
	}
	us := []float64{float64(time.Since(start).Nanoseconds()) / 1e3 / float64(n) / float64(m.comm.Size())}
	err := ringo.AllReduce(m.comm, us, ringo.Sum)
	return us[0], err
}
