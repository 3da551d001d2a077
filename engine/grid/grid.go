// Package grid carries out one rank's part of a collective on its GPU, for package core/gpucomm. The interpreter
// (kernels/cuda/run.cu) does on the GPU what package engine does on the host: the rounds, steps and slices of any
// schedule, with a block of threads for each lane. Direct kernels (direct.cu) carry out small and middle sizes in one
// or two hops, norm kernels (norm.cu) all-reduces and RMSNorm, messages (messages.h) independent sends and receives
// side by side, and window kernels (window.cu) and copy engines work in the ranks' own registered buffers. It is part
// of a communicator, and nothing here is promised to other modules.
//
// The trap: no Run method waits for the operation that it queues on the caller's stream. Later errors appear in the
// Control, which the owner has to watch.
package grid

import (
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// A Geometry is the shape of the queues from one rank to another, one queue for each lane. Both ends have the same.
type Geometry struct {
	Lanes     int
	Slots     int // of a queue, a power of two, at least 2
	SlotBytes int // a multiple of 128
	// NoteBytes is the length of a note, a short message that goes as lines and not in slots: a multiple of 128 up
	// to 8 KiB. 0 means no notes, for memory in which lines may arrive in parts.
	NoteBytes int
}

const (
	headerBytes = 32  // of a slot: stamp[2], length, 0; 64 bits each
	LaneStride  = 128 // bytes from a lane's counter to the next lane's
)

// QueueBytes is the length of one lane's queue: its slots, then its head.
func (g Geometry) QueueBytes() int { return g.SlotsBytes() + g.HeadBytes() }

// SlotsBytes is the length of the slots of one lane's queue.
func (g Geometry) SlotsBytes() int { return g.Slots * g.SlotBytes }

// HeadBytes is the length of a queue's head: a header for each slot, then a note for each.
func (g Geometry) HeadBytes() int { return roundUp(g.Slots*headerBytes, 128) + g.Slots*g.NoteBytes }

// Bytes is the length of the queues of all lanes.
func (g Geometry) Bytes() int { return g.Lanes * g.QueueBytes() }

// An End is one end of the queues from one rank to another, as addresses in the context of this rank's device. Lane l's
// queue begins at Queues + l × QueueBytes, its counters, 64 bits each, at Post and Seen + l × LaneStride. Queues may be
// device memory, a peer's or this one's, or pinned host memory. Where Heads is not 0, the slots of lane l begin at
// Queues + l × SlotsBytes, and its head at Heads + l × HeadBytes. Before the first use all headers, notes and counters
// are zero. Counters count slots from the beginning and are never set back.
type End struct {
	Geometry
	Queues uint64 // a multiple of 128
	Heads  uint64 // a multiple of 128; 0: each head lies behind its lane's slots
	// Need makes sure, before a kernel uses them, that the queues of the first lanes have memory, and that it is
	// zero. It does not wait for kernels, of any rank. nil: all have memory.
	Need func(lanes int) error
	Post uint64 // this end writes: slots published, or released; the other end polls it
	Seen uint64 // this end polls: slots released, or published
}

// Links gives the ends of this rank's queues; package transport/p2p makes them.
// An End stays the same for the life of the communicator. Where all ranks reach
// each other's memory, Board.Links is one.
type Links interface {
	// Send and Recv are asked for in Compile, all Sends before all Recvs. Send
	// does not wait for the peer.
	Send(to sched.Rank) (End, error)
	Recv(from sched.Rank) (End, error)
	// Geometry is the shape of the queues from one rank to another, for any pair: a pure function, so that all
	// ranks agree on the lanes and pieces of a program.
	Geometry(from, to sched.Rank) Geometry
	// Mail is the address of each rank's mailbox in this context, in order of
	// rank, and their size in bytes; nil if some rank cannot be reached directly.
	// torn: lines of 128 bytes may arrive there in parts, for some ranks at least. All
	// ranks say the same.
	Mail() (addr []uint64, bytes int, torn bool)
	// Signs is the address of each rank's sign board in this context, in order of rank, 0 for those that cannot be
	// reached directly; nil if there are none. A sign board is zero at first and has SignBytes for each rank, which
	// that rank writes. By the boards ranks that wait for each other in different calls find out.
	Signs() []uint64
	// Gates is the address of each rank's gates in this context, in order of rank;
	// nil if some rank cannot be reached directly. Gates are zero at first and have
	// GateBytes.
	Gates() []uint64
}

// A Job is one operation.
type Job struct {
	Program   *Program
	In, Out   mem.Region
	InL, OutL engine.Layout
	Reducer   *kernels.Reducer // nil where nothing is reduced
	Scalar    uintptr          // device address of PreMulSum's scalar, 0 for Reducer's own
	// Early: each rank multiplies its own data by its own scalar, and rounds, before the data are sent. Otherwise
	// all ranks have the same scalar. Only RunDirect looks at it.
	Early bool
	// Stamp names the call. The high half of its first word is not looked at: kernels
	// put the number of the collective there, which the device counts as they run, so
	// launches and replays of graphs stay in step with what other ranks run.
	Stamp transport.Stamp
	// Each is engine.Job's. The program's steps must be independent, and go as messages on all ranks.
	Each func(s transport.Stamp, bytes int) transport.Stamp
	// Continues: the job belongs to the same call as the job before it, and has that call's number. Messages have
	// no number.
	Continues bool
	// More: a further job of the call follows. That job, not this one, ends an average of integers by its division.
	More bool
	// Blocks is the most blocks that carry the job out, the same on all ranks; 0 for as many
	// as there is work for. Messages do not look at it.
	Blocks int
	Stream cuda.Stream
	// Event is recorded on Stream behind the last kernel, but not by RunCopies, and by Run only where steps go as
	// messages; 0 for none.
	Event cuda.Event
	// Capture is the id of the capture of Stream, which is unique in the process, 0 if it is not captured. What a
	// captured job needs on the device belongs to the graph until Forget.
	Capture uint64
}

// most is how many of a number of blocks, or of lanes, the job may have.
func (j *Job) most(n int) int {
	if j.Blocks > 0 {
		return min(n, j.Blocks)
	}
	return n
}

// lanes is how many lanes the job's program has.
func (j *Job) lanes() int {
	if j.Program.message() { // its queues are shared with other messages
		return j.Program.lanes
	}
	return j.most(j.Program.lanes)
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }
