// Composites, what Check says of them and of messages to oneself, and small methods of calls.

package core_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// A call that is a part of a composite has the composite's name, and its sign what ranks must agree on.
func TestComposite(t *testing.T) {
	all := call.Call{Kind: call.AlltoAllv, Count: 9, Type: kernels.Int8}
	send := call.Call{Kind: call.Send, Count: 9, Type: kernels.Int8, Peer: 3}
	for _, test := range []struct {
		call  call.Call
		whole call.Kind
		root  int
		name  string
		sign  string
	}{
		{all, call.Gatherv, 2, "Gatherv", "Gatherv(int8, root 2)"},
		{all, call.Scatterv, 0, "Scatterv", "Scatterv(int8, root 0)"},
		{all, call.ReduceScatterv, 0, "ReduceScatterv", "ReduceScatterv(int8, max)"},
		{send, call.Scan, 0, "Scan", "Scan(count 9, int8, max)"},
	} {
		c, whole := test.call, call.Call{Kind: test.whole, Count: 9, Type: kernels.Int8, Op: kernels.Max, Root: test.root}
		require.Equal(t, c.Kind.String(), call.Name(&c))
		call.PartOf(&c, &whole)
		require.Equal(t, test.name, call.Name(&c))
		require.Equal(t, test.name, call.Name(&whole))
		s := call.SignOf(&c)
		require.Equal(t, test.sign, s.Numbered())
		require.Equal(t, s.String(), whole.String())
		require.Equal(t, test.whole, s.Composite())
		require.Equal(t, call.SignOf(&whole), s)
		require.Equal(t, test.whole.Reduces(), s.Op == kernels.KindMax)
		require.NotEqual(t, s, call.SignOf(&test.call), "of the call alone")
		require.True(t, test.whole.Composite() && !test.whole.Valid())
	}
	for _, k := range []call.Kind{0, call.Kinds, call.Kinds - 1, call.Scan + 1} {
		require.False(t, k.Composite())
	}
	require.Equal(t, "Kind(16)", call.Kinds.String())
	require.Equal(t, "Kind(21)", (call.Scan + 1).String())
	require.Zero(t, call.SignOf(&all).Composite())
	require.Equal(t, call.Sign{Kind: call.Send, Type: kernels.Int8, Count: 9, Root: -1}, call.SignOf(&send))
	require.Equal(t, call.Sign{Kind: call.AlltoAllv, Type: kernels.Int8, Root: -1}, call.SignOf(&all))
}

// Messages of a rank to itself need a partner of their length, in order.
func TestCheckSelf(t *testing.T) {
	const rank = 1
	msg := func(kind call.Kind, count, peer int) *call.Call {
		return &call.Call{Kind: kind, Count: count, Type: kernels.Float16, Peer: peer}
	}
	type list = []*call.Call
	for _, test := range []struct {
		calls list
		want  string
	}{
		{nil, ""},
		{list{msg(call.Send, 3, 0), msg(call.Recv, 4, 2), {Kind: call.AllReduce, Peer: rank}}, ""},
		{list{msg(call.Send, 3, rank), msg(call.Recv, 3, rank)}, ""},
		{list{msg(call.Recv, 3, rank), msg(call.Send, 9, 0), msg(call.Send, 3, rank)}, ""},
		{list{msg(call.Send, 3, rank), msg(call.Send, 4, rank), msg(call.Recv, 3, rank), msg(call.Recv, 4, rank)}, ""},
		{list{msg(call.Send, 3, rank), msg(call.Recv, 3, 0)}, "a Send of rank 1 to itself needs its Recv beside it in the Group"},
		{list{msg(call.Recv, 3, rank), msg(call.Send, 3, 0)}, "a Recv of rank 1 from itself needs its Send beside it in the Group"},
		{list{msg(call.Send, 3, rank), msg(call.Recv, 3, rank), msg(call.Send, 3, rank)},
			"a Send of rank 1 to itself needs its Recv beside it in the Group"},
		{list{msg(call.Send, 3, rank), msg(call.Send, 4, rank), msg(call.Recv, 4, rank), msg(call.Recv, 3, rank)},
			"rank 1 sends itself 3 elements of float16 and receives 4 of float16"},
	} {
		err := call.CheckSelf(test.calls, rank)
		if test.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, call.ErrUnmatched)
		require.ErrorIs(t, err, call.ErrInvalid)
		require.EqualError(t, err, "invalid argument: half a message: "+test.want)
	}
}

