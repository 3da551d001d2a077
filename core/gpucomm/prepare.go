package gpucomm

import (
	"errors"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/rankorder"
	"github.com/ringo-go/ringo/kernels"
)

// Prepare loads and allocates what a checked call needs, so that Do only queues it.
//
// Between a call and its launch no rank may wait for a kernel: the kernel may wait for a peer which waits for this
// rank. Memory grows by pages of the driver, which wait for nothing, and events and streams are made at Open and
// Register. Loading a kernel is what is left: drivers may let it wait for the kernels of the GPU. All kernels that only
// copy are loaded at Open. Those of every type and operator would take seconds there, so a program whose communicators
// overlap has Prepare load those that it needs.
func (q *calls) Prepare(c *call.Call) (err error) {
	t := task{seq: q.life.Turn.Seq()}
	defer func() { err = q.leave(&t, c, err) }()
	if err = q.admission.enter(&t.visit, c.Stream); err != nil {
		return err
	}
	list := [1]*call.Call{c}
	if t.entry, err = q.admission.admit(&t.visit, list[:], true); err != nil {
		return err
	}
	return q.ready(c, &t)
}

// PrepareAll has the kernels of a group's calls loaded before the first call is queued: one thread may make the calls
// of several GPUs, and a kernel of this one may wait for a call that comes later. An invalid call gets its error when
// it is queued.
func (q *calls) PrepareAll(calls []*call.Call) (err error) {
	i := 0
	for i < len(calls) && (q.likeBefore(calls, i) || !q.unprepared(calls[i])) {
		i++
	}
	if i == len(calls) || q.admission.closed || q.life.Failure() != nil {
		return nil
	}
	t := task{now: i, seq: q.life.Turn.Seq()}
	defer func() { err = q.leave(&t, calls[t.now], err) }()
	if err = q.admission.enter(&t.visit, calls[i].Stream); err != nil {
		return err
	}
	for k := i; k < len(calls); k++ {
		c := calls[k]
		if k > i && q.likeBefore(calls, k) || !q.unprepared(c) {
			continue
		}
		t.now = k
		if err = q.ready(c, &t); err != nil {
			return err
		}
		q.prepared[whatOf(c, &t.answer)] = true
	}
	return nil
}

// unprepared reports whether PrepareAll has something to do for a call.
func (q *calls) unprepared(c *call.Call) bool {
	if !c.OnDevice() || c.Kind.Pairwise() || q.admission.ours(c) != nil {
		return false
	}
	ans := q.Answer(c)
	return !q.prepared[whatOf(c, &ans)]
}

// ready loads and allocates what a call needs. The device's context is current.
func (q *calls) ready(c *call.Call, t *task) error {
	t.seq, q.jobs = 0, q.jobs[:0]
	q.choose(c, t)
	err := q.numberer.Begin(&t.request, c, &t.answer, true)
	if err == nil {
		err = errors.Join(q.prepare(c, t), q.load(c, t))
	}
	return err
}

// load loads what one launch needs, which the launch would load itself, and allocates what grows with the calls.
func (q *calls) load(c *call.Call, t *task) error {
	r := &t.request
	switch t.answer.By {
	case choice.BySchedule:
		return q.engine.Prepare(r.Reducer)
	case choice.ByKernel:
		return q.engine.PrepareDirect(r.Reducer)
	case choice.ByWindow:
		return q.engine.PrepareWindow(r.Reducer)
	case choice.ByCopies:
		return q.engine.PrepareWindow(nil)
	case choice.ByFold:
		if c.Norm != nil || q.workplace.reduction == nil {
			break
		}
		if r.Op == kernels.KindPreMulSum {
			return q.workplace.makeRoom(rankorder.ForShares, rankorder.ForScaled)
		}
		return q.workplace.makeRoom(rankorder.ForShares)
	}
	return nil
}
