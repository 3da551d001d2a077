package gpucomm

import (
	"cmp"
	"errors"
	"slices"

	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/choice"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/rankorder"
	"github.com/ringo-go/ringo/request"
)

// Prepare loads and allocates what a checked call needs, so that Do only queues it.
//
// Between a call and its launch no rank may wait for a kernel, for that may wait for a peer
// which waits for this rank. Memory that grows is pages of the driver, which wait for
// nothing, and events and streams are made at Open and Register. Loading a kernel is what
// is left: drivers may let it wait for the kernels of the GPU. All kernels that only copy are
// loaded at Open. Those of every type and operator would take seconds there, so a program
// whose communicators overlap has Prepare load those that it needs.
func (g *Comm) Prepare(c *call.Call) error {
	return g.admitted(c, func() error {
		ans, r := g.Answer(c), &g.request
		err := g.Numberer.Number(r, c, ans.Algo, true)
		if err == nil {
			err = g.ready(c, r, ans)
		}
		if err != nil {
			return g.Life.Fail(c, 0, err, g)
		}
		return nil
	})
}

// A prepared names what has the same kernels.
type prepared struct {
	by     choice.Carrier
	kernel collective.Direct
	kind   call.Kind
	typ    kernels.DataType
	op     kernels.Kind
}

// PrepareAll has the kernels of a group's calls loaded before the first call is queued: one
// thread may make the calls of several GPUs, and a kernel of this one may wait for a call
// that comes later. What is wrong with a call, the call itself says.
func (g *Comm) PrepareAll(calls []*call.Call) error {
	i := slices.IndexFunc(calls, (*call.Call).OnDevice)
	if i < 0 || g.closed || g.Life.Err() != nil {
		return nil
	}
	return g.with(calls[i], func() error {
		for _, c := range calls[i:] {
			if !c.OnDevice() || c.Kind.Pairwise() || g.ours(c) != nil {
				continue
			}
			ans := g.Answer(c)
			key := prepared{ans.By, ans.Kernel, c.Kind, c.Type, c.Op.Kind}
			if g.prepared[key] {
				continue
			}
			r := &g.request
			err := g.Numberer.Number(r, c, ans.Algo, true)
			if err == nil {
				err = g.ready(c, r, ans)
			}
			if err != nil {
				return g.Life.Fail(c, 0, err, g)
			}
			g.prepared[key] = true
		}
		return nil
	})
}

// ready loads and allocates what a request needs. The device's context is current.
func (g *Comm) ready(c *call.Call, r *request.Request, ans choice.Answer) error {
	var errs []error
	do := func(err error) { errs = append(errs, err) }
	scratch := func() { _, err := g.scratch(r.In); do(err) }
	if c.CopiesIn() {
		scratch()
	}
	reducer := r.Reducer
	if (ans.By == choice.ByKernel || ans.By == choice.ByShares) && r.Op == kernels.KindPreMulSum && reducer != nil { // see scaleIn
		scratch()
		do(g.openReduction())
		if g.workplace != nil {
			_, err := g.workplace.kernel(r)
			do(err)
		}
		var err error
		reducer, err = kernels.NewReducer(c.Type, kernels.Sum, g.Life.Size)
		do(err)
	}
	switch ans.By {
	case choice.BySchedule:
		for _, key := range append(g.phases(c, r), r.Key) {
			_, err := g.program(key)
			do(err)
		}
		do(g.engine.Prepare(reducer))
	case choice.ByKernel:
		do(g.engine.PrepareDirect(reducer))
	case choice.ByWindow:
		do(g.engine.PrepareWindow(reducer))
	case choice.ByCopies:
		if c.Kind == call.AllReduce {
			_, err := g.program(shareProgram)
			do(err)
			do(g.engine.Prepare(reducer))
		}
		do(g.engine.PrepareWindow(nil))
	case choice.ByShares:
		do(g.openReduction())
		do(g.engine.PrepareDirect(reducer))
		if g.workplace != nil {
			piece := cmp.Or(g.chooser.SharesPiece, sharesPiece)
			_, err := g.workplace.Room(rankorder.SharesRoom, min(piece, r.In)/g.Life.Size)
			do(err)
		}
	case choice.ByFold:
		do(g.openReduction())
		if g.workplace != nil {
			do(g.workplace.prepare(r, c.Kind, c.Bytes()))
			_, err := g.workplace.Room(rankorder.SharesRoom, roomOnDevice)
			do(err)
		}
	}
	return errors.Join(errs...)
}
