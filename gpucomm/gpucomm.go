// Package gpucomm is the GPU half of a communicator: it queues calls on GPU memory on the
// caller's streams.
//
// Do finds what is wrong with a call's memory and stream (check.go), finds its buffers in
// registered memory (windows.go), has package choice say what carries the call out, numbers
// it (package request), and queues kernels or copies by engine/grid, after the operation
// before (stream.go). A watcher (watch.go) looks after what is queued, and ends it with
// the communicator. Register (register.go) makes windows. The half sees the life of
// the communicator and its paths, and nothing else of it.
//
// The traps: nothing may be allocated or loaded after a call's first kernel, for that may
// wait for kernels which wait for us; and what this rank's peers can reach must outlive
// their kernels, so memory is given back when all ranks have left (leave.go).
package gpucomm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/choice"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/hostcomm"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/life"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/paths"
	"github.com/ringo-go/ringo/paths/gpupaths"
	"github.com/ringo-go/ringo/rankorder"
	"github.com/ringo-go/ringo/request"
	"github.com/ringo-go/ringo/sched"
)

// Options say what a half is made of.
type Options struct {
	Device        *gpu.Device
	Life          *life.Life
	Group         bootstrap.Group
	Chooser       choice.Chooser // of host memory; Open adds what is known of the GPUs
	Plan          *choice.Plan   // given by rank 0; may be nil
	Numberer      *request.Numberer
	Host          *paths.Net
	Paths         *paths.Config
	JoinTimeout   time.Duration // of what ranks do together
	CheckPointers bool          // ask the driver about the memory of every call
	Drain         func()        // waits for operations that were started
	Log           *slog.Logger
}

// A Comm is the GPU half of one rank's communicator. Its methods are called with the Turn
// held, but for those that say otherwise.
type Comm struct {
	Options
	chooser choice.Chooser
	net     *gpupaths.Net
	engine  *grid.Engine

	job      grid.Job
	programs map[choice.Key]*grid.Program
	layout   [4][]int // of the v-variants

	known    known
	captures bool // the stream of the call that was admitted

	last  gpu.Stream // of the last operation that was not captured
	event gpu.Event  // its end, 0 if there was none; the stream may be gone

	spare []mem.Region // for all-to-alls in place; the last is the largest

	reduction *rankorder.Reduction
	workplace *workplace

	windows    windows
	registered int       // windows so far
	at         placement // of the call that was routed
	placements placements
	copyStream copyStream
	closed     bool
	judged     chan struct{} // closed when the watcher has reported a failure, or has ended
}

// Open connects the GPUs of all ranks. Device memory needs a GPU of every rank; missing
// says, the same on all ranks, why it cannot be used otherwise. The Comm is to be closed by
// Leave, also after an error; it is nil if there is nothing to close.
func Open(ctx context.Context, o Options) (g *Comm, missing string, err error) {
	if missing = without(o.Host.Profiles); missing != "" {
		return nil, missing, nil
	}
	g = &Comm{Options: o, chooser: o.Chooser, programs: map[choice.Key]*grid.Program{}, judged: make(chan struct{})}
	g.enter()
	if g.net, missing, err = gpupaths.Connect(ctx, o.Group, o.Host, o.Device, o.Paths); err != nil || missing != "" {
		return g, missing, err
	}
	handle, err := o.Device.Context()
	if err != nil {
		return g, "", err
	}
	g.engine, err = grid.New(o.Device.Driver(), handle, o.Device.Handle(), g.net, grid.Options{
		Rank: sched.Rank(o.Life.Rank), Ranks: o.Life.Size, Blocks: g.net.Blocks(), DirectBlocks: min(grid.MaxBlocks, g.net.Blocks()),
	})
	if err != nil {
		return g, "", err
	}
	if err := g.engine.PrepareCopies(); err != nil {
		return g, "", err
	}
	if err := g.prepareReduction(); err != nil {
		return g, "", err
	}
	if err := g.agreeOnRows(ctx); err != nil {
		return g, "", err
	}
	g.watch()
	return g, "", nil
}

// without says which ranks have no GPU, "" if all have one.
func without(all []paths.Profile) string {
	var ranks []int
	for r := range all {
		if all[r].GPU == "" {
			ranks = append(ranks, r)
		}
	}
	switch {
	case len(ranks) == len(all):
		return "no rank has a GPU: set Config.Device"
	case len(ranks) > 0:
		return fmt.Sprintf("rank %d has no GPU: set Config.Device on all ranks or on none", ranks[0])
	}
	return ""
}

// agreeOnRows gives all ranks rank 0's rows. When it returns, the engines of all
// ranks are there: nobody may write to a board before its owner's is.
func (g *Comm) agreeOnRows(ctx context.Context) error {
	g.chooser.Kernels = g.engine
	var mine []byte
	if g.Life.Rank == 0 {
		f := g.net.Fabric(g.chooser.Topo)
		if g.Plan != nil && !g.Plan.Matches(f) {
			g.Log.Warn("plan not used", "subsys", "INIT", "why", unused(g.Plan, f))
		}
		rows := choice.RowsFor(g.Plan, f, g.engine.CanDirect())
		mine = rows.Encode()
	}
	all, err := g.Group.AllGather(ctx, mine)
	if err != nil {
		return err
	}
	g.chooser.Rows, err = choice.DecodeRows(all[0])
	return err
}

