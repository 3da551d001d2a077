// Composites, what Check says of them and of messages to oneself, and small methods of calls.

package call

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// A call that is a part of a composite has the composite's name, and its sign what ranks must agree on.
func TestComposite(t *testing.T) {
	all := Call{Kind: AlltoAllv, Count: 9, Type: kernels.Int8}
	send := Call{Kind: Send, Count: 9, Type: kernels.Int8, Peer: 3}
	for _, test := range []struct {
		call  Call
		whole Kind
		root  int
		name  string
		sign  string
	}{
		{all, Gatherv, 2, "Gatherv", "Gatherv(int8, root 2)"},
		{all, Scatterv, 0, "Scatterv", "Scatterv(int8, root 0)"},
		{all, ReduceScatterv, 0, "ReduceScatterv", "ReduceScatterv(int8, max)"},
		{send, Scan, 0, "Scan", "Scan(count 9, int8, max)"},
	} {
		c, whole := test.call, Call{Kind: test.whole, Count: 9, Type: kernels.Int8, Op: kernels.Max, Root: test.root}
		require.Equal(t, c.Kind.String(), Name(&c))
		PartOf(&c, &whole)
		require.Equal(t, test.name, Name(&c))
		require.Equal(t, test.name, Name(&whole))
		s := SignOf(&c)
		require.Equal(t, test.sign, s.String())
		require.Equal(t, test.sign, whole.String())
		require.Equal(t, test.whole, s.Composite())
		require.Equal(t, SignOf(&whole), s)
		require.Equal(t, test.whole.Reduces(), s.Op == kernels.KindMax)
		require.NotEqual(t, s, SignOf(&test.call), "of the call alone")
		require.True(t, test.whole.Composite() && !test.whole.Valid())
	}
	for _, k := range []Kind{0, Kinds, Kinds - 1, composites} {
		require.False(t, k.Composite())
	}
	require.Equal(t, "Kind(16)", Kinds.String())
	require.Equal(t, "Kind(21)", composites.String())
	require.Zero(t, SignOf(&all).Composite())
	require.Equal(t, Sign{Kind: Send, Type: kernels.Int8, Count: 9, Root: -1}, SignOf(&send))
	require.Equal(t, Sign{Kind: AlltoAllv, Type: kernels.Int8, Root: -1}, SignOf(&all))
}

// Messages of a rank to itself need a partner of their length, in order.
func TestCheckSelf(t *testing.T) {
	const rank = 1
	msg := func(kind Kind, count, peer int) *Call {
		return &Call{Kind: kind, Count: count, Type: kernels.Float16, Peer: peer}
	}
	type list = []*Call
	for _, test := range []struct {
		calls list
		want  string
	}{
		{nil, ""},
		{list{msg(Send, 3, 0), msg(Recv, 4, 2), {Kind: AllReduce, Peer: rank}}, ""},
		{list{msg(Send, 3, rank), msg(Recv, 3, rank)}, ""},
		{list{msg(Recv, 3, rank), msg(Send, 9, 0), msg(Send, 3, rank)}, ""},
		{list{msg(Send, 3, rank), msg(Send, 4, rank), msg(Recv, 3, rank), msg(Recv, 4, rank)}, ""},
		{list{msg(Send, 3, rank), msg(Recv, 3, 0)}, "a Send of rank 1 to itself needs its Recv beside it in the Group"},
		{list{msg(Recv, 3, rank), msg(Send, 3, 0)}, "a Recv of rank 1 from itself needs its Send beside it in the Group"},
		{list{msg(Send, 3, rank), msg(Recv, 3, rank), msg(Send, 3, rank)},
			"a Send of rank 1 to itself needs its Recv beside it in the Group"},
		{list{msg(Send, 3, rank), msg(Send, 4, rank), msg(Recv, 4, rank), msg(Recv, 3, rank)},
			"rank 1 sends itself 3 elements of float16 and receives 4 of float16"},
	} {
		err := CheckSelf(test.calls, rank)
		if test.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrUnmatched)
		require.ErrorIs(t, err, ErrInvalid)
		require.EqualError(t, err, "invalid argument: half a message: "+test.want)
	}
}

