package simt

import (
	"github.com/ringo-go/ringo/internal/weakmem"
)

// A Grid is a launch of a kernel. The caller fills the exported fields and
// leaves them alone after Start.
type Grid struct {
	Image       *Image
	Kernel      *Kernel
	Device      int
	Dim, Block  [3]int // blocks, and threads of a block
	Shared      int    // bytes of dynamic shared memory a block
	Args        []byte // the parameter block
	After       weakmem.Clock
	Cooperative bool // all blocks become resident at once, or none

	fault *weakmem.Fault
	clock weakmem.Clock
	done  bool
}

// Done reports whether all blocks have ended, or the grid was stopped.
func (g *Grid) Done() bool { return g.done }

// Fault is why the grid was stopped; nil when it was not.
func (g *Grid) Fault() *weakmem.Fault { return g.fault }

// Clock is what has happened by the end of the grid. It may be called when it is done.
func (g *Grid) Clock() weakmem.Clock { return g.clock }