func unused(p *choice.Plan, f *choice.Fabric) string {
	return fmt.Sprintf("GPU plan: %s is not used: it is for %s; these are %s", p.Name(), p.Scope(), f)
}

// Notes says what the paths are, and why not better ones. It may be called at any time.
func (g *Comm) Notes() []string {
	notes := g.net.Notes()
	if g.Life.Rank == 0 && g.Plan != nil {
		if f := g.net.Fabric(g.chooser.Topo); !g.Plan.Matches(f) {
			notes = append(notes, unused(g.Plan, f))
		}
	}
	return notes
}

// Chooser is what chooses for this communicator's GPUs.
func (g *Comm) Chooser() *choice.Chooser { return &g.chooser }

// Via is part of life.Path. It may be called at any time.
func (g *Comm) Via(peer int) string { return g.net.Via(peer) }

// Memory is part of life.Path. It may be called at any time.
func (g *Comm) Memory(where uint16) string {
	p := g.placements.find(where)
	return p.String()
}

// Do queues a checked call on GPU memory on its stream. An error is a *call.Error.
func (g *Comm) Do(c *call.Call) error {
	if err := g.ours(c); err != nil {
		return err
	}
	return g.with(c, func() error {
		if err := g.admit(c); err != nil {
			return err
		}
		if err := g.Life.Begin(c, g); err != nil {
			return err
		}
		ans := g.Answer(c)
		var r request.Request
		err := g.chooser.Prove(c, ans.Algo)
		if err == nil {
			r, err = g.Numberer.Number(c, ans.Algo)
		}
		if err == nil {
			err = g.queue(c, &r, ans)
		}
		if err != nil {
			return g.Life.Fail(c, uint32(r.Stamp[0]>>32), err, g)
		}
		return nil
	})
}

// Answer says what carries a call out, and why. It finds the call's memory in windows, for
// inWindows.
func (g *Comm) Answer(c *call.Call) choice.Answer {
	at, registered := g.place(c)
	g.at = at
	return g.chooser.Choose(question(c, registered))
}

func question(c *call.Call, registered bool) choice.Question {
	return choice.Question{Kind: c.Kind, Bytes: c.Bytes(), Type: c.Type, Op: c.Op.Kind, OnGPU: true, Registered: registered}
}

// with calls f with the device's context current. An error of f that has no place yet gets
// that of the call.
func (g *Comm) with(c *call.Call, f func() error) error {
	err := g.Device.With(f)
	var has *call.Error
	if err == nil || errors.As(err, &has) {
		return err
	}
	return g.Life.Fail(c, g.Life.Turn.Seq(), err, g)
}

// queue queues a request, with the device's context current.
func (g *Comm) queue(c *call.Call, r *request.Request, ans choice.Answer) error {
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
		return g.engine.Run(j)
	})
}

// byKernel queues a request for a direct kernel.
func (g *Comm) byKernel(c *call.Call, r *request.Request, k collective.Direct) error {
	j := &g.job
	*j = jobOf(c, r)
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
		return g.engine.RunDirect(j, k, sched.Rank(max(0, r.Key.Peer)), c.Count*r.Size)
	})
}

// jobOf is the job of a request without its program.
func jobOf(c *call.Call, r *request.Request) grid.Job {
	return grid.Job{
		In: c.In.Slice(0, r.In), Out: c.Out.Slice(0, r.Out),
		Reducer: r.Reducer, Scalar: r.Scalar, Stamp: r.Stamp, Stream: c.Stream,
	}
}

// prepare makes the job of a request that its schedule carries out.
func (g *Comm) prepare(c *call.Call, r *request.Request, j *grid.Job, room *[4][]int) error {
	p, err := g.program(r.Key)
	if err != nil {
		return err
	}
	*j = jobOf(c, r)
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

// Exchange queues checked sends and receives on GPU memory so that they progress side by
// side.
func (g *Comm) Exchange(calls []*call.Call) error {
	for _, c := range calls {
		if err := g.ours(c); err != nil {
			return err
		}
		if c.Stream != calls[0].Stream {
			return g.Life.Place(c, 0, fmt.Errorf("%w: the sends and receives of a group are on different streams", call.ErrInvalid), g)
		}
	}
	jobs := make([]*grid.Job, len(calls))
	return g.with(calls[0], func() error {
		for _, c := range calls {
			if err := g.admit(c); err != nil {
				return err
			}
		}
		if err := g.Life.Begin(calls[0], g); err != nil {
			return err
		}
		for i, c := range calls {
			r, err := g.Numberer.Number(c, g.chooser.Choose(question(c, false)).Algo)
			if err == nil {
				jobs[i] = new(grid.Job)
				err = g.prepare(c, &r, jobs[i], new([4][]int))
			}
			if err != nil {
				return g.Life.Fail(c, 0, err, g)
			}
		}
		return g.after(calls[0].Stream, func() error { return g.engine.RunMessages(jobs) })
	})
}
