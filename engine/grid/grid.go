// Package grid carries out one rank's column of a schedule on its GPU, a block
// of threads for each lane. It is the engine of package engine for device
// memory: the same rounds, steps and slices, by a kernel that interprets the
// steps (kernels/cuda/run.cu). For small and middle sizes there are direct
// kernels, which carry out the schedules of package direct in one go.
//
// Nothing here waits for the GPU: work is queued on the caller's stream. What
// goes wrong later is in the control block, which the owner watches.
package grid

import (
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// A Geometry is the shape of the queues of a pair of ranks. Both ends have the same.
type Geometry struct {
	Lanes, Slots, SlotBytes int
}

// An End is one end of the queues of a pair, one queue a lane, as addresses in
// the context of this rank's device. Lane l's queue begins at Slots + l ×
// Geometry.bytes; its counters at Post and Seen + l × 128.
type End struct {
	Geometry
	Slots uint64 // payload of all lanes, then a header of 32 bytes for each slot
	Post  uint64 // counter that this end writes and the other polls: slots published, or released
	Seen  uint64 // counter that this end polls
}

// Links gives the ends of this rank's queues; package transport/p2p makes them.
// An End stays the same for the life of the communicator.
type Links interface {
	Send(to sched.Rank) (End, error)
	Recv(from sched.Rank) (End, error)
	// Geometry of the queues from one rank to another, for any pair: a pure
	// function, so that all ranks agree on the lanes of a program.
	Geometry(from, to sched.Rank) Geometry
	// Mail is the address of each rank's mailbox in this context, in order of
	// rank, and their size in bytes; nil if some rank cannot be reached directly.
	Mail() (addr []uint64, bytes int)
}

// A Job is one operation.
type Job struct {
	Program   *Program
	In, Out   mem.Region
	InL, OutL engine.Layout
	Type      kernels.DataType
	Reducer   *kernels.Reducer // nil where nothing is reduced
	Scalar    uintptr          // device address of PreMulSum's scalar, 0 for Reducer's own
	Stamp     transport.Stamp
	Stream    cuda.Stream
}
