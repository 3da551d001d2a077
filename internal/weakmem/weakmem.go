// Package weakmem is the memory of emulated GPUs: weaker than hardware, and
// watched. A plain store becomes visible to other threads late and out of
// order, unless a fence, a release or a barrier orders it. What no order
// separates is reported as a race; so are reads of memory that nothing wrote
// and accesses that are misaligned or outside of what was allocated.
//
// Threads run one at a time (the caller interleaves them), so everything here
// is for one goroutine, except that backing memory may be shared with other
// processes.
//
// Source: PTX ISA 8.0, chapter 8 (memory consistency model); Flanagan and
// Freund, FastTrack, PLDI 2009, for the clocks.
package weakmem

import (
	"fmt"

	"github.com/ringo-go/ringo/internal/alu"
)

// An Order is how strong an access is.
type Order uint8

const (
	Weak    Order = iota // plain; racing with anything unordered is an error
	Relaxed              // strong: .relaxed, .volatile, red and atom without order
	Acquire
	Release
	AcqRel
	SeqCst // fence.sc
)

// A Scope says among which threads a strong access or a fence counts.
type Scope uint8

const (
	CTA Scope = iota // the block
	GPU
	System
)

// How is how a warp accesses memory, and where in the kernel.
type How struct {
	Order       Order
	Scope       Scope
	Shared      bool // the block's shared memory; addresses are offsets in it
	NonCoherent bool // ld.nc: what it reads must not be written during the kernel
	Line        int  // line of PTX, for reports
}

// A FaultKind says what went wrong.
type FaultKind uint8

const (
	OutOfBounds FaultKind = iota // includes freed and never allocated
	Misaligned
	Race
	Uninitialized
	NoAccess       // memory of a device without peer access
	Deadlock       // used by simt
	BadInstruction // used by simt: trap, an address of code, a wrong barrier
)

// A Fault is an access that a program must not make, or a race between two.
type Fault struct {
	Kind   FaultKind
	Device int
	Kernel string
	Line   int // of PTX
	Block  [3]int
	Thread [3]int
	Addr   uint64
	Shared bool
	Size   int
	Write  bool
	Detail string // the other access of a race, the nearest allocation
}

func (f *Fault) Error() string { return fmt.Sprintf("%v", *f) } // to be made readable

// A Span is memory at an address.
type Span struct {
	Addr    uint64
	Data    []byte
	Written []uint64 // a bit for each byte that was ever written, nil if all were; may be shared between processes
	Device  int      // -1 for host memory
	Name    string   // for reports
}

// Config says how strict Memory is.
type Config struct {
	Seed  uint64
	Plain bool // stores are visible at once and nothing but addresses is checked: fast
	// Access reports whether kernels of a device may touch the span; nil allows all.
	Access func(device int, s *Span) bool
	// Report takes races and reads of unwritten memory when they are found. If
	// it returns false the access is a fault and the kernel stops.
	Report func(*Fault) (goOn bool)
}

// The types and methods that follow are what simt and cudaemu use:
//
//	func New(Config) *Memory
//	func (m *Memory) Map(Span) error
//	func (m *Memory) Unmap(addr uint64) error
//	func (m *Memory) Find(addr uint64) (*Span, bool)
//	func (m *Memory) Tick()                            // some pending stores become visible, at random
//	func (m *Memory) Copy(dst, src uint64, n int, after Clock) (Clock, error)   // by a driver or copy engine
//	func (m *Memory) Set(dst uint64, pattern []byte, n int, after Clock) (Clock, error)
//	func (m *Memory) Read(dst []byte, src uint64, after Clock) error            // to the host's own memory
//	func (m *Memory) Write(dst uint64, src []byte, after Clock) (Clock, error)
//
//	type Clock                                         // what has happened before; immutable; the zero Clock is the beginning
//	func Join(a, b Clock) Clock
//
//	func (m *Memory) Begin(device int, kernel string, after Clock) *Grid
//	func (g *Grid) Block(index [3]int, dim [3]int, shared int) *Block
//	func (g *Grid) End() Clock                         // all blocks have ended
//	func (b *Block) End()                              // its stores become visible
//
// All that a warp does is for the lanes of mask; thread = 32 × warp + lane.
//
//	func (b *Block) Load(warp int, mask uint32, addr *alu.Lanes, size int, dst []*alu.Lanes, how How) *Fault
//	func (b *Block) Store(warp int, mask uint32, addr *alu.Lanes, size int, src []*alu.Lanes, how How) *Fault
//	func (b *Block) Atomic(warp int, mask uint32, addr *alu.Lanes, size int, old *alu.Lanes, f func(lane int, old uint64) uint64, how How) *Fault
//	func (b *Block) Fence(warp int, mask uint32, how How)
//	func (b *Block) SyncWarp(warp int, mask uint32)    // bar.warp.sync and the .sync votes and shuffles
//	func (b *Block) Barrier(threads []uint32)          // a barrier is complete; threads has the mask of each warp that took part
var _ alu.Lanes
