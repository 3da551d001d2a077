// Package gpucomm is the GPU half of a communicator, for the root package: it queues calls
// on GPU memory on the caller's streams. Package hostcomm is the other half.
//
// A call takes five steps (queue.go). Its memory and stream are checked (check.go). Its
// buffers are looked up in the windows, which are registered memory (windows.go,
// register.go). Package choice says what carries it out. Package request numbers it. Then
// kernels or copies of engine/grid are queued on the call's stream, after the communicator's
// previous operation (stream.go). A watcher (watch.go) hears of what goes wrong on the GPU,
// and stops the kernels when the communicator ends.
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
	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/choice"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/life"
	"github.com/ringo-go/ringo/paths"
	"github.com/ringo-go/ringo/paths/gpupaths"
	"github.com/ringo-go/ringo/rankorder"
	"github.com/ringo-go/ringo/request"
	"github.com/ringo-go/ringo/sched"
)

// Options are what a Comm is made of.
type Options struct {
	Device        *gpu.Device
	Share         *gpupaths.Share
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
	Drain         func()        // waits for operations that were started
	Log           *slog.Logger
}

// A Comm is the GPU half of one rank's communicator. The caller of a method holds
// Life.Turn, unless the method says otherwise.
type Comm struct {
	Options
	chooser choice.Chooser
	net     *gpupaths.Net
	engine  *grid.Engine

	latest   latest
	job      grid.Job
	blocks   int             // that the current call takes
	request  request.Request // of the current call
	batch    grid.Batch      // the current one
	jobs     []grid.Job      // of the current batch
	programs map[choice.Key]*grid.Program
	phased   map[choice.Key][]choice.Key
	prepared map[prepared]bool // by PrepareAll
	layout   [4][]int          // room for the counts and offsets of the v-variants
	exchange exchange

	known     known
	seen      cuda.Sight       // of the stream of the current call
	sees      bool             // it was seen with the device's context current, and is still to be judged
	captures  bool             // the stream of the current call is being captured
	capture   cuda.CaptureInfo // of the stream of the current call
	streamID  uint64           // of that stream; 0 if the driver does not tell
	streamIDs bool             // it tells, since CUDA 12

	event      gpu.Event             // the end of the last operation, eager or of a graph
	recorded   bool                  // by the launch of the current operation
	last       uint64                // streamID of the last eager operation
	replays    bool                  // a graph may have been launched since then
	recordings map[uint64]*recording // by capture
	chain      *chain                // nil if other communicators have an order of their own
	estate     *estate

	spare *cuda.Growing // for copies of In and scaled data

	reduction *rankorder.Reduction
	workplace *workplace

	windows    windows
	registered int        // number of the last window
	at         placement  // of the current call
	placements placements // of the last calls
	copyStream copyStream
	closed     bool
	suspended  bool      // see Footprint
	signal     call.Call // the current Put, Signal or Wait
	watch      watch
	observed   *observed // nil if nobody observes
}

// Open connects the GPUs of all ranks, which call it together. missing says, in the same
// words on all ranks, why GPU memory cannot be used: a rank has no GPU, or nothing connects
// two of them. Unless g is nil, Leave must be called, also after an error.
func Open(ctx context.Context, o Options) (g *Comm, missing string, err error) {
	if missing = without(o.Host.Profiles); missing != "" {
		return nil, missing, nil
	}
	g = &Comm{Options: o, chooser: o.Chooser, programs: map[choice.Key]*grid.Program{}, phased: map[choice.Key][]choice.Key{}, prepared: map[prepared]bool{}, recordings: map[uint64]*recording{}, watch: watch{judged: make(chan struct{})}}
	g.enter()
	if g.net, missing, err = gpupaths.Connect(ctx, o.Group, o.Host, o.Device, o.Share, o.Paths); err != nil || missing != "" {
		return g, missing, err
	}
	handle, err := o.Device.Context()
	if err != nil {
		return g, "", err
	}
	if g.estate, err = openEstate(o.Device, o.Log); err != nil {
		return g, "", err
	}
	g.spare = g.estate.memory()
	budget := g.net.Budget()
	g.chooser.Budget = budget
	g.engine, err = grid.New(o.Device.Driver(), handle, o.Device.Handle(), g.net, grid.Options{
		Rank: sched.Rank(o.Life.Rank), Ranks: o.Life.Size, Blocks: budget.SideBySide(), DirectBlocks: budget.Most,
		Bulk: g.net.Bulk(), FIFOBytes: o.FIFOBytes, ArgsBytes: o.ArgsBytes, Guard: &o.Life.Guard,
	})
	if err != nil {
		return g, "", err
	}
	g.estate.keep(g.engine.Close)
	if err := g.engine.PrepareCopies(); err != nil {
		return g, "", err
	}
	version, err := o.Device.Driver().DriverGetVersion()
	if err != nil {
		return g, "", err
	}
	g.streamIDs = version >= 12000
	if g.event, err = newEvent(o.Device); err != nil {
		return g, "", err
	}
	g.estate.keep(func() error {
		return cuda.Quietly(g.estate.driver, g.estate.ctx, func() error { return g.estate.driver.EventDestroy(g.event) })
	})
	if g.observed, err = openObserved(o.Numberer, o.Device, g.estate); err != nil {
		return g, "", err
	}
	if o.LaunchOrder && !g.net.Shared() { // kernels of ranks on one GPU wait for each other
		var leave func() error
		if g.chain, leave, err = joinChain(o.Device); err != nil {
			return g, "", err
		}
		g.estate.keep(leave)
	}
	if err := g.prepareReduction(); err != nil {
		return g, "", err
	}
	if err := g.agreeOnRows(ctx); err != nil {
		return g, "", err
	}
	g.prepareWatch()
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

// Notes are lines that say which path leads to each rank, why there is no better one, and
// why a plan is not used. It may be called at any time.
func (g *Comm) Notes() []string {
	notes := g.net.Notes()
	if g.engine.Bulk() {
		notes = append(notes, "GPU memory: schedules go by bulk copies, in few blocks of few threads")
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

// Via is part of life.Path. It may be called at any time.
func (g *Comm) Via(peer int) string { return g.net.Via(peer) }

// Memory is part of life.Path. It may be called at any time.
func (g *Comm) Memory(where uint16) string {
	p := g.placements.find(where)
	return p.String()
}
