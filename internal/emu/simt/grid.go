package simt

import (
	"fmt"

	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A Grid is a launch of a kernel. The caller fills the exported fields and
// leaves them alone after Start.
type Grid struct {
	Image       *Image
	Kernel      *Kernel
	Device      int
	Dim, Block  [3]int // blocks, and threads of a block
	Cluster     [3]int // blocks of a cluster; zero: as the kernel says, or one
	Shared      int    // bytes of dynamic shared memory a block
	Stack       int    // bytes of stack a thread for functions that call themselves; zero: defaultStack
	Heap        Heap   // of malloc in kernels; nil: malloc gives nothing
	Args        []byte // the parameter block
	After       weakmem.Clock
	Cooperative bool          // all blocks become resident at once, or none
	For         func() string // the program's call of a library whose kernel it is; nil: it is the program's own
	Workspace   uint64        // of a cooperative launch: zeroed memory of the driver, at the address in %envreg1 and %envreg2

	cluster  extent // see Cluster
	world    *World
	number   int
	launch   int // of its device, see Turn
	mem      *weakmem.Grid
	blocks   int // of the grid
	resident int // have become resident
	ended    int
	here     []*block
	spare    []*block // ended, to be used again
	fault    *weakmem.Fault
	clock    weakmem.Clock
	done     bool
}

// Done reports whether all blocks have ended, or the grid was stopped.
func (g *Grid) Done() bool { return g.done }

// Fault is the fault that stopped the grid; nil if none did.
func (g *Grid) Fault() *weakmem.Fault { return g.fault }

// Clock is the vector clock at the end of the grid. Call it when the grid is done.
func (g *Grid) Clock() weakmem.Clock { return g.clock }

// threads is the number of threads of a block.
func (g *Grid) threads() int { return g.Block[0] * g.Block[1] * g.Block[2] }

// shared is the number of bytes of shared memory of a block.
func (g *Grid) shared() int {
	if g.Shared == 0 {
		return g.Kernel.Shared
	}
	return g.Kernel.code.dynamic - g.Kernel.code.zones + g.Shared
}

// reserved is where the shared memory lies that hardware takes of a block, and a kernel that asks for it may use.
func (g *Grid) reserved() int { return align(g.room(), sharedPiece) }

// check refuses a launch that the device or the kernel cannot do.
func (g *Grid) check(w *World) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("simt: kernel %s: %s", g.Kernel.Name, fmt.Sprintf(format, args...))
	}
	f := g.Kernel.Func
	g.cluster = g.Kernel.ClusterOf(g.Cluster)
	if g.Device < 0 || g.Device >= len(w.devices) {
		return refuse("no device %d", g.Device)
	}
	for i := range 3 {
		if g.Dim[i] < 1 || g.Block[i] < 1 {
			return refuse("grid %v of blocks %v: extents are at least 1", g.Dim, g.Block)
		}
		if f.MaxThreads[i] > 0 && g.threads() > f.MaxThreads[0]*max(f.MaxThreads[1], 1)*max(f.MaxThreads[2], 1) {
			return refuse("blocks of %d threads, .maxntid is %v", g.threads(), f.MaxThreads)
		}
		if f.ReqThreads[i] > 0 && g.Block[i] != f.ReqThreads[i] {
			return refuse("blocks of %v threads, .reqntid is %v", g.Block, f.ReqThreads)
		}
	}
	for i, n := range g.cluster {
		if g.Dim[i]%n != 0 {
			return refuse("a grid %v of clusters %v: extents have to be multiples", g.Dim, g.cluster)
		}
	}
	shape := w.cfg.Devices[g.Device]
	if g.threads() > shape.ThreadsPerBlock || g.threads() > shape.ThreadsPerSM {
		return refuse("blocks of %d threads, the device allows %d", g.threads(),
			min(shape.ThreadsPerBlock, shape.ThreadsPerSM))
	}
	if g.shared() > shape.SharedPerBlock || g.shared() > shape.SharedPerSM {
		return refuse("blocks of %d bytes of shared memory, the device allows %d", g.shared(),
			min(shape.SharedPerBlock, shape.SharedPerSM))
	}
	if len(g.Args) != f.ParamBytes {
		return refuse("%d bytes of arguments, want %d", len(g.Args), f.ParamBytes)
	}
	room := w.Fits(g.Device, g.Kernel, g.threads(), g.Shared) * shape.SMs
	if room == 0 {
		return refuse("a block of %d threads with %d registers each does not fit a multiprocessor", g.threads(),
			g.Kernel.Registers)
	}
	if n := g.cluster.size(); n > room {
		return refuse("%d blocks of a cluster have to be resident at once, the device has room for %d", n, room)
	}
	if n := extent(g.Dim).size(); g.Cooperative && n > room {
		return refuse("%d blocks have to be resident at once, the device has room for %d", n, room)
	}
	return nil
}

// index is the coordinates of a block in the grid. Those of a cluster follow each other.
func (g *Grid) index(block int) (at [3]int) {
	n := g.cluster.size()
	rank := g.cluster.at(block % n)
	at = g.clusters().at(block / n)
	for i := range at {
		at[i] = at[i]*g.cluster[i] + rank[i]
	}
	return at
}

// stop ends the grid with a fault.
func (g *Grid) stop(f *weakmem.Fault) {
	if g.done {
		return
	}
	g.fault = f
	for len(g.here) > 0 {
		b := g.here[len(g.here)-1]
		for _, w := range b.warps {
			g.world.unready(w)
			w.left = 0 // in case it is running: Kill may be called from Trace, or when memory reports
		}
		b.leave()
	}
	g.end()
}

// end is called when all blocks have ended.
func (g *Grid) end() {
	g.done = true
	g.world.land(g)
	g.clock = g.mem.End()
	g.spare = nil
	g.world.finish(g)
}
