// What Check refuses, and the words of each refusal.

package core_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// f32 is host memory of n float32.
func f32(n int) mem.Region { return mem.Of(make([]float32, n)) }

// TestCheck: every refusal has its sentence. Ranks are 1 of 2 unless a test says otherwise.
func TestCheck(t *testing.T) {
	const f = kernels.Float32
	most := min(call.MaxCount, math.MaxInt/4) / 2
	r := f32(8)
	gpu := mem.Device(0, 4096, 32)
	scalar := func(at mem.Region) kernels.RedOp { return kernels.PreMulSumAt(at) }
	for _, test := range []struct {
		name string
		call call.Call
		want string // "" if nothing is wrong
	}{
		{"zero", call.Call{}, "the call has no Kind: set it, as in Call{Kind: KindAllReduce, …}"},
		{"no kind", call.Call{In: r, Out: r, Count: 8, Type: f},
			"the call has no Kind: set it, as in Call{Kind: KindAllReduce, …}"},
		{"kind", call.Call{Kind: 99}, "unknown operation Kind(99)"},
		{"no type", call.Call{Kind: call.AllReduce, In: r, Out: r, Count: 8},
			"the call has no Type: set it, as in Call{Type: Float32, …}"},
		{"type", call.Call{Kind: call.AllReduce, In: r, Out: r, Count: 8, Type: 13}, "unknown element type DataType(13)"},
		{"no count", call.Call{Kind: call.AllReduce, In: r, Out: r, Type: f},
			"Count is 0, but In has 8 elements and Out 8 elements: set Count, or give no memory"},
		{"no count, no memory", call.Call{Kind: call.AllReduce, Type: f}, ""},
		{"negative", call.Call{Kind: call.AllReduce, In: r, Out: r, Count: -1, Type: f},
			fmt.Sprintf("count -1 is not in 0…%d", most)},
		{"huge", call.Call{Kind: call.AllReduce, In: r, Out: r, Count: most + 1, Type: f},
			fmt.Sprintf("count %d is not in 0…%d", most+1, most)},

		{"barrier", call.Call{Kind: call.Barrier}, ""},
		{"barrier on a GPU", call.Call{Kind: call.Barrier, In: mem.Device(0, 0, 0)}, ""},
		{"barrier, count", call.Call{Kind: call.Barrier, Count: 5},
			"a Barrier moves nothing, but the call has Count 5, 0 bytes of In and 0 of Out: leave them out"},
		{"barrier, memory", call.Call{Kind: call.Barrier, Out: r},
			"a Barrier moves nothing, but the call has Count 0, 0 bytes of In and 32 of Out: leave them out"},

		{"nil", call.Call{Kind: call.AllReduce, Count: 1, Type: f}, "In is nil, needs 1 element"},
		{"nil out", call.Call{Kind: call.AllReduce, In: r, Count: 1, Type: f}, "Out is nil, needs 1 element"},
		{"short in", call.Call{Kind: call.AllReduce, In: r, Out: r, Count: 9, Type: f}, "In has 8 elements, needs 9"},
		{"part of an element", call.Call{Kind: call.AllReduce, In: r.Slice(0, 7), Out: r, Count: 2, Type: f},
			"In has 1 element and 3 bytes, needs 2"},
		{"short out", call.Call{Kind: call.AllGather, In: r, Out: r, Count: 8, Type: f}, "Out has 8 elements, needs 16"},
		{"longer", call.Call{Kind: call.AllReduce, In: r, Out: r, Count: 7, Type: f}, ""},
		{"two places", call.Call{Kind: call.AllReduce, In: gpu, Out: r, Count: 1, Type: f},
			"one of In and Out is host memory, the other a GPU's: copy one to where the other is"},
		{"empty on a GPU", call.Call{Kind: call.Reduce, In: gpu, Count: 8, Type: f}, ""},

		{"root", call.Call{Kind: call.Broadcast, In: r, Out: r, Count: 1, Type: f, Root: 2}, "root 2 is not in 0…1"},
		{"negative root", call.Call{Kind: call.Gather, In: r, Out: r, Count: 1, Type: f, Root: -1}, "root -1 is not in 0…1"},
		{"no root", call.Call{Kind: call.AllReduce, In: r, Out: r, Count: 1, Type: f, Root: 2}, ""},
		{"peer", call.Call{Kind: call.Send, In: r, Count: 1, Type: f, Peer: -1}, "peer -1 is not in 0…1"},
		{"peer too large", call.Call{Kind: call.Recv, Out: r, Count: 1, Type: f, Peer: 2}, "peer 2 is not in 0…1"},

		{"counts", call.Call{Kind: call.AllGatherv, In: r, Out: r, Type: f, OutCounts: []int{1}},
			"OutCounts has 1 entries for 2 ranks"},
		{"no counts", call.Call{Kind: call.AlltoAllv, In: r, Out: r, Type: f, OutCounts: []int{1, 1}},
			"InCounts has 0 entries for 2 ranks"},
		{"offsets", call.Call{Kind: call.AllGatherv, In: r, Out: r, Type: f, OutCounts: []int{1, 1}, OutOffsets: []int{0}},
			"offsets of OutCounts have 1 entries for 2 ranks"},
		{"negative count", call.Call{Kind: call.AllGatherv, In: r, Out: r, Type: f, OutCounts: []int{-1, 1}},
			"OutCounts of rank 0 is negative or too large"},
		{"large count", call.Call{Kind: call.AllGatherv, In: r, Out: r, Type: f, OutCounts: []int{1, most + 1}},
			"OutCounts of rank 1 is negative or too large"},
		{"negative offset", call.Call{Kind: call.AlltoAllv, In: r, Out: f32(8), Type: f, InCounts: []int{1, 1},
			OutCounts:  []int{1, 1},
			OutOffsets: []int{-1, 0}}, "OutCounts of rank 0 is negative or too large"},
		{"large offset", call.Call{Kind: call.AlltoAllv, In: r, Out: f32(8), Type: f, InCounts: []int{1, 1},
			InOffsets: []int{0, 2 * most}, OutCounts: []int{1, 1}}, "InCounts of rank 1 is negative or too large"},
		{"own share", call.Call{Kind: call.AlltoAllv, In: r, Out: f32(8), Type: f, InCounts: []int{1, 1},
			OutCounts: []int{2, 2}},
			"rank 1 sends itself 1 elements and receives 2"},
		{"short for counts", call.Call{Kind: call.AllGatherv, In: r, Out: f32(8), Type: f, OutCounts: []int{5, 4}},
			"Out has 8 elements, needs 9"},
		{"short for offsets", call.Call{Kind: call.AllGatherv, In: r, Out: f32(8), Type: f, OutCounts: []int{1, 1},
			OutOffsets: []int{8, 0}}, "Out has 8 elements, needs 9"},
		{"longer than counts", call.Call{Kind: call.AllGatherv, In: r, Out: f32(8), Type: f, OutCounts: []int{4, 3}}, ""},

		{"scalar", call.Call{Kind: call.AllReduce, In: r, Out: r, Count: 8, Type: f, Op: scalar(f32(1))}, ""},
		{"scalar elsewhere", call.Call{Kind: call.AllReduce, In: r, Out: r, Count: 8, Type: f, Op: scalar(gpu)},
			"the scalar of premulsum(scalar on device 0) is not the host's, like In and Out: copy it there"},
		{"scalar on another GPU", call.Call{Kind: call.AllReduce, In: gpu, Out: gpu, Count: 8, Type: f,
			Op: scalar(mem.Device(1, 4096, 4))},
			"the scalar of premulsum(scalar on device 1) is not device 0's, like In and Out: copy it there"},
		{"scalar that is not used", call.Call{Kind: call.AllGather, In: r, Out: f32(16), Count: 8, Type: f,
			Op: scalar(gpu)}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.call.Check(1, 2)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, call.ErrInvalid)
			require.EqualError(t, err, "invalid argument: "+test.want)
		})
	}
}

