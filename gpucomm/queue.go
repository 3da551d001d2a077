package gpucomm

import (
	"errors"
	"runtime"

	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/choice"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/hostcomm"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/request"
	"github.com/ringo-go/ringo/sched"
)

// Do queues a checked call on GPU memory on its stream. An error is a *call.Error.
func (g *Comm) Do(c *call.Call) error {
	return g.admitted(c, func() error {
		g.observed.arrive()
		ans := g.Answer(c)
		r := &g.request
		err := g.chooser.Prove(c, ans.Algo)
		if err == nil {
			err = g.Numberer.Number(r, c, ans.Algo, g.captures)
		}
		if err == nil {
			g.observed.begin(c, r)
			err = g.queue(c, r, ans)
		}
		if err != nil {
			err = g.Life.Fail(c, r.Seq(), err, g)
		}
		g.observed.issued(err)
		return err
	})
}

// admitted calls f for a call that may begin, with the device's context current.
func (g *Comm) admitted(c *call.Call, f func() error) error {
	if err := g.ours(c); err != nil {
		return err
	}
	return g.with(c, func() error {
		if err := g.admit(c); err != nil {
			return err
		}
		if err := g.Life.Begin(c, g); err != nil {
			return g.refusal(c, err)
		}
		return f()
	})
}

// refusal is why a call cannot begin. If graphs were launched after Close, it says so.
func (g *Comm) refusal(c *call.Call, err error) error {
	if _, late := g.estate.trespass(); late != nil {
		return g.Life.Place(c, 0, late, g)
	}
	return err
}

// Answer says what carries a call out, and why. It also looks up the call's memory in
// windows, and remembers the places for inWindows.
func (g *Comm) Answer(c *call.Call) choice.Answer {
	at, registered := g.place(c)
	g.at = at
	q := question(c, registered)
	q.NoCopies = at.stalls()
	if l := &g.latest; q != l.question || g.chooser.Forced != l.forced { // which tests set
		*l = latest{q, g.chooser.Forced, g.chooser.Choose(q)}
	}
	return g.latest.answer
}

// latest is the last question and its answer: calls are mostly like the one before.
type latest struct {
	question choice.Question
	forced   call.Algo
	answer   choice.Answer
}

func question(c *call.Call, registered bool) choice.Question {
	return choice.Question{Kind: c.Kind, Bytes: c.Bytes(), Type: c.Type, Op: c.Op.Kind, OnGPU: true, Registered: registered}
}

// with calls f on this OS thread with the device's context current. It asks the driver at once about
// the call's stream; see takes that. If f fails with an error that is no *call.Error yet, the
// communicator fails, and the error names the call.
func (g *Comm) with(c *call.Call, f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	driver := g.Device.Driver()
	g.seen = cuda.Look(driver, c.Stream, g.streamIDs)
	g.sees = g.seen.Context == g.net.Context()
	var err error
	if g.sees {
		err = f()
	} else {
		err = cuda.With(driver, g.net.Context(), f)
	}
	if err == nil || placed(err) {
		return err
	}
	return g.Life.Fail(c, g.Life.Turn.Seq(), err, g)
}

// placed reports whether an error is a *call.Error already.
func placed(err error) bool {
	var has *call.Error
	return errors.As(err, &has)
}

// queue queues a request by what the answer says. The device's context is current.
func (g *Comm) queue(c *call.Call, r *request.Request, ans choice.Answer) error {
	if g.Life.Size == 1 && r.Op != kernels.KindPreMulSum && !c.Kind.Variable() {
		return g.alone(c, r)
	}
	g.blocks = ans.Blocks
	switch ans.By {
	case choice.ByWindow, choice.ByCopies:
		return g.inWindows(c, r, ans)
	case choice.ByFold:
		return g.inOrder(c, r)
	case choice.ByShares:
		return g.reduceInShares(c, r)
	case choice.ByKernel:
		return g.byKernel(c, r, ans.Kernel)
	}
	j := &g.job
	if err := g.prepare(c, r, j, &g.layout); err != nil {
		return err
	}
	return g.after(c.Stream, func() error {
		if c.CopiesIn() {
			if err := g.copyIn(c, j); err != nil {
				return err
			}
		}
		if keys := g.phases(c, r); len(keys) > 0 {
			return g.inPhases(keys, j)
		}
		return g.engine.Run(j)
	})
}

// alone queues the request of a communicator's only rank: a copy, or nothing in place. Those with
// offsets are left to the engine, which knows them.
func (g *Comm) alone(c *call.Call, r *request.Request) error {
	if r.Out == 0 || c.In.Ptr() == c.Out.Ptr() {
		return nil
	}
	return g.after(c.Stream, func() error {
		return g.Device.Driver().MemcpyAsync(c.Out.Ptr(), c.In.Ptr(), r.Out, c.Stream)
	})
}

// byKernel queues a request for a direct kernel.
func (g *Comm) byKernel(c *call.Call, r *request.Request, k collective.Direct) error {
	j := &g.job
	*j = g.jobOf(c, r)
	return g.after(c.Stream, func() error {
		if c.CopiesIn() && c.In.Ptr() != c.Out.Ptr() {
			if err := g.copyIn(c, j); err != nil {
				return err
			}
		}
		if r.Op == kernels.KindPreMulSum && r.Reducer != nil {
			if err := g.scaleIn(c, r, j); err != nil {
				return err
			}
		}
		j.Event = g.endEvent()
		return g.engine.RunDirect(j, k, sched.Rank(max(0, r.Key.Peer)), c.Count*r.Size)
	})
}

// jobOf is the job of a request. A job for a schedule needs a program besides.
func (g *Comm) jobOf(c *call.Call, r *request.Request) grid.Job {
	return grid.Job{
		In: c.In.Slice(0, r.In), Out: c.Out.Slice(0, r.Out),
		Reducer: r.Reducer, Scalar: r.Scalar, Stamp: r.Stamp, Blocks: g.blocks, Stream: c.Stream, Capture: g.capture.ID,
	}
}

// prepare makes the job of a request that a schedule carries out. The layouts of
// v-variants are kept in room.
func (g *Comm) prepare(c *call.Call, r *request.Request, j *grid.Job, room *[4][]int) error {
	p, err := g.program(r.Key)
	if err != nil {
		return err
	}
	*j = g.jobOf(c, r)
	j.Program = p
	j.InL, j.OutL = hostcomm.Layouts(c, g.Life.Rank, p.Shape(), r, room)
	return nil
}

// program finds or makes the program of a key.
func (g *Comm) program(key choice.Key) (*grid.Program, error) {
	if p := g.programs[key]; p != nil {
		return p, nil
	}
	p, err := g.engine.Compile(key.Schedule(g.chooser.Topo), sched.Rank(g.Life.Rank))
	if err == nil {
		g.programs[key] = p
	}
	return p, err
}
