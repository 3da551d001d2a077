// Package gpucomm is the GPU half of a communicator, for the root package: it queues calls
// on GPU memory on the caller's streams. Package hostcomm is the other half. Both are parts of a
// communicator, and nothing here is promised to other modules but what package ringo has as its
// own.
//
// A call takes five steps (queue.go); what they find out is a value that is passed down. Its memory and stream are
// checked (check.go). Its buffers are looked up in the windows, which are registered memory (windows.go, register.go).
// Package choice says what carries it out. Package request numbers it. Then kernels or copies of engine/grid are queued
// on the call's stream, after the communicator's previous operation (stream.go). A watcher (watch.go) hears of what
// goes wrong on the GPU, and stops the kernels when the communicator ends.
//
// Two traps. A call must allocate and load everything before it queues its first kernel:
// both may wait for kernels that run, and those may wait for this rank. And the kernels of
// peers may use a rank's memory after it has left, so memory is given back only when all
// ranks have left (leave.go).
package gpucomm

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/gpupaths"
	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/core/request"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/sched"
)

// Options are what a Comm is made of.
type Options struct {
	Device        *gpu.Device
	Quota         *gpupaths.Quota
	Life          *life.Life
	Group         bootstrap.Group
	Chooser       choice.Chooser // as for host memory; Open adds the GPUs' kernels and plan
	Plan          *choice.Plan   // rank 0's; may be nil
	Numberer      *request.Numberer
	Host          *paths.Net
	Paths         *paths.Config
	JoinTimeout   time.Duration // bounds the meetings of Register and Window.Close
	CheckPointers bool          // ask the driver about the memory of every call
	FIFOBytes     int           // see grid.Options
	ArgsBytes     int           // the same
	LaunchOrder   bool          // operations follow those of other communicators
	// Lock takes the Turn behind all that this rank has begun. InTurn calls f in it, also if ctx ends before: then later
	Lock   func(context.Context) error
	InTurn func(ctx context.Context, f func() error) error
	Log    *slog.Logger
}

// A base is what all parts of a Comm use. After Open only placements changes.
type base struct {
	Options
	chooser    choice.Chooser
	net        *gpupaths.Net
	engine     *grid.Engine
	placements placements // of the last calls
}

// A Comm is the GPU half of one rank's communicator. The caller of a method holds
// Life.Turn, unless the method says otherwise.
//
// It is made of parts. Each embeds the next and sees nothing of those before; its fields are
// written in its own files alone:
//
//	queue    calls carried out: queue batch exchange norm shares phases prepare workplace
//	windows  registered memory: windows register flat signal
//	order    one operation after the other: stream capture chain copystream
//	known    memory and streams that calls may be on: check
//	upkeep   watching, observing, giving back: estate watch roll watcher observe footprint leave
//	base     what Open has made
type Comm struct{ queue }

// Open connects the GPUs of all ranks, which call it together. missing says, in the same
// words on all ranks, why GPU memory cannot be used: a rank has no GPU, or nothing connects
// two of them. Unless g is nil, Leave must be called, also after an error.
func Open(ctx context.Context, o Options) (g *Comm, missing string, err error) {
	if missing = without(o.Host.Profiles); missing != "" {
		return nil, missing, nil
	}
	g = new(Comm)
	g.Options, g.chooser = o, o.Chooser
	g.enter()
	if g.net, missing, err = gpupaths.Connect(ctx, o.Group, o.Host, o.Device, o.Quota, o.Paths); err != nil ||
		missing != "" {
		return g, missing, err
	}
	for _, open := range []func() error{g.upkeep.open, g.openEngine, g.known.open, g.order.open, g.queue.open} {
		if err := open(); err != nil {
			return g, "", err
		}
	}
	if err := g.agreeOnRows(ctx); err != nil {
		return g, "", err
	}
	g.prepareWatch()
	return g, "", nil
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
func (b *base) agreeOnRows(ctx context.Context) error {
	b.chooser.Kernels = b.engine
	var mine []byte
	if b.Life.Rank == 0 {
		f := b.net.Fabric(b.chooser.Topo)
		if b.Plan != nil && !b.Plan.Matches(f) {
			b.Log.Warn("plan not used", "subsys", "INIT", "why", unused(b.Plan, f))
		}
		rows := choice.RowsFor(b.Plan, f, b.engine.LongestDirect())
		mine = rows.Encode()
	}
	all, err := b.Group.AllGather(ctx, mine)
	if err != nil {
		return err
	}
	b.chooser.Rows, err = choice.DecodeRows(all[0])
	return err
}

func unused(p *choice.Plan, f *choice.Fabric) string {
	return fmt.Sprintf("GPU plan: %s is not used: it is for %s; these are %s", p.Name(), p.Scope(), f)
}

// Notes are lines that say which path leads to each rank and why there is no better one, how schedules move data, and
// why a plan is not used. It may be called at any time.
func (b *base) Notes() []string {
	notes := b.net.Notes()
	if b.engine.Bulk() {
		notes = append(notes, "GPU memory: schedules go by bulk copies, in few blocks of few threads")
	}
	if b.net.Budget().Narrow {
		notes = append(notes, fmt.Sprintf("GPU memory: schedules of %d to %d MiB within %v of each other share a kernel",
			choice.LingerLeast>>20, choice.FewLanesMost>>20, choice.LingerTime))
	}
	if b.Life.Rank == 0 && b.Plan != nil {
		if f := b.net.Fabric(b.chooser.Topo); !b.Plan.Matches(f) {
			notes = append(notes, unused(b.Plan, f))
		}
	}
	return notes
}

// Chooser chooses what carries out calls on this communicator's GPUs. It may be called at
// any time.
func (b *base) Chooser() *choice.Chooser { return &b.chooser }

// Via is part of life.Path. It may be called at any time.
func (b *base) Via(peer int) string { return b.net.Via(peer) }

// Memory is part of life.Path. It may be called at any time.
func (b *base) Memory(where uint16) string {
	p := b.placements.find(where)
	return p.String()
}
