// Package rankorder carries out reductions whose contributions are combined in order of
// rank, so that their bits depend neither on size nor on algorithm, path, host or GPU. It is part
// of a communicator, and nothing here is promised to other modules.
//
// A Reduction moves the contributions to where they are combined, combines them there,
// and moves the results to who wants them: for an all-reduce an all-to-all of the shares,
// one local combine, an all-gather. It works in pieces, so that little memory is needed.
// The two halves of a communicator give it a Workplace. The trap: narrow floats are
// rounded once, at the end, except that each rank of a PreMulSum rounds what it has scaled.
package rankorder

import (
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/request"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// A Reduction carries out reductions in order of rank, one at a time.
type Reduction struct {
	Whole        int // an all-reduce of at most this many bytes sends everything to everybody
	ScratchBytes int // bytes of shares that a rank holds at a time

	rank, size int
	workplace  Workplace
	offs, ns   []int // of the pieces of a reduce-scatter
	request    request.Request
}

// A Workplace is where a reduction happens: on the host or on a GPU.
type Workplace interface {
	// Scratch is n bytes of memory for a use, until Scratch is called for the same use again.
	Scratch(which Use, n int) (mem.Region, error)
	// Move carries out a collective that is part of r, with the given layouts of in and out.
	Move(r *request.Request, kind call.Kind, in mem.Region, inL engine.Layout, out mem.Region, outL engine.Layout) error
	// Combine is kernels.Reducer.CombineAll for sources that lie one after the other.
	Combine(r *request.Request, dst, srcs mem.Region, contributions uint64, finish bool) error
}

// A Use is what a Workplace gives scratch for.
type Use uint8

const (
	ForShares Use = iota // the shares that are combined
	ForScaled            // contributions that are scaled; the sums of a call with a Norm
	Uses                 // how many there are
)

// New makes a Reduction of rank among size ranks. whole becomes its Whole, roomFor its ScratchBytes.
func New(rank, size int, w Workplace, whole, roomFor int) *Reduction {
	return &Reduction{Whole: whole, ScratchBytes: roomFor, rank: rank, size: size, workplace: w, offs: make([]int, size),
		ns: make([]int, size)}
}

// even is a Layout of n chunks of the same length.
func even(n, chunk int) engine.Layout { return engine.Layout{Total: n * chunk, Chunk: chunk} }

// Run carries out an AllReduce, Reduce or ReduceScatter of the bytes of in and out. out is empty on ranks that get
// nothing.
func (f *Reduction) Run(request request.Request, kind call.Kind, in, out mem.Region) error {
	f.request = request
	r, share := &f.request, f.share()
	switch first, _ := f.Parts(kind, in.Len()); {
	case kind == call.Reduce:
		return f.reduce(r, in, out, share)
	case kind == call.ReduceScatter:
		return f.reduceScatter(r, in, out, share)
	case first == call.AllGather:
		return f.gather(r, first, in, out)
	}
	return f.allReduce(r, in, out, share*f.size)
}

// share is how many bytes of a piece a rank combines at most: whole cache lines and whole units.
func (f *Reduction) share() int { return Share(f.ScratchBytes, f.size, f.request.Unit) }

// Share is the bytes of one rank's share in scratch bytes for all ranks: whole lines and whole units, at least one.
func Share(scratch, ranks, unit int) int {
	const line = 64
	whole, n := line, scratch/ranks
	if unit = max(1, unit); line%unit != 0 {
		whole *= unit
	}
	return max(whole, n-n%whole)
}

// Parts are the collectives that a reduction of bytes is made of: choice.Parts with the limits of f.
func (f *Reduction) Parts(kind call.Kind, bytes int) (first, then call.Kind) {
	return choice.Parts(kind, bytes, min(f.Whole, f.share()))
}

// gather moves all contributions to all ranks (AllGather) or to the root (Gather), and combines them there.
func (f *Reduction) gather(r *request.Request, kind call.Kind, in, out mem.Region) error {
	n := in.Len()
	in, inL, err := f.scaled(r, in, even(1, n))
	if err != nil {
		return err
	}
	combines := kind == call.AllGather || f.rank == int(r.Key.Peer)
	var shares mem.Region
	if combines {
		if shares, err = f.workplace.Scratch(ForShares, f.size*n); err != nil {
			return err
		}
	}
	if err := f.workplace.Move(r, kind, in, inL, shares, even(f.size, n)); err != nil || !combines {
		return err
	}
	return f.combineShares(r, out, shares)
}

func (f *Reduction) reduce(r *request.Request, in, out mem.Region, share int) error {
	for at := 0; at == 0 || at < in.Len(); at += share {
		n := min(share, in.Len()-at)
		to := out
		if out.Len() > 0 {
			to = out.Slice(at, n)
		}
		if err := f.gather(r, call.Gather, in.Slice(at, n), to); err != nil {
			return err
		}
	}
	return nil
}

// allReduce has each rank combine a share of each piece.
func (f *Reduction) allReduce(r *request.Request, in, out mem.Region, piece int) error {
	for at := 0; at < in.Len(); at += piece {
		n := min(piece, in.Len()-at)
		l := engine.Even(n, f.size, r.Unit)
		to := out.Slice(at, n)
		off, own := l.Extent(f.rank)
		mine := to.Slice(off, own)
		if err := f.scatter(r, in.Slice(at, n), l, mine); err != nil {
			return err
		}
		if err := f.workplace.Move(r, call.AllGather, mine, even(1, own), to, l); err != nil {
			return err
		}
	}
	return nil
}

func (f *Reduction) reduceScatter(r *request.Request, in, out mem.Region, share int) error {
	if out.Len() <= share {
		return f.scatter(r, in, even(f.size, out.Len()), out)
	}
	for at := 0; at < out.Len(); at += share {
		n := min(share, out.Len()-at)
		for p := range f.size {
			f.offs[p], f.ns[p] = p*out.Len()+at, n
		}
		if err := f.scatter(r, in, engine.Layout{Off: f.offs, Len: f.ns}, out.Slice(at, n)); err != nil {
			return err
		}
	}
	return nil
}

// scatter sends each rank its chunk of In and combines this rank's.
func (f *Reduction) scatter(r *request.Request, in mem.Region, l engine.Layout, out mem.Region) error {
	in, l, err := f.scaled(r, in, l)
	if err != nil {
		return err
	}
	shares, err := f.workplace.Scratch(ForShares, f.size*out.Len())
	if err != nil {
		return err
	}
	if err := f.workplace.Move(r, call.AlltoAll, in, l, shares, even(f.size, out.Len())); err != nil {
		return err
	}
	return f.combineShares(r, out, shares)
}

// scaled is the contribution that a rank sends, and its layout. A PreMulSum's is scaled here, and rounded, for ranks
// may have different scales.
func (f *Reduction) scaled(r *request.Request, in mem.Region, l engine.Layout) (mem.Region, engine.Layout, error) {
	if r.Op != kernels.KindPreMulSum {
		return in, l, nil
	}
	if l.Off == nil {
		to, err := f.workplace.Scratch(ForScaled, in.Len())
		if err == nil {
			err = f.workplace.Combine(r, to, in, 1, false)
		}
		return to, l, err
	}
	n := l.Len[0]
	to, err := f.workplace.Scratch(ForScaled, f.size*n)
	for p := 0; p < f.size && err == nil; p++ {
		err = f.workplace.Combine(r, to.Slice(p*n, n), in.Slice(l.Off[p], n), 1, false)
	}
	return to, even(f.size, n), err
}

// combineShares combines the shares of all ranks into out. Scales of other operators than PreMulSum are the same on
// all ranks: shares are scaled here, and not rounded before they are added.
func (f *Reduction) combineShares(r *request.Request, out, shares mem.Region) error {
	if out.Len() == 0 {
		return nil
	}
	contributions := ^uint64(0)
	if r.Op == kernels.KindPreMulSum {
		contributions = 0
	}
	return f.workplace.Combine(r, out, shares, contributions, true)
}
