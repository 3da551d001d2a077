package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/rankorder"
	"github.com/ringo-go/ringo/core/request"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// A bench is a Workplace of rank 0 of 3, for peers that contribute the same as rank 0: so a sum is three times In. It
// notes the collectives and the scratch that a Reduction asks for.
type bench struct {
	moves []call.Kind
	most  int // bytes of shares
}

func (b *bench) Scratch(which rankorder.Use, n int) (mem.Region, error) {
	if which == rankorder.ForShares {
		b.most = max(b.most, n)
	}
	return mem.Host(make([]byte, n)), nil
}

func (b *bench) Move(_ *request.Request, kind call.Kind, in mem.Region, inL engine.Layout, out mem.Region,
	outL engine.Layout) error {
	b.moves = append(b.moves, kind)
	for p := range 3 {
		to, n := outL.Extent(p)
		from, most := 0, n
		if kind == call.AlltoAll {
			from, most = inL.Extent(0)
		}
		if kind == call.AllGather && out.Len() == 0 {
			continue
		}
		copy(out.Slice(to, n).Bytes(), in.Slice(from, min(n, most, in.Len()-from)).Bytes())
	}
	return nil
}

func (b *bench) Combine(r *request.Request, dst, srcs mem.Region, contributions uint64, finish bool) error {
	n := dst.Len()
	if n == 0 {
		return nil
	}
	list := make([][]byte, 0, 3)
	for at := 0; at+n <= srcs.Len(); at += n {
		list = append(list, srcs.Slice(at, n).Bytes())
	}
	r.Reducer.CombineAll(dst.Bytes(), list, contributions, finish)
	return nil
}

// TestPieces: however large a reduction is, a rank holds at most ScratchBytes of shares at a time, and each piece goes
// through the collectives that Parts names.
func TestReductionPieces(t *testing.T) {
	const room = 3 * 64
	for _, test := range []struct {
		kind  call.Kind
		in    int // elements
		moves []call.Kind
	}{
		{call.AllReduce, 4, []call.Kind{call.AllGather}},
		{call.AllReduce, 48, []call.Kind{call.AlltoAll, call.AllGather}},
		{call.AllReduce, 96, []call.Kind{call.AlltoAll, call.AllGather, call.AlltoAll, call.AllGather}},
		{call.Reduce, 16, []call.Kind{call.Gather}},
		{call.Reduce, 40, []call.Kind{call.Gather, call.Gather, call.Gather}},
		{call.ReduceScatter, 3 * 16, []call.Kind{call.AlltoAll}},
		{call.ReduceScatter, 3 * 40, []call.Kind{call.AlltoAll, call.AlltoAll, call.AlltoAll}},
	} {
		b := &bench{}
		f := rankorder.New(0, 3, b, 32, room)
		reducer, err := kernels.NewReducer(kernels.Float32, kernels.Sum, 3)
		require.NoError(t, err)
		r := request.Request{Reducer: reducer, Size: 4, Unit: 4}
		r.Key.Peer = 0
		in := make([]float32, test.in)
		for i := range in {
			in[i] = float32(i)
		}
		out := make([]float32, test.in)
		if test.kind == call.ReduceScatter {
			out = out[:test.in/3]
		}
		require.NoError(t, f.Run(r, test.kind, mem.Of(in), mem.Of(out)))
		require.Equal(t, test.moves, b.moves, "%v of %d", test.kind, test.in)
		require.LessOrEqual(t, b.most, room, "%v of %d", test.kind, test.in)
		require.Equal(t, 3*in[0], out[0])
		if test.kind != call.AllReduce || test.in == 4 { // the peers' chunks of an all-reduce are their own
			for i := range out {
				require.Equal(t, 3*in[i], out[i], "%v of %d", test.kind, test.in)
			}
		}
	}
}
