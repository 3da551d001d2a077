package call

import (
	"fmt"
	"strings"

	"github.com/ringo-go/ringo/kernels"
)

// A Sign is what all ranks of one operation must agree on. It travels with every
// slot, in 16 bytes (Stamp), so that a rank which does something else is found at
// the first message, and both calls can be named.
type Sign struct {
	Seq   uint32 // number of the collective on its communicator; after 2³²−1 comes 1; 0 for Send and Recv
	Kind  Kind   // Send stands for both ends
	Type  kernels.DataType
	Op    kernels.Kind
	Algo  Algo
	Where uint16 // stands for windows and offsets of a call in registered memory, 0 for none
	Whole Kind   // the composite that an AlltoAllv is part of, or 0
	// Count is in elements. Of an AllGatherv and with a Whole it stands for the counts, of a Barrier for all collectives
	// before; of an AlltoAllv it is 0, but with a message between two ranks the message's own, see StampMessage; of a
	// Meeting it is the Method.
	Count int
	Root  int  // -1 if there is none; of a Send: 0 if the call is part of a Scan
	Rows  Rows // of a call with a Norm: a stamp has them in the place of Where, Count and Root
}

// SignOf is the sign of a checked call without its number, algorithm and windows.
func SignOf(c *Call) Sign { return ReadSign(StampOf(c, Auto)) }

// StampOf is the stamp of a checked call that an algorithm carries out, without its number.
func StampOf(c *Call, a Algo) [2]uint64 {
	if c.Norm != nil {
		return rowsOf(c).stamp(0, c.Kind, c.Type, a)
	}
	kind, typ, op, count, root, whole := c.Kind, c.Type, kernels.Kind(0), c.Count, -1, Kind(0)
	switch {
	case kind.Composite(): // the stamp of the calls that carry it out
		x := Call{Kind: AlltoAllv, Count: count, Type: typ}
		if kind == Scan {
			x.Kind = Send
		}
		PartOf(&x, c)
		return StampOf(&x, a)
	case kind == Barrier:
		typ = 0
	case kind == Send || kind == Recv:
		kind = Send
		if c.of.whole == Scan {
			op, root = c.of.op, 0
		}
	case kind == AllGatherv:
		count = hashCounts(c.Shared())
	case kind == AlltoAllv:
		count = 0 // each pair of ranks has a count of its own
		if c.of.whole > 0 {
			count, op, root, whole = hashCounts(c.Shared()), c.of.op, c.of.root, c.of.whole
		}
	case kind.Reduces():
		op = c.Op.Kind
	}
	if kind.Rooted() {
		root = c.Root
	}
	return stamp(0, kind, typ, op, a, 0, whole, count, root)
}

// Stamp is the sign as it travels.
func (s Sign) Stamp() [2]uint64 {
	if s.Rows.Has {
		return s.Rows.stamp(s.Seq, s.Kind, s.Type, s.Algo)
	}
	return stamp(s.Seq, s.Kind, s.Type, s.Op, s.Algo, s.Where, s.Whole, s.Count, s.Root)
}

// stamp lays out a sign, in bits: seq 32, kind 4, type 4, op 4, algo 5, where 15; count 46, or whole 2 and count 44,
// root+1 18.
func stamp(seq uint32, kind Kind, typ kernels.DataType, op kernels.Kind, a Algo, where uint16, whole Kind, count,
	root int) [2]uint64 {
	return [2]uint64{
		uint64(seq)<<32 | uint64(kind&15)<<28 | uint64(typ&15)<<24 | uint64(op&15)<<20 | uint64(a&31)<<15 |
			uint64(where&MaxWhere),
		uint64(max(whole, Kinds)-Kinds)<<(18+countBits) | uint64(count)<<18 | uint64(root+1)&(1<<18-1),
	}
}

// countBits is the length of a count beside a Whole.
const countBits = 44

// StampMessage adds the length of one message between two ranks to the stamp of an AlltoAllv, so that ranks which do
// not agree on it find out at the message. Where the counts of all ranks are in the stamp, it stays as it is.
func StampMessage(t [2]uint64, bytes int) [2]uint64 {
	if t[1]>>(18+countBits) == 0 {
		t[1] |= uint64(bytes/kernels.DataType(t[0]>>24&15).Size()) << 18
	}
	return t
}

