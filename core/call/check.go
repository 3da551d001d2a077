package call

import (
	"fmt"
	"math"

	"github.com/ringo-go/ringo/mem"
)

// Check finds what is wrong with the call of a rank among n before any rank hears of it: an ErrInvalid, or an
// ErrUnsupported for a composite on a GPU. Whether operator and type fit each other is found when the call gets its
// number; after that nothing may go wrong with the call's arguments.
func (c *Call) Check(rank, n int) error {
	switch {
	case c == nil:
		return invalid("the Call is nil")
	case c.Kind == 0:
		return invalid("the call has no Kind: set it, as in Call{Kind: KindAllReduce, …}")
	case !c.Kind.Valid() && !c.Kind.Composite():
		return invalid("unknown operation %v", c.Kind)
	case c.Timeout < 0:
		return invalid("Timeout is %v: want more, or 0 for Config.Timeout", c.Timeout)
	case c.Kind == Barrier && (c.Count != 0 || c.In.Len() > 0 || c.Out.Len() > 0):
		return invalid("a Barrier moves nothing, but the call has Count %d, %d bytes of In and %d of Out: leave them out",
			c.Count, c.In.Len(), c.Out.Len())
	case c.Kind == Barrier:
		return nil
	case c.OnDevice() && (c.In.IsHost() && c.In.Len() > 0 || c.Out.IsHost() && c.Out.Len() > 0):
		return invalid("one of In and Out is host memory, the other a GPU's: copy one to where the other is")
	case c.Type == 0:
		return invalid("the call has no Type: set it, as in Call{Type: Float32, …}")
	case !c.Type.Valid():
		return invalid("unknown element type %v", c.Type)
	}
	most := min(MaxCount, math.MaxInt/c.Type.Size()) / n
	switch {
	case c.Count < 0 || c.Count > most:
		return invalid("count %d is not in 0…%d", c.Count, most)
	case c.Kind.Rooted() && (c.Root < 0 || c.Root >= n):
		return invalid("root %d is not in 0…%d", c.Root, n-1)
	case c.Kind.Pairwise() && (c.Peer < 0 || c.Peer >= n):
		return invalid("peer %d is not in 0…%d", c.Peer, n-1)
	}
	if c.Kind.Variable() {
		if err := c.checkVariable(rank, n, most); err != nil {
			return err
		}
	}
	if c.Kind.Composite() {
		if err := c.checkComposite(n); err != nil {
			return err
		}
	}
	return c.checkMemory(rank, n)
}

// ErrUnmatched is a message of a rank to itself that lacks its other end, as CheckSelf finds it. It is an ErrInvalid.
var ErrUnmatched = fmt.Errorf("%w: half a message", ErrInvalid)

// CheckSelf finds a message of a rank to itself that has no counterpart of its length among
// the checked calls that progress side by side with it: nobody else will ever send or
// receive it.
func CheckSelf(calls []*Call, rank int) error {
	next := func(kind Kind, i int) int {
		for i < len(calls) && (calls[i].Kind != kind || calls[i].Peer != rank) {
			i++
		}
		return i
	}
	for s, r := next(Send, 0), next(Recv, 0); s < len(calls) || r < len(calls); s, r = next(Send, s+1), next(Recv, r+1) {
		switch {
		case r >= len(calls):
			return fmt.Errorf("%w: a Send of rank %d to itself needs its Recv beside it in the Group", ErrUnmatched, rank)
		case s >= len(calls):
			return fmt.Errorf("%w: a Recv of rank %d from itself needs its Send beside it in the Group", ErrUnmatched, rank)
		case calls[s].Bytes() != calls[r].Bytes():
			return fmt.Errorf("%w: rank %d sends itself %d elements of %v and receives %d of %v", ErrUnmatched, rank,
				calls[s].Count, calls[s].Type, calls[r].Count, calls[r].Type)
		}
	}
	return nil
}

func invalid(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, a...))
}

// checkVariable finds what is wrong with the counts of a v-variant.
func (c *Call) checkVariable(rank, n, most int) error {
	if c.Kind != Scatterv && c.Kind != ReduceScatterv {
		if err := checkCounts("OutCounts", c.OutCounts, c.OutOffsets, n, most); err != nil {
			return err
		}
	}
	if c.Kind != Gatherv && c.Kind != AllGatherv {
		if err := checkCounts("InCounts", c.InCounts, c.InOffsets, n, most); err != nil {
			return err
		}
	}
	if c.Kind == ReduceScatterv && c.InOffsets != nil {
		return invalid("a ReduceScatterv has no InOffsets: its shares are packed by rank")
	}
	if c.Kind == AlltoAllv && c.InCounts[rank] != c.OutCounts[rank] {
		return invalid("rank %d sends itself %d elements and receives %d", rank, c.InCounts[rank], c.OutCounts[rank])
	}
	return nil
}

