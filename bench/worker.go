package bench

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/mem"
)

// A worker is one rank of a measurement. All ranks carry out the same plan in
// step; rank 0 keeps the rows.
type worker struct {
	cfg     *Config
	comm    *ringo.Comm
	in, out buffer
	board   *board // nil for host memory
	scratch tables
	ctl     control
	atLeast time.Duration // of a measurement whose iterations are not given
	seed    uint64
	wrong   int64                      // elements that this rank found wrong
	nccl    *nccl                      // the peer, nil without
	record  func(Row, map[string]*Row) // of rank 0, nil elsewhere
	placed  func(reason string)        // of rank 0: the memory is registered, or why not
	meter   *meter                     // of rank 0, nil elsewhere
}

func newWorker(cfg *Config, comm *ringo.Comm) *worker {
	return &worker{cfg: cfg, comm: comm, ctl: newControl(comm)}
}

// run carries out the plan, on host memory or on a GPU.
func (w *worker) run(plan []series, dev *gpu.Device) (err error) {
	n := w.comm.Size()
	w.atLeast = measureTime(plan)
	var longest int64
	for _, s := range plan {
		for _, count := range s.counts {
			longest = max(longest, s.Size(count, n, s.typ.Size()))
		}
	}
	w.in, w.out = newBuffer(longest), newBuffer(longest)
	if dev != nil {
		if err := first(w.comm, &w.ctl, w.meter); err != nil {
			return err
		}
		if w.board, err = newBoard(dev, w.in, w.out); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.board.close()) }()
		if err := w.register(); err != nil {
			return err
		}
	}
	if slices.Contains(w.cfg.Peers, "nccl") {
		if w.nccl, err = openNCCL(w); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.nccl.close()) }()
	}
	if err := w.settle(); err != nil {
		return err
	}
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
	if err := w.ctl.barrier(); err != nil {
		return err
	}
	if w.board != nil { // a rank that fails leaves it to the communicator's end
		return w.board.unregister()
	}
	return nil
}

