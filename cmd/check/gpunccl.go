package check

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/nccl"
	"github.com/ringo-go/ringo/mem"
)

// ncclStage repeats GPU collectives with an installed NCCL, to tell a fault of the library from a fault of the GPUs and
// the ways between them.
func ncclStage() stage {
	return stage{Name: "GPU NCCL", Asks: "Are collectives over each host's GPUs right with the NCCL that is installed?",
		Quick: 20 * time.Second, Full: 2 * time.Minute, Measure: measureNCCL, Judge: judgeNCCL}
}

// An ncclLibrary is NCCL; *nccl.Library is one.
type ncclLibrary interface {
	Version() (int, error)
	InitAll(devices ...int) ([]nccl.Comm, error)
	Together(f func() error) error
	Call(name string, args ...uintptr) error
}

func openNCCL(file string) (ncclLibrary, error) {
	l, err := nccl.Open(file)
	if err != nil { // else a nil pointer in the interface would not be nil
		return nil, err
	}
	return l, nil
}

// measureNCCL carries out collectives by NCCL over all GPUs of the host. NCCL waits without end, so a collective that
// has not ended with the stage is left behind.
func measureNCCL(ctx context.Context, j *job) ([]measurement, error) {
	s, done, err := j.gpuSet()
	if err != nil {
		return nil, noGPUs(err)
	}
	n, err := openTrialOfNCCL(s, j)
	if err != nil {
		done()
		return nil, err
	}
	at := of(j.Host(), "")
	ended := make(chan measurement, 1)
	go func() {
		defer done()
		runtime.LockOSThread() // NCCL's groups are a thread's
		defer runtime.UnlockOSThread()
		m := measurement{Subject: at, Quantity: "all-reduce", Unit: "s", Text: gpuNames(n.set)}
		if took, err := n.run(); err != nil {
			m = measurement{Subject: at, Quantity: "fails", Text: firstLine(err.Error())}
		} else {
			m.Value = took.Seconds()
		}
		ended <- m
	}()
	m := measurement{Subject: at, Quantity: "fails", Text: "it has not ended when the stage did: it hangs"}
	select {
	case m = <-ended:
	case <-ctx.Done():
	}
	return []measurement{{Subject: at, Quantity: "version", Text: n.version}, m}, nil
}

// A trialOfNCCL is collectives of some GPUs of a host.
type trialOfNCCL struct {
	lib     ncclLibrary
	version string
	set     []int
	devices []*gpu.Device
	streams []gpu.Stream
	comms   []nccl.Comm
	counts  []int
}

// openTrialOfNCCL loads the library. The error skips the stage where the library is not installed.
func openTrialOfNCCL(s *gpuSet, j *job) (*trialOfNCCL, error) {
	n := &trialOfNCCL{set: s.live(), counts: []int{1 << 10}}
	if len(n.set) < 2 {
		return nil, skip("there are fewer than two GPUs")
	}
	var err error
	if n.lib, err = j.cfg.source().nccl(j.cfg.NCCL); err != nil {
		return nil, skip("%v", err)
	}
	v, err := n.lib.Version()
	if err != nil {
		return nil, err
	}
	n.version = fmt.Sprintf("%d.%d.%d", v/10000, v/100%100, v%100)
	m, err := gpu.Of(s.driver)
	if err != nil {
		return nil, err
	}
	if !m.Emulated() {
		n.counts = append(n.counts, 4*mib)
	}
	for _, i := range n.set {
		d, err := m.Device(i)
		if err != nil {
			return nil, err
		}
		n.devices = append(n.devices, d)
	}
	return n, nil
}

// run carries out all collectives; took is the time of the largest all-reduce. After a failure nothing is given back,
// since NCCL might wait in doing so.
func (n *trialOfNCCL) run() (took time.Duration, err error) {
	for _, d := range n.devices {
		s, err := d.NewStream()
		if err != nil {
			return 0, err
		}
		n.streams = append(n.streams, s)
	}
	if n.comms, err = n.lib.InitAll(n.set...); err != nil {
		return 0, err
	}
	for _, count := range n.counts {
		for _, k := range []ringo.Kind{ringo.KindAllReduce, ringo.KindAllGather, ringo.KindAlltoAll} {
			t, err := n.verified(newExercise(k, count, len(n.set)))
			if err != nil {
				return 0, err
			}
			if k == ringo.KindAllReduce {
				took = t
			}
		}
	}
	var errs []error
	for i, d := range n.devices {
		errs = append(errs, d.With(func() error { return n.lib.Call("ncclCommDestroy", uintptr(n.comms[i])) }),
			d.DestroyStream(n.streams[i]), d.Release())
	}
	return took, errors.Join(errs...)
}

