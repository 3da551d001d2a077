package weakmem

import (
	"cmp"
	"slices"
)

// A Clock is the set of accesses that happened before some point, a vector clock. It is
// immutable; the zero Clock is the beginning.
type Clock struct{ v *vector }

// Join is the Clock of all that happened before a or b.
func Join(a, b Clock) Clock { return Clock{join(a.v, b.v)} }

// A vector is a sparse vector clock. An agent is a block, or one operation of
// the driver. Of an agent that still runs there are up to three kinds of
// entries, so that barriers cost little: for the block (all accesses before a
// barrier), for a warp and for a thread. nil is the empty vector.
type vector struct {
	ended  []agents // in order: all their accesses are before
	fenced []agents // agents of ended that are before a proxy fence for shared memory
	live   []entry  // by key
}

// agents are those from first until before last.
type agents struct{ first, last uint32 }

// An entry says that the accesses of a part of an agent at times earlier than until are
// before. The time is Block.epoch for a block, warp.time for warps and threads.
type entry struct {
	key   uint64
	until uint32
}

// The parts of an agent, in the low bits of an entry's key.
const (
	partBits   = 11
	wholeBlock = 0
	firstWarp  = 1
	firstLane  = 64
)

func key(agent uint32, part int) uint64 { return uint64(agent)<<partBits | uint64(part) }

// hasEnded reports whether all of the agent is before.
func (v *vector) hasEnded(agent uint32) bool { return v != nil && within(v.ended, agent) }

// within reports whether the agent is in the list.
func within(list []agents, agent uint32) bool {
	lo, hi := 0, len(list)
	for lo < hi {
		if mid := (lo + hi) / 2; list[mid].last <= agent {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo < len(list) && list[lo].first <= agent
}

// covers reports whether a lane's part of the access is before; lane -1 asks for all lanes.
func (v *vector) covers(r *record, lane int) bool { return v.coversIn(0, r, lane) }

// coversIn is covers by the entries that have a bit in their keys, see proxy.go.
func (v *vector) coversIn(space uint64, r *record, lane int) bool {
	if v == nil {
		return false
	}
	if v.hasEnded(r.by.agent) {
		return true
	}
	agent := uint64(r.by.agent) | space>>partBits
	lo, hi := 0, len(v.live)
	for lo < hi {
		if mid := (lo + hi) / 2; v.live[mid].key < agent<<partBits {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	for _, e := range v.live[lo:] {
		if e.key>>partBits != agent {
			break
		}
		switch part := int(e.key & (1<<partBits - 1)); part {
		case wholeBlock:
			if r.epoch < e.until {
				return true
			}
		case firstWarp + int(r.warp):
			if r.time < e.until {
				return true
			}
		case firstLane + 32*int(r.warp) + lane:
			if lane >= 0 && r.time < e.until {
				return true
			}
		}
	}
	return false
}

// join is the least vector above both. It is one of them where possible.
func join(a, b *vector) *vector {
	if a == b || b == nil {
		return a
	}
	if a == nil {
		return b
	}
	if a.includes(b) {
		return a
	}
	if b.includes(a) {
		return b
	}
	v := &vector{ended: joinEnded(a.ended, b.ended), fenced: joinEnded(a.fenced, b.fenced)}
	v.live = make([]entry, 0, len(a.live)+len(b.live))
	x, y := a.live, b.live
	for len(x) > 0 || len(y) > 0 {
		var e entry
		switch {
		case len(y) == 0 || len(x) > 0 && x[0].key < y[0].key:
			e, x = x[0], x[1:]
		case len(x) == 0 || y[0].key < x[0].key:
			e, y = y[0], y[1:]
		default:
			e = entry{x[0].key, max(x[0].until, y[0].until)}
			x, y = x[1:], y[1:]
		}
		if !v.hasEnded(uint32(e.key >> partBits)) {
			v.live = append(v.live, e)
		}
	}
	return v
}

// newest is v with at most n entries of agents that still run, those that began last.
func (v *vector) newest(n int) *vector {
	if len(v.live) <= n {
		return v
	}
	return &vector{ended: v.ended, fenced: v.fenced, live: v.live[len(v.live)-n:]}
}

// includes reports whether b adds nothing to v.
func (v *vector) includes(b *vector) bool {
	if !includesAgents(v.ended, b.ended) || !includesAgents(v.fenced, b.fenced) {
		return false
	}
	x := v.live
	for _, e := range b.live {
		for len(x) > 0 && x[0].key < e.key {
			x = x[1:]
		}
		if len(x) > 0 && x[0].key == e.key && x[0].until >= e.until {
			continue
		}
		if !v.hasEnded(uint32(e.key >> partBits)) {
			return false
		}
	}
	return true
}

func includesAgents(list, others []agents) bool {
	for _, r := range others {
		i, found := slices.BinarySearchFunc(list, r.first,
			func(x agents, first uint32) int { return cmp.Compare(x.first, first) })
		if !found {
			i--
		}
		if i < 0 || list[i].last < r.last {
			return false
		}
	}
	return true
}

// joinEnded merges two lists of agents.
func joinEnded(a, b []agents) []agents {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	var all []agents
	for len(a) > 0 || len(b) > 0 {
		var next agents
		if len(b) == 0 || len(a) > 0 && a[0].first < b[0].first {
			next, a = a[0], a[1:]
		} else {
			next, b = b[0], b[1:]
		}
		if n := len(all); n > 0 && next.first <= all[n-1].last {
			all[n-1].last = max(all[n-1].last, next.last)
		} else {
			all = append(all, next)
		}
	}
	return all
}

// endedVector sorts the agents, and makes a clock that knows the ends of all.
func endedVector(ids []uint32) *vector {
	slices.Sort(ids)
	v := &vector{}
	for _, id := range ids {
		if n := len(v.ended); n > 0 && v.ended[n-1].last == id {
			v.ended[n-1].last++
		} else {
			v.ended = append(v.ended, agents{id, id + 1})
		}
	}
	return v
}

// without is v without the entries of one agent.
func (v *vector) without(agent uint32) *vector {
	if v == nil {
		return nil
	}
	of := func(e entry) bool { return e.key>>partBits == uint64(agent) }
	if !slices.ContainsFunc(v.live, of) {
		return v
	}
	return &vector{ended: v.ended, fenced: v.fenced, live: slices.DeleteFunc(slices.Clone(v.live), of)}
}
