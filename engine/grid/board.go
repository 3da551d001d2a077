// The board: a rank's memory that its peers write to.

package grid

import (
	"fmt"

	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/sched"
)

// A Board is the layout of the memory that each rank allocates on its device and
// exports to its peers. All ranks have the same Board, so offsets are the same on
// all. From the beginning, the memory holds:
//
//	signs    SignBytes for each rank
//	tails    for each rank p, MaxLanes × LaneStride: slots that p published to this rank
//	heads    for each rank p, the same: slots to p that p released
//	gates    GateBytes
//	mail     for the direct kernels
//	queues   from each rank p to this rank
//
// All of it but the slots has to be zero before a peer writes there. Simplest is to
// clear the whole memory.
//
// The queues are most of it, and few programs need them all. So they may lie apart, at
// addresses whose memory comes in pieces when it is needed: for each rank p the queues of
// its first lanes, which do for small operations, and then those of the others.
type Board struct {
	Ranks     int
	MailBytes int      // a multiple of 128
	Torn      bool     // lines of mailboxes may arrive in parts
	Near, Far Geometry // of queues to the next rank (rings use those), and to others
}

// boardBytes is the most memory that a board takes, unless there are very many
// ranks. Kernels and the driver's rounding add some 8 MiB on an H200: with them a
// communicator of 8 takes 64 MiB.
func boardBytes(ranks int) int {
	if ranks <= 4 {
		return 60 << 20
	}
	return 56 << 20
}

// DefaultBoard is the Board for a number of ranks on GPUs that are connected by
// NVLink. A ring all-reduce of 1 GiB on 4 H200s has a bus bandwidth of 364 GB/s with
// 128 lanes of 4 slots of 64 KiB, 361 with 8 slots of 32 KiB, and 347 with 64 lanes.
func DefaultBoard(ranks int) Board {
	b := Board{
		Ranks:     ranks,
		MailBytes: 8 << 20,
		Near:      Geometry{Lanes: 128, Slots: 4, SlotBytes: 64 << 10, NoteBytes: 4 << 10},
		Far:       Geometry{Lanes: farLanes(ranks), Slots: 4, SlotBytes: 64 << 10, NoteBytes: 4 << 10},
	}
	for b.Far.SlotBytes > 8<<10 && b.Bytes() > boardBytes(ranks) {
		b.Far.SlotBytes -= 4 << 10
	}
	for b.Far.Lanes > 1 && b.Bytes() > boardBytes(ranks) {
		b.Far.Lanes--
	}
	return b
}

// TornMailBytes is the length of a mailbox where lines may tear: for the longest message that
// goes in lines there, from each other rank, twice. Longer ones take several rounds.
func TornMailBytes(ranks int) int {
	if ranks < 2 || ranks > MaxDirect {
		return 0
	}
	return 2 * (ranks - 1) * collective.Lines(collective.TornMessage(ranks)) * lineBytes
}

// farLanes is the number of lanes of an all-to-all. A lane sends to each other rank,
// receives from each, and copies its own part; each of 128 blocks gets two of these
// tasks. With a few lanes more some blocks have three tasks and the others wait for
// them: 1 GiB on 4 H200s moves at 342 GB/s with 36 lanes and at 322 with 39.
func farLanes(ranks int) int { return min(64, max(16, 2*MaxBlocks/(2*ranks-1))) }

// Geometry is the shape of the queues from one rank to another. Those of a rank to
// itself have few lanes: only small one-shot operations use them.
func (b Board) Geometry(from, to sched.Rank) Geometry {
	d := (int(to) - int(from) + b.Ranks) % b.Ranks
	switch {
	case d == 0:
		return Geometry{Lanes: min(4, b.Far.Lanes), Slots: min(4, b.Far.Slots), SlotBytes: b.Far.SlotBytes,
			NoteBytes: b.Far.NoteBytes}
	case d == 1:
		return b.Near
	}
	return b.Far
}

func (b Board) tail(from sched.Rank) int { return b.Ranks*SignBytes + int(from)*MaxLanes*LaneStride }
func (b Board) head(to sched.Rank) int {
	return b.tail(sched.Rank(b.Ranks)) + int(to)*MaxLanes*LaneStride
}

// Gates is the offset of the gates.
func (b Board) Gates() int { return roundUp(b.head(sched.Rank(b.Ranks)), 128) }

// Mail is the offset of the mailbox.
func (b Board) Mail() int { return b.Gates() + GateBytes }

