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

// prepareShares allocates a rank's share, and loads both kernels.
func (q *calls) prepareShares(t *task) (err error) {
	if err = q.workplace.open(); err != nil {
		return err
	}
	n := min(q.sharesPiece(), t.request.In) / q.life.Size
	if t.share, err = q.workplace.Scratch(rankorder.ForShares, n); err != nil {
		return err
	}
	return errors.Join(q.engine.PrepareDirect(nil), q.engine.PrepareDirect(t.request.Reducer))
}

func (q *calls) sharesPiece() int { return cmp.Or(q.chooser.SharesPiece, sharesPiece) }

// inShares queues a reduction to one rank by pairs of kernels: a reduce-scatter, in
// which each rank combines a share of the data, and a gather of the shares to the root.
// Shares are multiples of 128 bytes; a last kernel reduces what is left over.
func (q *calls) inShares(c *call.Call, t *task) error {
	n, length, piece := q.life.Size, t.request.In, q.sharesPiece()
	for at := 0; at < length; {
		each := min(piece, length-at) / n &^ 127
		if each == 0 {
			return q.shareKernel(c, t, collective.Reduce, at, length-at)
		}
		if err := q.shareKernel(c, t, collective.ReduceScatter, at, each); err != nil {
			return err
		}
		if err := q.shareKernel(c, t, collective.Gather, at, each); err != nil {
			return err
		}
		at += each * n
	}
	return nil
}

// shareKernel queues one kernel of a reduction in shares, of which each rank has bytes of the data at an offset.
func (q *calls) shareKernel(c *call.Call, t *task, kernel collective.Direct, at, bytes int) error {
	whole := &q.jobs[0]
	j, n := *whole, bytes*q.life.Size
	whole.Continues = true
	j.In = whole.In.Slice(at, min(n, whole.In.Len()-at))
	if q.life.Rank == c.Root {
		j.Out = whole.Out.Slice(at, min(n, whole.Out.Len()-at))
	}
	switch kernel {
	case collective.ReduceScatter:
		j.Out = t.share.Slice(0, bytes)
	case collective.Gather:
		j.In, j.Reducer, j.Scalar = t.share.Slice(0, bytes), nil, 0
	}
	return q.engine.RunDirect(&j, kernel, sched.Rank(c.Root), bytes)
}