// A composite is checked before any rank hears of it: shapes, operator, and that its memory is the host's.
func TestCheckComposites(t *testing.T) {
	counts := []int{1, 0, 3}
	avg := kernels.Avg
	pair := kernels.UserOpOf("pair", 8, func(kernels.DataType, []byte, []byte) {})
	for _, test := range []struct {
		call Call
		want string
	}{
		{Call{Kind: Gatherv, In: f32(1), Out: f32(4), OutCounts: counts}, ""},
		{Call{Kind: Gatherv, In: f32(1), Out: f32(3), OutCounts: counts}, "Out has 3 elements, needs 4"},
		{Call{Kind: Gatherv, In: f32(1), OutCounts: counts, Root: 1}, ""},
		{Call{Kind: Gatherv, In: f32(1), OutCounts: counts[:2]}, "OutCounts has 2 entries for 3 ranks"},
		{Call{Kind: Gatherv, In: f32(1), OutCounts: counts, Root: 3}, "root 3 is not in 0…2"},
		{Call{Kind: Scatterv, In: f32(4), Out: f32(1), InCounts: counts}, ""},
		{Call{Kind: Scatterv, Out: f32(1), InCounts: counts, Root: 2}, ""},
		{Call{Kind: Scatterv, Out: f32(1), InCounts: counts}, "In is nil, needs 4 elements"},
		{Call{Kind: Scatterv, In: f32(4), InCounts: counts}, "Out is nil, needs 1 element"},
		{Call{Kind: ReduceScatterv, In: f32(4), Out: f32(1), InCounts: counts}, ""},
		{Call{Kind: ReduceScatterv, In: f32(4), Out: f32(1), InCounts: counts, Op: avg}, ""},
		{Call{Kind: ReduceScatterv, In: f32(4), Out: f32(1), InCounts: counts, Op: pair},
			"the share of rank 0 is no multiple of the 8 bytes"},
		{Call{Kind: ReduceScatterv, In: f32(4), Out: f32(1), InCounts: counts, InOffsets: counts},
			"a ReduceScatterv has no InOffsets"},
		{Call{Kind: ReduceScatterv, In: f32(4), Out: f32(1), InCounts: []int{1, -1, 3}}, "InCounts of rank 1 is negative"},
		{Call{Kind: Scan, In: f32(2), Out: f32(2), Count: 2}, ""},
		{Call{Kind: Scan, In: f32(2), Out: f32(2), Count: 2, Op: avg}, "a Scan has no avg"},
		{Call{Kind: Scan, In: f32(2), Out: f32(2), Count: 2, Op: kernels.RedOp{Kind: 99}}, "99"},
		{Call{Kind: Scan, In: f32(3), Out: f32(3), Count: 3, Op: pair}, "no multiple of the 8 bytes"},
	} {
		test.call.Type = kernels.Float32
		err := test.call.Check(0, 3)
		if test.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, test.want)
	}
	all := f32(4)
	for call, ok := range map[*Call]bool{
		{Kind: Gatherv, In: all.Slice(0, 4), Out: all, OutCounts: counts}:           true,
		{Kind: ReduceScatterv, In: all, Out: all.Slice(4, 4), InCounts: counts}:     true,
		{Kind: Scan, In: all, Out: all, Count: 4}:                                   true,
		{Kind: Scan, In: all.Slice(0, 8), Out: all.Slice(4, 8), Count: 2}:           false,
		{Kind: Scatterv, In: all, Out: all.Slice(0, 4), InCounts: counts}:           true,
		{Kind: Scan, In: all.Slice(0, 8), Out: all.Slice(8, 8), Count: 2, Type: 99}: false,
	} {
		if call.Type == 0 {
			call.Type = kernels.Float32
		}
		require.Equal(t, ok, call.Check(0, 3) == nil, call.Kind)
	}
	onGPU := Call{Kind: Scan, In: mem.Device(0, 4096, 8), Out: mem.Device(0, 4096, 8), Count: 2, Type: kernels.Float32}
	require.ErrorIs(t, onGPU.Check(0, 3), ErrUnsupported)
}

// A Timeout is not negative, and a count is a multiple of what a user's operator takes as a whole.
func TestCheckOperatorAndTimeout(t *testing.T) {
	c := Call{Kind: AllReduce, In: f32(8), Out: f32(8), Count: 8, Type: kernels.Float32, Timeout: -time.Second}
	require.EqualError(t, c.Check(0, 2), "invalid argument: Timeout is -1s: want more, or 0 for Config.Timeout")
	c.Timeout = time.Second
	require.NoError(t, c.Check(0, 2))
	c.Op = kernels.RedOp{Unit: 12}
	require.EqualError(t, c.Check(0, 2),
		fmt.Sprintf("invalid argument: Count is 8 elements of 4 bytes, which is no multiple of the 12 bytes that %v takes "+
			"as a whole", c.Op))
	c.Count = 6
	require.NoError(t, c.Check(0, 2))
	c.Count, c.Kind = 8, Broadcast
	require.NoError(t, c.Check(0, 2), "an operator that is not used")
}

