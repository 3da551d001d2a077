// Reductions to one rank by direct kernels, in shares.

package gpucomm

import (
	"cmp"
	"errors"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/rankorder"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/sched"
)

// sharesPiece is how many bytes of In one pair of kernels reduces. Each rank needs scratch
// memory for its share of them.
const sharesPiece = 64 << 20

// reduceInShares queues a reduction to one rank by pairs of kernels: a reduce-scatter, in
// which each rank combines a share of the data, and a gather of the shares to the root.
// Shares are multiples of 128 bytes; a last kernel reduces what is left over.
func (q *queue) reduceInShares(c *call.Call, t *task) error {
	if err := q.openReduction(); err != nil {
		return err
	}
	r, n, root, piece := &t.request, q.Life.Size, sched.Rank(c.Root), cmp.Or(q.chooser.SharesPiece, sharesPiece)
	whole := t.job(c)
	share, err := q.workplace.Scratch(rankorder.ForShares, min(piece, r.In)/n)
	if err != nil {
		return err
	}
	// before the first kernel, see workplace.prepare
	if err := errors.Join(q.engine.PrepareDirect(nil), q.engine.PrepareDirect(r.Reducer)); err != nil {
		return err
	}
	run := func(kernel collective.Direct, at, bytes int) error {
		j := whole
		whole.Continues = true
		j.In = whole.In.Slice(at, min(bytes*n, whole.In.Len()-at))
		if q.Life.Rank == c.Root {
			j.Out = whole.Out.Slice(at, min(bytes*n, whole.Out.Len()-at))
		}
		switch kernel {
		case collective.ReduceScatter:
			j.Out = share.Slice(0, bytes)
		case collective.Gather:
			j.In, j.Reducer, j.Scalar = share.Slice(0, bytes), nil, 0
		}
		return q.engine.RunDirect(&j, kernel, root, bytes)
	}
	return q.order.after(&t.entry, func() error {
		return inShares(r.In, piece, n, run)
	})
}

// inShares calls run for each kernel of a reduction of length bytes to one of n ranks: pairs, then one
// for what is left over.
func inShares(length, piece, n int, run func(kernel collective.Direct, at, bytes int) error) error {
	at := 0
	for {
		each := min(piece, length-at) / n &^ 127
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
	if at == length {
		return nil
	}
	return run(collective.Reduce, at, length-at)
}
