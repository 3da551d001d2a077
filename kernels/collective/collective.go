// Package collective names the collectives that GPUs carry out by direct access
// to each other's memory, and their needs. It is for packages that choose an
// algorithm, and uses neither driver nor device; package engine/grid runs the
// collectives. The trap: not every Direct exists in every way of access, see InWindow and
// ByCopies. The package is part of a communicator; nothing here is promised to other modules.
package collective

import "fmt"

// A Direct is a collective carried out by direct access to the peers' memory. There
// are three ways: direct kernels write to all ranks' mailboxes at once, window
// kernels read and write the ranks' own registered buffers, and copy engines write
// to such buffers. Kernels combine in order of rank, narrow floats in float32 rounded once,
// as kernels.Reducer.CombineAll does.
type Direct uint8

const (
	OneShot Direct = iota // all-reduce: every rank sends all its data to all others
	TwoShot               // all-reduce: reduce-scatter, then all-gather
	ReduceScatter
	Reduce
	AllGather
	AllToAll
	Broadcast
	Gather
	Scatter
	directs
)

// MaxRanks is the most ranks that direct access is for.
const MaxRanks = 8

// MaxMessage is the most bytes that a direct kernel sends from one rank to
// another: it counts in 32 bits. Windows have no such limit.
const MaxMessage = 1 << 30

// TornMessage is MaxMessage where lines of 128 bytes may arrive in parts: over PCIe and in host memory. There a message
// in lines takes one trip and a message in slots three; but slots have no flags among their data, and move more at a
// time. Mailboxes in host memory have this size for each peer, so more ranks get less. On 2 H200s lines are quicker in
// host memory up to 512 KiB.
func TornMessage(ranks int) int { return 512 << 10 / max(1, ranks-1) &^ 15 }

var names = [directs]string{"oneshot", "twoshot", "reducescatter", "reduce", "allgather", "alltoall", "broadcast",
	"gather", "scatter"}

// String is the name in lower case: "twoshot".
func (d Direct) String() string {
	if d.Valid() {
		return names[d]
	}
	return fmt.Sprintf("direct(%d)", uint8(d))
}

// Valid reports whether d is one of the constants.
func (d Direct) Valid() bool { return d < directs }

// All lists the constants in their order.
func All() []Direct {
	all := make([]Direct, directs)
	for i := range all {
		all[i] = Direct(i)
	}
	return all
}

// Reduces reports whether ranks' data are combined.
func (d Direct) Reduces() bool { return d <= Reduce }

// InWindow reports which buffers have to be in a window, that is, in memory that
// all ranks have registered, for a window kernel or copy engines. Both are false for
// OneShot, which has no window kernel: an all-reduce in windows is TwoShot.
//
// All ranks name the same place, also those without such a buffer: the place of
// Reduce's Out is the root's. In Gather and Scatter only the other ranks' buffer has
// to be there: their In for Gather, their Out for Scatter. The root's own buffer
// need not be in the window, since the root alone may call in place.
func (d Direct) InWindow() (in, out bool) {
	switch d {
	case TwoShot, Reduce:
		return true, true
	case ReduceScatter, Gather:
		return true, false
	case AllGather, AllToAll, Broadcast, Scatter:
		return false, true
	}
	return false, false
}

// ByCopies reports whether copy engines can carry out d in windows: they can where each
// rank copies from its own memory alone. On H200s a copy from a peer's memory, as for a
// gather, never ended if it was the first copy of the process: see docs/gpu-inside.md,
// "Windows".
func (d Direct) ByCopies() bool {
	switch d {
	case TwoShot, AllGather, AllToAll, Broadcast, Scatter:
		return true
	}
	return false
}