// Where a call runs, what it copies and how long it is.
func TestCallIs(t *testing.T) {
	host, gpu := f32(8), mem.Device(0, 4096, 32)
	for _, c := range []Call{{In: gpu}, {Out: gpu}, {In: gpu, Out: gpu}} {
		require.True(t, c.OnDevice())
		require.False(t, c.OnThread())
		c.Stream = cuda.StreamPerThread
		require.True(t, c.OnThread())
	}
	require.False(t, (&Call{In: host, Out: host}).OnDevice())
	require.False(t, (&Call{In: host, Out: host, Stream: cuda.StreamPerThread}).OnThread())
	for kind := range Kinds {
		both := kind == AlltoAll || kind == AlltoAllv
		require.Equal(t, both, (&Call{Kind: kind, In: host, Out: host}).CopiesIn(), kind)
		require.False(t, (&Call{Kind: kind, In: host, Out: f32(8)}).CopiesIn(), kind)
	}
	require.Equal(t, 16, (&Call{Kind: Send, Count: 4, Type: kernels.Float32}).Bytes())
	require.Zero(t, (&Call{Kind: Barrier, Count: 4, Type: kernels.Float32}).Bytes())
}

// Packed counts and offsets give the extent of a buffer, and where a share lies in it.
func TestVariableShapes(t *testing.T) {
	packed := Call{Kind: AlltoAllv, InCounts: []int{1, 2}, OutCounts: []int{3, 4}}
	in, out := packed.Shape(1, 2)
	require.Equal(t, [2]int{3, 7}, [2]int{in, out})
	apart := Call{Kind: AlltoAllv, InCounts: []int{1, 2}, InOffsets: []int{5, 0}, OutCounts: []int{3, 4},
		OutOffsets: []int{0, 10}}
	in, out = apart.Shape(1, 2)
	require.Equal(t, [2]int{6, 14}, [2]int{in, out})
	gather := Call{Kind: AllGatherv, OutCounts: []int{3, 4}}
	in, out = gather.Shape(1, 2)
	require.Equal(t, [2]int{4, 7}, [2]int{in, out})

	all := f32(20) // rank 1's share of an AllGatherv in place begins at its offset
	place := Call{Kind: AllGatherv, Type: kernels.Float32, Out: all, OutCounts: []int{3, 4}}
	for offsets, at := range map[*[2]int]int{nil: 3, {0, 9}: 9} {
		if offsets != nil {
			place.OutOffsets = offsets[:]
		}
		place.In = all.Slice(4*at, 16)
		require.NoError(t, place.Check(1, 2))
		place.In = all.Slice(4*(at-1), 16)
		require.EqualError(t, place.Check(1, 2),
			"invalid argument: In and Out overlap, but not as AllGatherv in place needs it")
		place.OutOffsets = nil
	}
}

// A Barrier's stamp says what came before it. Others do not.
func TestStampPast(t *testing.T) {
	barrier := Sign{Seq: 3, Kind: Barrier, Root: -1}
	got := ReadSign(StampPast(barrier.Stamp(), 77))
	require.Equal(t, Sign{Seq: 3, Kind: Barrier, Count: 77, Root: -1}, got)
	require.Less(t, ReadSign(StampPast(barrier.Stamp(), ^uint64(0))).Count, MaxCount)
	sum := Sign{Seq: 3, Kind: AllReduce, Count: 5, Root: -1}
	require.Equal(t, sum.Stamp(), StampPast(sum.Stamp(), 77))
}

// A program's algorithms get the numbers after the book's, as long as there are any.
func TestNewAlgo(t *testing.T) {
	before := defined.Load()
	defer defined.Store(before)
	defined.Store(nil)
	require.Empty(t, Defined())
	for _, bad := range []string{"", "two words", "a,b", "tab\there", "line\n"} {
		_, err := NewAlgo(bad)
		require.EqualError(t, err, fmt.Sprintf("invalid argument: algorithm %q: want a word", bad))
	}
	_, err := NewAlgo("RING")
	require.EqualError(t, err, `invalid argument: algorithm "RING" is there already`)
	room := int(ByRank - Algos)
	for i := range room {
		name := fmt.Sprintf("mine%d", i)
		require.Equal(t, fmt.Sprintf("Algo(%d)", int(Algos)+i), (Algos + Algo(i)).String())
		a, err := NewAlgo(name)
		require.NoError(t, err)
		require.Equal(t, Algos+Algo(i), a)
		require.Equal(t, name, a.String())
		require.True(t, a.IsDefined())
		again, err := ParseAlgo(name)
		require.NoError(t, err)
		require.Equal(t, a, again)
		_, err = NewAlgo(name)
		require.ErrorContains(t, err, "is there already")
	}
	require.Len(t, Defined(), room)
	_, err = NewAlgo("more")
	require.EqualError(t, err, fmt.Sprintf(`invalid argument: algorithm "more" is one too many: a program may define %d`,
		room))
	require.Equal(t, RankOrder, ByRank.String())
	require.False(t, ByRank.IsDefined())
	require.False(t, (Algos - 1).IsDefined())
}
