// Signs and their stamps, and the words of signs, errors and algorithms.

package core_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels"
)

// anySign draws a sign that a call may have.
var anySign = rapid.Custom(func(t *rapid.T) call.Sign {
	return call.Sign{
		Seq:   rapid.Uint32().Draw(t, "seq"),
		Kind:  call.Kind(rapid.IntRange(0, int(call.Kinds)-1).Draw(t, "kind")),
		Type:  rapid.SampledFrom(kernels.Types()).Draw(t, "type"),
		Op:    kernels.Kind(rapid.IntRange(0, int(kernels.KindUser)).Draw(t, "op")),
		Algo:  rapid.SampledFrom(append(algos(), call.ByRank)).Draw(t, "algo"),
		Where: uint16(rapid.IntRange(0, call.MaxWhere).Draw(t, "where")),
		Count: rapid.OneOf(rapid.IntRange(0, call.MaxCount), rapid.Just(call.MaxCount)).Draw(t, "count"),
		Root:  rapid.IntRange(-1, 1<<17-1).Draw(t, "root"),
	}
})

func algos() (all []call.Algo) {
	for a := range call.Algos {
		all = append(all, a)
	}
	return all
}

// A sign survives its stamp, whatever is in it.
func TestSignRoundTrip(t *testing.T) {
	for _, s := range []call.Sign{
		{}, {Seq: 1<<32 - 1, Kind: call.AlltoAllv, Type: kernels.Float8E5M2, Op: 9, Algo: call.Algos - 1,
			Where: call.MaxWhere,
			Count: call.MaxCount, Root: 1<<17 - 1},
		{Kind: call.Send, Count: 5, Root: -1}, {Seq: 7, Kind: call.Reduce, Type: kernels.Float64, Count: 0, Root: 0},
	} {
		require.Equal(t, s, call.ReadSign(s.Stamp()), s)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := anySign.Draw(t, "sign")
		require.Equal(t, s, call.ReadSign(s.Stamp()))
	})
}

// The largest value of each field of a sign fits into a stamp.
func TestSignRoom(t *testing.T) {
	types := kernels.Types()
	for _, s := range []call.Sign{{Kind: call.Kinds - 1}, {Type: types[len(types)-1]}, {Op: kernels.KindUser},
		{Algo: call.Algos - 1},
		{Algo: call.ByRank}} {
		require.Equal(t, s, call.ReadSign(s.Stamp()))
	}
	require.Equal(t, "Kind(10)", (kernels.KindUser + 1).String(), "KindUser is the last")
}

// Any two words can be read as a sign, said in words, and written as a stamp unchanged.
func FuzzReadSign(f *testing.F) {
	f.Add(uint64(0), uint64(0))
	f.Add(^uint64(0), ^uint64(0))
	s := call.Sign{Seq: 7, Kind: call.AllReduce, Type: kernels.Float32, Algo: call.Ring, Count: 64, Root: -1}.Stamp()
	f.Add(s[0], s[1])
	f.Fuzz(func(t *testing.T, a, b uint64) {
		s := call.ReadSign([2]uint64{a, b})
		require.Equal(t, [2]uint64{a, b}, s.Stamp())
		require.NotEmpty(t, s.String())
		require.NotEmpty(t, s.Numbered())
	})
}

func TestStampAt(t *testing.T) {
	s := call.Sign{Seq: 7, Kind: call.AllReduce, Type: kernels.Float32, Algo: call.Window, Count: 64, Root: -1}
	at := s
	at.Where = call.MaxWhere
	require.Equal(t, at.Stamp(), call.StampAt(s.Stamp(), call.MaxWhere))
	require.True(t, call.SameCall(s, at))
	at.Algo = call.Ring
	require.True(t, call.SameCall(s, at))
	at.Seq = 8
	require.False(t, call.SameCall(s, at))
}

// The stamp of a message of an AlltoAllv has its length in elements, unless the counts of all ranks are in the stamp.
func TestStampMessage(t *testing.T) {
	s := call.Sign{Seq: 7, Kind: call.AlltoAllv, Type: kernels.Float32, Algo: call.Direct, Root: -1}
	message := s
	message.Count = 6
	require.Equal(t, message.Stamp(), call.StampMessage(s.Stamp(), 24))
	s.Whole, s.Count = call.Gatherv, call.MaxCount
	require.Equal(t, s.Stamp(), call.StampMessage(s.Stamp(), 24))
	require.Equal(t, s, call.ReadSign(s.Stamp()))
}

