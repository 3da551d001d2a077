package history

import "time"

// Depth is how many calls a Ring keeps.
const Depth = 64

// An Entry is a call that a rank has begun.
type Entry struct {
	Stamp [2]uint64 // the call as the ranks agree on it: a call.Sign, with its number among the collectives
	Peer  int32     // of a Send or Recv; -1 in a collective
	Recv  bool      // it is the receiving end
	Time  int64     // Unix time in ns, of one call in Depth; 0 of the others
}

// A Ring is the last calls of a rank. It is not for concurrent use. To add a call costs about 1 ns: a
// clock is read once in Depth calls.
type Ring struct {
	entries [Depth]Entry
	n       uint64 // calls so far
}

// Add notes a call that begins.
func (r *Ring) Add(stamp [2]uint64, peer int32, recv bool) {
	e := &r.entries[r.n%Depth]
	e.Stamp, e.Peer, e.Recv, e.Time = stamp, peer, recv, 0
	if r.n%Depth == 0 {
		e.Time = time.Now().UnixNano()
	}
	r.n++
}

// Len is how many calls have been noted since the beginning.
func (r *Ring) Len() uint64 { return r.n }

// Calls are those that are kept, oldest first.
func (r *Ring) Calls() []Entry {
	first := max(r.n, Depth) - Depth
	out := make([]Entry, 0, r.n-first)
	for i := first; i < r.n; i++ {
		out = append(out, r.entries[i%Depth])
	}
	return out
}
