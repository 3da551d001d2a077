package ringo

import (
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/transport"
)

// A sign is what all ranks of one operation must agree on. It travels with every
// slot as a transport.Stamp, so that a rank which does something else is found
// at the first message, and both calls can be named.
type sign struct {
	seq   uint32 // number of the collective on its communicator; 0 for Send and Recv
	kind  Kind   // KindSend stands for both ends
	typ   DataType
	op    kernels.Kind
	algo  algo
	where uint16 // stands for windows and offsets of a call in registered memory, 0 for none
	count int
	root  int
}

// Layout of a stamp: seq 32 | kind 4 | type 4 | op 4 | algo 5 | where 15, count 46 |
// root+1 18.
func (s sign) stamp() transport.Stamp {
	return transport.Stamp{
		uint64(s.seq)<<32 | uint64(s.kind&15)<<28 | uint64(s.typ&15)<<24 | uint64(s.op&15)<<20 | uint64(s.algo&31)<<15 | uint64(s.where&maxWhere),
		uint64(s.count)<<18 | uint64(s.root+1)&(1<<18-1),
	}
}

// maxWhere is what a stamp can carry of a sign's where.
const maxWhere = 1<<15 - 1

// stampAt adds a where to a stamp that has none.
func stampAt(t transport.Stamp, where uint16) transport.Stamp {
	t[0] |= uint64(where & maxWhere)
	return t
}

// All kinds and algorithms have room in a stamp.
const (
	_ = uint(16 - kinds)
	_ = uint(32 - algos)
)

func signOf(t transport.Stamp) sign {
	return sign{
		seq: uint32(t[0] >> 32), kind: Kind(t[0] >> 28 & 15), typ: DataType(t[0] >> 24 & 15), op: kernels.Kind(t[0] >> 20 & 15),
		algo: algo(t[0] >> 15 & 31), where: uint16(t[0] & maxWhere),
		count: int(t[1] >> 18), root: int(t[1]&(1<<18-1)) - 1,
	}
}

func (s sign) String() string {
	if s.kind == KindBarrier {
		return "Barrier()"
	}
	var b strings.Builder
	name := s.kind.String()
	if s.kind == KindSend {
		name = "Send/Recv"
	}
	switch s.kind {
	case KindAlltoAllv:
		fmt.Fprintf(&b, "%s(%v", name, s.typ)
	case KindAllGatherv:
		fmt.Fprintf(&b, "%s(counts %#x, %v", name, s.count, s.typ)
	default:
		fmt.Fprintf(&b, "%s(count %d, %v", name, s.count, s.typ)
	}
	if s.kind.Reduces() {
		fmt.Fprintf(&b, ", %v", s.op)
	}
	if s.kind.Rooted() {
		fmt.Fprintf(&b, ", root %d", s.root)
	}
	b.WriteByte(')')
	return b.String()
}

// hashCounts stands for the counts of AllGatherv in a sign.
func hashCounts(counts []int) int {
	h := fnv.New64a()
	for _, n := range counts {
		fmt.Fprintf(h, "%d,", n)
	}
	return int(h.Sum64() % maxCount)
}
