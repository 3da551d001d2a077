package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/request"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/sched"
)

// TestLayouts: where the chunks of In and Out lie, in bytes.
func TestLayouts(t *testing.T) {
	var room [4][]int
	shape := sched.Shape{Ranks: 3, In: 3, Out: 3}
	in, out := (&request.Request{Size: 4, Unit: 4}).Layouts(&call.Call{Kind: call.AlltoAll, Count: 5}, 1, shape, &room)
	for _, l := range []*engine.Layout{&in, &out} {
		for c := range 3 {
			off, n := l.Extent(c)
			require.Equal(t, [2]int{20 * c, 20}, [2]int{off, n})
		}
	}
	in, out = (&request.Request{Size: 4, Unit: 4}).Layouts(&call.Call{Kind: call.AllGatherv, OutCounts: []int{1, 0, 2}}, 2,
		sched.Shape{Ranks: 3, In: 1, Out: 3}, &room)
	require.Equal(t, 8, in.Total)
	require.Equal(t, []int{0, 4, 4}, out.Off)
	require.Equal(t, []int{4, 0, 8}, out.Len)
	in, out = (&request.Request{Size: 2, Unit: 2}).Layouts(&call.Call{Kind: call.AlltoAllv, InCounts: []int{1, 2, 3},
		OutCounts: []int{3, 2, 1}, OutOffsets: []int{9, 0, 4}}, 0, shape, &room)
	require.Equal(t, []int{0, 2, 6}, in.Off)
	require.Equal(t, []int{18, 0, 8}, out.Off)
	require.Equal(t, []int{6, 4, 2}, out.Len)
}

// TestDividedLayouts: a schedule that divides shares has its chunks in the ranks' shares, in whole units.
func TestDividedLayouts(t *testing.T) {
	extents := func(l engine.Layout, chunks int) (list [][2]int) {
		for c := range chunks {
			off, n := l.Extent(c)
			list = append(list, [2]int{off, n})
		}
		return list
	}
	for _, test := range []struct {
		kind    call.Kind
		shape   sched.Shape
		in, out [][2]int
	}{
		{call.ReduceScatter, sched.Shape{Ranks: 2, In: 4, Out: 2}, [][2]int{{0, 12}, {12, 8}, {20, 12}, {32, 8}},
			[][2]int{{0, 12}, {12, 8}}},
		{call.AlltoAll, sched.Shape{Ranks: 2, In: 4, Out: 4}, [][2]int{{0, 12}, {12, 8}, {20, 12}, {32, 8}},
			[][2]int{{0, 12}, {12, 8}, {20, 12}, {32, 8}}},
		{call.AllGather, sched.Shape{Ranks: 2, In: 2, Out: 4}, [][2]int{{0, 12}, {12, 8}},
			[][2]int{{0, 12}, {12, 8}, {20, 12}, {32, 8}}},
		{call.AllGather, sched.Shape{Ranks: 2, In: 1, Out: 2}, [][2]int{{0, 20}}, [][2]int{{0, 20}, {20, 20}}},
		{call.Scatter, sched.Shape{Ranks: 2, In: 2, Out: 1}, [][2]int{{0, 20}, {20, 20}}, [][2]int{{0, 20}}},
		{call.Gather, sched.Shape{Ranks: 2, In: 1, Out: 2}, [][2]int{{0, 20}}, [][2]int{{0, 20}, {20, 20}}},
		{call.AllReduce, sched.Shape{Ranks: 2, In: 2, Out: 2}, [][2]int{{0, 12}, {12, 8}}, [][2]int{{0, 12}, {12, 8}}},
		{call.Send, sched.Shape{Ranks: 2, In: 1, Out: 1}, [][2]int{{0, 20}}, [][2]int{{0, 20}}},
	} {
		var scratch [4][]int
		for range 2 { // scratch is used again
			in, out := (&request.Request{Size: 4, Unit: 4}).Layouts(&call.Call{Kind: test.kind, Count: 5}, 1, test.shape,
				&scratch)
			require.Equal(t, test.in, extents(in, test.shape.In), "%v", test.kind)
			require.Equal(t, test.out, extents(out, test.shape.Out), "%v", test.kind)
		}
	}
}
