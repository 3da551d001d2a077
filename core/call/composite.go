package call

import (
	"fmt"

	"github.com/ringo-go/ringo/kernels"
)

// A Composite is an operation that other calls carry out: an AlltoAllv, or sends and receives. Their signs
// say so, that ranks which differ in it are told.
type Composite uint8

// The composites. Those before Scan are carried out by one AlltoAllv each.
const (
	Gatherv Composite = iota + 1
	Scatterv
	ReduceScatterv
	Scan
	composites
)

func (c Composite) String() string {
	if c > 0 && c < composites {
		return [composites]string{"", "Gatherv", "Scatterv", "ReduceScatterv", "Scan"}[c]
	}
	return fmt.Sprintf("Composite(%d)", uint8(c))
}

// A part is what a call is part of, if it is.
type part struct {
	whole Composite
	op    kernels.Kind
	root  int // -1 if there is none
}

// PartOf has a call be part of a Composite, with its operator and root, -1 if there is none.
func PartOf(c *Call, whole Composite, op kernels.Kind, root int) { c.of = part{whole, op, root} }

// Name is the operation as the caller knows it.
func Name(c *Call) string {
	if c.of.whole != 0 {
		return c.of.whole.String()
	}
	return c.Kind.String()
}

// composite is what the call of a sign is part of, 0 if nothing.
func (s Sign) composite() Composite {
	switch {
	case s.Kind == AlltoAllv && s.Count > 0 && s.Count < int(Scan):
		return Composite(s.Count)
	case s.Kind == Send && s.Root == 0:
		return Scan
	}
	return 0
}

func (s Sign) stringOf(c Composite) string {
	switch c {
	case Scan:
		return fmt.Sprintf("%v(count %d, %v, %v)", c, s.Count, s.Type, s.Op)
	case ReduceScatterv:
		return fmt.Sprintf("%v(%v, %v)", c, s.Type, s.Op)
	}
	return fmt.Sprintf("%v(%v, root %d)", c, s.Type, s.Root)
}