// A composite is checked before any rank hears of it: shapes, operator, and that its memory is the host's.
func TestCheckComposites(t *testing.T) {
	counts := []int{1, 0, 3}
	avg := kernels.Avg
	pair := kernels.UserOpOf("pair", 8, func(kernels.DataType, []byte, []byte) {})
	for _, test := range []struct {
		call call.Call
		want string
	}{
		{call.Call{Kind: call.Gatherv, In: f32(1), Out: f32(4), OutCounts: counts}, ""},
		{call.Call{Kind: call.Gatherv, In: f32(1), Out: f32(3), OutCounts: counts}, "Out has 3 elements, needs 4"},
		{call.Call{Kind: call.Gatherv, In: f32(1), OutCounts: counts, Root: 1}, ""},
		{call.Call{Kind: call.Gatherv, In: f32(1), OutCounts: counts[:2]}, "OutCounts has 2 entries for 3 ranks"},
		{call.Call{Kind: call.Gatherv, In: f32(1), OutCounts: counts, Root: 3}, "root 3 is not in 0…2"},
		{call.Call{Kind: call.Scatterv, In: f32(4), Out: f32(1), InCounts: counts}, ""},
		{call.Call{Kind: call.Scatterv, Out: f32(1), InCounts: counts, Root: 2}, ""},
		{call.Call{Kind: call.Scatterv, Out: f32(1), InCounts: counts}, "In is nil, needs 4 elements"},
		{call.Call{Kind: call.Scatterv, In: f32(4), InCounts: counts}, "Out is nil, needs 1 element"},
		{call.Call{Kind: call.ReduceScatterv, In: f32(4), Out: f32(1), InCounts: counts}, ""},
		{call.Call{Kind: call.ReduceScatterv, In: f32(4), Out: f32(1), InCounts: counts, Op: avg}, ""},
		{call.Call{Kind: call.ReduceScatterv, In: f32(4), Out: f32(1), InCounts: counts, Op: pair},
			"the share of rank 0 is no multiple of the 8 bytes"},
		{call.Call{Kind: call.ReduceScatterv, In: f32(4), Out: f32(1), InCounts: counts, InOffsets: counts},
			"a ReduceScatterv has no InOffsets"},
		{call.Call{Kind: call.ReduceScatterv, In: f32(4), Out: f32(1), InCounts: []int{1, -1, 3}},
			"InCounts of rank 1 is negative"},
		{call.Call{Kind: call.Scan, In: f32(2), Out: f32(2), Count: 2}, ""},
		{call.Call{Kind: call.Scan, In: f32(2), Out: f32(2), Count: 2, Op: avg}, "a Scan has no avg"},
		{call.Call{Kind: call.Scan, In: f32(2), Out: f32(2), Count: 2, Op: kernels.RedOp{Kind: 99}}, "99"},
		{call.Call{Kind: call.Scan, In: f32(3), Out: f32(3), Count: 3, Op: pair}, "no multiple of the 8 bytes"},
	} {
		test.call.Type = kernels.Float32
		err := test.call.Check(0, 3)
		if test.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, call.ErrInvalid)
		require.ErrorContains(t, err, test.want)
	}
	all := f32(4)
	for call, ok := range map[*call.Call]bool{
		{Kind: call.Gatherv, In: all.Slice(0, 4), Out: all, OutCounts: counts}:           true,
		{Kind: call.ReduceScatterv, In: all, Out: all.Slice(4, 4), InCounts: counts}:     true,
		{Kind: call.Scan, In: all, Out: all, Count: 4}:                                   true,
		{Kind: call.Scan, In: all.Slice(0, 8), Out: all.Slice(4, 8), Count: 2}:           false,
		{Kind: call.Scatterv, In: all, Out: all.Slice(0, 4), InCounts: counts}:           true,
		{Kind: call.Scan, In: all.Slice(0, 8), Out: all.Slice(8, 8), Count: 2, Type: 99}: false,
	} {
		if call.Type == 0 {
			call.Type = kernels.Float32
		}
		require.Equal(t, ok, call.Check(0, 3) == nil, call.Kind)
	}
	onGPU := call.Call{Kind: call.Scan, In: mem.Device(0, 4096, 8), Out: mem.Device(0, 4096, 8), Count: 2,
		Type: kernels.Float32}
	require.ErrorIs(t, onGPU.Check(0, 3), call.ErrUnsupported)
}

// A Timeout is not negative, and a count is a multiple of what a user's operator takes as a whole.
func TestCheckOperatorAndTimeout(t *testing.T) {
	c := call.Call{Kind: call.AllReduce, In: f32(8), Out: f32(8), Count: 8, Type: kernels.Float32, Timeout: -time.Second}
	require.EqualError(t, c.Check(0, 2), "invalid argument: Timeout is -1s: want more, or 0 for Config.Timeout")
	c.Timeout = time.Second
	require.NoError(t, c.Check(0, 2))
	c.Op = kernels.RedOp{Unit: 12}
	require.EqualError(t, c.Check(0, 2),
		fmt.Sprintf("invalid argument: Count is 8 elements of 4 bytes, which is no multiple of the 12 bytes that %v takes "+
			"as a whole", c.Op))
	c.Count = 6
	require.NoError(t, c.Check(0, 2))
	c.Count, c.Kind = 8, call.Broadcast
	require.NoError(t, c.Check(0, 2), "an operator that is not used")
}

