// Package simt executes PTX kernels: grids, blocks and warps of threads that
// run interleaved under a seed on a number of multiprocessors, each with room
// for so many blocks, so that a kernel that needs more of them at once than
// fit hangs here as on hardware, and is reported.
//
// Compile turns the functions of a module into flat arrays of warp-wide
// instructions, Load gives its variables addresses, and a World runs grids of
// its kernels, some instructions at a call of Step. All is for one goroutine.
//
// The threads of a warp that are at the same instruction execute it together.
// Where they part, each part makes progress of its own; they join again when
// they meet.
//
// Source: PTX ISA 8.0, chapters 3, 9.7.8, 9.7.12 and 10. The order in which
// parted threads run is that of thread frontiers: Diamos et al., SIMD
// Re-Convergence at Thread Frontiers, MICRO 2011.
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
	// anything changing (no store or atomic operation that changes memory, no
	// thread that ends, no barrier completed, no Touch) before threads that
	// poll are reported as a deadlock: all that run do strong loads or
	// atomic operations. While others compute, it is 64 times as many. Zero: never.
	Stall int
	// Trace, if set, is called before each warp-instruction. It may call Kill.
	Trace func(Event)
}

// An Event is one instruction of a warp, for tracing and single-stepping.
type Event struct {
	Device int
	Kernel string
	Block  [3]int
	Warp   int
	Mask   uint32 // of the threads that carry it out: its guard holds
	In     *ptx.Instr

	warp *warp
	inst *inst
}

// Sources are what the instruction is about to read in the thread of a lane:
// registers and constants in the order written, without predicate and parameters. Of a
// memory access the first is the register or the address in brackets.
func (e Event) Sources(lane int) []uint64 {
	var v []uint64
	for _, s := range e.inst.src {
		v = append(v, e.warp.slot(s)[lane])
	}
	return v
}
