package ringo

import (
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// Element is what slices of the generic functions may hold. The 16- and 8-bit
// floats are kernels.F16, BF16, F8E4M3 and F8E5M2.
type Element interface {
	int8 | uint8 | int32 | uint32 | int64 | uint64 | float32 | float64 |
		kernels.F16 | kernels.BF16 | kernels.F8E4M3 | kernels.F8E5M2
}

// TypeOf is the DataType of a slice's elements.
func TypeOf[T Element]() DataType {
	var zero T
	switch any(zero).(type) {
	case int8:
		return Int8
	case uint8:
		return Uint8
	case int32:
		return Int32
	case uint32:
		return Uint32
	case int64:
		return Int64
	case uint64:
		return Uint64
	case float32:
		return Float32
	case float64:
		return Float64
	case kernels.F16:
		return Float16
	case kernels.BF16:
		return BFloat16
	case kernels.F8E4M3:
		return Float8E4M3
	}
	return Float8E5M2
}

// The XOf functions describe a call on slices, to be given to Comm.Do,
// Comm.Start or Group.Add. Where the length of a slice is not the count, the
// shape is given with [elements].

// AllReduceOf reduces data [c] of all ranks in place: every rank gets ⊕ of all.
func AllReduceOf[T Element](data []T, op RedOp) *Call {
	return &Call{Kind: KindAllReduce, In: mem.Of(data), Out: mem.Of(data), Count: len(data), Type: TypeOf[T](), Op: op}
}

// ReduceOf reduces in [c] of all ranks into out [c] of root; out may be nil on
// other ranks and may be in.
func ReduceOf[T Element](out, in []T, op RedOp, root int) *Call {
	return &Call{Kind: KindReduce, In: mem.Of(in), Out: mem.Of(out), Count: len(in), Type: TypeOf[T](), Op: op, Root: root}
}

// BroadcastOf copies data [c] of root to all ranks.
func BroadcastOf[T Element](data []T, root int) *Call {
	return &Call{Kind: KindBroadcast, In: mem.Of(data), Out: mem.Of(data), Count: len(data), Type: TypeOf[T](), Root: root}
}

// AllGatherOf collects in [c] of all ranks, by rank, in out [n·c].
func AllGatherOf[T Element](out, in []T) *Call {
	return &Call{Kind: KindAllGather, In: mem.Of(in), Out: mem.Of(out), Count: len(in), Type: TypeOf[T]()}
}

// ReduceScatterOf reduces in [n·c] of all ranks and leaves the rank's share in
// out [c].
func ReduceScatterOf[T Element](out, in []T, op RedOp) *Call {
	return &Call{Kind: KindReduceScatter, In: mem.Of(in), Out: mem.Of(out), Count: len(out), Type: TypeOf[T](), Op: op}
}

// AlltoAllOf sends the p-th share of in [n·c] to rank p and collects what the
// ranks send, by rank, in out [n·c]. n is the communicator's Size.
func AlltoAllOf[T Element](out, in []T, n int) *Call {
	return &Call{Kind: KindAlltoAll, In: mem.Of(in), Out: mem.Of(out), Count: len(in) / max(n, 1), Type: TypeOf[T]()}
}

// GatherOf collects in [c] of all ranks in out [n·c] of root.
func GatherOf[T Element](out, in []T, root int) *Call {
	return &Call{Kind: KindGather, In: mem.Of(in), Out: mem.Of(out), Count: len(in), Type: TypeOf[T](), Root: root}
}

// ScatterOf gives each rank its share of in [n·c] of root in out [c].
func ScatterOf[T Element](out, in []T, root int) *Call {
	return &Call{Kind: KindScatter, In: mem.Of(in), Out: mem.Of(out), Count: len(out), Type: TypeOf[T](), Root: root}
}

// SendOf sends data [c] to peer, which must call RecvOf with as many.
func SendOf[T Element](data []T, peer int) *Call {
	return &Call{Kind: KindSend, In: mem.Of(data), Count: len(data), Type: TypeOf[T](), Peer: peer}
}

// RecvOf receives data [c] from peer.
func RecvOf[T Element](data []T, peer int) *Call {
	return &Call{Kind: KindRecv, Out: mem.Of(data), Count: len(data), Type: TypeOf[T](), Peer: peer}
}

// AllGathervOf collects in [counts[rank]] of all ranks, packed by rank, in out
// [Σcounts]. All ranks give the same counts.
func AllGathervOf[T Element](out, in []T, counts []int) *Call {
	return &Call{Kind: KindAllGatherv, In: mem.Of(in), Out: mem.Of(out), Type: TypeOf[T](), OutCounts: counts}
}

// AlltoAllvOf sends inCounts[p] elements of in to rank p and receives
// outCounts[p] from it, both packed by rank.
func AlltoAllvOf[T Element](out []T, outCounts []int, in []T, inCounts []int) *Call {
	return &Call{Kind: KindAlltoAllv, In: mem.Of(in), Out: mem.Of(out), Type: TypeOf[T](), InCounts: inCounts, OutCounts: outCounts}
}

// AllReduce is Do of AllReduceOf.
func AllReduce[T Element](c *Comm, data []T, op RedOp) error { return c.Do(AllReduceOf(data, op)) }

// Reduce is Do of ReduceOf.
func Reduce[T Element](c *Comm, out, in []T, op RedOp, root int) error {
	return c.Do(ReduceOf(out, in, op, root))
}

// Broadcast is Do of BroadcastOf.
func Broadcast[T Element](c *Comm, data []T, root int) error { return c.Do(BroadcastOf(data, root)) }

// AllGather is Do of AllGatherOf.
func AllGather[T Element](c *Comm, out, in []T) error { return c.Do(AllGatherOf(out, in)) }

// ReduceScatter is Do of ReduceScatterOf.
func ReduceScatter[T Element](c *Comm, out, in []T, op RedOp) error {
	return c.Do(ReduceScatterOf(out, in, op))
}

// AlltoAll is Do of AlltoAllOf.
func AlltoAll[T Element](c *Comm, out, in []T) error { return c.Do(AlltoAllOf(out, in, c.Size())) }

// Gather is Do of GatherOf.
func Gather[T Element](c *Comm, out, in []T, root int) error { return c.Do(GatherOf(out, in, root)) }

// Scatter is Do of ScatterOf.
func Scatter[T Element](c *Comm, out, in []T, root int) error { return c.Do(ScatterOf(out, in, root)) }

// Send is Do of SendOf.
func Send[T Element](c *Comm, data []T, peer int) error { return c.Do(SendOf(data, peer)) }

// Recv is Do of RecvOf.
func Recv[T Element](c *Comm, data []T, peer int) error { return c.Do(RecvOf(data, peer)) }

// AllGatherv is Do of AllGathervOf.
func AllGatherv[T Element](c *Comm, out, in []T, counts []int) error {
	return c.Do(AllGathervOf(out, in, counts))
}

// AlltoAllv is Do of AlltoAllvOf.
func AlltoAllv[T Element](c *Comm, out []T, outCounts []int, in []T, inCounts []int) error {
	return c.Do(AlltoAllvOf(out, outCounts, in, inCounts))
}

// Barrier returns when all ranks have called it.
func Barrier(c *Comm) error { return c.Do(&Call{Kind: KindBarrier}) }
