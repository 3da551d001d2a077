package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
)

// Collectives run over all GPUs of a host. Where they fail, they run over each half of the GPUs, and
// again over the halves of a half that fails, so that the smallest failing set is named.

// collectGPUs carries out collectives of the host's GPUs and verifies every element.
func collectGPUs(ctx context.Context, j *job, s *gpuSet) ([]measurement, error) {
	live := s.live()
	if len(live) < 2 {
		return nil, skip("there are fewer than two GPUs")
	}
	m, err := gpu.Of(s.driver)
	s.machine = m
	if err != nil && len(live) < len(s.gpus) { // a finding names the lost GPU already
		return nil, skip("a GPU is lost: %v", err)
	} else if err != nil {
		return nil, err
	}
	c := &collector{ctx: ctx, machine: m, host: j.Host(), timeout: j.cfg.source().patience, counts: []int{1 << 10}}
	if !m.Emulated() {
		c.counts = []int{1 << 10, 4 * mib}
	}
	c.try(live)
	for _, i := range live {
		if d, err := m.Device(i); err == nil {
			d.Release()
		}
	}
	return c.list, ctx.Err()
}

// A collector tries collectives over sets of a host's GPUs.
type collector struct {
	ctx     context.Context
	machine *gpu.Machine
	host    string
	timeout time.Duration
	counts  []int // elements, of 4 bytes
	list    []measurement
}

// try reports whether collectives over a set of GPUs are right, and else notes the smallest failing sets within it.
func (c *collector) try(set []int) bool {
	if c.ctx.Err() != nil {
		return false
	}
	took, err := c.run(set)
	if err == nil {
		c.note("all-reduce", took.Seconds(), "s", gpuNames(set))
		return true
	}
	if c.ctx.Err() != nil {
		return false
	}
	if errors.Is(err, cuda.ErrOutOfMemory) {
		c.note("busy", 0, "", fmt.Sprintf("%s: %s", gpuNames(set), firstLine(err.Error())))
		return false
	}
	well := true
	if half := len(set) / 2; half >= 2 {
		for _, part := range [][]int{set[:half], set[half:]} {
			well = c.try(part) && well
		}
	}
	if well { // each half is well, or a single GPU: the fault is in the ways between the halves
		c.note("collective", 1, "", fmt.Sprintf("%s: %v", gpuNames(set), firstLine(err.Error())))
	}
	return false
}

func (c *collector) note(quantity string, v float64, unit, text string) {
	c.list = append(c.list, measurement{Subject: of(c.host, ""), Quantity: quantity, Value: v, Unit: unit, Text: text})
}

func gpuNames(set []int) string {
	names := make([]string, len(set))
	for i, n := range set {
		names[i] = fmt.Sprint(n)
	}
	return "GPUs " + strings.Join(names, ",")
}

// run carries out all collectives. took is the time of the largest all-reduce, that of the slowest rank.
func (c *collector) run(set []int) (took time.Duration, err error) {
	var devices []*gpu.Device
	for _, i := range set {
		d, err := c.machine.Device(i)
		if err != nil {
			return 0, err
		}
		devices = append(devices, d)
	}
	comms, err := ringo.OpenLocal(len(set), ringo.Config{Devices: devices, Timeout: c.timeout, JoinTimeout: c.timeout})
	if err != nil {
		return 0, err
	}
	stop := context.AfterFunc(c.ctx, func() {
		for _, comm := range comms {
			comm.Abort(context.Cause(c.ctx))
		}
	})
	defer stop()
	times, errs := make([]time.Duration, len(set)), make([]error, len(set))
	var wg sync.WaitGroup
	for i, comm := range comms {
		wg.Go(func() {
			times[i], errs[i] = c.rank(comm)
			errs[i] = errors.Join(errs[i], comm.Close())
		})
	}
	wg.Wait()
	worst := -1
	for i, e := range errs {
		took = max(took, times[i])
		var own *cuda.Error // of this GPU's driver: the others' errors only quote it
		if e != nil && (worst < 0 || !errors.As(errs[worst], &own) && errors.As(e, &own)) {
			worst = i
		}
	}
	if worst >= 0 {
		return 0, fmt.Errorf("GPU %d: %w", set[worst], errs[worst])
	}
	return took, nil
}

// rank carries out one rank's part.
func (c *collector) rank(comm *ringo.Comm) (took time.Duration, err error) {
	d := comm.Device()
	stream, err := d.NewStream()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.DestroyStream(stream)) }()
	for _, count := range c.counts {
		for _, k := range []ringo.Kind{ringo.KindAllReduce, ringo.KindAllGather, ringo.KindAlltoAll} {
			t, err := verified(comm, stream, k, count)
			if err != nil {
				return 0, err
			}
			if k == ringo.KindAllReduce {
				took = t
			}
		}
	}
	return took, nil
}

// verified carries out a collective of at most count elements a rank, and checks every element of the result.
func verified(comm *ringo.Comm, stream gpu.Stream, k ringo.Kind, count int) (took time.Duration, err error) {
	d, e := comm.Device(), newExercise(k, count, comm.Size())
	in, out, free, err := e.memory(d, comm.Rank())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, free()) }()
	began := time.Now()
	if err := comm.Do(&ringo.Call{Kind: k, In: in, Out: out, Count: e.count, Type: ringo.Uint32, Op: ringo.Sum,
		Stream: stream, Exact: true}); err != nil {
		return 0, err
	}
	if err := comm.Synchronize(stream); err != nil {
		return 0, err
	}
	return time.Since(began), e.read(d, comm.Rank(), out)
}

// judgeCollectives names the sets of GPUs that failed.
func judgeCollectives(r *report, _ *config) []finding {
	f := &findings{r: r}
	for _, m := range r.Of("GPU collectives", "collective") {
		f.add(broken, "gpu-collective", m.Subject, 600,
			"collectives fail on %s; smaller sets of its GPUs are well, so look at these and the ways between them", m.Text)
	}
	f.gpuFailures("GPU collectives")
	return f.list
}
