// Package simt executes PTX kernels for package cudaemu: grids, blocks and warps of
// threads that run interleaved under a seed on a number of multiprocessors. Each
// multiprocessor has limited room, so a kernel that needs more blocks at once than fit
// hangs here as on hardware, and is reported.
//
// Compile turns the functions of a module into flat arrays of warp-wide
// instructions, Load gives its variables addresses, and a World runs grids of its
// kernels, some instructions at a call of Step. The trap: all is for one goroutine.
//
// The threads of a warp that are at the same instruction execute it as one group. Where
// they part, each group makes progress of its own; they join again at the same
// instruction.
//
// A strong load that acquires nothing may be carried out late, under every third seed: a warp goes on behind it until
// an instruction uses its value, accesses its bytes, or is anything but arithmetic, a branch, a weak or relaxed load
// or store. Atomic operations that return something, and loads of host memory, are at once.
//
// Asynchronous copies go on beside the threads, faster or slower under the seed.
//
// The blocks of a cluster become resident together. An address of shared memory has the rank of its block in the
// cluster plus one in its bits from 24 on, or 0 for the block's own. Shared memory of other blocks is as quick as the
// block's own: stores to it are seen at once, in their order.
//
// Source: PTX ISA 8.0, chapters 3, 9.7.8, 9.7.12, 9.7.13 and 10. The order in which
// parted threads run is that of thread frontiers: Diamos et al., SIMD
// Re-Convergence at Thread Frontiers, MICRO 2011.
package simt

import (
	"github.com/ringo-go/ringo/internal/emu/decision"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A Shape is the size of a device. The comments have an H100's.
type Shape struct {
	SMs             int
	ThreadsPerSM    int // 2048
	BlocksPerSM     int // 32
	SharedPerSM     int // bytes, 228 KiB
	SharedPerBlock  int // bytes with opt-in, 227 KiB
	ThreadsPerBlock int // 1024
}

// Config is the configuration of a World.
type Config struct {
	Seed    uint64
	Devices []Shape
	Memory  *weakmem.Memory
	// Stall is how many thread-instructions may be executed in a row without a change
	// (a store or atomic operation that changes memory, a thread that ends, a barrier
	// completed, a Touch) before a deadlock is reported, if all threads that run poll
	// by strong loads or atomic operations. If some compute, 64 times as many. Zero:
	// never.
	Stall int
	// SetConditional is called by kernels that call cudaGraphSetConditional. It is false if
	// the device has no such handle.
	SetConditional func(device int, handle uint64, value uint32) bool
	// Print gets what a thread prints by printf. Nil: it goes nowhere.
	Print func(device int, text string)
	// Trace, if set, is called before each warp-instruction. It may call Kill.
	Trace func(Event)
	// Follow, if not nil, are the first turns. One of a warp that cannot run then is passed
	// over. After them warps run in rotation.
	Follow []Turn
	// Book, if set, is where the decisions that differ from the plain order are written down, or looked up in place of
	// the seed.
	Book *decision.Book
	// Took, if set, is called before each turn. What it got, as Follow under the same seed, is the
	// same run again.
	Took func(Turn)
}

// An Event is one instruction of a warp, for tracing and single-stepping.
type Event struct {
	Grid   *Grid
	Device int
	Kernel string
	Block  [3]int
	Warp   int
	Mask   uint32 // of the threads that carry it out: its guard holds
	In     *ptx.Instr

	warp *warp
	inst *inst
}

// Sources are the values that the instruction is about to read in the thread of a lane:
// registers and constants in the order written, without predicate and parameters. The
// first of a memory access is the register or the address in brackets.
func (e Event) Sources(lane int) []uint64 {
	var v []uint64
	for _, s := range e.inst.src {
		v = append(v, e.warp.slot(s)[lane])
	}
	return v
}

// Access is what a load, a store or an atomic operation is about to do in the thread of a lane: the
// address, and how many bytes. It is false for other instructions, and where the memory is known not to be global.
func (e Event) Access(lane int) (addr uint64, bytes int, ok bool) {
	a, registers := (*access)(nil), 1
	switch x := e.inst.x.(type) {
	case *access:
		a, registers = x, max(len(e.inst.dst), len(e.inst.src)-1)
	case *atomic:
		a, registers = &x.access, max(1, e.inst.ptx.Vec)
	}
	if a == nil || registers == 0 || a.storage != memory && a.storage != anywhere {
		return 0, 0, false
	}
	return e.warp.slot(e.inst.src[0])[lane] + a.offset, a.size * registers, true
}
