package history

// Depth is how many messages a Ring keeps, and how many calls a Record has at most.
const Depth = 64

// A Message is a Send or Recv that a rank has begun.
type Message struct {
	Stamp [2]uint64 // a call.Sign
	Peer  int32
	Recv  bool
	After uint64 // the last collective that the rank had begun before
}

// A Ring is the last messages of a rank. It is not for concurrent use.
type Ring struct {
	entries [Depth]Message
	n       uint64 // messages so far
}

// Add notes a message that begins.
func (r *Ring) Add(m Message) {
	r.entries[r.n%Depth] = m
	r.n++
}

// Len is how many messages have been noted since the beginning.
func (r *Ring) Len() uint64 { return r.n }

// Messages are the messages that are kept, oldest first.
func (r *Ring) Messages() []Message {
	first := max(r.n, Depth) - Depth
	out := make([]Message, 0, r.n-first)
	for i := first; i < r.n; i++ {
		out = append(out, r.entries[i%Depth])
	}
	return out
}
