package bench

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/trace"
)

// A worker is one rank of a measurement. All ranks carry out the same plan in
// step; rank 0 keeps the rows.
type worker struct {
	cfg       *Config
	comm      *ringo.Comm
	in, out   buffer
	gpu       *gpuBuffers // nil for host memory
	scratch   patterns
	ctl       control
	atLeast   time.Duration // of a measurement whose iterations are not given
	now       func() time.Time
	seed      uint64
	fresh     uint64       // of this run: no other has the same data
	wrong     int64        // elements that this rank found wrong
	norm      *normBuffers // of -row, or nil
	nccl      *ncclPeer    // the peer, or nil
	library   func(file string) (ncclLibrary, error)
	contender *contender // of -beside, or nil
	tracer    *tracer    // of -trace, or nil

	// Of rank 0, nil elsewhere.
	record     func(Row, map[string]*Row) // takes a row and the peers' rows
	registered func(reason string)        // takes why registering had no effect, "" if it had
	traced     func(*trace.Trace)         // takes the trace of all ranks
	meter      *costMeter
}

func newWorker(cfg *Config, comm *ringo.Comm) *worker {
	return &worker{cfg: cfg, comm: comm, ctl: newControl(comm), now: time.Now, library: openLibrary}
}

// run carries out the plan, on host memory or on a GPU.
func (w *worker) run(plan []series, dev *gpu.Device) (err error) {
	w.atLeast = measureTime(plan)
	fresh, err := w.ctl.decide(rand.Int64())
	if err != nil {
		return err
	}
	w.fresh = uint64(fresh)
	length := bufferBytes(longest(plan, w.comm.Size()), w.cfg.Group)
	w.in, w.out = newBuffer(length), newBuffer(length)
	if dev != nil {
		if err := first(w.comm, &w.ctl, w.meter); err != nil {
			return err
		}
		if w.gpu, err = newGPUBuffers(dev, w.in, w.out, w.cfg.Registered); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.gpu.close()) }()
		if err := w.register(); err != nil {
			return err
		}
	}
	if w.cfg.Row > 0 {
		if w.norm, err = newNormBuffers(int(w.cfg.Row), int(length), dev); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.norm.close()) }()
	}
	if slices.Contains(w.cfg.Peers, "nccl") {
		if w.nccl, err = openNCCL(w); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.nccl.close()) }()
	}
	if w.cfg.Beside {
		if w.contender, err = newContender(w); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.contender.close()) }()
	}
	if err := w.settle(); err != nil {
		return err
	}
	if w.tracer, err = newTracer(w.cfg, w.comm); err != nil {
		return err
	}
	if err := w.measure(plan); err != nil {
		return err
	}
	whole, err := w.tracer.gather()
	if err == nil {
		err = w.ctl.barrier()
	}
	if err != nil {
		return err
	}
	if w.traced != nil && whole != nil {
		w.traced(whole)
	}
	if w.gpu != nil { // a rank that fails leaves the windows to the communicator's end
		return w.gpu.unregister()
	}
	return nil
}

// longest is the size in bytes of the largest measurement of a plan.
func longest(plan []series, ranks int) (bytes int64) {
	for _, s := range plan {
		for _, count := range s.counts {
			bytes = max(bytes, s.Size(count, ranks, s.typ.Size()))
		}
	}
	return bytes
}

// measure measures each operation of the plan at each size.
func (w *worker) measure(plan []series) error {
	for i := range plan {
		for _, count := range plan[i].counts {
			row, beside, err := w.rows(&plan[i], count)
			if err != nil {
				return err
			}
			if w.record != nil {
				w.record(row, beside)
			}
		}
	}
	return nil
}

// register registers the memory, if the flags say so.
func (w *worker) register() error {
	if !w.cfg.Registered {
		return nil
	}
	reason, err := w.gpu.register(w.comm)
	if err == nil && w.registered != nil {
		w.registered(reason)
	}
	return err
}

// settleTime is how long the ranks are busy before the first measurement, where
// iterations are not given: the system starts processes on whatever core there
// is and takes a moment to give each its own.
const settleTime = 100 * time.Millisecond

func (w *worker) settle() error {
	if w.cfg.Iterations > 0 {
		return nil
	}
	start := time.Now()
	for more := int64(1); more > 0; {
		for range 100 {
			if err := w.ctl.barrier(); err != nil {
				return err
			}
		}
		var err error
		if more, err = w.ctl.decide(int64(settleTime - time.Since(start))); err != nil {
			return err
		}
	}
	return nil
}

