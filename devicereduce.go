package ringo

import (
	"cmp"

	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/sched"
)

// reducesInShares reports whether a reduction to one rank, in order of rank, takes
// two direct kernels: each rank combines a share of the data, and the root gathers
// them. So the root receives the data once, and not from each rank, which pays from
// where two kernels take as long as that.
func (p *planner) reducesInShares(kind Kind, bytes int) bool {
	n := p.topo.ranks
	return kind == KindReduce && p.can.CanDirect() && n > 2 && bytes*(n-1) > cmp.Or(p.shares, 6<<20)
}

// sharesPiece is how much of the data two kernels are for: a rank holds a share of it.
const sharesPiece = 64 << 20

// reduceInShares queues such a reduction. What is left over when all shares are whole
// lines goes to the root as it is.
func (d *device) reduceInShares(c *Comm, call *Call, r *request) error {
	if err := d.openFold(c); err != nil {
		return err
	}
	n, root, piece := c.size, sched.Rank(call.Root), cmp.Or(d.piece, sharesPiece)
	whole, scales := jobOf(call, r), r.op == kernels.KindPreMulSum
	if scales {
		piece = min(piece, scaleFirst)
	}
	share, err := d.workplace.room(sharesRoom, min(piece, r.in)/n)
	if err != nil {
		return err
	}
	err = d.engine.PrepareDirect(nil) // see devicePlace.prepare
	if err == nil && !scales {
		err = d.engine.PrepareDirect(r.reducer)
	}
	if err != nil {
		return err
	}
	run := func(kernel grid.Direct, at, bytes int) error {
		j := &d.job
		*j = whole
		j.In = whole.In.Slice(at, min(bytes*n, whole.In.Len()-at))
		if c.rank == call.Root {
			j.Out = whole.Out.Slice(at, min(bytes*n, whole.Out.Len()-at))
		}
		switch kernel {
		case grid.ReduceScatter:
			j.Out = share.Slice(0, bytes)
		case grid.Gather:
			j.In, j.Reducer, j.Scalar = share.Slice(0, bytes), nil, 0
		}
		if scales && kernel != grid.Gather {
			if err := d.scaleIn(c, call, r, j); err != nil {
				return err
			}
		}
		return d.engine.RunDirect(j, kernel, root, bytes)
	}
	return d.inOrder(call.Stream, func() error {
		at := 0
		for {
			each := min(piece, r.in-at) / n &^ 127
			if each == 0 {
				break
			}
			if err := run(grid.ReduceScatter, at, each); err != nil {
				return err
			}
			if err := run(grid.Gather, at, each); err != nil {
				return err
			}
			at += each * n
		}
		if at == r.in {
			return nil
		}
		return run(grid.Reduce, at, r.in-at)
	})
}