// verified carries out an exercise and compares each element with what it should be.
func (n *trialOfNCCL) verified(e exercise) (took time.Duration, err error) {
	in, out := make([]mem.Region, len(n.devices)), make([]mem.Region, len(n.devices))
	for i, d := range n.devices {
		var free func() error
		if in[i], out[i], free, err = e.memory(d, i); err != nil {
			return 0, err
		}
		defer func() {
			if err == nil { // else a kernel may still use the memory, and the driver would wait for the kernel
				err = free()
			}
		}()
	}
	began := time.Now()
	if err := n.lib.Together(func() error {
		for i, d := range n.devices {
			if err := d.With(func() error { return n.call(e, i, in[i].Ptr(), out[i].Ptr()) }); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return 0, err
	}
	for i, d := range n.devices {
		if err := d.Synchronize(n.streams[i]); err != nil {
			return 0, fmt.Errorf("%v of %d elements: GPU %d: %w", e.kind, e.count, n.set[i], err)
		}
	}
	took = time.Since(began)
	for i, d := range n.devices {
		if err := e.read(d, i, out[i]); err != nil {
			return 0, fmt.Errorf("GPU %d: %w", n.set[i], err)
		}
	}
	return took, nil
}

// call is one rank's call or calls, in a group.
func (n *trialOfNCCL) call(e exercise, rank int, in, out uintptr) error {
	const sum = 0
	count, t, comm, stream := uintptr(e.count), uintptr(ringo.Uint32.NCCL()), uintptr(n.comms[rank]),
		uintptr(n.streams[rank])
	switch e.kind {
	case ringo.KindAllReduce:
		return n.lib.Call("ncclAllReduce", in, out, count, t, sum, comm, stream)
	case ringo.KindAllGather:
		return n.lib.Call("ncclAllGather", in, out, count, t, comm, stream)
	}
	for p := range e.ranks {
		at := uintptr(p) * 4 * count
		if err := errors.Join(n.lib.Call("ncclSend", in+at, count, t, uintptr(p), comm, stream),
			n.lib.Call("ncclRecv", out+at, count, t, uintptr(p), comm, stream)); err != nil {
			return err
		}
	}
	return nil
}

// judgeNCCL compares NCCL's results with ringo's on the same GPUs.
func judgeNCCL(r *report, _ *config) []finding {
	f := &findings{r: r}
	const stage = "GPU NCCL"
	of := func(stage, quantity string, at subject) bool {
		return slices.ContainsFunc(r.Of(stage, quantity), func(m measurement) bool { return m.Subject.Host == at.Host })
	}
	versions := bySubject(r.Of(stage, "version"))
	for _, m := range r.Of(stage, "fails") {
		v := versions[m.Subject].Text
		switch {
		case r.IsLost(m.Subject.Host):
		case slices.ContainsFunc([]string{"collective", "error", "hang"},
			func(q string) bool { return of("GPU collectives", q, m.Subject) }):
			f.add(well, "nccl-fails-too", m.Subject, 0,
				"NCCL %s fails here as ringo's collectives do, so it is the GPUs, the ways between them, or settings that both "+
					"heed (NCCL_…), and no library: %s", v, m.Text)
		case of("GPU collectives", "all-reduce", m.Subject):
			f.add(broken, "nccl-fails", m.Subject, 300,
				"NCCL %s fails where ringo's collectives over the same GPUs do well: %s; look at the library and its settings "+
					"before the GPUs: NCCL_DEBUG=WARN says more", v, m.Text)
		default:
			f.add(broken, "nccl-fails", m.Subject, 300,
				"NCCL %s fails, and ringo's collectives were not measured, so it is not known whose fault it is: %s; "+
					"NCCL_DEBUG=WARN says more", v, m.Text)
		}
	}
	for _, m := range r.Of(stage, "all-reduce") {
		if of("GPU collectives", "collective", m.Subject) {
			f.add(well, "nccl-is-well", m.Subject, 0,
				"NCCL %s does well over all GPUs, and ringo's collectives fail: a way that NCCL does not use, a fault that comes "+
					"and goes, or one of ringo", versions[m.Subject].Text)
		}
	}
	for _, o := range unlike(r.Of(stage, "version")) {
		f.add(degraded, "nccl-differs", o.Subject, 0, "its NCCL is %s, and %s on %s: install the same everywhere", o.said(),
			o.most, o.who)
	}
	return f.list
}
