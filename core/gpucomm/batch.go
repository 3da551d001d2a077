// Batches: small all-reduces of a group that share kernels.

package gpucomm

import (
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
)

// maxBatch is the most calls of a batch. Calls on streams that alternate take a launch each; a
// stream holds some thousand launches, and then a thread that drives several GPUs would wait.
const maxBatch = 256

// Alike returns how many of a group's next calls Batch can carry out together, 1 if it cannot.
// All ranks have to find the same number, so the calls' streams, which a rank alone knows, do not
// count. Nor does it count whether calls use the same memory: calls of a group have no order.
func (q *calls) Alike(calls []*call.Call) int {
	n := 0
	for n < min(len(calls), maxBatch) && (q.likeBefore(calls, n) || q.small(calls[n])) && calls[n].Type == calls[0].Type &&
		calls[n].Op.Kind == calls[0].Op.Kind {
		n++
	}
	return max(1, n)
}

// likeBefore reports whether a call differs from the one before it in its memory alone, and no window is open: then the
// same kernel carries it out.
func (q *calls) likeBefore(calls []*call.Call, i int) bool {
	if i == 0 || len(q.windows.open) > 0 {
		return false
	}
	c, o := calls[i], calls[i-1]
	return c.Kind == o.Kind && !c.Kind.Variable() && c.Type == o.Type && c.Op.Kind == o.Op.Kind && c.Count == o.Count &&
		c.In.Dev() == o.In.Dev() && c.Out.Dev() == o.Out.Dev()
}

// small reports whether a call may be part of a batch. A PreMulSum may not: each call has a scalar of its own.
func (q *calls) small(c *call.Call) bool {
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
// streams: each change of the stream begins another operation. All are admitted, or none.
func (q *calls) Batch(calls []*call.Call) (err error) {
	var v visit
	first, seq := calls[0], q.life.Turn.Seq()
	defer func() { err = q.admission.leave(&v, first, seq, err) }()
	if err = q.admission.enter(&v, first.Stream); err != nil {
		return err
	}
	if _, err = q.admission.admit(&v, calls, false); err != nil {
		return err
	}
	longest := 0
	for _, c := range calls {
		longest = max(longest, c.Bytes())
	}
	batch := q.engine.Batch(len(calls), longest, q.chooser.Budget.SideBySide())
	for len(calls) > 0 {
		n := 1
		for n < len(calls) && calls[n].Stream == calls[0].Stream {
			n++
		}
		if err = q.queue(&task{how: batched, batch: &batch}, calls[:n]); err != nil {
			return err
		}
		calls = calls[n:]
	}
	return nil
}

// launchBatch queues the kernels of a batch's calls. An error is of the first call that is not queued.
func (q *calls) launchBatch(t *task, calls []*call.Call) error {
	end := q.order.endEvent(&t.entry)
	for i := range q.jobs {
		q.jobs[i].Event = end
	}
	for done := 0; done < len(calls); {
		n, err := q.engine.RunMany(t.batch, q.jobs[done:])
		if err != nil {
			t.now, t.seq = done, 0
			return err
		}
		done += n
	}
	return nil
}