// Where a call runs, what it copies and how long it is.
func TestCallIs(t *testing.T) {
	host, gpu := f32(8), mem.Device(0, 4096, 32)
	for _, c := range []call.Call{{In: gpu}, {Out: gpu}, {In: gpu, Out: gpu}} {
		require.True(t, c.OnDevice())
		require.False(t, c.OnThread())
		c.Stream = cuda.StreamPerThread
		require.True(t, c.OnThread())
	}
	require.False(t, (&call.Call{In: host, Out: host}).OnDevice())
	require.False(t, (&call.Call{In: host, Out: host, Stream: cuda.StreamPerThread}).OnThread())
	for kind := range call.Kinds {
		both := kind == call.AlltoAll || kind == call.AlltoAllv
		require.Equal(t, both, (&call.Call{Kind: kind, In: host, Out: host}).CopiesIn(), kind)
		require.False(t, (&call.Call{Kind: kind, In: host, Out: f32(8)}).CopiesIn(), kind)
	}
	require.Equal(t, 16, (&call.Call{Kind: call.Send, Count: 4, Type: kernels.Float32}).Bytes())
	require.Zero(t, (&call.Call{Kind: call.Barrier, Count: 4, Type: kernels.Float32}).Bytes())
}

// Packed counts and offsets give the extent of a buffer, and where a share lies in it.
func TestVariableShapes(t *testing.T) {
	packed := call.Call{Kind: call.AlltoAllv, InCounts: []int{1, 2}, OutCounts: []int{3, 4}}
	in, out := packed.Shape(1, 2)
	require.Equal(t, [2]int{3, 7}, [2]int{in, out})
	apart := call.Call{Kind: call.AlltoAllv, InCounts: []int{1, 2}, InOffsets: []int{5, 0}, OutCounts: []int{3, 4},
		OutOffsets: []int{0, 10}}
	in, out = apart.Shape(1, 2)
	require.Equal(t, [2]int{6, 14}, [2]int{in, out})
	gather := call.Call{Kind: call.AllGatherv, OutCounts: []int{3, 4}}
	in, out = gather.Shape(1, 2)
	require.Equal(t, [2]int{4, 7}, [2]int{in, out})

	all := f32(20) // rank 1's share of an AllGatherv in place begins at its offset
	place := call.Call{Kind: call.AllGatherv, Type: kernels.Float32, Out: all, OutCounts: []int{3, 4}}
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
	barrier := call.Sign{Seq: 3, Kind: call.Barrier, Root: -1}
	got := call.ReadSign(call.StampPast(barrier.Stamp(), 77))
	require.Equal(t, call.Sign{Seq: 3, Kind: call.Barrier, Count: 77, Root: -1}, got)
	require.Less(t, call.ReadSign(call.StampPast(barrier.Stamp(), ^uint64(0))).Count, call.MaxCount)
	sum := call.Sign{Seq: 3, Kind: call.AllReduce, Count: 5, Root: -1}
	require.Equal(t, sum.Stamp(), call.StampPast(sum.Stamp(), 77))
}

// A program's algorithms get the numbers after the book's, as long as there are any. The program is this test binary,
// started for this test alone.
func TestNewAlgo(t *testing.T) {
	const started = "CORE_TEST_NEW_ALGO"
	if os.Getenv(started) == "" {
		program := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNewAlgo$")
		program.Env = append(os.Environ(), started+"=1")
		text, err := program.CombinedOutput()
		require.NoError(t, err, "%s", text)
		require.Contains(t, string(text), "PASS")
		return
	}
	require.Empty(t, call.Defined())
	for _, bad := range []string{"", "two words", "a,b", "tab\there", "line\n"} {
		_, err := call.NewAlgo(bad)
		require.EqualError(t, err, fmt.Sprintf("invalid argument: algorithm %q: want a word", bad))
	}
	_, err := call.NewAlgo("RING")
	require.EqualError(t, err, `invalid argument: algorithm "RING" is there already`)
	room := int(call.ByRank - call.Algos)
	for i := range room {
		name := fmt.Sprintf("mine%d", i)
		require.Equal(t, fmt.Sprintf("Algo(%d)", int(call.Algos)+i), (call.Algos + call.Algo(i)).String())
		a, err := call.NewAlgo(name)
		require.NoError(t, err)
		require.Equal(t, call.Algos+call.Algo(i), a)
		require.Equal(t, name, a.String())
		require.True(t, a.IsDefined())
		again, err := call.ParseAlgo(name)
		require.NoError(t, err)
		require.Equal(t, a, again)
		_, err = call.NewAlgo(name)
		require.ErrorContains(t, err, "is there already")
	}
	require.Len(t, call.Defined(), room)
	_, err = call.NewAlgo("more")
	require.EqualError(t, err, fmt.Sprintf(`invalid argument: algorithm "more" is one too many: a program may define %d`,
		room))
	require.Equal(t, call.RankOrder, call.ByRank.String())
	require.False(t, call.ByRank.IsDefined())
	require.False(t, (call.Algos - 1).IsDefined())
}
