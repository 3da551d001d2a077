package bench

import (
	"fmt"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/mem"
)

// An operation is a call on memory that can be made again and again.
type operation struct {
	do      func() error
	in, out []byte // as the collective's Extents say
	count   int
	inPlace bool
}

// layout is the memory of one rank in blocks of one bytes, as in nccl-tests: in
// place, the smaller buffer is the rank's own block of the larger one.
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
	if w.cfg.Registered && s.Rooted() { // windows lie as on the root, on all ranks
		as = s.root
	}
	in, out := w.layout(s, as, one, inPlace)
	op := &operation{
		in: in[:one*s.In.Blocks(rank, s.root, n)], out: out[:one*s.Out.Blocks(rank, s.root, n)],
		count: count, inPlace: inPlace,
	}
	call := &ringo.Call{Kind: s.Kind, In: mem.Host(op.in), Out: mem.Host(op.out), Count: count, Type: s.typ, Op: s.op, Root: s.root}
	if w.gpu != nil {
		call.In, call.Out, call.Stream = w.twin(in), w.twin(out), w.gpu.stream
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

// lengths is how many bytes of the two buffers, from their beginning, hold an
// operation's memory.
func (w *worker) lengths(op *operation) (in, out int) {
	return max(w.in.length(op.in), w.in.length(op.out)), max(w.out.length(op.in), w.out.length(op.out))
}

// verify carries the operation out once on fresh data and counts the errors on all
// ranks: results that differ in any bit, contributions that were changed, bytes beside
// the buffers that were written.
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
	origins := s.result(rank, s.root, n, op.count)
	one := op.count * size

	in, out := w.lengths(op)
	w.in.guard(in)
	w.out.guard(out)
	for i, p := range origins {
		w.scratch.of(d, p.rank).poison(op.out[i*one:(i+1)*one], p.from)
	}
	w.scratch.of(d, rank).fill(op.in, 0)
	if err := w.once(op, in, out); err != nil {
		return 0, err
	}
	var wrong int64
	for i, p := range origins {
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

// once carries an operation out once, on the first in and out bytes of the two
// buffers.
func (w *worker) once(op *operation, in, out int) error {
	if w.gpu == nil {
		return op.do()
	}
	if err := w.upload(in, out); err != nil {
		return err
	}
	do := op.do
	// Out of place a graph of several operations has the result of one.
	if g := w.gpu.graph; g != nil && !op.inPlace {
		do = func() error { return g.Launch(w.gpu.stream) }
	}
	if err := w.ctl.barrier(); err != nil { // no kernel waits for a peer that still copies
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return w.download(in, out)
}
