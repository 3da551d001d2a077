package gpucomm

import (
	"cmp"

	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/choice"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/rankorder"
	"github.com/ringo-go/ringo/request"
	"github.com/ringo-go/ringo/sched"
)

// sharesPiece is how many bytes of In one pair of kernels reduces. Each rank needs scratch
// memory for its share of them.
const sharesPiece = 64 << 20

// reduceInShares queues a reduction to one rank by pairs of kernels: a reduce-scatter, in
// which each rank combines a share of the data, and a gather of the shares to the root.
// Shares are multiples of 128 bytes; a last kernel reduces what is left over.
func (g *Comm) reduceInShares(c *call.Call, r *request.Request) error {
	if err := g.openReduction(); err != nil {
		return err
	}
	n, root, piece := g.Life.Size, sched.Rank(c.Root), cmp.Or(g.chooser.SharesPiece, sharesPiece)
	whole, scales := g.jobOf(c, r), r.Op == kernels.KindPreMulSum
	if scales {
		piece = min(piece, choice.ScaleFirst)
	}
	share, err := g.workplace.Room(rankorder.SharesRoom, min(piece, r.In)/n)
	if err != nil {
		return err
	}
	err = g.engine.PrepareDirect(nil) // see workplace.prepare
	if err == nil && !scales {
		err = g.engine.PrepareDirect(r.Reducer)
	}
	if err != nil {
		return err
	}
	run := func(kernel collective.Direct, at, bytes int) error {
		j := &g.job
		*j = whole
		whole.Continues = true
		j.In = whole.In.Slice(at, min(bytes*n, whole.In.Len()-at))
		if g.Life.Rank == c.Root {
			j.Out = whole.Out.Slice(at, min(bytes*n, whole.Out.Len()-at))
		}
		switch kernel {
		case collective.ReduceScatter:
			j.Out = share.Slice(0, bytes)
		case collective.Gather:
			j.In, j.Reducer, j.Scalar = share.Slice(0, bytes), nil, 0
		}
		if scales && kernel != collective.Gather {
			if err := g.scaleIn(c, r, j); err != nil {
				return err
			}
		}
		return g.engine.RunDirect(j, kernel, root, bytes)
	}
	return g.after(c.Stream, func() error {
		at := 0
		for {
			each := min(piece, r.In-at) / n &^ 127
			if each == 0 {
				break
			}
			if err := run(collective.ReduceScatter, at, each); err != nil {
				return err
			}
			if err := run(collective.Gather, at, each); err != nil {
				return err
			}
			at += each * n
		}
		if at == r.In {
			return nil
		}
		return run(collective.Reduce, at, r.In-at)
	})
}
