package bench

import (
	"fmt"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/mem"
)

// An operation is a group of calls, or a single one, that can be made again and again.
type operation struct {
	do      func() error // the group
	once    func() error // a call on each pair
	pairs   []bufferPair // of the calls, which use them in turn
	count   int
	inPlace bool
	normed  bool // a norm follows
}

// A bufferPair is the memory of one call, as the collective's Extents say.
type bufferPair struct{ in, out []byte }

// maxGroup is the most calls of a group.
const maxGroup = 100_000

// pairsBytes bounds the memory of all calls of a group together. Each call has a pair of
// its own where that suffices, since calls of a group have no order.
const pairsBytes = 64 << 20

// bufferBytes is the length of buffers for groups of calls, each of at most longest bytes.
func bufferBytes(longest int64, calls int) int64 {
	return max(longest, min(stride(longest)*int64(calls), pairsBytes))
}

// stride is the distance of two pairs of n bytes.
func stride(n int64) int64 { return (max(1, n) + 15) &^ 15 }

// pairs are the memory of the calls of a group, laid out as for a rank; one is the bytes
// of a block. In place, as in nccl-tests, the smaller buffer is the rank's own block of
// the larger one.
func (w *worker) pairs(s *series, rank, one int, inPlace bool) (list []bufferPair) {
	n := w.comm.Size()
	give, get := s.In.Blocks(rank, s.root, n), s.Out.Blocks(rank, s.root, n)
	apart := int(stride(int64(s.Size(1, n, 1)) * int64(one))) // the same on all ranks
	for at := 0; len(list) == 0 || len(list) < w.cfg.Group && at+apart <= w.in.capacity(); at += apart {
		in, out := w.in.part(at, give*one), w.out.part(at, get*one)
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
		list = append(list, bufferPair{in, out})
	}
	return list
}

// operation is a group of calls on this rank's memory.
func (w *worker) operation(program string, s *series, count int, inPlace bool) *operation {
	rank, n := w.comm.Rank(), w.comm.Size()
	one := count * s.typ.Size()
	as := rank
	if w.cfg.Registered && s.Rooted() { // windows lie as on the root, on all ranks
		as = s.root
	}
	op := &operation{pairs: w.pairs(s, as, one, inPlace), count: count, inPlace: inPlace}
	calls := make([]*ringo.Call, len(op.pairs))
	for i := range op.pairs {
		at := &op.pairs[i]
		in, out := at.in, at.out
		at.in, at.out = in[:one*s.In.Blocks(rank, s.root, n)], out[:one*s.Out.Blocks(rank, s.root, n)]
		calls[i] = &ringo.Call{Kind: s.Kind, In: mem.Host(at.in), Out: mem.Host(at.out), Count: count, Type: s.typ, Op: s.op,
			Root: s.root}
		if w.gpu != nil {
			calls[i].In, calls[i].Out, calls[i].Stream = w.twin(in), w.twin(out), w.gpu.stream
		}
		if op.normed = w.norm != nil && program == "ringo"; op.normed {
			calls[i].Norm = w.norm.norm(s.typ, count)
		}
	}
	group := make([]*ringo.Call, w.cfg.Group)
	for i := range group {
		group[i] = calls[i%len(calls)]
	}
	together := w.together
	if program == "nccl" {
		together = w.nccl.together
	}
	op.do, op.once = together(group), together(calls)
	return op
}

// together makes calls, in a group if they are several. A Send goes to the next rank and
// comes with the Recv from the one before.
func (w *worker) together(calls []*ringo.Call) func() error {
	rank, n := w.comm.Rank(), w.comm.Size()
	var all []*ringo.Call
	for _, c := range calls {
		if all = append(all, c); c.Kind == ringo.KindSend {
			send, recv := *c, *c
			send.Peer = (rank + 1) % n
			recv.Kind, recv.Peer = ringo.KindRecv, (rank+n-1)%n
			all = append(all[:len(all)-1], &send, &recv)
		}
	}
	if len(all) == 1 {
		return func() error { return w.comm.Do(all[0]) }
	}
	g := ringo.NewGroup()
	return func() error {
		for _, c := range all {
			g.Add(w.comm, c)
		}
		return g.Run()
	}
}

// lengths is how many bytes of the two buffers, from their beginning, hold an
// operation's memory.
func (w *worker) lengths(op *operation) (in, out int) {
	for _, p := range op.pairs {
		in, out = max(in, w.in.length(p.in), w.in.length(p.out)), max(out, w.out.length(p.in), w.out.length(p.out))
	}
	return in, out
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
	d := newData(s.typ, s.op, !s.Reduces(), n, length, hash(w.fresh^w.seed, n, op.count))
	w.scratch.forget()
	origins := s.result(rank, s.root, n, op.count)
	one := op.count * size

	in, out := w.lengths(op)
	w.in.guard(in)
	w.out.guard(out)
	for _, at := range op.pairs {
		for i, p := range origins {
			w.scratch.of(d, p.rank).poison(at.out[i*one:(i+1)*one], p.from)
		}
		w.scratch.of(d, rank).fill(at.in, 0)
	}
	if op.normed {
		if err := w.prepare(d, one); err != nil {
			return 0, err
		}
	}
	if err := w.once(op, in, out); err != nil {
		return 0, err
	}
	var wrong int64
	for _, at := range op.pairs {
		for i, p := range origins {
			if op.normed {
				n, err := w.wrongRows(d, s.typ, at.out, p.from)
				if err != nil {
					return 0, err
				}
				wrong += n
				continue
			}
			wrong += w.scratch.of(d, p.rank).wrong(at.out[i*one:(i+1)*one], p.from)
		}
		if !op.inPlace {
			wrong += w.scratch.of(d, rank).wrong(at.in, 0)
		}
	}
	wrong += w.in.trespassed(in) + w.out.trespassed(out)
	w.wrong += wrong
	all, err := w.ctl.sum(float64(wrong))
	if err == nil && int64(all) < wrong {
		err = fmt.Errorf("verify: rank %d found %d wrong elements, but their sum over all ranks came back as %g", rank,
			wrong, all)
	}
	return int64(all), err
}

// once carries an operation out once, on the first in and out bytes of the two
// buffers.
func (w *worker) once(op *operation, in, out int) error {
	if w.gpu == nil {
		return op.once()
	}
	if err := w.upload(in, out); err != nil {
		return err
	}
	do := op.once
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
