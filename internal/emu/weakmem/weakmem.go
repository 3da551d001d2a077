// Package weakmem is the memory of emulated GPUs, for packages simt and cudaemu: weaker
// than hardware, and watched. A store becomes visible to other threads late and
// out of order, unless a fence, a release or a barrier orders it; a fence of order AcqRel, and a
// release, do not wait for it. Unordered conflicting accesses are reported as races. So are accesses that are
// misaligned or outside of allocations, and reads of unwritten memory, unless the caller follows what was read
// (How.Shade).
//
// The trap: everything here is for one goroutine; the caller interleaves the threads.
// Only backing memory may be shared with other processes and the host's own threads.
//
// Every value read is one that the PTX model allows, and every race is one by
// its definition, but not all that the model allows happens:
//
//   - Loads happen when they are executed, but for Config.OldLoads. A reader
//     that lacks its acquire is found as a race, not by an old value; if all
//     its loads are strong, only OldLoads finds it, and readers who disagree about the order of
//     independent stores. That a load sees what follows from a later
//     store of its own thread (load buffering) is for the caller: see Block.LateLoad.
//   - An atomic operation that returns a value is visible at once; a relaxed red may be as late as a store.
//   - The lanes of a warp see each other's stores at once. That they used
//     SyncWarp is only checked: what conflicts without it is a race, unless all of it is strong.
//     That lanes go ahead of others is for the caller.
//   - Of each 8 bytes, only the last few unordered writes and reads are remembered; a
//     race with an older one is missed.
//   - Old values are those of the last 8192 words that strong stores wrote.
//   - Weak and asynchronous stores to shared memory are visible at once. Who sees them early is found as a race.
//   - A store that a thread has observed is before what that thread does next, but only if it releases something. For
//     threads that learn of it from this one it is not: if they access the same bytes without scope, that is a race.
//   - An acquire pairs with a store whose bytes hold all that it read. Accesses
//     of different sizes count as strong to each other, which PTX leaves open.
//   - Stores in foreign allocations by others than this Memory's kernels are not seen, but for the
//     last access of each word by another process, see Trail. An acquire that reads one counts as
//     after all releases to foreign allocations before.
//
// Memory at several addresses (Allocation.Physical) is one: what is said above holds for its bytes, by whatever
// address. Between a block's store by one address and its access by another there has to be a fence.proxy.alias. PTX
// wants one between any two threads, and takes strong accesses by different addresses for a race; neither is
// reported, as peers that map each other's memory live by it on hardware. Nor has there to be one between a load and
// a store.
//
// An asynchronous copy (Transfer) goes on beside the thread that began it. What it reads and
// writes is a race with all that did not wait for it. Bulk copies go through the async proxy
// and want a proxy fence between what threads stored and what they read or overwrite. What
// a bulk copy has read may be overwritten without one, and its end is one.
//
// Blocks of a cluster (Grid.Cluster) access each other's shared memory. What may come before the other block has begun,
// or after it has ended, is a fault, whatever the schedule.
//
// Source: PTX ISA 8.0, chapter 8 (memory consistency model); Flanagan and
// Freund, FastTrack, PLDI 2009, for the clocks.
package weakmem

import "github.com/ringo-go/ringo/internal/emu/decision"

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
	CTA     Scope = iota // the block
	Cluster              // blocks that run together, see Grid.Cluster; without one, the block
	GPU
	System
)

// How is how a warp accesses memory, and where in the kernel.
type How struct {
	Order       Order
	Scope       Scope
	Shared      bool // shared memory; addresses are offsets in it
	Async       bool // through the async proxy, as bulk copies do: see Block.FenceProxy
	Late        bool // an atomic operation that returns nothing: see Block.Late
	NonCoherent bool // ld.nc: no thread may write the bytes that the load reads during the kernel
	Line        int  // line of PTX, for reports
	// Shade, if set, takes or gives what nobody wrote: without, a load of it is a fault.
	Shade *Shade
	// Of is the block of the cluster whose shared memory it is; nil: the block's own.
	Of *Block

	element uint8 // bytes of an element, where the access is of a vector: set by Load, Store and Atomic
}

// Config says how strict Memory is.
type Config struct {
	Seed  uint64
	Plain bool // stores are visible at once and nothing but addresses is checked: fast
	// OldLoads lets strong loads that acquire nothing give values that were
	// overwritten shortly before, as far as coherence and fences permit.
	OldLoads bool
	// Lines reports whether a strong access of neighbouring lanes of a device to an
	// aligned line of 128 bytes of the allocation is a single one: its part of the line is seen,
	// or read, at once. PTX does not promise it; hardware from Volta on does it for vectors
	// of 16 bytes in its own memory and over NVLink, and protocols with their flag in the
	// line rely on it. For another process's store only this holds: a reader that sees the
	// last 8 bytes of a line sees the others. Where it is false, as over PCIe, a line goes
	// in words of 8 bytes in any order. Nil: no line is whole, but every load happens at once.
	Lines func(device int, s *Allocation) bool
	// Book, if set, is where it is written down which stores become visible late, or looked up in place of the seed.
	Book *decision.Book
	// Log, if set, is what other processes are told, see Trail.
	Log *Log
	// Access reports whether kernels of a device may touch the allocation; nil allows
	// all. A block asks once for each allocation, so the answer should not change while a
	// kernel runs.
	Access func(device int, s *Allocation) bool
	// Report takes races and reads of unwritten memory when they are found. If
	// it returns false, or is nil, the access is a fault and the kernel stops.
	// Repetitions between the same lines of PTX are only counted, in Fault.Count.
	Report func(*Fault) (goOn bool)
}

// Memory is all memory that kernels can access. Make it with New.
type Memory struct {
	For func() string // the call of the program that the next Copy or Read is for, as Fault.For; may be nil

	config      Config
	allocations allocationTable
	physicals   []*physical // of allocations that have a number of it
	slots       uint64      // of addresses in physical memory, taken so far
	random      uint64

	dirty   []*buffer // buffers that hold stores
	free    []*pending
	devices map[int]*buffer
	begun   map[int]int // grids of devices
	late    int         // atomic operations in buffers
	changes uint64
	turn    uint64 // counts calls of Turn
	ticks   int    // that Turn is to make up for

	past    past
	agents  uint32 // how many there were
	host    *vector
	sc      scOrder
	history history
	noting  record // the access being checked
	found   map[finding]*Fault
	stuck   []stuckBit
	others  []*Peer // of Config.Log
	// what they have released, and their strong accesses, when last asked
	told, observed *vector
	heard          *vector // both
}

// New returns Memory without allocations.
func New(c Config) *Memory {
	return &Memory{
		config:  c,
		random:  c.Seed*0x9e3779b97f4a7c15 + 1,
		devices: map[int]*buffer{},
		begun:   map[int]int{},
		history: newHistory(),
		found:   map[finding]*Fault{},
	}
}

// The addresses of shared memory in physical memory lie above those of allocations and below firstSlot.
const firstShared, mostShared = 1 << 62, 1 << 20

// device is the buffer of stores that a device's threads see, and nobody else.
func (m *Memory) device(d int) *buffer {
	b := m.devices[d]
	if b == nil {
		b = &buffer{memory: m, limit: devicePending, beyond: System}
		m.devices[d] = b
	}
	return b
}

// agent is the number of a new agent.
func (m *Memory) agent() uint32 {
	m.agents++
	return m.agents
}
