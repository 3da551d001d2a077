// Batches: small all-reduces of a group that share kernels.

package gpucomm

import (
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
)

// maxBatch is the most calls of a batch. Calls on streams that alternate take a launch each; a
// stream holds some thousand launches, and then a thread that drives several GPUs would wait.
const maxBatch = 256

// Alike returns how many of a group's next calls Batch can carry out together, 1 if it cannot.
// All ranks have to find the same number, so the calls' streams, which a rank alone knows, do not
// count. Nor does it count whether calls use the same memory: calls of a group have no order.
func (q *queue) Alike(calls []*call.Call) int {
	n := 0
	for n < min(len(calls), maxBatch) && (q.likeBefore(calls, n) || q.small(calls[n])) && calls[n].Type == calls[0].Type &&
		calls[n].Op.Kind == calls[0].Op.Kind {
		n++
	}
	return max(1, n)
}

// likeBefore reports whether a call differs from the one before it in its memory alone, and no window is open: then the
// same kernel carries it out.
func (q *queue) likeBefore(calls []*call.Call, i int) bool {
	if i == 0 || len(q.windows.open) > 0 {
		return false
	}
	c, o := calls[i], calls[i-1]
	return c.Kind == o.Kind && !c.Kind.Variable() && c.Type == o.Type && c.Op.Kind == o.Op.Kind && c.Count == o.Count &&
		c.In.Dev() == o.In.Dev() && c.Out.Dev() == o.Out.Dev()
}

// small reports whether a call may be part of a batch. A PreMulSum may not: each call has a scalar of its own.
func (q *queue) small(c *call.Call) bool {
	switch {
	case c.Kind != call.AllReduce, !c.OnDevice(), !q.engine.CanMany(c.Bytes()):
		return false
	case c.Norm != nil, c.Op.Kind == kernels.KindPreMulSum, c.Op.Kind == kernels.KindUser:
		return false
	}
	ans := q.Answer(c)
	return ans.By == choice.ByKernel && ans.Kernel == collective.OneShot
}

// Batch queues checked calls that are alike, in a few kernels. They may be on different
// streams.
func (q *queue) Batch(calls []*call.Call) error {
	for _, c := range calls {
		if err := q.known.ours(c); err != nil {
			return err
		}
	}
	return q.known.with(calls[0], func(seen cuda.Sight) error {
		longest := 0
		for i, c := range calls {
			longest = max(longest, c.Bytes())
			if err := q.known.admitMemories(c); err != nil {
				return err
			}
			if i == 0 || c.Stream != calls[i-1].Stream {
				if _, err := q.known.admitStream(c.Stream, seen); err != nil {
					return err
				}
			}
		}
		if err := q.Life.Begin(calls[0], q); err != nil {
			return q.known.refusal(calls[0], err)
		}
		batch := q.engine.Batch(len(calls), longest, q.chooser.Budget.SideBySide())
		for len(calls) > 0 {
			n := 1
			for n < len(calls) && calls[n].Stream == calls[0].Stream {
				n++
			}
			if err := q.onStream(&batch, calls[:n]); err != nil {
				return err
			}
			calls = calls[n:]
		}
		return nil
	})
}

// onStream queues the calls of a batch that come next, all on one stream.
func (q *queue) onStream(b *grid.Batch, calls []*call.Call) (err error) {
	e, err := q.known.admitStream(calls[0].Stream, cuda.Sight{}) // anew: the capture may have gone on
	if err != nil {
		return err
	}
	e.observed = q.upkeep.observed.arrive()
	defer func() { e.observed.issued(err) }()
	q.jobs = q.jobs[:0]
	t := task{entry: e, answer: choice.Answer{Algo: call.OneShot}}
	for i, c := range calls {
		if q.likeBefore(calls, i) {
			q.Numberer.Again(&t.request, c, t.answer.Algo, e.captures)
		} else if err := q.Numberer.Begin(&t.request, c, &t.answer, e.captures); err != nil {
			return q.Numberer.End(&t.request, c, err, q)
		}
		e.observed.add(c, &t.request)
		q.jobs = append(q.jobs, t.job(c))
	}
	done := 0
	err = q.order.after(&e, func() error {
		end := q.order.endEvent(&e)
		for i := range q.jobs {
			q.jobs[i].Event = end
		}
		for done < len(calls) {
			n, err := q.engine.RunMany(b, q.jobs[done:])
			if err != nil {
				return err
			}
			done += n
		}
		return nil
	})
	if err != nil {
		return q.Life.Fail(calls[min(done, len(calls)-1)], 0, err, q)
	}
	return nil
}
