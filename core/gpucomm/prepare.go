package gpucomm

import (
	"cmp"
	"errors"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/rankorder"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
)

// Prepare loads and allocates what a checked call needs, so that Do only queues it.
//
// Between a call and its launch no rank may wait for a kernel: the kernel may wait for a peer which waits for this
// rank. Memory grows by pages of the driver, which wait for nothing, and events and streams are made at Open and
// Register. Loading a kernel is what is left: drivers may let it wait for the kernels of the GPU. All kernels that only
// copy are loaded at Open. Those of every type and operator would take seconds there, so a program whose communicators
// overlap has Prepare load those that it needs.
func (q *queue) Prepare(c *call.Call) error {
	return q.known.admitted(c, func(e entry) error {
		return q.ready(c, &task{entry: e, answer: q.Answer(c)})
	})
}

// A prepared names calls that have the same kernels.
type prepared struct {
	by     choice.Carrier
	kernel collective.Direct
	kind   call.Kind
	typ    kernels.DataType
	op     kernels.Kind
	norm   bool
}

// PrepareAll has the kernels of a group's calls loaded before the first call is queued: one thread may make the calls
// of several GPUs, and a kernel of this one may wait for a call that comes later. An invalid call gets its error when
// it is queued.
func (q *queue) PrepareAll(calls []*call.Call) error {
	i := 0
	for i < len(calls) && (q.likeBefore(calls, i) || !q.unprepared(calls[i])) {
		i++
	}
	if i == len(calls) || q.upkeep.closed || q.Life.Failure() != nil {
		return nil
	}
	return q.known.with(calls[i], func(cuda.Sight) error {
		for k := i; k < len(calls); k++ {
			c := calls[k]
			if k > i && q.likeBefore(calls, k) || !q.unprepared(c) {
				continue
			}
			ans := q.Answer(c)
			if err := q.ready(c, &task{answer: ans}); err != nil {
				return err
			}
			q.prepared[whatOf(c, &ans)] = true
		}
		return nil
	})
}

// unprepared reports whether PrepareAll has something to do for a call.
func (q *queue) unprepared(c *call.Call) bool {
	if !c.OnDevice() || c.Kind.Pairwise() || q.known.ours(c) != nil {
		return false
	}
	ans := q.Answer(c)
	return !q.prepared[whatOf(c, &ans)]
}

func whatOf(c *call.Call, ans *choice.Answer) prepared {
	return prepared{ans.By, ans.Kernel, c.Kind, c.Type, c.Op.Kind, c.Norm != nil}
}

// ready loads and allocates what a call needs. The device's context is current.
func (q *queue) ready(c *call.Call, t *task) error {
	return q.Numberer.Carry(&t.request, c, &t.answer, true, q, func() error { return q.load(c, t) })
}

// load is ready for a task whose request is known.
func (q *queue) load(c *call.Call, t *task) error {
	r, ans := &t.request, &t.answer
	var errs []error
	do := func(err error) { errs = append(errs, err) }
	scratch := func() { _, err := q.scratch(r.In); do(err) }
	if c.CopiesIn() {
		scratch()
	}
	switch ans.By {
	case choice.BySchedule:
		_, err := q.program(r.Key)
		do(err)
		do(q.preparePhases(t))
	case choice.ByKernel:
		do(q.engine.PrepareDirect(r.Reducer))
	case choice.ByWindow:
		do(q.engine.PrepareWindow(r.Reducer))
	case choice.ByCopies:
		if c.Kind == call.AllReduce {
			_, err := q.program(shareProgram)
			do(err)
			do(q.engine.Prepare(r.Reducer))
		}
		do(q.engine.PrepareWindow(nil))
	case choice.ByShares:
		do(q.openReduction())
		do(q.engine.PrepareDirect(r.Reducer))
		if q.workplace != nil {
			piece := cmp.Or(q.chooser.SharesPiece, sharesPiece)
			_, err := q.workplace.Scratch(rankorder.ForShares, min(piece, r.In)/q.Life.Size)
			do(err)
		}
	case choice.ByNorm:
		do(q.engine.PrepareNorm(r.Reducer))
	case choice.ByFold:
		if c.Norm != nil {
			_, err := q.readyRows(c, t)
			do(err)
			break
		}
		do(q.openReduction())
		if q.workplace != nil {
			_, err := q.workplace.prepare(r, c.Kind, c.Bytes())
			do(err)
			_, err = q.workplace.Scratch(rankorder.ForShares, roomOnDevice)
			do(err)
			if r.Op == kernels.KindPreMulSum {
				_, err = q.workplace.Scratch(rankorder.ForScaled, roomOnDevice)
				do(err)
			}
		}
	}
	return errors.Join(errs...)
}
