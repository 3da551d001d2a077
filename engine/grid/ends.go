package grid

import (
	"fmt"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/sched"
)

// An end is End of kernels/cuda/comm.h.
type end struct {
	slots, heads, post, seen, counts  uint64
	count, slotBytes, noteBytes, peer uint32
	slotsStride, headsStride          uint32
}

const (
	endBytes   = 64
	localBytes = 256 // Local of kernels/cuda/comm.h
)

// ends are the ends of a rank's queues that programs have asked for, and their counts. All programs share them.
type ends struct {
	memory *memory
	links  Links
	ranks  int
	local  uintptr // Local of kernels/cuda/comm.h, then counts
	at     uintptr // of all ends: of each rank the receiving one, then the sending ones
	open   map[endKey]end
	needs  map[endKey]*need
}

type endKey struct {
	peer  sched.Rank
	sends bool
}

// A need brings memory for an end's queues: for the first lanes, and later for more.
type need struct {
	end   endKey
	lanes int // that have memory
	more  func(lanes int) error
}

func (s *ends) allocate() (err error) {
	s.open, s.needs = map[endKey]end{}, map[endKey]*need{}
	if s.local, err = s.memory.allocClear(localBytes + 2*s.ranks*MaxLanes*8); err == nil {
		s.at, err = s.memory.carve(2 * s.ranks * endBytes)
	}
	return err
}

// end returns this rank's end of the queues to or from a peer.
func (s *ends) end(peer sched.Rank, sends bool) (end, error) {
	key := endKey{peer, sends}
	if x, ok := s.open[key]; ok {
		return x, nil
	}
	connect, dir := s.links.Recv, 0
	if sends {
		connect, dir = s.links.Send, 1
	}
	l, err := connect(peer)
	if err != nil {
		return end{}, err
	}
	if l.Slots < 2 || l.Slots&(l.Slots-1) != 0 || l.SlotBytes < 128 || l.SlotBytes%128 != 0 || l.Lanes < 1 ||
		l.Lanes > MaxLanes {
		return end{}, fmt.Errorf("grid: %d lanes of %d slots of %d bytes: want 1 to %d, a power of two, a multiple of 128",
			l.Lanes, l.Slots, l.SlotBytes, MaxLanes)
	}
	if l.NoteBytes < 0 || l.NoteBytes > maxNote || l.NoteBytes%lineBytes != 0 {
		return end{}, fmt.Errorf("grid: notes of %d bytes: want a multiple of %d up to %d", l.NoteBytes, lineBytes, maxNote)
	}
	i := dir*s.ranks + int(peer)
	x := end{
		slots: l.Queues, heads: l.Queues + uint64(l.SlotsBytes()), post: l.Post, seen: l.Seen,
		counts:      uint64(s.local) + localBytes + uint64(i*MaxLanes*8),
		count:       uint32(l.Slots),
		slotBytes:   uint32(l.SlotBytes),
		noteBytes:   uint32(l.NoteBytes),
		peer:        uint32(peer),
		slotsStride: uint32(l.QueueBytes()),
		headsStride: uint32(l.QueueBytes()),
	}
	if l.Heads != 0 {
		x.heads, x.slotsStride, x.headsStride = l.Heads, uint32(l.SlotsBytes()), uint32(l.HeadBytes())
	}
	err = s.memory.quietly(func() error { return s.memory.write(s.at+uintptr(i*endBytes), bytesOf([]end{x})) })
	if err == nil {
		s.open[key] = x
		if l.Need != nil {
			s.needs[key] = &need{end: key, more: l.Need}
		}
	}
	return x, err
}

// lanesFor makes sure that the queues of the first lanes have memory. Captures allow it.
func lanesFor(needs []*need, lanes int) error {
	for _, n := range needs {
		if n.lanes >= lanes {
			continue
		}
		if err := n.more(lanes); err != nil {
			return &engine.StepError{Peer: n.end.peer, Phase: "connect",
				Err: fmt.Errorf("grid: memory of %d lanes of queues with rank %d: %w", lanes, n.end.peer, err)}
		}
		n.lanes = lanes
	}
	return nil
}
