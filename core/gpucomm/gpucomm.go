// Package gpucomm is the GPU half of a communicator, for the root package: it queues calls
// on GPU memory on the caller's streams. Package hostcomm is the other half. Both are parts of a
// communicator, and nothing here is promised to other modules but what package ringo has as its
// own.
//
// The function queue (calls.go) is the path of a call, in the order in which things happen: its memory and stream are
// admitted (admission.go); its buffers are looked up in the windows, which are registered memory (windows.go); package
// choice says what carries it out; package request numbers it; then, after the communicator's previous operation
// (order.go), kernels or copies of engine/grid are queued on its stream (launch.go). What is found out is a value, the
// task. A watch (watch.go) hears of what goes wrong on the GPU, and stops the kernels when the communicator ends.
//
// Two traps. A call must allocate and load everything before it queues its first kernel:
// both may wait for kernels that run, and those may wait for this rank. And the kernels of
// peers may use a rank's memory after it has left, so memory is given back only when all
// ranks have left (leave.go).
package gpucomm

import (
	"context"
	"fmt"

	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/gpupaths"
	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
)

// A Comm is the GPU half of one rank's communicator. The caller of a method holds Life.Turn, unless the method says
// otherwise. It is made of parts, each of which knows those that its constructor takes.
type Comm struct {
	Options
	chooser   choice.Chooser
	net       *gpupaths.Net
	engine    *grid.Engine
	path      path       // for errors: where memory lies and what leads to peers
	estate    *estate    // what is given back when no graph needs it any more
	observed  *observed  // nil if nobody observes
	watch     *watch     // hears of what goes wrong
	admission *admission // memory and streams that calls may be on
	order     *order     // one operation after the other
	windows   *windows   // registered memory
	*calls               // carried out
}

// Open connects the GPUs of all ranks, which call it together. missing says, in the same
// words on all ranks, why GPU memory cannot be used: a rank has no GPU, or nothing connects
// two of them. Unless g is nil, Leave must be called, also after an error.
func Open(ctx context.Context, o Options) (g *Comm, missing string, err error) {
	if missing = without(o.Host.Profiles); missing != "" {
		return nil, missing, nil
	}
	g = &Comm{Options: o, chooser: o.Chooser}
	g.enter()
	if g.net, missing, err = gpupaths.Connect(ctx, o.Group, o.Host, o.Device, o.Quota, o.Paths); err != nil ||
		missing != "" {
		return g, missing, err
	}
	if err = g.open(); err == nil {
		err = g.agreeOnRows(ctx)
	}
	if err == nil {
		g.watch.start()
	}
	return g, "", err
}

// open makes the parts.
func (g *Comm) open() (err error) {
	g.path.net = g.net
	if g.estate, err = newEstate(g.Device, g.Log); err != nil {
		return err
	}
	if g.observed, err = openObserved(g.Numberer, g.estate); err != nil {
		return err
	}
	if err = g.openEngine(); err != nil {
		return err
	}
	g.watch = newWatch(&g.Options, g.net, &g.path, g.engine.Control(), g.estate, g.observed)
	if g.admission, err = newAdmission(&g.Options, g.estate, g.net.Context(), &g.path); err != nil {
		return err
	}
	if g.order, err = newOrder(&g.Options, g.net, g.engine, g.estate, g.watch); err != nil {
		return err
	}
	g.windows = newWindows(&g.Options, g.net, g.engine, g.admission, g.watch, g.order)
	g.calls, err = newCalls(&g.Options, &g.chooser, &g.path, g.observed, g.windows)
	return err
}

// openEngine makes the engine, which the estate gives back.
func (g *Comm) openEngine() error {
	e, budget := g.estate, g.net.Budget()
	g.chooser.Budget = budget
	var linger grid.Linger
	if lanes := budget.LingerLanes(); lanes > 0 {
		linger = grid.Linger{Time: choice.LingerTime, Blocks: lanes}
	}
	var err error
	g.engine, err = grid.New(e.driver, e.ctx, e.dev, g.net, grid.Options{
		Rank: sched.Rank(g.Life.Rank), Ranks: g.Life.Size, Blocks: budget.ForMessages(), DirectBlocks: budget.Most,
		Bulk: budget.Bulk, Linger: linger, FIFOBytes: g.FIFOBytes, ArgsBytes: g.ArgsBytes, Guard: &g.Life.Guard,
	})
	if err != nil {
		return err
	}
	e.keep(g.engine.Close)
	return g.engine.PrepareCopies()
}

// without says that a rank has no GPU, or none; "" if all have one.
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

// agreeOnRows gives all ranks rank 0's rows of the plan. It also has the ranks wait for each
// other: no kernel may write to a peer's queues before the peer has made its engine.
func (g *Comm) agreeOnRows(ctx context.Context) error {
	g.chooser.Kernels = g.engine
	var mine []byte
	if g.Life.Rank == 0 {
		f := g.net.Fabric(g.chooser.Topo)
		if g.Plan != nil && !g.Plan.Matches(f) {
			g.Log.Warn("plan not used", "subsys", "INIT", "why", unused(g.Plan, f))
		}
		rows := choice.RowsFor(g.Plan, f, g.engine.LongestDirect())
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

// Notes are lines that say which path leads to each rank and why there is no better one, how schedules move data, and
// why a plan is not used. It may be called at any time.
func (g *Comm) Notes() []string {
	notes := g.net.Notes()
	if g.engine.Bulk() {
		notes = append(notes, "GPU memory: schedules go by bulk copies, in few blocks of few threads")
	}
	if g.net.Budget().Narrow {
		notes = append(notes, fmt.Sprintf("GPU memory: schedules of %d to %d MiB within %v of each other share a kernel",
			choice.LingerLeast>>20, choice.FewLanesMost>>20, choice.LingerTime))
	}
	if g.Life.Rank == 0 && g.Plan != nil {
		if f := g.net.Fabric(g.chooser.Topo); !g.Plan.Matches(f) {
			notes = append(notes, unused(g.Plan, f))
		}
	}
	return notes
}

// Chooser chooses what carries out calls on this communicator's GPUs. It may be called at
// any time.
func (g *Comm) Chooser() *choice.Chooser { return &g.chooser }

// Via is the path to a peer. It may be called at any time.
func (g *Comm) Via(peer int) string { return g.net.Via(peer) }

// Capturing reports whether a stream of the rank's GPU is being captured. It may be called at any time.
func (g *Comm) Capturing(s gpu.Stream) bool { return g.order.capturing(s) }

// Register makes a window of a part of the rank's GPU memory; see ringo.Comm.Register. It takes the Turn itself.
func (g *Comm) Register(r mem.Region) (*Window, error) { return g.windows.register(r) }

// Err is why the communicator has failed, nil if it is well. It may be called at any time.
func (g *Comm) Err() error { return g.watch.err() }

// Verdict is Err for a caller whose stream is done. Graphs that were launched after Close are an error too. It may be
// called at any time.
func (g *Comm) Verdict() error { return g.watch.verdict() }
