// What carries calls out: what each carrier needs before its first launch, and the launches.

package gpucomm

import (
	"errors"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
)

// shareProgram is the reduce-scatter with which an all-reduce by copy engines begins.
var shareProgram = choice.Key{Kind: call.ReduceScatter, Algo: call.Ring, Peer: -1}

// prepare makes the job of a call, and has all be there that more than one launch needs: to load or allocate between
// launches may wait for the first one's kernel, and that for a peer that waits for this rank.
func (q *calls) prepare(c *call.Call, t *task) (err error) {
	r, by := &t.request, t.answer.By
	j := q.job(c, t)
	direct := by != choice.BySchedule && by != choice.ByCopies
	if c.CopiesIn() && by != choice.Alone && !(direct && c.In.Ptr() == c.Out.Ptr()) {
		if t.spare, err = q.scratch(r.In); err != nil {
			return err
		}
	}
	switch by {
	case choice.Alone:
		t.idle = r.Out == 0 || c.In.Ptr() == c.Out.Ptr()
	case choice.ByWindow, choice.ByCopies:
		j.Stamp = call.StampAt(j.Stamp, t.at.where)
		q.path.placements.add(&t.at)
		if by == choice.ByCopies && c.Kind == call.AllReduce {
			if j.Program, err = q.programs.find(shareProgram); err == nil {
				err = errors.Join(q.engine.Prepare(r.Reducer), q.engine.PrepareWindow(nil))
			}
		}
	case choice.ByNorm:
		err = q.engine.PrepareNorm(r.Reducer)
	case choice.ByFold:
		err = q.prepareFold(c, t)
	case choice.ByShares:
		err = q.prepareShares(t)
	case choice.BySchedule:
		if j.Program, err = q.programs.find(r.Key); err != nil {
			return err
		}
		j.InL, j.OutL = r.Layouts(c, q.life.Rank, j.Program.Shape(), &q.layout)
		if t.answer.Phases > 0 {
			err = errors.Join(q.programs.phases(r.Key, t.answer.Phases), q.engine.Prepare(r.Reducer))
		}
	}
	return err
}

// job adds the job of a call. A job for a schedule needs a program besides.
func (q *calls) job(c *call.Call, t *task) *grid.Job {
	r := &t.request
	q.jobs = append(q.jobs, grid.Job{
		In: c.In.Slice(0, r.In), Out: c.Out.Slice(0, r.Out),
		Reducer: r.Reducer, Scalar: r.Scalar, Early: r.Op == kernels.KindPreMulSum, // ranks may have different scalars
		Stamp: r.Stamp, Each: r.Each, Blocks: t.answer.Blocks, Stream: t.entry.handle, Capture: t.entry.capture.ID,
	})
	return &q.jobs[len(q.jobs)-1]
}

// scratch is n bytes of GPU memory for an operation. All operations use the same memory, one after the other.
func (q *calls) scratch(n int) (mem.Region, error) {
	at, err := q.spare.AtLeast(n)
	if err != nil {
		return mem.Region{}, err
	}
	return mem.Device(q.admission.device.Number(), at, n), nil
}

// launch queues the kernels and copies of calls, as the answer says. The device's context is current.
func (q *calls) launch(t *task, calls []*call.Call) error {
	switch t.how {
	case batched:
		return q.launchBatch(t, calls)
	case exchanged:
		return q.launchExchange(t, calls)
	}
	c, j, e, d := calls[0], &q.jobs[0], q.engine, q.admission.driver
	if t.spare.Len() > 0 {
		// Out is the same memory, and the operation writes some of Out before it has read all of In
		if err := d.MemcpyAsync(t.spare.Ptr(), j.In.Ptr(), j.In.Len(), j.Stream); err != nil {
			return err
		}
		j.In = t.spare
	}
	root := sched.Rank(max(0, t.request.Key.Peer))
	switch t.answer.By {
	case choice.Alone:
		return d.MemcpyAsync(c.Out.Ptr(), c.In.Ptr(), t.request.Out, c.Stream)
	case choice.ByKernel:
		j.Event = q.order.endEvent(&t.entry)
		return e.RunDirect(j, t.answer.Kernel, root, c.Count*t.request.Size)
	case choice.ByWindow:
		t.at.usedBy(t.entry.inOwn, false)
		j.Event = q.order.endEvent(&t.entry)
		return e.RunWindow(j, t.answer.Kernel, t.at.in.inGrid(), t.at.out.inGrid(), root, c.Bytes())
	case choice.ByCopies:
		t.at.usedBy(t.entry.inOwn, true)
		return q.copies(c, t, j, root)
	case choice.ByNorm:
		j.Event = q.order.endEvent(&t.entry)
		n := normOf(c)
		return e.RunNorm(j, &n, t.answer.Kernel)
	case choice.ByFold:
		return q.fold(c, t, j)
	case choice.ByShares:
		return q.inShares(c, t)
	}
	if t.answer.Phases > 0 {
		return q.inPhases(t, j)
	}
	return q.programs.run(&t.answer, j)
}

// copies queues copies between windows.
func (q *calls) copies(c *call.Call, t *task, j *grid.Job, root sched.Rank) (err error) {
	on, d := &q.windows.copies, q.admission.driver
	if j.Stream, err = on.enter(d, c.Stream); err != nil {
		return err
	}
	in, out := t.at.in.inGrid(), t.at.out.inGrid()
	if c.Kind == call.AllReduce { // begins with a reduce-scatter
		half, err := q.engine.ScatterJob(j, in, out, c.Bytes())
		if err != nil {
			return err
		}
		if err := q.programs.run(&t.answer, half); err != nil {
			return err
		}
	}
	if err = q.engine.RunCopies(j, t.answer.Kernel, in, out, root, c.Bytes()); err != nil {
		return err
	}
	return on.leave(d, c.Stream)
}

// inPhases queues a job by the programs of its phases, one after the other, instead of its own.
func (q *calls) inPhases(t *task, j *grid.Job) error {
	key, n := t.request.Key, t.answer.Phases
	for i := range n {
		key.Phase = i + 1
		j.Program, j.Continues, j.More = q.programs.of[key], i > 0, i < n-1
		if err := q.programs.run(&t.answer, j); err != nil {
			return err
		}
	}
	return nil
}
