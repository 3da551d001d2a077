package life

import (
	"slices"
	"sync"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/trace/history"
)

// A Turn is held while an operation is carried out. It numbers the collectives of a
// communicator, and remembers the last ones.
type Turn struct {
	sync.Mutex
	numbers  sync.Mutex       // protects all below: a watcher asks while the turn is another's
	seq      uint64           // of the last collective; stamps carry stamped(seq)
	pairwise bool             // the last operation is a Send or Recv
	past     uint64           // stands for all collectives so far
	recent   [depth][2]uint64 // stamps of collectives, by number modulo depth
	counts   []int            // see Counts
	countsOf uint64           // the collective that they are of
	clock    int64            // Unix time in ns of the last collective whose number is a multiple of depth
	messages history.Ring
	sent     []uint64 // by peer: Sends that have begun
	received []uint64 // the same of Recvs
}

// depth is how many collectives a rank can be asked about.
const depth = history.Depth

// Collective is the peer of an operation that all ranks take part in.
const Collective = -1

// Next remembers an operation whose stamp has no number, and returns the stamp: a collective's with the next number, a
// message's, which has a peer, unchanged. recv tells a Recv from a Send. The turn is held.
func (t *Turn) Next(stamp [2]uint64, peer int, recv bool) [2]uint64 {
	t.numbers.Lock()
	defer t.numbers.Unlock()
	if t.pairwise = peer >= 0; t.pairwise {
		t.messages.Add(history.Message{Stamp: stamp, Peer: int32(peer), Recv: recv, After: t.seq})
		count := &t.sent
		if recv {
			count = &t.received
		}
		if more := peer + 1 - len(*count); more > 0 {
			*count = append(*count, make([]uint64, more)...)
		}
		(*count)[peer]++
		return stamp
	}
	t.seq++
	stamp[0] |= uint64(stamped(t.seq)) << 32
	stamp = call.StampPast(stamp, t.past)
	t.past = (t.past ^ stamp[0] ^ stamp[1]<<7) * 0x9e3779b97f4a7c15
	t.past ^= t.past >> 29
	t.recent[t.seq%depth] = stamp
	if t.seq%depth == 0 { // a clock costs as much as a small message
		t.clock = time.Now().UnixNano()
	}
	return stamp
}

// Counts remembers the counts of the last collective, which all ranks have to give alike. The turn is held.
func (t *Turn) Counts(counts []int) {
	t.numbers.Lock()
	defer t.numbers.Unlock()
	t.counts, t.countsOf = append(t.counts[:0], counts...), t.seq
}

// Seq is the number of the last collective as its stamp carries it, 0 if there is none. The turn is held.
func (t *Turn) Seq() uint32 { return stamped(t.seq) }

// cycle is how many numbers stamps carry: 0 stands for none.
const cycle = 1<<32 - 1

// stamped is a number as a stamp carries it.
func stamped(n uint64) uint32 {
	if n == 0 {
		return 0
	}
	return uint32((n-1)%cycle + 1)
}

// number is the number that a stamp carries as s: the nearest to the last collective's, for ranks are never half a
// cycle apart. It may be called at any time.
func (t *Turn) number(s uint32) uint64 {
	t.numbers.Lock()
	defer t.numbers.Unlock()
	if s == 0 || t.seq <= cycle/2 {
		return uint64(s)
	}
	ahead := int64(s) - int64(stamped(t.seq))
	switch {
	case ahead > cycle/2:
		ahead -= cycle
	case ahead < -cycle/2:
		ahead += cycle
	}
	return t.seq + uint64(ahead)
}

// Skip has the next collective be number n+1, as if n had been made: for tests, on all ranks alike.
func (t *Turn) Skip(n uint64) {
	t.numbers.Lock()
	defer t.numbers.Unlock()
	t.seq = n
}

// position is what this rank can say of its calls. waiting says that it has waited long in the last one. position may
// be called at any time.
func (t *Turn) position(waiting bool) bootstrap.Position {
	t.numbers.Lock()
	defer t.numbers.Unlock()
	return t.at(waiting)
}

// at is position while numbers is held.
func (t *Turn) at(waiting bool) bootstrap.Position {
	p := bootstrap.Position{Waiting: waiting && !t.pairwise && t.seq > 0}
	for n := max(t.seq, depth) - depth + 1; n <= t.seq && n > 0; n++ {
		p.Calls = append(p.Calls, bootstrap.Called{Number: n, Call: bytesOf(t.recent[n%depth])})
	}
	if t.countsOf == t.seq {
		p.Counts = slices.Clone(t.counts)
	}
	return p
}

// counted is the position of a rank that has waited long, by which the group finds a Recv whose peer is in a collective
// and has not begun the Send: in a collective the ranks that the collective needs and the number of Sends to each peer,
// else the number of Recvs from each peer.
func (t *Turn) counted(rank int) bootstrap.Position {
	t.numbers.Lock()
	defer t.numbers.Unlock()
	p := t.at(true)
	if p.Waiting {
		p.Needs = needs(call.ReadSign(t.recent[t.seq%depth]), rank)
		for peer, n := range t.sent {
			if n > 0 && p.Needs != bootstrap.Nobody {
				p.Messages = append(p.Messages, bootstrap.Messages{Peer: peer, Count: n})
			}
		}
		return p
	}
	said := map[int32]bool{}
	for _, m := range slices.Backward(t.messages.Messages()) {
		if m.Recv && !said[m.Peer] {
			said[m.Peer] = true
			p.Messages = append(p.Messages, bootstrap.Messages{Peer: int(m.Peer), Count: t.received[m.Peer],
				Call: bytesOf(m.Stamp)})
		}
	}
	return p
}

// needs says without whose part a rank cannot end a collective. Ranks that only pass on parts of others do not count:
// they depend on the algorithm.
func needs(s call.Sign, rank int) bootstrap.Need {
	whole := s.Composite()
	switch {
	case s.Kind == call.Broadcast, s.Kind == call.Scatter, whole == call.Scatterv:
		if s.Root != rank {
			return bootstrap.NeedOf(s.Root)
		}
		return bootstrap.Nobody
	case (s.Kind == call.Reduce || s.Kind == call.Gather || whole == call.Gatherv) && s.Root != rank:
		return bootstrap.Nobody
	}
	return bootstrap.Everyone
}

// inside is the number of the collective whose turn it is, 0 if there is none; pairwise says that the turn is a Send's
// or Recv's. inside may be called at any time.
func (t *Turn) inside() (number uint64, pairwise bool) {
	if t.TryLock() {
		t.Unlock()
		return 0, false
	}
	t.numbers.Lock()
	defer t.numbers.Unlock()
	if t.pairwise {
		return 0, true
	}
	return t.seq, false
}