// TestExact: where lengths are to be exact, a call that would leave data out is refused; a
// buffer that this rank does not need may have any length.
func TestExact(t *testing.T) {
	lost := func(buffer string, has int, what string, takes int) string {
		return fmt.Sprintf("invalid argument: %s has %d elements, but %s ranks takes %d: the others would be lost", buffer,
			has, what, takes)
	}
	for _, test := range []struct {
		name        string
		kind        call.Kind
		n, rank     int
		in, out     int // elements
		count, root int
		want        string
	}{
		{"alltoall", call.AlltoAll, 2, 0, 4, 4, 2, 0, ""},
		{"alltoall of 5 on 2", call.AlltoAll, 2, 0, 5, 5, 2, 0, lost("In", 5, "AlltoAll of 2 elements a rank on 2", 4)},
		{"alltoall of 3 on 4", call.AlltoAll, 4, 0, 3, 3, 0, 0, lost("In", 3, "AlltoAll of 0 elements a rank on 4", 0)},
		{"alltoall, out", call.AlltoAll, 2, 0, 4, 5, 2, 0, lost("Out", 5, "AlltoAll of 2 elements a rank on 2", 4)},
		{"reducescatter", call.ReduceScatter, 2, 0, 5, 2, 2, 0, lost("In", 5, "ReduceScatter of 2 elements a rank on 2", 4)},
		{"allgather", call.AllGather, 2, 0, 2, 5, 2, 0, lost("Out", 5, "AllGather of 2 elements a rank on 2", 4)},
		{"scatter", call.Scatter, 2, 1, 5, 2, 2, 1, lost("In", 5, "Scatter of 2 elements a rank on 2", 4)},
		{"scatter of nothing", call.Scatter, 2, 1, 5, 0, 0, 1, lost("In", 5, "Scatter of 0 elements a rank on 2", 0)},
		{"gather", call.Gather, 2, 1, 2, 5, 2, 1, lost("Out", 5, "Gather of 2 elements a rank on 2", 4)},
		{"reduce", call.Reduce, 2, 1, 2, 5, 2, 1, lost("Out", 5, "Reduce of 2 elements a rank on 2", 2)},
		{"scatter, not the root", call.Scatter, 2, 1, 5, 2, 2, 0, ""},
		{"scatter of nothing, not the root", call.Scatter, 2, 1, 5, 0, 0, 0, ""},
		{"gather, not the root", call.Gather, 2, 1, 2, 5, 2, 0, ""},
		{"gather of nothing, not the root", call.Gather, 2, 1, 0, 5, 0, 0, ""},
		{"reduce, not the root", call.Reduce, 2, 1, 2, 5, 2, 0, ""},
		{"broadcast, not the root", call.Broadcast, 2, 1, 2, 2, 2, 0, ""},
		{"send", call.Send, 2, 0, 2, 7, 2, 0, ""},
		{"recv", call.Recv, 2, 0, 7, 2, 2, 0, ""},
		{"nothing", call.AllReduce, 2, 0, 0, 0, 0, 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := call.Call{Kind: test.kind, In: f32(test.in), Out: f32(test.out), Count: test.count, Type: kernels.Float32,
				Root: test.root, Exact: true}
			if err := c.Check(test.rank, test.n); test.want != "" {
				require.EqualError(t, err, test.want)
			} else {
				require.NoError(t, err)
			}
			c.Exact = false
			if test.count > 0 {
				require.NoError(t, c.Check(test.rank, test.n))
			}
		})
	}
	c := call.Call{Kind: call.AllGatherv, In: f32(5), Out: f32(6), Type: kernels.Float32, OutCounts: []int{4, 2},
		Exact: true}
	require.EqualError(t, c.Check(0, 2), lost("In", 5, "AllGatherv of these counts on 2", 4))
}

