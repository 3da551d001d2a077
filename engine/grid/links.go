// Links: what connects a rank's kernels with those of the others.

package grid

import "github.com/ringo-go/ringo/sched"

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
	headerBytes = 32      // of a slot: stamp[2], length, 0; 64 bits each
	LaneStride  = 128     // bytes from a lane's counter to the next lane's
	MaxLanes    = 128     // of any queue
	maxNote     = 8 << 10 // the greatest NoteBytes
)

// SignBytes is the length of each rank's part of a sign board: the number and the stamp of the operation that the rank
// is at, the count of its signals, and a word that shows that number and stamp belong together.
const SignBytes = 64

// GateBytes is the size of a rank's gates, at which window kernels wait: a flag for
// each block and rank.
const GateBytes = 8 * MaxBlocks * MaxDirect

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