// rows measures one operation at one size, with the peer in turn if there is one.
func (w *worker) rows(s *series, count int) (Row, map[string]*Row, error) {
	if w.contender != nil {
		return w.contender.rows(s, count)
	}
	if w.nccl == nil || !w.nccl.offers(s) {
		row, err := w.row("ringo", s, count)
		return row, nil, err
	}
	var all samples
	var row Row
	for rep := range w.cfg.Repetitions {
		for _, program := range inTurn([]string{"ringo", "nccl"}, rep) {
			var err error
			if row, err = w.row(program, s, count); err != nil {
				return row, nil, err
			}
			all.add("", row)
		}
	}
	n := w.comm.Size()
	return *all.best("ringo", row, n), map[string]*Row{"nccl": all.best("nccl", row, n)}, nil
}

// row measures and verifies one operation of one program at one size.
func (w *worker) row(program string, s *series, count int) (Row, error) {
	n := w.comm.Size()
	row := s.row(program, count, n, 0, 0)
	for _, inPlace := range []bool{false, true} {
		if inPlace && !s.InPlace {
			continue
		}
		op := w.operation(program, s, count, inPlace)
		us, iterations, err := w.time(op)
		if err != nil {
			return row, err
		}
		m := measure(s.Collective, row.Size, n, us, iterations)
		if w.cfg.Check {
			wrong, err := w.verify(s, op)
			if err != nil {
				return row, err
			}
			m.Wrong = &wrong
		}
		if w.cfg.Error && !inPlace && s.deviates() {
			if row.Error, err = w.deviation(s, op); err != nil {
				return row, err
			}
		}
		if w.gpu != nil {
			if err := w.gpu.forget(); err != nil {
				return row, err
			}
		}
		if inPlace {
			row.InPlace = m
		} else {
			row.OutOfPlace = m
		}
	}
	return row, nil
}

// zero clears an operation's memory. Every operator keeps zero, so data cannot run into
// infinities or denormals, which some machines handle slowly.
func (w *worker) zero(op *operation) error {
	for _, p := range op.pairs {
		clear(p.in)
		clear(p.out)
	}
	if op.normed {
		if err := w.norm.zero(len(op.pairs[0].out)); err != nil {
			return err
		}
	}
	if w.gpu == nil {
		return nil
	}
	return w.upload(w.lengths(op))
}

// time is the average time of an operation in microseconds over iterations, the
// operations of each, and ranks. The memory is zero.
func (w *worker) time(op *operation) (us float64, iterations int, err error) {
	if err := w.zero(op); err != nil {
		return 0, 0, err
	}
	if _, err = w.loop(w.cfg.Warmup, op.do); err != nil {
		return 0, 0, err
	}
	do, batch := op.do, 1 // each do is a batch of iterations
	if w.cfg.Graph > 0 {
		g, err := w.captured(op)
		if err != nil {
			return 0, 0, err
		}
		do, batch = func() error { return g.Launch(w.gpu.stream) }, w.cfg.Graph
		if _, err = w.loop(1, do); err != nil {
			return 0, 0, err
		}
	}
	batches := func(n int) int { return (n + batch - 1) / batch }
	if iterations = w.cfg.Iterations; iterations == 0 {
		iterations, err = w.enough(func(n int) (time.Duration, error) { return w.loop(batches(n), do) })
		if err != nil {
			return 0, 0, err
		}
	}
	w.tracer.forget()
	took, err := w.loop(batches(iterations), do)
	if err != nil {
		return 0, 0, err
	}
	w.tracer.keep()
	iterations = batches(iterations) * batch
	total, err := w.ctl.sum(float64(took.Nanoseconds()))
	return total / 1e3 / float64(iterations*w.cfg.Group) / float64(w.comm.Size()), iterations, err
}

// loop is how long n calls of do take this rank, when all ranks begin together.
func (w *worker) loop(n int, do func() error) (time.Duration, error) {
	if err := w.ctl.barrier(); err != nil {
		return 0, err
	}
	start := w.now()
	for range n {
		if err := do(); err != nil {
			return 0, err
		}
	}
	if w.gpu != nil {
		if err := w.comm.Synchronize(w.gpu.stream); err != nil {
			return 0, err
		}
	}
	return w.now().Sub(start), nil
}

// enough finds how many iterations take atLeast by trying few and then more;
// rank 0 decides for all.
func (w *worker) enough(loop func(n int) (time.Duration, error)) (int, error) {
	for n := 1; ; n *= 4 {
		took, err := loop(n)
		if err != nil {
			return 0, err
		}
		ns, err := w.ctl.decide(took.Nanoseconds())
		if err != nil {
			return 0, err
		}
		if ns >= int64(w.atLeast)/8 || n >= maxIterations {
			return max(minIterations, min(maxIterations, int(int64(w.atLeast)*int64(n)/max(ns, 1)))), nil
		}
	}
}
