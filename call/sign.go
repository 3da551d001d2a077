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
	Seq   uint32 // number of the collective on its communicator; 0 for Send and Recv
	Kind  Kind   // Send stands for both ends
	Type  kernels.DataType
	Op    kernels.Kind
	Algo  Algo
	Where uint16 // stands for windows and offsets of a call in registered memory, 0 for none
	Count int
	Root  int // -1 if there is none
}

// SignOf is the sign of a call without its number, algorithm and windows.
func SignOf(c *Call) Sign {
	s := Sign{Kind: c.Kind, Type: c.Type, Count: c.Count, Root: -1}
	switch c.Kind {
	case Barrier:
		return Sign{Kind: Barrier, Root: -1}
	case Recv:
		s.Kind = Send
	case AllGatherv:
		s.Count = hashCounts(c.OutCounts)
	case AlltoAllv:
		s.Count = 0 // every pair has its own
	}
	if c.Kind.Reduces() {
		s.Op = c.Op.Kind
	}
	if c.Kind.Rooted() {
		s.Root = c.Root
	}
	return s
}

// Stamp is the sign as it travels, in bits: seq 32, kind 4, type 4, op 4, algo 5,
// where 15; count 46, root+1 18.
func (s Sign) Stamp() [2]uint64 {
	return [2]uint64{
		uint64(s.Seq)<<32 | uint64(s.Kind&15)<<28 | uint64(s.Type&15)<<24 | uint64(s.Op&15)<<20 | uint64(s.Algo&31)<<15 | uint64(s.Where&MaxWhere),
		uint64(s.Count)<<18 | uint64(s.Root+1)&(1<<18-1),
	}
}

// MaxWhere is the largest Where that a stamp carries.
const MaxWhere = 1<<15 - 1

// StampAt adds a where to a stamp that has none.
func StampAt(t [2]uint64, where uint16) [2]uint64 {
	t[0] |= uint64(where & MaxWhere)
	return t
}

// All kinds and algorithms have room in a stamp.
const (
	_ = uint(16 - Kinds)
	_ = uint(32 - Algos)
)

// ReadSign is the sign that travels as t.
func ReadSign(t [2]uint64) Sign {
	return Sign{
		Seq: uint32(t[0] >> 32), Kind: Kind(t[0] >> 28 & 15), Type: kernels.DataType(t[0] >> 24 & 15), Op: kernels.Kind(t[0] >> 20 & 15),
		Algo: Algo(t[0] >> 15 & 31), Where: uint16(t[0] & MaxWhere),
		Count: int(t[1] >> 18), Root: int(t[1]&(1<<18-1)) - 1,
	}
}

func (s Sign) String() string {
	switch s.Kind {
	case Barrier:
		return "Barrier()"
	case Meeting:
		return Method(s.Count).String() + "()"
	}
	var b strings.Builder
	name := s.Kind.String()
	if s.Kind == Send {
		name = "Send/Recv"
	}
	switch s.Kind {
	case AlltoAllv:
		fmt.Fprintf(&b, "%s(%v", name, s.Type)
	case AllGatherv:
		fmt.Fprintf(&b, "%s(counts %#x, %v", name, s.Count, s.Type)
	default:
		fmt.Fprintf(&b, "%s(count %d, %v", name, s.Count, s.Type)
	}
	if s.Kind.Reduces() {
		fmt.Fprintf(&b, ", %v", s.Op)
	}
	if s.Kind.Rooted() {
		fmt.Fprintf(&b, ", root %d", s.Root)
	}
	b.WriteByte(')')
	return b.String()
}

// Numbered is String with the number: "AllReduce #17 (count 1024, float32, sum)".
func (s Sign) Numbered() string {
	if s.Seq == 0 {
		return s.String()
	}
	name, rest, _ := strings.Cut(s.String(), "(")
	if rest == ")" {
		return fmt.Sprintf("%s #%d", name, s.Seq)
	}
	return fmt.Sprintf("%s #%d (%s", name, s.Seq, rest)
}

// SameCall reports whether two signs differ at most in how the call is carried out.
func SameCall(a, b Sign) bool {
	a.Algo, a.Where = b.Algo, b.Where
	return a == b
}

// hashCounts stands for the counts of AllGatherv in a sign (FNV-1a, a word at a time).
func hashCounts(counts []int) int {
	h := uint64(0xcbf29ce484222325)
	for _, n := range counts {
		h = (h ^ uint64(n)) * 0x100000001b3
		h ^= h >> 29
	}
	return int(h % MaxCount)
}
