package ringo

import (
	"fmt"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// Region is a span of host or device memory.
type Region = mem.Region

// DataType is the type of the elements of an operation.
type DataType = kernels.DataType

// RedOp is a reduction operator.
type RedOp = kernels.RedOp

// The element types, with NCCL's numbers.
const (
	Int8       = kernels.Int8
	Uint8      = kernels.Uint8
	Int32      = kernels.Int32
	Uint32     = kernels.Uint32
	Int64      = kernels.Int64
	Uint64     = kernels.Uint64
	Float16    = kernels.Float16
	Float32    = kernels.Float32
	Float64    = kernels.Float64
	BFloat16   = kernels.BFloat16
	Float8E4M3 = kernels.Float8E4M3
	Float8E5M2 = kernels.Float8E5M2
)

// The operators; see package kernels for their arithmetic. PreMulSum and UserOp
// make others.
var (
	Sum    = kernels.Sum
	Prod   = kernels.Prod
	Max    = kernels.Max
	Min    = kernels.Min
	Avg    = kernels.Avg
	BitAnd = kernels.BitAnd
	BitOr  = kernels.BitOr
	BitXor = kernels.BitXor
)

// PreMulSum is the sum of contributions that are multiplied by scale first.
// The ranks may have different scales.
func PreMulSum(scale float64) RedOp { return kernels.PreMulSum(scale) }

// PreMulSumAt is PreMulSum with a scalar in memory: one element of the call's type,
// aligned, of the host or of the rank's GPU. On a GPU the operation reads it when it
// runs, so a graph that is launched again reads it again; in host memory it is read
// when the operation is carried out, or captured. It must not change before the
// operation has ended.
func PreMulSumAt(scale Region) RedOp { return kernels.PreMulSumAt(scale) }

// UserOp is an operator of the caller's own: f must set dst = dst ⊕ src element
// by element, and ⊕ must be commutative and associative as far as the caller
// wants the same bits on every rank. It runs on the goroutine of the operation.
func UserOp(name string, f func(t DataType, dst, src []byte)) RedOp { return kernels.UserOp(name, f) }

// A Kind is what an operation does.
type Kind uint8

// The operations. Comments give the elements of In → Out on each of n ranks for
// a Call with Count c.
const (
	KindBarrier       Kind = iota // 0 → 0
	KindAllReduce                 // c → c
	KindReduce                    // c → c at Root
	KindBroadcast                 // c at Root → c
	KindAllGather                 // c → n·c
	KindReduceScatter             // n·c → c
	KindAlltoAll                  // n·c → n·c
	KindGather                    // c → n·c at Root
	KindScatter                   // n·c at Root → c
	KindSend                      // c → Peer
	KindRecv                      // Peer → c
	KindAllGatherv                // OutCounts[rank] → ΣOutCounts
	KindAlltoAllv                 // ΣInCounts → ΣOutCounts
	kinds
)

var kindNames = [kinds]string{"Barrier", "AllReduce", "Reduce", "Broadcast", "AllGather", "ReduceScatter",
	"AlltoAll", "Gather", "Scatter", "Send", "Recv", "AllGatherv", "AlltoAllv"}

func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Reduces reports whether the operation has an operator.
func (k Kind) Reduces() bool {
	return k == KindAllReduce || k == KindReduce || k == KindReduceScatter
}

// Rooted reports whether the operation has a Root.
func (k Kind) Rooted() bool {
	return k == KindReduce || k == KindBroadcast || k == KindGather || k == KindScatter
}

// A Call describes one operation of one rank. All ranks of a communicator make
// the same calls in the same order; Send and Recv are matched between two.
// It may be used again once its operation has ended.
//
// In and Out may be the same memory where NCCL allows it: the whole buffer for
// AllReduce, Reduce, Broadcast; the rank's own share for AllGather,
// ReduceScatter, Gather and Scatter; and the whole buffer for AlltoAll and
// AlltoAllv too (at the cost of a copy). Any other overlap is refused.
//
// In and Out are both host memory, or both memory of the rank's GPU. On a GPU
// the operation is queued on Stream, and Do returns at once; a call that has no
// memory (a Barrier, a rank without a share) is a GPU's if In or Out is an empty
// Region of the device.
type Call struct {
	Kind    Kind
	In, Out Region
	Stream  gpu.Stream // of the rank's GPU; not used for host memory
	Count   int        // elements, as NCCL counts them; see Kind
	Type    DataType
	Op      RedOp
	Root    int // Reduce, Broadcast, Gather, Scatter
	Peer    int // Send, Recv

	// The v-variants place a rank's data by counts and, if it is not packed, by
	// offsets, both in elements and by rank. AllGatherv needs OutCounts alone.
	InCounts, InOffsets   []int
	OutCounts, OutOffsets []int
}

// onDevice reports whether the call is for a GPU.
func (c *Call) onDevice() bool { return !c.In.IsHost() || !c.Out.IsHost() }

// onThread reports whether the call has to be queued by the caller's own thread.
func (c *Call) onThread() bool { return c.onDevice() && c.Stream == gpu.PerThread }

// String is the call in a log or an error: "AllReduce(count 1024, float32, sum)".
func (c *Call) String() string {
	s := sign{kind: c.Kind, count: c.Count, typ: c.Type, op: c.Op.Kind, root: c.Root}
	if c.Kind == KindSend || c.Kind == KindRecv {
		return fmt.Sprintf("%v(count %d, %v, peer %d)", c.Kind, c.Count, c.Type, c.Peer)
	}
	return s.String()
}

// shape is how many elements a rank gives and gets.
func (c *Call) shape(rank, n int) (in, out int) {
	root := rank == c.Root
	switch c.Kind {
	case KindAllReduce:
		return c.Count, c.Count
	case KindReduce:
		return c.Count, when(root, c.Count)
	case KindBroadcast:
		return when(root, c.Count), c.Count
	case KindAllGather:
		return c.Count, n * c.Count
	case KindReduceScatter:
		return n * c.Count, c.Count
	case KindAlltoAll:
		return n * c.Count, n * c.Count
	case KindGather:
		return c.Count, when(root, n*c.Count)
	case KindScatter:
		return when(root, n*c.Count), c.Count
	case KindSend:
		return c.Count, 0
	case KindRecv:
		return 0, c.Count
	case KindAllGatherv:
		return c.OutCounts[rank], extent(c.OutCounts, c.OutOffsets)
	case KindAlltoAllv:
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

// bytes is the length of Count elements.
func (c *Call) bytes() int {
	if c.Kind == KindBarrier {
		return 0
	}
	return c.Count * c.Type.Size()
}

// check finds what is wrong with a call before any rank hears of it. Nothing
// else may go wrong with the call's arguments after it.
func (c *Call) check(rank, n int) error {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, a...))
	}
	if c.Kind >= kinds {
		return bad("unknown operation %v", c.Kind)
	}
	if c.Kind == KindBarrier {
		return nil
	}
	if c.onDevice() && (c.In.IsHost() && c.In.Len() > 0 || c.Out.IsHost() && c.Out.Len() > 0) {
		return bad("one of In and Out is host memory, the other a GPU's: copy one to where the other is")
	}
	if !c.Type.Valid() {
		return bad("unknown element type %v", c.Type)
	}
	if c.Count < 0 || c.Count > maxCount/n {
		return bad("count %d is not in 0…%d", c.Count, maxCount/n)
	}
	if c.Kind.Rooted() && (c.Root < 0 || c.Root >= n) {
		return bad("root %d is not in 0…%d", c.Root, n-1)
	}
	if (c.Kind == KindSend || c.Kind == KindRecv) && (c.Peer < 0 || c.Peer >= n) {
		return bad("peer %d is not in 0…%d", c.Peer, n-1)
	}
	if c.Kind == KindAllGatherv || c.Kind == KindAlltoAllv {
		if err := checkCounts("OutCounts", c.OutCounts, c.OutOffsets, n); err != nil {
			return err
		}
	}
	if c.Kind == KindAlltoAllv {
		if err := checkCounts("InCounts", c.InCounts, c.InOffsets, n); err != nil {
			return err
		}
		if c.InCounts[rank] != c.OutCounts[rank] {
			return bad("rank %d sends itself %d elements and receives %d", rank, c.InCounts[rank], c.OutCounts[rank])
		}
	}
	if err := c.checkScalar(); err != nil {
		return err
	}
	size := c.Type.Size()
	in, out := c.shape(rank, n)
	if err := checkRegion("In", c.In, in*size); err != nil {
		return err
	}
	if err := checkRegion("Out", c.Out, out*size); err != nil {
		return err
	}
	return c.checkOverlap(rank, in*size, out*size)
}

