package simt

import (
	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A World executes grids on devices.
type World struct {
	cfg     Config
	devices []device
	ready   []*warp
	grids   []*Grid // not done, in the order of Start
	started int
	random  random
	policy  policy

	late      bool // loads may be late: see lateLoad
	strays    bool // threads of a warp may go ahead: see warp.stray
	plan      planner
	scheduled bool // by Config.Follow, or told to Config.Took
	followed  int  // of Config.Follow
	rotation  int  // turns in it

	transfers []*transfer // under way
	pace      int         // see carry

	ran       uint64 // thread-instructions
	quiet     uint64 // ran when something last changed
	changes   uint64 // Memory.Changes then
	watch     bool   // polls are noted
	combine   combine
	fragments fragments
	values    [8]alu.Lanes // of an atomic operation on vectors
}

// NewWorld makes a World without grids.
func NewWorld(c Config) *World {
	w := &World{cfg: c, random: random(c.Seed), scheduled: c.Took != nil || c.Follow != nil}
	w.policy = newPolicy(c.Seed, &w.random)
	w.late, w.strays = c.Seed%seedsLate == seedsLate-1, c.Seed%seedsStray == 0
	w.pace = paces[c.Seed/policies%uint64(len(paces))]
	for _, s := range c.Devices {
		w.devices = append(w.devices, newDevice(s))
	}
	w.combine.init()
	return w
}

// Start queues a grid. Its blocks become resident as soon as there is room on
// the multiprocessors of its device, in the order of Start calls. An error says that it can
// never fit, or that the launch does not suit the kernel.
func (w *World) Start(g *Grid) error {
	if err := g.check(w); err != nil {
		return err
	}
	w.started++
	g.world, g.number = w, w.started
	g.launch = w.devices[g.Device].started
	w.devices[g.Device].started++
	g.blocks = extent(g.Dim).size()
	g.mem = w.cfg.Memory.Begin(g.Device, g.Kernel.Name, g.After)
	g.mem.For = g.For
	w.grids = append(w.grids, g)
	d := &w.devices[g.Device]
	d.queue = append(d.queue, g)
	w.progress()
	w.fill(g.Device)
	return nil
}

// Step runs about that number of thread-instructions of all grids, interleaved, and
// returns how many it ran: fewer, maybe none, when all grids are done. The order of
// execution does not depend on how it is cut into steps.
func (w *World) Step(instructions int) (ran int) {
	begin := w.ran
	for w.ran-begin < uint64(instructions) && len(w.ready) > 0 {
		x, n := w.policy.choose(w)
		switch {
		case w.cfg.Book != nil:
			x, n = w.planned(x, n)
			x.run(n)
			w.plan.ran()
		case w.scheduled:
			x, n = w.turn(x, n)
			fallthrough
		default:
			x.run(n)
		}
		w.cfg.Memory.Tick()
		if len(w.transfers) > 0 {
			w.carry()
		}
		w.stall()
	}
	return int(w.ran - begin)
}

// Kill stops all grids of a device with a fault: an abort or a lost device.
func (w *World) Kill(device int, f *weakmem.Fault) {
	for i := len(w.grids) - 1; i >= 0; i-- {
		if g := w.grids[i]; g.Device == device {
			g.stop(f)
		}
	}
}

// Touch says that memory was changed by others, so that waiting threads may go on: see Config.Stall.
func (w *World) Touch() { w.progress() }

// Instructions is how many thread-instructions were executed since NewWorld.
func (w *World) Instructions() uint64 { return w.ran }

// Fits is how many blocks of a kernel, with the given threads and bytes of dynamic
// shared memory, a multiprocessor of a device holds at once.
func (w *World) Fits(device int, k *Kernel, threads, shared int) int {
	g := &Grid{Kernel: k, Block: [3]int{threads, 1, 1}, Shared: shared}
	s := newSM(w.cfg.Devices[device], 0)
	n := 0
	for ; s.fits(g); n++ {
		s.take(g)
	}
	return n
}

// progress says that something changed.
func (w *World) progress() {
	w.quiet = w.ran
	w.watch = false
}

// Polling reports whether all warps that can run have made a strong access since
// Instructions was at since. They may all wait for changes by others, so the caller of
// Step may sleep.
func (w *World) Polling(since uint64) bool {
	if len(w.transfers) > 0 {
		return false
	}
	for _, x := range w.ready {
		if x.asked < since {
			return false
		}
	}
	return true
}

func (w *World) makeReady(x *warp) {
	x.seat = len(w.ready)
	w.ready = append(w.ready, x)
}

func (w *World) unready(x *warp) {
	if x.seat < 0 {
		return
	}
	last := w.ready[len(w.ready)-1]
	w.ready[x.seat] = last
	last.seat = x.seat
	w.ready = w.ready[:len(w.ready)-1]
	x.seat = -1
}

// finish forgets a grid that is done, and fills its room with other blocks.
func (w *World) finish(g *Grid) {
	w.grids = without(w.grids, g)
	d := &w.devices[g.Device]
	d.queue = without(d.queue, g)
	w.progress()
	w.fill(g.Device)
}

func without(grids []*Grid, g *Grid) []*Grid {
	for i := range grids {
		if grids[i] == g {
			return append(grids[:i:i], grids[i+1:]...)
		}
	}
	return grids
}