// MaxWhere is the largest Where that a stamp carries.
const MaxWhere = 1<<15 - 1

// StampAt adds a Sign's Where to a stamp that has none.
func StampAt(t [2]uint64, where uint16) [2]uint64 {
	t[0] |= uint64(where & MaxWhere)
	return t
}

// StampPast adds past, which stands for all earlier collectives, to the stamp of a Barrier as its Count: ranks that
// needed nothing of each other in calls that differ find out at the next Barrier. Other stamps stay as they are.
func StampPast(t [2]uint64, past uint64) [2]uint64 {
	if Kind(t[0]>>28&15) == Barrier {
		t[1] |= past % MaxCount << 18
	}
	return t
}

// All kinds and algorithms fit into a stamp.
const (
	_ = uint(16 - Kinds)
	_ = uint(31 - ByRank)
)

// ReadSign is the sign that travels as t.
func ReadSign(t [2]uint64) Sign {
	s := Sign{
		Seq: uint32(t[0] >> 32), Kind: Kind(t[0] >> 28 & 15), Type: kernels.DataType(t[0] >> 24 & 15),
		Op:   kernels.Kind(t[0] >> 20 & 15),
		Algo: Algo(t[0] >> 15 & 31), Where: uint16(t[0] & MaxWhere),
		Count: int(t[1] >> 18), Root: int(t[1]&(1<<18-1)) - 1,
	}
	if whole := t[1] >> (18 + countBits); s.Kind == AlltoAllv && whole > 0 {
		s.Whole, s.Count = Kinds+Kind(whole), int(t[1]<<2>>20)
	}
	if s.Op == withRows {
		s.Op, s.Where, s.Whole, s.Count, s.Root = kernels.Sum.Kind, 0, 0, 0, -1
		s.Rows = rowsIn(t)
		s.Rows.Has = true
	}
	return s
}

// String has all that the sign says. What stands for counts is a hash there.
func (s Sign) String() string { return s.words(true) }

func (s Sign) words(hash bool) string {
	switch {
	case s.Rows.Has:
		return fmt.Sprintf("%v(%d %s, %v)", s.Kind, s.Rows.Count, s.Rows.of(s.Type), s.Type)
	case s.Kind == Barrier:
		return "Barrier()"
	case s.Kind == Meeting:
		return Method(s.Count).String() + "()"
	}
	var b strings.Builder
	kind, name := s.Kind, s.Kind.String()
	if s.Kind == Send {
		name = "Send/Recv"
	}
	if c := s.Composite(); c != 0 {
		kind, name = c, c.String()
	}
	switch {
	case s.Shared() && hash:
		fmt.Fprintf(&b, "%s(counts %#x, %v", name, s.Count, s.Type)
	case kind.Variable():
		fmt.Fprintf(&b, "%s(%v", name, s.Type)
	default:
		fmt.Fprintf(&b, "%s(count %d, %v", name, s.Count, s.Type)
	}
	if kind.Reduces() {
		fmt.Fprintf(&b, ", %v", s.Op)
	}
	if kind.Rooted() {
		fmt.Fprintf(&b, ", root %d", s.Root)
	}
	b.WriteByte(')')
	return b.String()
}

// Shared reports whether all ranks of the call give the same counts, for which Count stands.
func (s Sign) Shared() bool { return s.Kind == AllGatherv || s.Whole > 0 }

// Numbered is the sign with its number, without what stands for counts: "AllReduce #17 (count 1024, float32, sum)".
func (s Sign) Numbered() string {
	words := s.words(false)
	if s.Seq == 0 {
		return words
	}
	name, rest, _ := strings.Cut(words, "(")
	if rest == ")" {
		return fmt.Sprintf("%s #%d", name, s.Seq)
	}
	return fmt.Sprintf("%s #%d (%s", name, s.Seq, rest)
}

// SameCall reports whether two signs differ at most in Algo and Where: in how the call is carried out.
func SameCall(a, b Sign) bool {
	a.Algo, a.Where = b.Algo, b.Where
	return a == b
}

// hashCounts stands in a sign for counts that all ranks share (FNV-1a, a word at a time).
func hashCounts(counts []int) int {
	h := uint64(0xcbf29ce484222325)
	for _, n := range counts {
		h = (h ^ uint64(n)) * 0x100000001b3
		h ^= h >> 29
	}
	return int(h % MaxCount)
}
