package rendezvous

import (
	"maps"
	"math"
	"slices"
)

const (
	HeadedBytes = 64 << 10 // shorter results go to every rank from the hub
	keptGathers = 8        // number of results, the newest, that hub and heads keep
	MaxListed   = 1024     // the most ranks that a message lists
)

// Results holds the results of the newest AllGathers, by number.
type Results map[uint64]*Gathered

// Keep adds a result, and drops the oldest.
func (n Results) Keep(g *Gathered) {
	n[g.Seq] = g
	for seq := range n {
		if seq+keptGathers <= g.Seq {
			delete(n, seq)
		}
	}
}

// Kept reports whether a result is kept after another has come.
func Kept(seq, newest uint64) bool { return seq+keptGathers > newest }

// gathers are the AllGathers of a group.
type gathers struct {
	ranks *ranks
	out   *outbox
	next  []uint64           // by rank: AllGathers it took part in
	open  map[uint64]*gather // to which some ranks have not come yet
	heads []int              // by rank: the head of its machine, -1 if it has none; nil: nobody has
	kept  Results            // that heads give to others
	stops uint64             // number of the earliest AllGather that cannot complete, as all have been told
}

// A gather is an AllGather to which some ranks have not come yet.
type gather struct {
	parts     [][]byte // by rank
	come      int
	withdrawn bool // the AllGather has failed; ranks that come later are told
}

func newGathers(r *ranks, out *outbox, heads []int) gathers {
	return gathers{ranks: r, out: out, next: make([]uint64, r.size), open: map[uint64]*gather{}, heads: heads,
		kept: Results{}, stops: math.MaxUint64}
}

// join notes that a rank comes to AllGather seq, and returns the gather.
func (s *gathers) join(rank int, seq uint64) *gather {
	s.next[rank]++
	g := s.open[seq]
	if g == nil {
		g = &gather{parts: make([][]byte, s.ranks.size)}
		s.open[seq] = g
	}
	if g.come++; g.come == s.ranks.size {
		delete(s.open, seq)
	}
	return g
}

// part takes a rank's part. failed is why no AllGather can complete, nil if some may. The result is false if the rank
// broke the protocol.
func (s *gathers) part(rank int, m *Part, failed *Failure) bool {
	if m.Seq != s.next[rank] {
		return false
	}
	g := s.join(rank, m.Seq)
	switch {
	case g.withdrawn:
	case failed != nil:
		s.giveUp(g, m.Seq, failed.Rank, failed.Error())
	default:
		g.parts[rank] = m.Data
		if g.come == s.ranks.size {
			s.deliver(&Gathered{Seq: m.Seq, Data: g.parts})
		}
	}
	return true
}

// deliver sends a result to all ranks; a large one only to the heads and to ranks without a head.
func (s *gathers) deliver(g *Gathered) {
	bytes := 0
	for _, p := range g.Data {
		bytes += len(p)
	}
	direct := s.ranks.all()
	if bytes >= HeadedBytes && s.heads != nil {
		var there []int
		direct = slices.DeleteFunc(direct, func(q int) bool {
			h := s.heads[q]
			if h < 0 || s.ranks.gone[h] {
				return false
			}
			there = append(there, q)
			return true
		})
		if len(there) > 0 {
			s.kept.Keep(g)
			s.out.tell(there, &Held{g.Seq})
		}
	}
	s.out.tell(direct, g)
}

// resend sends a result to a rank that could not get it from its head.
func (s *gathers) resend(rank int, m *Resend) bool {
	g := s.kept[m.Seq]
	if g != nil {
		s.out.tell([]int{rank}, g)
	}
	return g != nil
}

// withdraw ends an AllGather that a rank gives up, unless the AllGather has ended: then
// the rank's answer is on its way. A rank may give up an AllGather instead of coming to it.
func (s *gathers) withdraw(rank int, m *Withdraw) bool {
	if m.Seq > s.next[rank] {
		return false
	}
	g := s.open[m.Seq]
	if m.Seq == s.next[rank] {
		g = s.join(rank, m.Seq)
	}
	if g != nil && !g.withdrawn {
		s.giveUp(g, m.Seq, rank, m.Reason)
	}
	return true
}

// leave gives up the AllGathers that a leaving rank waits for. The result is whether that rank stops AllGathers of
// others: one that leaves at the same AllGather as another, or later, is no news, and thousands leave at once.
func (s *gathers) leave(rank int) (stops bool) {
	s.giveUpAll(s.next[rank], rank, "it left the group")
	stops = s.next[rank] < s.stops
	s.stops = min(s.stops, s.next[rank])
	return stops
}

// giveUpAll fails the AllGathers below a number.
func (s *gathers) giveUpAll(below uint64, rank int, reason string) {
	for _, seq := range slices.Sorted(maps.Keys(s.open)) {
		if g := s.open[seq]; seq < below && !g.withdrawn {
			s.giveUp(g, seq, rank, reason)
		}
	}
}

// giveUp fails an AllGather on all ranks.
func (s *gathers) giveUp(g *gather, seq uint64, rank int, reason string) {
	g.withdrawn, g.parts = true, nil
	w := &Withdrawn{Seq: seq, Rank: rank, Reason: reason}
	for q, next := range s.next {
		if next <= seq && len(w.Missing) < MaxListed {
			w.Missing = append(w.Missing, q)
		}
	}
	s.out.tell(s.ranks.all(), w)
}
