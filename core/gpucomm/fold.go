// Reductions in order of rank by other collectives, and calls with a Norm.

package gpucomm

import (
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/rankorder"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/mem"
)

// normOf is a call's Norm for package grid.
func normOf(c *call.Call) grid.Norm {
	n := c.Norm
	return grid.Norm{
		Norm: n.Arithmetic(c.Type), Residual: n.Residual, Bias: n.Bias, Weight: n.Weight, Normed: n.Normed,
		SmallOut: n.SmallOut, Scale: n.Scale, Scales: n.Scales, Sum: c.Out.Len() > 0,
	}
}

// prepareFold loads, compiles and allocates what a reduction in order of rank needs.
func (q *calls) prepareFold(c *call.Call, t *task) (err error) {
	p, r := q.workplace, &t.request
	if err = p.open(); err != nil {
		return err
	}
	if c.Norm == nil {
		if _, err = p.kernel(r); err != nil {
			return err
		}
	} else if err = q.engine.PrepareRows(r.Reducer); err != nil || p.size == 1 {
		return err
	} else if err = p.makeRoom(rankorder.ForShares, rankorder.ForScaled); err != nil {
		return err
	}
	t.gather, err = p.prepareMoves(r, c.Kind, c.Bytes())
	return err
}

// fold queues a reduction in order of rank.
func (q *calls) fold(c *call.Call, t *task, j *grid.Job) error {
	p := q.workplace
	p.answer, p.gather = t.answer, t.gather
	p.job = grid.Job{Stamp: j.Stamp, Blocks: j.Blocks, Stream: j.Stream, Capture: j.Capture}
	if c.Norm != nil {
		return q.finishRows(c, t, j)
	}
	return p.reduction.Run(t.request, c.Kind, j.In, j.Out)
}

// finishRows queues a call with a Norm: other collectives bring the contributions here, and a kernel finishes them.
func (q *calls) finishRows(c *call.Call, t *task, j *grid.Job) error {
	whole, row := normOf(c), c.Norm.Row*t.request.Size
	return q.workplace.reduction.RunRows(t.request, c.Kind, j.In, row, func(rows rankorder.Rows) error {
		n := whole
		of := func(r mem.Region, n int) mem.Region { return rows.Of(r, n, row) }
		part := grid.Job{In: rows.Shares, Out: of(j.Out, row), Reducer: j.Reducer, Blocks: j.Blocks, Stream: j.Stream}
		n.Residual, n.Normed = of(n.Residual, row), of(n.Normed, row)
		n.SmallOut, n.Scales = of(n.SmallOut, c.Norm.Row), of(n.Scales, 4)
		switch {
		case rows.Summed:
			n.Residual, n.Bias = mem.Region{}, mem.Region{}
		case rows.Sums.Len() > 0:
			part.Out = rows.Sums
			n = grid.Norm{Norm: n.Norm, Residual: n.Residual, Bias: n.Bias, Sum: true}
			n.Small = 0
		}
		return q.engine.RunRows(&part, &n, rows.Contributions)
	})
}