// What ranks must agree on is in the sign, and nothing else is.
func TestSignOf(t *testing.T) {
	x := f32(8)
	base := call.Call{Kind: call.AllReduce, In: x, Out: x, Count: 8, Type: kernels.Float32}
	with := func(change func(c *call.Call)) call.Sign {
		c := base
		change(&c)
		return call.SignOf(&c)
	}
	for name, change := range map[string]func(c *call.Call){
		"root that is none": func(c *call.Call) { c.Root = 1 },
		"peer that is none": func(c *call.Call) { c.Peer = 1 },
		"memory":            func(c *call.Call) { c.In = f32(9) },
		"exact":             func(c *call.Call) { c.Exact = true },
		"scale":             func(c *call.Call) { c.Op.Scale = 2 },
	} {
		require.Equal(t, call.SignOf(&base), with(change), name)
	}
	for name, change := range map[string]func(c *call.Call){
		"kind":  func(c *call.Call) { c.Kind = call.AllGather },
		"count": func(c *call.Call) { c.Count = 7 },
		"type":  func(c *call.Call) { c.Type = kernels.Int32 },
		"op":    func(c *call.Call) { c.Op = kernels.Max },
	} {
		require.NotEqual(t, call.SignOf(&base), with(change), name)
	}
	require.Equal(t, call.Sign{Kind: call.Barrier, Root: -1},
		call.SignOf(&call.Call{Kind: call.Barrier, Type: kernels.Int8, Op: kernels.Max, Root: 1}))
	send := call.Call{Kind: call.Send, Count: 5, Type: kernels.Int8, Peer: 1}
	recv := call.Call{Kind: call.Recv, Count: 5, Type: kernels.Int8, Peer: 0}
	require.Equal(t, call.SignOf(&send), call.SignOf(&recv))
	counts := func(kind call.Kind, counts ...int) call.Sign {
		return call.SignOf(&call.Call{Kind: kind, Type: kernels.Int8, OutCounts: counts})
	}
	require.Equal(t, counts(call.AllGatherv, 1, 2), counts(call.AllGatherv, 1, 2))
	require.NotEqual(t, counts(call.AllGatherv, 1, 2), counts(call.AllGatherv, 2, 1))
	require.Equal(t, counts(call.AlltoAllv, 1, 2), counts(call.AlltoAllv, 2, 1))
	require.Equal(t, counts(call.Gatherv, 1, 2), counts(call.Gatherv, 1, 2))
	require.NotEqual(t, counts(call.Gatherv, 1, 2), counts(call.Gatherv, 2, 1))
}

func TestWords(t *testing.T) {
	for want, c := range map[string]call.Call{
		"Barrier()":                              {Kind: call.Barrier},
		"AllReduce(count 1024, float32, sum)":    {Kind: call.AllReduce, Count: 1024, Type: kernels.Float32},
		"Reduce(count 2, int8, max, root 1)":     {Kind: call.Reduce, Count: 2, Type: kernels.Int8, Op: kernels.Max, Root: 1},
		"Broadcast(count 2, int8, root 0)":       {Kind: call.Broadcast, Count: 2, Type: kernels.Int8},
		"Send(count 5, bfloat16, peer 3)":        {Kind: call.Send, Count: 5, Type: kernels.BFloat16, Peer: 3},
		"AllGatherv(counts 0xbb8014d1149, int8)": {Kind: call.AllGatherv, Type: kernels.Int8, OutCounts: []int{1, 2}},
		"AlltoAllv(int8)": {Kind: call.AlltoAllv, Type: kernels.Int8, InCounts: []int{1, 2},
			OutCounts: []int{1, 2}},
		"no operation(count 0, DataType(0))": {},
	} {
		require.Equal(t, want, c.String())
	}
	c := call.Call{Kind: call.AllReduce, Count: 64, Type: kernels.Float32}
	s := call.SignOf(&c)
	require.Equal(t, "AllReduce(count 64, float32, sum)", s.Numbered())
	s.Seq = 17
	require.Equal(t, "AllReduce #17 (count 64, float32, sum)", s.Numbered())
	require.Equal(t, "Barrier #17", call.Sign{Kind: call.Barrier, Seq: 17, Root: -1}.Numbered())
	meeting := call.Register.Sign()
	meeting.Seq = 17
	require.Equal(t, "Register #17", meeting.Numbered())
	require.Equal(t, "Method(99)", call.Method(99).String())
	require.Equal(t, "Send/Recv(count 5, int8)", call.Sign{Kind: call.Send, Count: 5, Type: kernels.Int8,
		Root: -1}.String())
}

func TestErrorWords(t *testing.T) {
	cause := errors.New("connection reset")
	for want, e := range map[string]call.Error{
		"AllReduce #1042: rank 3 on hostB: recv from rank 2 over socket: connection reset": {Op: "AllReduce", Seq: 1042,
			Rank: 3, Host: "hostB", Peer: 2, Transport: "socket", Phase: "recv", Err: cause},
		"Send: rank 0: send to rank 1: connection reset": {Op: "Send", Peer: 1,
			Phase: "send", Err: cause},
		"Open: rank 1 on h: connection reset": {Op: "Open", Rank: 1, Host: "h",
			Peer: -1, Err: cause},
	} {
		require.EqualError(t, &e, want)
		require.ErrorIs(t, &e, cause)
		require.False(t, e.Timeout())
	}
	require.True(t, (&call.Error{Err: fmt.Errorf("slow: %w", call.ErrTimeout)}).Timeout())
}

func TestParseAlgo(t *testing.T) {
	for a := range call.Algos {
		for _, name := range []string{a.String(), strings.ToUpper(a.String())} {
			got, err := call.ParseAlgo(name)
			require.NoError(t, err)
			require.Equal(t, a, got)
		}
	}
	a, err := call.ParseAlgo("")
	require.NoError(t, err)
	require.Equal(t, call.Auto, a)
	for _, name := range []string{"quantum", call.RankOrder, " ring"} {
		_, err = call.ParseAlgo(name)
		require.ErrorIs(t, err, call.ErrInvalid)
		require.ErrorContains(t, err, "is none of auto, ring, tree,")
	}
	require.Equal(t, call.RankOrder, call.ByRank.String())
	require.Equal(t, "Algo(20)", call.Algo(20).String())
}

// Shares is how much longer the larger buffer of any rank is than Count.
func TestShares(t *testing.T) {
	for kind := call.Barrier; kind < call.AllGatherv; kind++ {
		c := call.Call{Kind: kind, Count: 5, Root: 1}
		larger := 0
		for rank := range 3 {
			in, out := c.Shape(rank, 3)
			larger = max(larger, in, out)
		}
		if kind == call.Barrier {
			require.Zero(t, larger)
			continue
		}
		require.Equal(t, 5*kind.Shares(3), larger, kind)
	}
}
