package ringo

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/direct"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
)

// star reduces to rank 0, which then sends the result to all.
type star struct{ n int }

func (s star) Shape() sched.Shape { return sched.Shape{Ranks: s.n, In: 1, Out: 1} }

func (s star) Len(r sched.Rank) int {
	if r == 0 {
		return 2*s.n - 1
	}
	return 2
}

func (s star) At(r sched.Rank, i int) sched.Step {
	in, out := sched.Ref{Buf: sched.In}, sched.Ref{Buf: sched.Out}
	switch {
	case r != 0 && i == 0:
		return sched.Step{Recv: sched.Nobody, Src: in, Send: 0}
	case r != 0:
		return sched.Step{Recv: 0, Dst: out, Send: sched.Nobody}
	case i == 0:
		return sched.Step{Recv: sched.Nobody, Src: in, Dst: out, Send: sched.Nobody}
	case i < s.n:
		return sched.Step{Recv: sched.Rank(i), Src: out, Dst: out, Send: sched.Nobody}
	}
	return sched.Step{Recv: sched.Nobody, Src: out, Send: sched.Rank(i - s.n + 1)}
}

// lazy claims to be an all-reduce and forgets the last rank.
type lazy struct{ star }

func (s lazy) Len(r sched.Rank) int {
	if s.n > 2 && int(r) == s.n-1 {
		return 0
	}
	return s.star.Len(r)
}

func init() {
	for _, d := range []Definition{
		{Name: "star", Kind: KindAllReduce, Schedule: func(n int, _ sched.Rank) sched.Schedule { return star{n} }},
		{Name: "backwards", Kind: KindAllGather, Schedule: func(n int, _ sched.Rank) sched.Schedule {
			order := make([]sched.Rank, n)
			for r := range order {
				order[r] = sched.Rank(n - 1 - r)
			}
			return sched.Relabel(ring.AllGather{N: n}, order)
		}},
		{Name: "even", Kind: KindAlltoAll, Ranks: func(n int) bool { return n%2 == 0 }, Schedule: func(n int, _ sched.Rank) sched.Schedule {
			return direct.AlltoAll{N: n}
		}},
	} {
		if err := Define(d); err != nil {
			panic(err)
		}
	}
}

func TestDefine(t *testing.T) {
	for _, tc := range []struct {
		d    Definition
		want string
	}{
		{Definition{Name: "ring", Kind: KindAllReduce, Schedule: func(n int, _ sched.Rank) sched.Schedule { return star{n} }}, "there already"},
		{Definition{Name: "Star", Kind: KindAllReduce, Schedule: func(n int, _ sched.Rank) sched.Schedule { return star{n} }}, "there already"},
		{Definition{Name: "two words", Kind: KindAllReduce, Schedule: func(n int, _ sched.Rank) sched.Schedule { return star{n} }}, "want a word"},
		{Definition{Name: "none", Kind: KindAllReduce}, "no Schedule"},
		{Definition{Name: "message", Kind: KindSend, Schedule: func(n int, _ sched.Rank) sched.Schedule { return star{n} }}, "not a collective"},
		{Definition{Name: "lazy", Kind: KindAllReduce, Schedule: func(n int, _ sched.Rank) sched.Schedule { return lazy{star{n}} }}, "3 ranks"},
	} {
		err := Define(tc.d)
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, tc.want)
	}
	require.Contains(t, Algorithms(), "star")
	ch, err := Explain(KindAllReduce, 5, 0, 64, 0, Config{Algo: "star"})
	require.NoError(t, err)
	require.Equal(t, "star", ch.Algo)
	require.NoError(t, sched.Check(ch.Schedule, sched.AllReduce, 2, false))
	ch, err = Explain(KindAlltoAll, 5, 0, 64, 0, Config{Algo: "even"})
	require.NoError(t, err)
	require.Equal(t, "direct", ch.Algo, "it is not for five")
}

// A defined schedule carries calls out, out of place and in place, on goroutines.
func TestDefinedOnHost(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		for algo, kind := range map[string]Kind{"star": KindAllReduce, "backwards": KindAllGather, "even": KindAlltoAll} {
			comms := local(t, n, Config{Algo: algo, SlotBytes: 256, Slots: 4})
			for _, count := range []int{0, 1, 1000} {
				try(t, comms, Call{Kind: kind, Count: count, Type: Int32, Op: Sum}, false, 0)
				try(t, comms, Call{Kind: kind, Count: count, Type: Int32, Op: Sum}, true, 0)
			}
			require.Equal(t, n%2 == 0 || algo != "even", comms[0].host.Answer(&Call{Kind: kind, Count: 1, Type: Int32}).Algo.IsDefined())
		}
	}
}

// And on GPUs.
func TestDefinedOnGPUs(t *testing.T) {
	list := devices(t, 3)
	comms := onDevices(t, list, Config{Algo: "star"})
	room := arenas(t, comms, 64<<10)
	for _, count := range []int{1, 3000} {
		tryOnDevice(t, comms, room, Call{Kind: KindAllReduce, Count: count, Type: Float32, Op: Sum}, false, 0)
		tryOnDevice(t, comms, room, Call{Kind: KindAllReduce, Count: count, Type: Float32, Op: Sum}, true, 0)
	}
	require.True(t, comms[0].gpu.Answer(&Call{Kind: KindAllReduce, Count: 1, Type: Float32}).Algo.IsDefined())
}

func ExampleDefine() {
	err := Define(Definition{
		Name: "mine", Kind: KindBroadcast,
		Schedule: func(n int, root sched.Rank) sched.Schedule { return ring.Broadcast{N: n, Root: root} },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := Open(context.Background(), Config{Size: 1, Algo: "mine"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	fmt.Println(Broadcast(c, []int32{1, 2, 3}, 0))
	// Output: <nil>
}
