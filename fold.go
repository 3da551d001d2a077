package ringo

import (
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/kernels"
)

// A fold carries out reductions in order of rank: it moves the contributions to
// where they are combined, combines them, and moves the results to who wants them,
// in pieces, so that little memory is needed.
type fold struct {
	c *Comm
	workplace
	whole    int   // up to how many bytes an all-reduce sends everything to everybody, which takes one hop less
	roomFor  int   // bytes of shares that a rank holds at a time
	offs, ns []int // of the pieces of a reduce-scatter
	request  request
}

// A workplace is where a fold happens: on the host or on a GPU.
type workplace interface {
	// room is n bytes of memory for shares, or for contributions that are scaled.
	room(which rooms, n int) (Region, error)
	// move carries out a collective.
	move(r *request, kind Kind, in Region, inL engine.Layout, out Region, outL engine.Layout) error
	// combine is kernels.Reducer.CombineAll for sources that lie one after the other.
	combine(r *request, dst, srcs Region, contributions uint64, finish bool) error
}

// rooms tells apart what a workplace has to hold.
type rooms uint8

const (
	sharesRoom rooms = iota
	scaledRoom
	allRooms
)

func newFold(c *Comm, w workplace, whole, roomFor int) *fold {
	return &fold{c: c, workplace: w, whole: whole, roomFor: roomFor, offs: make([]int, c.size), ns: make([]int, c.size)}
}

// even is a Layout of n chunks of the same length.
func even(n, chunk int) engine.Layout { return engine.Layout{Total: n * chunk, Chunk: chunk} }

// run carries out a reduction.
func (f *fold) run(request request, kind Kind, in, out Region) error {
	f.request = request
	r, share := &f.request, f.share()
	switch first, _ := f.parts(kind, in.Len()); {
	case kind == KindReduce:
		return f.reduce(r, in, out, share)
	case kind == KindReduceScatter:
		return f.reduceScatter(r, in, out, share)
	case first == KindAllGather:
		return f.gather(r, first, in, out)
	}
	return f.allReduce(r, in, out, share*f.c.size)
}

// share is how much of a piece a rank combines at most.
func (f *fold) share() int { return max(64, f.roomFor/f.c.size&^63) }

// parts are those of a reduction here.
func (f *fold) parts(kind Kind, bytes int) (first, then Kind) {
	return parts(kind, bytes, min(f.whole, f.share()))
}

// parts are the collectives that a reduction in order of rank is made of: what brings
// the contributions, and what takes the results away, none if there is nothing.
func parts(kind Kind, bytes, whole int) (first, then Kind) {
	switch {
	case kind == KindReduce:
		return KindGather, kinds
	case kind == KindReduceScatter:
		return KindAlltoAll, kinds
	case bytes <= whole:
		return KindAllGather, kinds
	}
	return KindAlltoAll, KindAllGather
}

// gather combines what all ranks have, on all of them or on the root.
func (f *fold) gather(r *request, kind Kind, in, out Region) error {
	n := in.Len()
	in, inL, err := f.scaled(r, in, even(1, n))
	if err != nil {
		return err
	}
	combines := kind == KindAllGather || f.c.rank == int(r.key.peer)
	var shares Region
	if combines {
		if shares, err = f.room(sharesRoom, f.c.size*n); err != nil {
			return err
		}
	}
	if err := f.move(r, kind, in, inL, shares, even(f.c.size, n)); err != nil || !combines {
		return err
	}
	return f.combineShares(r, out, shares)
}

func (f *fold) reduce(r *request, in, out Region, share int) error {
	for at := 0; at == 0 || at < in.Len(); at += share {
		n := min(share, in.Len()-at)
		to := out
		if out.Len() > 0 {
			to = out.Slice(at, n)
		}
		if err := f.gather(r, KindGather, in.Slice(at, n), to); err != nil {
			return err
		}
	}
	return nil
}

// allReduce has each rank combine a share of each piece.
func (f *fold) allReduce(r *request, in, out Region, piece int) error {
	for at := 0; at < in.Len(); at += piece {
		n := min(piece, in.Len()-at)
		l := engine.Even(n, f.c.size, r.size)
		to := out.Slice(at, n)
		off, own := l.Span(f.c.rank)
		mine := to.Slice(off, own)
		if err := f.scatter(r, in.Slice(at, n), l, mine); err != nil {
			return err
		}
		if err := f.move(r, KindAllGather, mine, even(1, own), to, l); err != nil {
			return err
		}
	}
	return nil
}

func (f *fold) reduceScatter(r *request, in, out Region, share int) error {
	if out.Len() <= share {
		return f.scatter(r, in, even(f.c.size, out.Len()), out)
	}
	for at := 0; at < out.Len(); at += share {
		n := min(share, out.Len()-at)
		for p := range f.c.size {
			f.offs[p], f.ns[p] = p*out.Len()+at, n
		}
		if err := f.scatter(r, in, engine.Layout{Off: f.offs, Len: f.ns}, out.Slice(at, n)); err != nil {
			return err
		}
	}
	return nil
}

// scatter sends each rank its chunk of In and combines this rank's.
func (f *fold) scatter(r *request, in Region, l engine.Layout, out Region) error {
	in, l, err := f.scaled(r, in, l)
	if err != nil {
		return err
	}
	shares, err := f.room(sharesRoom, f.c.size*out.Len())
	if err != nil {
		return err
	}
	if err := f.move(r, KindAlltoAll, in, l, shares, even(f.c.size, out.Len())); err != nil {
		return err
	}
	return f.combineShares(r, out, shares)
}

// scaled is what a rank sends. For PreMulSum that is scaled, and rounded: ranks may
// have different scales.
func (f *fold) scaled(r *request, in Region, l engine.Layout) (Region, engine.Layout, error) {
	if r.op != kernels.KindPreMulSum {
		return in, l, nil
	}
	if l.Off == nil {
		to, err := f.room(scaledRoom, in.Len())
		if err == nil {
			err = f.combine(r, to, in, 1, false)
		}
		return to, l, err
	}
	n := l.Len[0]
	to, err := f.room(scaledRoom, f.c.size*n)
	for p := 0; p < f.c.size && err == nil; p++ {
		err = f.combine(r, to.Slice(p*n, n), in.Slice(l.Off[p], n), 1, false)
	}
	return to, even(f.c.size, n), err
}

// combineShares is out = all ranks' shares. Other scales than PreMulSum's are the
// same for all: what comes is scaled then, and not rounded.
func (f *fold) combineShares(r *request, out, shares Region) error {
	if out.Len() == 0 {
		return nil
	}
	contributions := ^uint64(0)
	if r.op == kernels.KindPreMulSum {
		contributions = 0
	}
	return f.combine(r, out, shares, contributions, true)
}

// part is the key of a collective that is part of a request.
func (r *request) part(kind Kind, a algo) programKey {
	k := programKey{kind: kind, algo: a, peer: -1}
	if kind.Rooted() {
		k.peer = r.key.peer
	}
	return k
}