// TestOverlap: In and Out overlap as each operation in place needs it, or not at all.
func TestOverlap(t *testing.T) {
	const n, rank, count = 3, 1, 4
	all := f32(n * count * 3)
	at := func(element, elements int) mem.Region { return all.Slice(4*element, 4*elements) }
	for _, kind := range []call.Kind{call.AllReduce, call.Reduce, call.Broadcast, call.AllGather, call.ReduceScatter,
		call.AlltoAll, call.Gather, call.Scatter,
		call.AllGatherv, call.AlltoAllv} {
		t.Run(kind.String(), func(t *testing.T) {
			c := call.Call{Kind: kind, Count: count, Type: kernels.Float32, Root: rank}
			if kind.Variable() {
				c.Count, c.OutCounts, c.InCounts = 0, []int{count, count, count}, []int{count, count, count}
			}
			in, out := c.Shape(rank, n)
			inPlace := map[call.Kind]int{call.AllGather: rank * count, call.Gather: rank * count, call.AllGatherv: rank * count,
				call.ReduceScatter: -rank * count, call.Scatter: -rank * count}[kind]
			for distance := 1 - max(in, out); distance < max(in, out); distance++ { // of In after Out
				c.In, c.Out = at(n*count+distance, in), at(n*count, out)
				apart := distance >= out || -distance >= in
				if apart || distance == inPlace || kind == call.AlltoAllv {
					require.NoError(t, c.Check(rank, n), distance)
				} else {
					require.EqualError(t, c.Check(rank, n),
						"invalid argument: In and Out overlap, but not as "+kind.String()+" in place needs it", distance)
				}
			}
		})
	}
	// Buffers overlap if the parts do that the call uses.
	c := call.Call{Kind: call.AllReduce, In: at(0, 12), Out: at(4, 12), Count: 4, Type: kernels.Float32}
	require.NoError(t, c.Check(0, 2))
}

// TestCheckNeverPanics: whatever a caller writes, Check answers, and a call that it lets
// through has buffers that are long enough.
func TestCheckNeverPanics(t *testing.T) {
	small := rapid.IntRange(-1, 9)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(t, "ranks")
		rank := rapid.IntRange(0, n-1).Draw(t, "rank")
		list := func(name string) []int {
			if rapid.Bool().Draw(t, "no "+name) {
				return nil
			}
			return rapid.SliceOfN(small, n-1, n).Draw(t, name)
		}
		c := call.Call{
			Kind:  call.Kind(rapid.IntRange(0, int(call.Kinds)).Draw(t, "kind")),
			Type:  kernels.DataType(rapid.IntRange(0, 13).Draw(t, "type")),
			Count: small.Draw(t, "count"), Root: small.Draw(t, "root"), Peer: small.Draw(t, "peer"),
			In: f32(max(0, small.Draw(t, "in"))), Out: f32(max(0, small.Draw(t, "out"))), Exact: rapid.Bool().Draw(t, "exact"),
			InCounts: list("in counts"), InOffsets: list("in offsets"), OutCounts: list("out counts"),
			OutOffsets: list("out offsets"),
		}
		if err := c.Check(rank, n); err != nil {
			require.ErrorIs(t, err, call.ErrInvalid)
			require.False(t, strings.Contains(err.Error(), "%!"), err)
			return
		}
		in, out := c.Shape(rank, n)
		require.LessOrEqual(t, in*c.Type.Size(), c.In.Len())
		require.LessOrEqual(t, out*c.Type.Size(), c.Out.Len())
		require.NotPanics(t, func() { _ = c.String() })
	})
}