// Queues is the offset, in the memory of rank to, of its queues from a rank.
func (b Board) Queues(from, to sched.Rank) int {
	at := b.Mail() + b.MailBytes
	for p := range from {
		at += b.Geometry(p, to).Bytes()
	}
	return at
}

// PageBytes is the unit in which memory is mapped, and the length of a first piece.
const PageBytes = 2 << 20

// Pieces are the lengths of the pieces of a rank's queues where they lie apart, 2 for each
// rank that they come from. A length may be 0.
func (b Board) Pieces(to sched.Rank) []int {
	var list []int
	for from := range sched.Rank(b.Ranks) {
		n := roundUp(b.Geometry(from, to).Bytes(), PageBytes)
		list = append(list, min(n, PageBytes), max(0, n-PageBytes))
	}
	return list
}

// queuesApart is where the queues from a rank begin among the pieces of another one.
func (b Board) queuesApart(from, to sched.Rank) int {
	at := 0
	for _, n := range b.Pieces(to)[:2*from] {
		at += n
	}
	return at
}

// Bytes is the length of a rank's memory; that of all ranks is the same.
func (b Board) Bytes() int { return b.Queues(sched.Rank(b.Ranks), 0) }

// Zero is how many bytes from the beginning come before the queues.
func (b Board) Zero() int { return b.Mail() + b.MailBytes }

// Links are the connections of a rank whose device can access the memory of all
// ranks. memory holds their addresses in order of rank, multiples of 128.
func (b Board) Links(rank sched.Rank, memory []uint64) Links {
	return &boardLinks{Board: b, rank: rank, memory: memory}
}

// LinksApart is Links where the queues lie apart, at these addresses. bring maps a piece of a rank's queues for this
// rank's kernels; nil: all are mapped.
func (b Board) LinksApart(rank sched.Rank, memory, queues []uint64,
	bring func(owner sched.Rank, piece int) error) Links {
	return &boardLinks{b, rank, memory, queues, bring}
}

type boardLinks struct {
	Board
	rank   sched.Rank
	memory []uint64
	apart  []uint64 // addresses of the queues, nil if they are in memory
	bring  func(owner sched.Rank, piece int) error
}

// queues is the address of the queues from a rank to another, and their End.Need.
func (l *boardLinks) queues(from, to sched.Rank) (at uint64, need func(lanes int) error) {
	switch {
	case l.apart == nil:
		return l.memory[to] + uint64(l.Queues(from, to)), nil
	case l.bring == nil:
		return l.apart[to] + uint64(l.queuesApart(from, to)), nil
	}
	first := PageBytes / l.Geometry(from, to).QueueBytes() // lanes of the first piece
	return l.apart[to] + uint64(l.queuesApart(from, to)), func(lanes int) error {
		err := l.bring(to, 2*int(from))
		if err == nil && lanes > first {
			err = l.bring(to, 2*int(from)+1)
		}
		return err
	}
}

func (l *boardLinks) Send(to sched.Rank) (End, error) { return l.end(l.rank, to, to, l.tail, l.head) }
func (l *boardLinks) Recv(from sched.Rank) (End, error) {
	return l.end(from, l.rank, from, l.head, l.tail)
}

// end returns this rank's end of the queues from a rank to another one. post and seen are the offsets of counters.
func (l *boardLinks) end(from, to, peer sched.Rank, post, seen func(sched.Rank) int) (End, error) {
	if err := l.check(peer); err != nil {
		return End{}, err
	}
	at, need := l.queues(from, to)
	return End{
		Geometry: l.Geometry(from, to),
		Queues:   at, Need: need,
		Post: l.memory[peer] + uint64(post(l.rank)),
		Seen: l.memory[l.rank] + uint64(seen(peer)),
	}, nil
}

func (l *boardLinks) check(peer sched.Rank) error {
	if peer < 0 || int(peer) >= l.Ranks {
		return fmt.Errorf("grid: rank %d: there are %d", peer, l.Ranks)
	}
	return nil
}

func (l *boardLinks) Mail() ([]uint64, int, bool) { return l.all(l.Board.Mail()), l.MailBytes, l.Torn }

func (l *boardLinks) Gates() []uint64 { return l.all(l.Board.Gates()) }

// all is the address of an offset in each rank's memory.
func (l *boardLinks) all(offset int) []uint64 {
	at := make([]uint64, l.Ranks)
	for r, m := range l.memory {
		at[r] = m + uint64(offset)
	}
	return at
}

func (l *boardLinks) Signs() []uint64 { return l.memory }
