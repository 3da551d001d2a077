// Calls with a Norm.

package gpucomm

import (
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/rankorder"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/mem"
)

// byNorm queues a call with a Norm for a direct kernel.
func (q *queue) byNorm(c *call.Call, t *task) error {
	if err := q.engine.PrepareNorm(t.request.Reducer); err != nil {
		return err
	}
	j, n := t.job(c), normOf(c)
	return q.order.after(&t.entry, func() error {
		j.Event = q.order.endEvent(&t.entry)
		return q.engine.RunNorm(&j, &n, t.answer.Kernel)
	})
}

// normOf is a call's Norm for package grid.
func normOf(c *call.Call) grid.Norm {
	n := c.Norm
	return grid.Norm{
		Norm: n.Arithmetic(c.Type), Residual: n.Residual, Bias: n.Bias, Weight: n.Weight, Normed: n.Normed,
		SmallOut: n.SmallOut, Scale: n.Scale, Scales: n.Scales, Sum: c.Out.Len() > 0,
	}
}

// finishRows queues a call with a Norm: other collectives bring the contributions here, and a kernel finishes them.
func (q *queue) finishRows(c *call.Call, t *task) error {
	gather, err := q.readyRows(c, t)
	if err != nil {
		return err
	}
	j, whole, row := t.job(c), normOf(c), c.Norm.Row*t.request.Size
	q.workplace.now = fold{grid.Job{Stamp: j.Stamp, Blocks: j.Blocks, Stream: j.Stream, Capture: j.Capture}, gather, &t.answer}
	finish := func(rows rankorder.Rows) error {
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
	}
	return q.order.after(&t.entry, func() error { return q.reduction.RunRows(t.request, c.Kind, j.In, row, finish) })
}

// readyRows loads and allocates what finishRows needs, before its first kernel is queued.
func (q *queue) readyRows(c *call.Call, t *task) (gather call.Algo, err error) {
	if err := q.engine.PrepareRows(t.request.Reducer); err != nil {
		return gather, err
	}
	if err := q.openReduction(); err != nil || q.Life.Size == 1 {
		return gather, err
	}
	for _, use := range []rankorder.Use{rankorder.ForShares, rankorder.ForScaled} {
		if _, err := q.workplace.Scratch(use, roomOnDevice); err != nil {
			return gather, err
		}
	}
	return q.workplace.prepareMoves(&t.request, c.Kind, c.Bytes())
}
