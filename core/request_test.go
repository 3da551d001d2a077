// Numbers and stamps of calls, and the records of calls in a log.

package core_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/core/request"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// numberer is rank 1 of 2.
func numberer(t *testing.T) *request.Numberer {
	g := bootstrap.Local(2)[1]
	l := life.New(g, "h", "", time.Minute)
	t.Cleanup(func() { l.Close(); g.Close() })
	return &request.Numberer{Life: l}
}

// TestNumber: collectives are numbered, messages are not, and a call that is wrong takes no number.
func TestNumber(t *testing.T) {
	n := numberer(t)
	x := mem.Of(make([]float32, 8))
	sum := &call.Call{Kind: call.AllReduce, In: x, Out: x, Count: 8, Type: kernels.Float32}
	root := &call.Call{Kind: call.Gather, In: x, Out: x, Count: 4, Type: kernels.Float32, Root: 1}
	recv := &call.Call{Kind: call.Recv, Out: x, Count: 8, Type: kernels.Float32, Peer: 0}
	wrong := &call.Call{Kind: call.AllReduce, In: x, Out: x, Count: 8, Type: kernels.Float32, Op: kernels.BitAnd}
	number := func(c *call.Call, a call.Algo) (request.Request, uint32) {
		var r request.Request
		err := n.Begin(&r, c, &choice.Answer{Algo: a}, false)
		require.NoError(t, err)
		s := call.ReadSign(r.Stamp)
		require.Equal(t, a, s.Algo)
		return r, s.Seq
	}
	r, seq := number(sum, call.Tree)
	require.EqualValues(t, 1, seq)
	require.Equal(t, choice.Key{Kind: call.AllReduce, Algo: call.Tree, Peer: -1}, r.Key)
	require.NotNil(t, r.Reducer)
	require.Equal(t, []int{4, 32, 32}, []int{r.Size, r.In, r.Out})

	err := n.Begin(new(request.Request), wrong, &choice.Answer{Algo: call.Ring}, false)
	require.ErrorIs(t, err, call.ErrInvalid)

	r, seq = number(recv, call.Direct)
	require.Zero(t, seq)
	require.Equal(t, choice.Key{Kind: call.Recv, Algo: call.Direct, Peer: 0}, r.Key)
	require.Equal(t, []int{0, 32}, []int{r.In, r.Out})

	r, seq = number(root, call.Direct)
	require.EqualValues(t, 2, seq)
	require.Nil(t, r.Reducer)
	require.Equal(t, []int{16, 32}, []int{r.In, r.Out})
	require.Equal(t, choice.Key{Kind: call.Scatter, Algo: call.Direct, Peer: 1}, r.Part(call.Scatter, call.Direct))
	require.Equal(t, choice.Key{Kind: call.AllGather, Algo: call.Ring, Peer: -1}, r.Part(call.AllGather, call.Ring))

	_, seq = number(&call.Call{Kind: call.Barrier}, call.Doubling)
	require.EqualValues(t, 3, seq)

	ring := choice.Answer{Algo: call.Ring}
	for _, c := range []*call.Call{sum, root, recv} {
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = n.Begin(&r, c, &ring, false) }))
	}
}

// TestCallsAreLogged: every call has its record, with its number and algorithm.
func TestCallsAreLogged(t *testing.T) {
	var text bytes.Buffer
	n := numberer(t)
	n.Log = slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: request.LevelTrace}))
	x := mem.Of(make([]float32, 8))
	c := &call.Call{Kind: call.AllReduce, In: x, Out: x, Count: 8, Type: kernels.Float32}
	err := n.Begin(new(request.Request), c, &choice.Answer{Algo: call.Ring}, false)
	require.NoError(t, err)
	require.Contains(t, text.String(), `msg="AllReduce(count 8, float32, sum)" subsys=CALL seq=1 algo=ring`)
}
