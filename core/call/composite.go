package call

import (
	"fmt"

	"github.com/ringo-go/ringo/kernels"
)

// A part names the composite that a call is part of, if any.
type part struct {
	whole  Kind // a composite, or 0
	op     kernels.Kind
	root   int // -1 if there is none
	counts []int
}

// PartOf makes x, an AlltoAllv, Send or Recv, part of the composite whole: the sign and errors of x name whole.
func PartOf(x, whole *Call) {
	x.of = part{whole: whole.Kind, root: -1, counts: whole.OutCounts}
	if whole.OutCounts == nil {
		x.of.counts = whole.InCounts
	}
	if whole.Kind.Reduces() {
		x.of.op = whole.Op.Kind
	}
	if whole.Kind.Rooted() {
		x.of.root = whole.Root
	}
}

// Shared is the counts of a call that all ranks must give alike, nil if there are none.
func (c *Call) Shared() []int {
	if c.Kind == AllGatherv {
		return c.OutCounts
	}
	return c.of.counts
}

// Name is the operation as the caller knows it: a composite for its parts.
func Name(c *Call) string {
	if c.of.whole != 0 {
		return c.of.whole.String()
	}
	return c.Kind.String()
}

// Composite is the composite that the call of a sign is part of, 0 if none.
func (s Sign) Composite() Kind {
	switch {
	case s.Kind == AlltoAllv:
		return s.Whole
	case s.Kind == Send && s.Root == 0:
		return Scan
	}
	return 0
}

// checkComposite refuses memory of a GPU, operators that the composite or its type has not, and shares that divide
// what a user's operator takes as a whole.
func (c *Call) checkComposite(n int) error {
	if c.OnDevice() {
		return fmt.Errorf("%w: %v is for host memory: on a GPU an AlltoAllv with counts, or Sends and Recvs of a Group, do "+
			"it",
			ErrUnsupported, c.Kind)
	}
	if !c.Kind.Reduces() {
		return nil
	}
	r, err := kernels.NewReducer(c.Type, c.Op, n)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if c.Kind == Scan {
		if c.Op.Kind == kernels.KindAvg {
			return invalid("a Scan has no %v", c.Op)
		}
		return nil
	}
	for i, k := range c.InCounts {
		if k*c.Type.Size()%r.Unit() != 0 {
			return invalid("the share of rank %d is no multiple of the %d bytes that %v takes as a whole", i, r.Unit(), c.Op)
		}
	}
	return nil
}
