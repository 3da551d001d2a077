// Package simt executes PTX kernels: grids, blocks and warps of threads that
// run interleaved under a seed on a number of multiprocessors, each with room
// for so many blocks, so that a kernel that needs more of them at once than
// fit hangs here as on hardware, and is reported.
package simt

import (
	"github.com/ringo-go/ringo/internal/ptx"
	"github.com/ringo-go/ringo/internal/weakmem"
)

// A Shape is what a device has.
type Shape struct {
	SMs             int
	ThreadsPerSM    int // 2048
	BlocksPerSM     int // 32
	SharedPerSM     int // bytes, 228 KiB
	SharedPerBlock  int // bytes with opt-in, 227 KiB
	ThreadsPerBlock int // 1024
}

// Config is of a World.
type Config struct {
	Seed    uint64
	Devices []Shape
	Memory  *weakmem.Memory
	// Stall is how many thread-instructions may be executed in a row without
	// anything changing (no store that changes memory, no thread that ends, no barrier completed) before
	// the threads that wait are reported as a deadlock. Zero: never.
	Stall int
	Trace func(Event) // if set: called for each warp-instruction
}

// An Event is one instruction of a warp, for tracing and single-stepping.
type Event struct {
	Device int
	Kernel string
	Block  [3]int
	Warp   int
	Mask   uint32
	In     *ptx.Instr
}

// What follows is what cudaemu uses:
//
//	func Compile(m *ptx.Module) (*Program, error)
//	func (p *Program) Kernel(name string) (*Kernel, bool)
//	func (p *Program) Load(globals map[string]uint64) *Image    // a program with its variables at addresses
//
//	func NewWorld(Config) *World
//	type Grid struct { Image; Kernel; Device; Dim, Block [3]int; Shared int; Args []byte; After weakmem.Clock; Cooperative bool }
//	func (w *World) Start(g *Grid) error               // its blocks wait for room; error: can never fit
//	func (w *World) Step(instructions int) (ran int)   // runs about so many thread-instructions of all grids, interleaved
//	func (g *Grid) Done() bool
//	func (g *Grid) Fault() *weakmem.Fault               // why it was stopped
//	func (g *Grid) Clock() weakmem.Clock               // after it is done
//	func (w *World) Kill(device int, f *weakmem.Fault) // all grids of a device end with f
//	func (w *World) Instructions() uint64               // thread-instructions executed since New