// checkMemory finds what is wrong with a call's buffers and its operation's scalar.
func (c *Call) checkMemory(rank, n int) error {
	if err := c.checkScalar(); err != nil {
		return err
	}
	size := c.Type.Size()
	if unit := c.Op.Unit; c.Kind.Reduces() && unit > 0 && c.Count*size%unit != 0 {
		return invalid("Count is %d elements of %d bytes, which is no multiple of the %d bytes that %v takes as a whole",
			c.Count, size, unit, c.Op)
	}
	if c.Count == 0 && !c.Exact && !c.Kind.Variable() && (c.In.Len() > 0 || c.Out.Len() > 0) {
		return invalid("Count is 0, but In has %s and Out %s: set Count, or give no memory",
			c.length(c.In.Len()), c.length(c.Out.Len()))
	}
	in, out := c.Shape(rank, n)
	noIn, noOut := c.unused(rank)
	if err := c.checkLength("In", c.In, in, n, noIn); err != nil {
		return err
	}
	if c.Norm != nil {
		return c.checkNorm(rank, n)
	}
	if err := c.checkLength("Out", c.Out, out, n, noOut); err != nil {
		return err
	}
	return c.checkOverlap(rank, in*size, out*size)
}

// checkScalar refuses a scalar in memory that the operation does not reach. Whether that memory holds one element is
// for kernels.NewReducer to check.
func (c *Call) checkScalar() error {
	at := c.Op.At
	if at == nil || !c.Kind.Reduces() || at.IsHost() {
		return nil
	}
	if dev := max(c.In.Dev(), c.Out.Dev()); dev != at.Dev() {
		where := fmt.Sprintf("device %d's", dev)
		if dev < 0 {
			where = "the host's"
		}
		return fmt.Errorf("%w: the scalar of %v is not %s, like In and Out: copy it there", ErrInvalid, c.Op, where)
	}
	return nil
}

// MaxCount is the largest count that a stamp can carry, far more than any memory holds.
const MaxCount = min(1<<countBits-1, math.MaxInt>>1)

// unused says which buffers a rank does not need, whatever the Count.
func (c *Call) unused(rank int) (in, out bool) {
	switch c.Kind {
	case Broadcast, Scatter, Scatterv:
		return rank != c.Root, false
	case Reduce, Gather, Gatherv:
		return false, rank != c.Root
	case Send:
		return false, true
	case Recv:
		return true, false
	}
	return false, false
}

// checkLength refuses a buffer with fewer than need elements, and with Exact one with more, unless it is unused.
func (c *Call) checkLength(name string, r mem.Region, need, n int, unused bool) error {
	size := c.Type.Size()
	switch {
	case unused:
		return nil
	case r.IsNil() && need > 0:
		return fmt.Errorf("%w: %s is nil, needs %s", ErrInvalid, name, c.length(need*size))
	case r.Len() < need*size:
		return fmt.Errorf("%w: %s has %s, needs %d", ErrInvalid, name, c.length(r.Len()), need)
	case c.Exact && r.Len() > need*size:
		each := fmt.Sprintf("%d elements a rank", c.Count)
		if c.Kind.Variable() {
			each = "these counts"
		}
		return fmt.Errorf("%w: %s has %s, but %v of %s on %d ranks takes %d: the others would be lost",
			ErrInvalid, name, c.length(r.Len()), c.Kind, each, n, need)
	}
	return nil
}

// length is a number of bytes in words, as whole elements and the bytes left over.
func (c *Call) length(bytes int) string {
	n, rest := bytes/c.Type.Size(), bytes%c.Type.Size()
	words := fmt.Sprintf("%d elements", n)
	if n == 1 {
		words = "1 element"
	}
	if rest > 0 {
		words += fmt.Sprintf(" and %d bytes", rest)
	}
	return words
}

// checkCounts finds what is wrong with a list of counts and its offsets. No count may exceed most.
func checkCounts(name string, counts, offsets []int, n, most int) error {
	if len(counts) != n {
		return fmt.Errorf("%w: %s has %d entries for %d ranks", ErrInvalid, name, len(counts), n)
	}
	if offsets != nil && len(offsets) != n {
		return fmt.Errorf("%w: offsets of %s have %d entries for %d ranks", ErrInvalid, name, len(offsets), n)
	}
	for i, k := range counts {
		if k < 0 || k > most || offsets != nil && (offsets[i] < 0 || offsets[i] > most*n-k) {
			return fmt.Errorf("%w: %s of rank %d is negative or too large", ErrInvalid, name, i)
		}
	}
	return nil
}

// checkOverlap refuses buffers that overlap in another way than in place.
func (c *Call) checkOverlap(rank, in, out int) error {
	if in == 0 || out == 0 {
		return nil
	}
	a, b := c.In.Slice(0, in), c.Out.Slice(0, out)
	if !a.Overlaps(b) {
		return nil
	}
	share := rank * c.Count * c.Type.Size()
	ok := false
	switch c.Kind {
	case AllReduce, Reduce, Broadcast, AlltoAll, Scan:
		ok = a.Ptr() == b.Ptr()
	case AllGather, Gather:
		ok = a.Ptr() == b.Ptr()+uintptr(share)
	case ReduceScatter, Scatter:
		ok = b.Ptr() == a.Ptr()+uintptr(share)
	case AllGatherv:
		ok = a.Ptr() == b.Ptr()+uintptr(offset(c.OutCounts, c.OutOffsets, rank)*c.Type.Size())
	case AlltoAllv, Gatherv, Scatterv:
		ok = true // In is copied first
	case ReduceScatterv:
		ok = true // Out is written when all shares have arrived
	}
	if !ok {
		return fmt.Errorf("%w: In and Out overlap, but not as %v in place needs it", ErrInvalid, c.Kind)
	}
	return nil
}
