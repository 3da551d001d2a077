// Package call describes what is asked for: a Call is one operation of one rank as a value, and an
// Error is what went wrong with it. Package ringo has both by the same names.
//
// A Call says what to do with which memory. The package knows the shape of every
// operation, finds what is wrong with a call before any rank hears of it (Check),
// and writes what all ranks must agree on into 16 bytes (Sign). The algorithm that
// carries a call out is named here (Algo) and chosen in package choice.
//
// All packages above use these types. The trap: Count is in elements and is not the length of the larger buffer; see
// Kind.
package call

import (
	"fmt"
	"time"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// A Call describes one operation of one rank. All ranks of a communicator make
// the same calls in the same order; Send and Recv are matched between two.
// It may be used again once its operation has ended.
//
// In and Out may be the same memory: the whole buffer for AllReduce, Reduce, Broadcast, Scan and AlltoAll; the rank's
// own share for AllGather, AllGatherv, ReduceScatter, Gather and Scatter. AlltoAllv, Gatherv, Scatterv and
// ReduceScatterv allow any overlap. AlltoAll and AlltoAllv then copy In first. Any other overlap is refused; for calls
// with a Norm see Norm.
//
// In and Out are both host memory, or both memory of the rank's GPU. On a GPU
// the operation is queued on Stream, and Do returns at once; a call that has no
// memory (a Barrier, a rank without a share) is a GPU's if In or Out is an empty
// Region of the device.
type Call struct {
	Kind    Kind
	In, Out mem.Region
	Stream  cuda.Stream // of the rank's GPU; not used for host memory
	Count   int         // elements, as NCCL counts them; see Kind
	Type    kernels.DataType
	Op      kernels.RedOp
	Root    int // Reduce, Broadcast, Gather, Scatter and their v-variants
	Peer    int // Send, Recv

	// Exact says that In and Out have the lengths that Kind gives, not just at least:
	// longer ones are refused, for then some data would be left out. The functions on
	// slices (AllReduceOf …) set it. A buffer that this rank does not need may have any
	// length.
	Exact bool

	// Timeout bounds the waits of this operation in place of Config.Timeout, unless it is 0. It counts from the call
	// or Start, so also while the operation waits behind others of this rank, which it ends too. It is for host
	// memory: operations on a GPU have Config.Timeout.
	Timeout time.Duration

	// Norm is what follows the sum of an AllReduce or a ReduceScatter, nil if nothing does.
	Norm *Norm

	// The v-variants place a rank's data by counts and, if it is not packed, by
	// offsets, both in elements and by rank. AllGatherv and Gatherv need OutCounts alone, Scatterv and
	// ReduceScatterv InCounts, the same on all ranks.
	InCounts, InOffsets   []int
	OutCounts, OutOffsets []int

	of part
}

// OnDevice reports whether the call is for a GPU.
func (c *Call) OnDevice() bool { return !c.In.IsHost() || !c.Out.IsHost() }

// OnThread reports whether the call has to be queued by the caller's own thread,
// for its stream is that thread's.
func (c *Call) OnThread() bool { return c.OnDevice() && c.Stream == cuda.StreamPerThread }

// CopiesIn reports whether In has to be copied before an all-to-all, because Out overlaps In.
func (c *Call) CopiesIn() bool {
	return (c.Kind == AlltoAll || c.Kind == AlltoAllv) && c.In.Overlaps(c.Out)
}

// String is the call in a log or an error: "AllReduce(count 1024, float32, sum)".
func (c *Call) String() string {
	if c.Kind.Pairwise() {
		return fmt.Sprintf("%v(count %d, %v, peer %d)", c.Kind, c.Count, c.Type, c.Peer)
	}
	return SignOf(c).String()
}

// Shape is how many elements of In and Out a rank among n uses. The counts of a v-variant have n entries.
func (c *Call) Shape(rank, n int) (in, out int) {
	root := rank == c.Root
	switch c.Kind {
	case AllReduce:
		return c.Count, c.Count
	case Reduce:
		return c.Count, when(root, c.Count)
	case Broadcast:
		return when(root, c.Count), c.Count
	case AllGather:
		return c.Count, n * c.Count
	case ReduceScatter:
		return n * c.Count, c.Count
	case AlltoAll:
		return n * c.Count, n * c.Count
	case Gather:
		return c.Count, when(root, n*c.Count)
	case Scatter:
		return when(root, n*c.Count), c.Count
	case Send:
		return c.Count, 0
	case Recv:
		return 0, c.Count
	case AllGatherv:
		return c.OutCounts[rank], extent(c.OutCounts, c.OutOffsets)
	case Gatherv:
		return c.OutCounts[rank], when(root, extent(c.OutCounts, c.OutOffsets))
	case Scatterv:
		return when(root, extent(c.InCounts, c.InOffsets)), c.InCounts[rank]
	case ReduceScatterv:
		return extent(c.InCounts, nil), c.InCounts[rank]
	case Scan:
		return c.Count, c.Count
	case AlltoAllv:
		return extent(c.InCounts, c.InOffsets), extent(c.OutCounts, c.OutOffsets)
	}
	return 0, 0
}

func when(cond bool, n int) int {
	if cond {
		return n
	}
	return 0
}

// extent is the length of a buffer that holds counts at offsets (packed if nil).
func extent(counts, offsets []int) int {
	end := 0
	for i, n := range counts {
		if offsets != nil {
			end = max(end, offsets[i]+n)
		} else {
			end += n
		}
	}
	return end
}

// offset is where rank's data begin, in elements.
func offset(counts, offsets []int, rank int) int {
	if offsets != nil {
		return offsets[rank]
	}
	return extent(counts[:rank], nil)
}

// Bytes is the length of Count elements in bytes, 0 for a Barrier.
func (c *Call) Bytes() int {
	if c.Kind == Barrier {
		return 0
	}
	return c.Count * c.Type.Size()
}