// register registers the memory, if it is to be.
func (w *worker) register() error {
	if !w.cfg.Registered {
		return nil
	}
	reason, err := w.board.register(w.comm)
	if err == nil && w.placed != nil {
		w.placed(reason)
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
	if w.nccl == nil || !w.nccl.offers(s) {
		row, err := w.row("ringo", s, count)
		return row, nil, err
	}
	all := samples{}
	for range w.cfg.Repetitions {
		for _, program := range []string{"ringo", "nccl"} {
			row, err := w.row(program, s, count)
			if err != nil {
				return row, nil, err
			}
			all.add(program, "", row)
		}
	}
	n := w.comm.Size()
	ours := all["ringo"][""]
	var key rowKey
	for key = range ours {
	}
	return *all.best("ringo", ours[key][0], n), map[string]*Row{"nccl": all.best("nccl", ours[key][0], n)}, nil
}

// row measures and verifies one operation of one program at one size.
func (w *worker) row(program string, s *series, count int) (Row, error) {
	n := w.comm.Size()
	size := s.Size(count, n, s.typ.Size())
	row := Row{
		Program: program, Collective: s.Name, Size: size, Count: count,
		Type: s.typ.String(), Op: s.opName(), Root: s.rootNumber(),
	}
	for _, inPlace := range []bool{false, true} {
		if inPlace && !s.InPlace {
			continue
		}
		op := w.operation(program, s, count, inPlace)
		us, iterations, err := w.time(op)
		if err != nil {
			return row, err
		}
		m := measure(s.Collective, size, n, us, iterations)
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
		if w.board != nil {
			if err := w.board.forget(); err != nil {
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

// An operation is a call on memory that can be made again and again.
type operation struct {
	do      func() error
	in, out []byte // as the collective's Extents say
	count   int
	inPlace bool
}

// layout is the memory of one rank as in nccl-tests: in place, the smaller buffer
// is the rank's own block of the larger one.
func (w *worker) layout(s *series, rank, one int, inPlace bool) (in, out []byte) {
	n := w.comm.Size()
	give, get := s.In.Blocks(rank, s.root, n), s.Out.Blocks(rank, s.root, n)
	in, out = w.in.first(give*one), w.out.first(get*one)
	if inPlace && give > 0 && get > 0 {
		switch {
		case give > get:
			out = in[rank*one : (rank+1)*one]
		case get > give:
			in = out[rank*one : (rank+1)*one]
		default:
			in = out
		}
	}
	return in, out
}

// operation is a call on this rank's memory.
func (w *worker) operation(program string, s *series, count int, inPlace bool) *operation {
	rank, n := w.comm.Rank(), w.comm.Size()
	one := count * s.typ.Size()
	as := rank
	if w.cfg.Registered && s.Rooted() { // all ranks have it where the root does
		as = s.root
	}
	in, out := w.layout(s, as, one, inPlace)
	op := &operation{
		in: in[:one*s.In.Blocks(rank, s.root, n)], out: out[:one*s.Out.Blocks(rank, s.root, n)],
		count: count, inPlace: inPlace,
	}
	call := &ringo.Call{Kind: s.Kind, In: mem.Host(op.in), Out: mem.Host(op.out), Count: count, Type: s.typ, Op: s.op, Root: s.root}
	if w.board != nil {
		call.In, call.Out, call.Stream = w.twin(in), w.twin(out), w.board.stream
	}
	if program == "nccl" {
		op.do = w.nccl.operation(s, call)
		return op
	}
	op.do = func() error { return w.comm.Do(call) }
	if s.Kind == ringo.KindSend {
		recv := *call
		recv.Kind, recv.Peer = ringo.KindRecv, (rank+n-1)%n
		call.Peer = (rank + 1) % n
		g := ringo.NewGroup()
		op.do = func() error {
			g.Add(w.comm, call)
			g.Add(w.comm, &recv)
			return g.Run()
		}
	}
	return op
}

// lengths is how many of the first bytes of the buffers hold an operation's memory.
func (w *worker) lengths(op *operation) (in, out int) {
	return max(w.in.length(op.in), w.in.length(op.out)), max(w.out.length(op.in), w.out.length(op.out))
}

// time is the average time of an operation in microseconds over iterations and
// ranks. The memory is zero, which every operator keeps zero: data cannot run
// into infinities or denormals, which some machines handle slowly.
func (w *worker) time(op *operation) (us float64, iterations int, err error) {
	clear(op.in)
	clear(op.out)
	do, each := op.do, 1 // operations that do does
	loop := func(n int) (time.Duration, error) {
		if err := w.ctl.barrier(); err != nil {
			return 0, err
		}
		start := time.Now()
		for range (n + each - 1) / each {
			if err := do(); err != nil {
				return 0, err
			}
		}
		if w.board != nil {
			if err := w.comm.Synchronize(w.board.stream); err != nil {
				return 0, err
			}
		}
		return time.Since(start), nil
	}
	if w.board != nil {
		if err := w.upload(w.lengths(op)); err != nil {
			return 0, 0, err
		}
	}
	if _, err = loop(w.cfg.Warmup); err != nil {
		return 0, 0, err
	}
	if w.cfg.Graph > 0 {
		g, err := w.captured(op)
		if err != nil {
			return 0, 0, err
		}
		do, each = func() error { return g.Launch(w.board.stream) }, w.cfg.Graph
		if _, err = loop(each); err != nil {
			return 0, 0, err
		}
	}
	if iterations = w.cfg.Iterations; iterations == 0 {
		if iterations, err = w.enough(loop); err != nil {
			return 0, 0, err
		}
	}
	iterations = (iterations + each - 1) / each * each
	took, err := loop(iterations)
	if err != nil {
		return 0, 0, err
	}
	total, err := w.ctl.sum(float64(took.Nanoseconds()))
	return total / 1e3 / float64(iterations) / float64(w.comm.Size()), iterations, err
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

// verify carries the operation out once on fresh data and counts what is wrong
// on all ranks: results that differ in any bit, contributions that were
// changed, bytes beside the buffers that were written.
func (w *worker) verify(s *series, op *operation) (int64, error) {
	rank, n := w.comm.Rank(), w.comm.Size()
	size := s.typ.Size()
	w.seed++
	length := op.count
	if s.In.PerRank {
		length *= n
	}
	d := newData(s.typ, s.op, !s.Reduces(), n, length, hash(w.seed, n, op.count))
	w.scratch.forget()
	pieces := s.result(rank, s.root, n, op.count)
	one := op.count * size

	in, out := w.lengths(op)
	w.in.guard(in)
	w.out.guard(out)
	for i, p := range pieces {
		w.scratch.of(d, p.rank).poison(op.out[i*one:(i+1)*one], p.from)
	}
	w.scratch.of(d, rank).fill(op.in, 0)
	if err := w.once(op, in, out); err != nil {
		return 0, err
	}
	var wrong int64
	for i, p := range pieces {
		wrong += w.scratch.of(d, p.rank).wrong(op.out[i*one:(i+1)*one], p.from)
	}
	if !op.inPlace {
		wrong += w.scratch.of(d, rank).wrong(op.in, 0)
	}
	wrong += w.in.trespassed(in) + w.out.trespassed(out)
	w.wrong += wrong
	all, err := w.ctl.sum(float64(wrong))
	if err == nil && int64(all) < wrong {
		err = fmt.Errorf("verify: rank %d found %d wrong elements, but their sum over all ranks came back as %g", rank, wrong, all)
	}
	return int64(all), err
}

// once carries an operation out on the data that are there: so many of the first
// bytes of the buffers.
func (w *worker) once(op *operation, in, out int) error {
	if w.board == nil {
		return op.do()
	}
	if err := w.upload(in, out); err != nil {
		return err
	}
	do := op.do
	// Out of place a graph of several operations has the result of one.
	if g := w.board.graph; g != nil && !op.inPlace {
		do = func() error { return g.Launch(w.board.stream) }
	}
	if err := w.ctl.barrier(); err != nil { // nobody's kernel waits for a peer's copies
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return w.download(in, out)
}