// checkScalar refuses a scalar in memory that the operation does not reach. Whether it
// is an element is for kernels.NewReducer.
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

// maxCount is what a Stamp can carry, and far more than any memory holds.
const maxCount = 1 << 46

func checkRegion(name string, r Region, need int) error {
	switch {
	case need == 0:
		return nil
	case r.IsNil():
		return fmt.Errorf("%w: %s is nil, needs %d bytes", ErrInvalid, name, need)
	case r.Len() < need:
		return fmt.Errorf("%w: %s has %d bytes, needs %d", ErrInvalid, name, r.Len(), need)
	}
	return nil
}

func checkCounts(name string, counts, offsets []int, n int) error {
	if len(counts) != n {
		return fmt.Errorf("%w: %s has %d entries for %d ranks", ErrInvalid, name, len(counts), n)
	}
	if offsets != nil && len(offsets) != n {
		return fmt.Errorf("%w: offsets of %s have %d entries for %d ranks", ErrInvalid, name, len(offsets), n)
	}
	for i, k := range counts {
		if k < 0 || k > maxCount/n || offsets != nil && (offsets[i] < 0 || offsets[i] > maxCount-k) {
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
	case KindAllReduce, KindReduce, KindBroadcast, KindAlltoAll:
		ok = a.Ptr() == b.Ptr()
	case KindAllGather, KindGather:
		ok = a.Ptr() == b.Ptr()+uintptr(share)
	case KindReduceScatter, KindScatter:
		ok = b.Ptr() == a.Ptr()+uintptr(share)
	case KindAllGatherv:
		ok = a.Ptr() == b.Ptr()+uintptr(place(c.OutCounts, c.OutOffsets, rank)*c.Type.Size())
	case KindAlltoAllv:
		ok = true // In is copied first
	}
	if !ok {
		return fmt.Errorf("%w: In and Out overlap, but not as %v in place needs it", ErrInvalid, c.Kind)
	}
	return nil
}

// place is the offset of rank's data in elements.
func place(counts, offsets []int, rank int) int {
	if offsets != nil {
		return offsets[rank]
	}
	return extent(counts[:rank], nil)
}
