package ringo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

type (
	ownInt8    int8
	ownUint8   uint8
	ownInt32   int32
	ownUint32  uint32
	ownInt64   int64
	ownUint64  uint64
	ownFloat32 float32
	ownFloat64 float64
)

// Every type of Go that can be an Element, and a program's own types that are made of it, have its DataType.
func TestTypeOf(t *testing.T) {
	ints, uints := Int64, Uint64
	if ^uint(0)>>32 == 0 {
		ints, uints = Int32, Uint32
	}
	for i, x := range [][2]DataType{
		{Int8, TypeOf[int8]()}, {Uint8, TypeOf[uint8]()}, {Int32, TypeOf[int32]()}, {Uint32, TypeOf[uint32]()},
		{Int64, TypeOf[int64]()}, {Uint64, TypeOf[uint64]()}, {Float32, TypeOf[float32]()}, {Float64, TypeOf[float64]()},
		{Float16, TypeOf[kernels.F16]()}, {BFloat16, TypeOf[kernels.BF16]()},
		{Float8E4M3, TypeOf[kernels.F8E4M3]()}, {Float8E5M2, TypeOf[kernels.F8E5M2]()},
		{ints, TypeOf[int]()}, {uints, TypeOf[uint]()},
		{Int8, TypeOf[ownInt8]()}, {Uint8, TypeOf[ownUint8]()}, {Int32, TypeOf[ownInt32]()}, {Uint32, TypeOf[ownUint32]()},
		{Int64, TypeOf[ownInt64]()}, {Uint64, TypeOf[ownUint64]()}, {Float32, TypeOf[ownFloat32]()},
		{Float64, TypeOf[ownFloat64]()},
	} {
		require.Equal(t, x[0], x[1], "row %d", i)
	}
}

// The functions that describe a call say all of it.
func TestCallsOfSlices(t *testing.T) {
	one, six := []int32{1}, []int32{1, 2, 3, 4, 5, 6}
	in, out := mem.Of(one), mem.Of(six)
	counts, others := []int{1, 5}, []int{0, 1}
	for _, x := range []struct{ got, want *Call }{
		{AllReduceOf(six, Max), &Call{Kind: KindAllReduce, In: out, Out: out, Count: 6, Type: Int32, Op: Max, Exact: true}},
		{ReduceOf(six, one, Max, 3), &Call{Kind: KindReduce, In: in, Out: out, Count: 1, Type: Int32, Op: Max, Root: 3,
			Exact: true}},
		{BroadcastOf(six, 3), &Call{Kind: KindBroadcast, In: out, Out: out, Count: 6, Type: Int32, Root: 3, Exact: true}},
		{AllGatherOf(six, one), &Call{Kind: KindAllGather, In: in, Out: out, Count: 1, Type: Int32, Exact: true}},
		{ReduceScatterOf(one, six, Max), &Call{Kind: KindReduceScatter, In: out, Out: in, Count: 1, Type: Int32, Op: Max,
			Exact: true}},
		{AlltoAllOf(one, six, 3), &Call{Kind: KindAlltoAll, In: out, Out: in, Count: 2, Type: Int32, Exact: true}},
		{AlltoAllOf(one, six, 0), &Call{Kind: KindAlltoAll, In: out, Out: in, Count: 6, Type: Int32, Exact: true}},
		{GatherOf(six, one, 3), &Call{Kind: KindGather, In: in, Out: out, Count: 1, Type: Int32, Root: 3, Exact: true}},
		{ScatterOf(one, six, 3), &Call{Kind: KindScatter, In: out, Out: in, Count: 1, Type: Int32, Root: 3, Exact: true}},
		{SendOf(six, 3), &Call{Kind: KindSend, In: out, Count: 6, Type: Int32, Peer: 3, Exact: true}},
		{RecvOf(six, 3), &Call{Kind: KindRecv, Out: out, Count: 6, Type: Int32, Peer: 3, Exact: true}},
		{AllGathervOf(six, one, counts), &Call{Kind: KindAllGatherv, In: in, Out: out, Type: Int32, OutCounts: counts}},
		{AlltoAllvOf(six, counts, one, others), &Call{Kind: KindAlltoAllv, In: in, Out: out, Type: Int32, InCounts: others,
			OutCounts: counts}},
		{BarrierOf(), &Call{Kind: KindBarrier}},
	} {
		require.Equal(t, x.want, x.got)
	}
}
