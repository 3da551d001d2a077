package sim_test

import (
	"context"
	"fmt"
	"math/bits"
	"testing"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sched/sim"
	"github.com/stretchr/testify/require"
)

const (
	alpha = 2e-6  // s
	beta  = 1e-10 // s a byte
	gamma = 3e-11 // s a byte
)

// hockney is a machine in which the closed forms of Thakur et al. are exact.
var hockney = sim.Model{
	Name:      "α-β-γ",
	Intra:     sim.Link{Latency: alpha, Bandwidth: 1 / beta},
	Reduce:    gamma,
	SlotBytes: 1 << 20,
}

func lg(n int) float64 { return float64(bits.Len(uint(n - 1))) }

// table is a schedule that is written out: the steps of each rank.
type table [][]sched.Step

func (t table) Shape() sched.Shape                { return sched.Shape{Ranks: len(t), In: 1, Out: 1} }
func (t table) Len(r sched.Rank) int              { return len(t[r]) }
func (t table) At(r sched.Rank, i int) sched.Step { return t[r][i] }
func send(to sched.Rank) sched.Step {
	return sched.Step{Recv: sched.Nobody, Src: sched.Ref{Buf: sched.In}, Send: to}
}
func recv(from sched.Rank) sched.Step {
	return sched.Step{Recv: from, Dst: sched.Ref{Buf: sched.Out}, Send: sched.Nobody}
}
func combine(from sched.Rank) sched.Step {
	return sched.Step{Recv: from, Src: sched.Ref{Buf: sched.In}, Dst: sched.Ref{Buf: sched.Out}, Send: sched.Nobody}
}
func times(n int, steps ...sched.Step) (all []sched.Step) {
	for range n {
		all = append(all, steps...)
	}
	return all
}

// doubling is recursive doubling: all data goes to partners 1, 2, 4 … away.
func doubling(n int) (t table) {
	for r := range sched.Rank(n) {
		var steps []sched.Step
		for bit := 1; bit < n; bit *= 2 {
			steps = append(steps, send(r^sched.Rank(bit)), combine(r^sched.Rank(bit)))
		}
		t = append(t, steps)
	}
	return t
}

// pairwise is an all-to-all of n chunks with partners 1, 2, 3 … places away, one
// after the other.
func pairwise(n int) sched.Schedule {
	var t table
	for r := range n {
		var steps []sched.Step
		for k := 1; k < n; k++ {
			steps = append(steps, send(sched.Rank((r+k)%n)), recv(sched.Rank((r+n-k)%n)))
		}
		t = append(t, steps)
	}
	return chunked{t, n}
}

type chunked struct {
	table
	chunks int
}

func (c chunked) Shape() sched.Shape {
	return sched.Shape{Ranks: len(c.table), In: c.chunks, Out: c.chunks}
}

// The closed forms of Thakur, Rabenseifner and Gropp (2005), sections 3 and 4,
// for messages of one slice.
func TestClosedForms(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 7, 8, 16, 60, 64} {
		const s = 840 * 64 // divides by all n
		m := float64(s) / float64(n)
		p := float64(n)
		for _, tc := range []struct {
			name   string
			sched  sched.Schedule
			want   float64
			powers bool // for powers of 2 only
		}{
			{"ring all-gather", ring.AllGather{N: n}, (p - 1) * (alpha + m*beta), false},
			{"ring reduce-scatter", ring.ReduceScatter{N: n}, (p - 1) * (alpha + m*beta + m*gamma), false},
			{"ring all-reduce", ring.AllReduce{N: n}, 2*(p-1)*(alpha+m*beta) + (p-1)*m*gamma, false},
			{"pairwise all-to-all", pairwise(n), (p - 1) * (alpha + m*beta), false},
			{"binomial broadcast", tree.BinomialBroadcast{N: n}, lg(n) * (alpha + s*beta), true},
			{"binomial reduce", tree.BinomialReduce{N: n}, lg(n) * (alpha + s*beta + s*gamma), true},
			{"recursive doubling", doubling(n), lg(n) * (alpha + s*beta + s*gamma), true},
		} {
			if tc.powers && n&(n-1) != 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s of %d", tc.name, n), func(t *testing.T) {
				res, err := sim.Run(context.Background(), tc.sched, hockney, s, sim.Options{})
				require.NoError(t, err)
				require.InDelta(t, tc.want, res.Time, 1e-9*tc.want)
			})
		}
	}
}

// A weak link has its part of the bandwidth and of what the ranks of a node share.
func TestWeakLinks(t *testing.T) {
	const bytes = 1 << 20
	for name, link := range map[string]sim.Link{
		"a port of its own": {Bandwidth: 1 / beta},
		"a shared card":     {Bandwidth: 1e15, Shared: 1 / beta},
	} {
		t.Run(name, func(t *testing.T) {
			m := sim.Model{Intra: link, Inter: link, NodeRanks: 1, SlotBytes: bytes, Weak: []int{1}, WeakBy: 3}
			for to, times := range map[sched.Rank]float64{1: 3, 2: 1} {
				s := table{{send(to)}, nil, nil}
				s[to] = []sched.Step{recv(0)}
				res, err := sim.Run(context.Background(), s, m, bytes, sim.Options{})
				require.NoError(t, err)
				require.InEpsilon(t, times*bytes*beta, res.Time, 1e-4, "to %d", to)
			}
		})
	}
}

// One link, seen closely.
func TestLinks(t *testing.T) {
	const (
		L, o, G = 5e-6, 3e-7, 1e-9 // LogGP's letters
		slot    = 1000
	)
	card := sim.Model{Intra: sim.Link{Latency: L, Overhead: o, Bandwidth: 1 / G}, SlotBytes: slot, Slots: 8}
	busy := card
	busy.Intra.Busy = true
	free := card
	free.Intra.Overhead = 0
	shallow := free
	shallow.Slots = 2
	narrow := free
	narrow.Intra.Shared = 1 / (4 * G)
	slowCopy := free
	slowCopy.Copy = 5 * G
	nodes := free
	nodes.NodeRanks, nodes.Inter = 4, sim.Link{Latency: L, Bandwidth: 1 / G, Shared: 1 / (2 * G)}

	message := table{{send(1)}, {recv(0)}}
	gather := table{{recv(1), recv(2), recv(3)}, {send(0)}, {send(0)}, {send(0)}}
	scatter := table{{send(1), send(2), send(3)}, {recv(0)}, {recv(0)}, {recv(0)}}
	pairs := table{{send(1)}, {recv(0)}, {send(3)}, {recv(2)}}
	across := table{{send(4)}, {send(5)}, {send(6)}, {recv(7)}, {recv(0)}, {recv(1)}, {recv(2)}, {send(3)}}
	both := table{{send(1), recv(1)}, {send(0), recv(0)}}
	loop := table{{send(0), recv(0)}}

	for _, tc := range []struct {
		name  string
		sched sched.Schedule
		model sim.Model
		bytes int64
		want  float64
	}{
		{"LogGP: o+mG+L+o", message, card, 1000, o + 1000*G + L + o},
		{"nothing costs overhead and latency", message, card, 0, o + L + o},
		{"slices share the port", message, free, 4000, 4000*G + L},
		{"and hide the overhead", message, card, 4000, o + 4000*G + L + o},
		{"which a busy core cannot", message, busy, 4000, 4*(o+1000*G) + L + o},
		{"copying hides behind the wire but for a slice", message, slowCopy, 4000, 1000*G + L + 4*5000*G},
		{"a port takes in one message at a time", gather, free, 1000, L + 3*1000*G},
		{"unless cores write to memory", gather, busy, 1000, o + 1000*G + L + 3*o},
		{"a port lets out one message at a time", scatter, free, 1000, L + 3*1000*G},
		{"both directions at once", both, free, 1000, L + 1000*G},
		{"two pairs", pairs, free, 1000, L + 1000*G},
		{"two pairs on one bus", pairs, narrow, 1000, L + 2*4000*G},
		{"three ranks on one card", across, nodes, 1000, L + 3*2000*G},
		{"a queue of 2 slots waits for credits", table{times(8, send(1)), times(8, recv(0))}, shallow, 1000, 3*(2*L+1000*G) +
			2*1000*G + L},
		{"a queue of 8 slots does not", table{times(8, send(1)), times(8, recv(0))}, free, 1000, 8*1000*G + L},
		{"rounds wait for credits too", message, shallow, 8000, 3*(2*L+1000*G) + 2*1000*G + L},
		{"to itself without latency", loop, free, 1000, 1000 * G},
		{"nothing to do", table{{}, {}}, free, 1000, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res, err := sim.Run(context.Background(), tc.sched, tc.model, tc.bytes, sim.Options{})
			require.NoError(t, err)
			require.InDelta(t, tc.want, res.Time, 1e-9*tc.want)
		})
	}
}

// A chain passes on K slices in the time of K+n-2 and n-1 latencies, as any
// pipeline.
func TestPipelinedChain(t *testing.T) {
	m := hockney
	m.SlotBytes = 64 << 10
	slice := float64(m.SlotBytes) * beta
	for _, n := range []int{2, 3, 8, 50} {
		for _, slices := range []int{1, 4, 5, 64, 1000} {
			res, err := sim.Run(context.Background(), ring.Broadcast{N: n}, m, int64(slices*m.SlotBytes), sim.Options{})
			require.NoError(t, err)
			require.InEpsilon(t, float64(n-1)*(alpha+slice)+float64(slices-1)*slice, res.Time, 1e-9, "%d ranks, %d slices",
				n, slices)
			require.Len(t, res.Ends, max(1, (slices+3)/4))
		}
	}
}

// An all-to-all over one bus takes as long as all bytes on the bus, and the
// latency of the first and the last.
func TestSharedBus(t *testing.T) {
	m := hockney
	m.Intra.Shared = 1 / beta
	for _, n := range []int{2, 5, 16} {
		const s = 1 << 20
		res, err := sim.Run(context.Background(), pairwise(n), m, s, sim.Options{})
		require.NoError(t, err)
		piece := (s + n - 1) / n
		bus := float64(n*(n-1)*piece) * beta
		require.Greater(t, res.Time, (bus+alpha)*(1-1e-9))
		require.LessOrEqual(t, res.Time, bus+3*alpha)
		require.Equal(t, int64(n*(n-1)), res.Messages)
		require.Equal(t, int64(n*(n-1)*piece), res.IntraBytes)
	}
}

// With one card for each node a ring crosses it once and is not slowed, while
// an all-to-all is, by the ranks of a node.
func TestSharedCard(t *testing.T) {
	const n, node, s = 32, 8, 32 << 20
	m := sim.Model{
		NodeRanks: node,
		Intra:     sim.Link{Latency: 1e-7, Bandwidth: 1e11},
		Inter:     sim.Link{Latency: 5e-6, Bandwidth: 1e10},
	}
	shared := m
	shared.Inter.Shared = m.Inter.Bandwidth
	run := func(s sched.Schedule, m sim.Model, bytes int64) sim.Result {
		res, err := sim.Run(context.Background(), s, m, bytes, sim.Options{})
		require.NoError(t, err)
		return res
	}
	ringOwn, ringShared := run(ring.AllReduce{N: n}, m, s), run(ring.AllReduce{N: n}, shared, s)
	require.InEpsilon(t, ringOwn.Time, ringShared.Time, 1e-9)
	require.Equal(t, int64(2*(n-1)*s/node), ringShared.InterBytes, "4 of 32 links cross")
	require.Equal(t, 7*ringShared.InterBytes, ringShared.IntraBytes)

	allOwn, allShared := run(pairwise(n), m, s), run(pairwise(n), shared, s)
	card := float64(node*(n-node)*s/n) / shared.Inter.Shared
	require.Greater(t, allShared.Time, card)
	require.Less(t, allShared.Time, 1.25*card)
	require.Greater(t, allShared.Time, 4*allOwn.Time)
}

func TestResultCountsBytes(t *testing.T) {
	m := hockney
	m.SlotBytes, m.Slots = 1000, 4
	// 2000, 2000 and 500
	res, err := sim.Run(context.Background(), table{{send(1), send(0), recv(0)}, {recv(0)}}, m, 4500, sim.Options{})
	require.NoError(t, err)
	require.Equal(t, int64(6), res.Messages)
	require.Equal(t, [3]int64{4500, 4500, 0}, [3]int64{res.SelfBytes, res.IntraBytes, res.InterBytes})
	require.Len(t, res.Ends, 3)
	require.Equal(t, res.Time, res.Ends[2])
	require.Equal(t, res.Time, max(res.Ranks[0], res.Ranks[1]))
}

func TestErrors(t *testing.T) {
	bad := func(change func(*sim.Model)) sim.Model { m := hockney; change(&m); return m }
	for _, tc := range []struct {
		name  string
		sched sched.Schedule
		model sim.Model
		bytes int64
		is    error
		want  string
	}{
		{"cycle", table{{recv(1), send(1)}, {recv(0), send(0)}}, hockney, 8, sim.ErrDeadlock,
			"sim: deadlock of 2 of 2 ranks: rank 0 waits in step 0 of 2 for a message of rank 1; rank 1 waits in step 0 of 2 " +
				"for a message of rank 0"},
		{"queue too short", table{append(times(9, send(1)), times(9, recv(1))...),
			append(times(9, send(0)), times(9, recv(0))...)}, hockney, 8, sim.ErrDeadlock,
			"rank 0 waits in step 8 of 18 for room in the queue to rank 1"},
		{"many", table{{recv(0)}, {recv(1)}, {recv(2)}, {recv(3)}, {recv(4)}}, hockney, 8, sim.ErrDeadlock, "; and 2 more"},
		{"left in a queue", table{{send(1), send(1)}, {recv(0)}}, hockney, 8, nil,
			"sim: rank 1 never receives 1 messages of rank 0"},
		{"no such rank", table{{send(2)}, {}}, hockney, 8, nil, "sim: step 0 of rank 0 names rank 2 of 2"},
		{"no such rank below", table{{recv(-7)}, {}}, hockney, 8, nil, "sim: step 0 of rank 0 names rank -7 of 2"},
		{"negative size", doubling(2), hockney, -1, nil, "sim: -1 bytes"},
		{"no ranks", table{}, hockney, 8, nil, "sim: a schedule of 0 ranks"},
		{"no model", doubling(2), sim.Model{}, 8, sim.ErrModel,
			`sim: bad link model "": Intra.Bandwidth is 0 bytes a second, want more than 0`},
		{"no Inter", doubling(2), bad(func(m *sim.Model) { m.NodeRanks = 1 }), 8, sim.ErrModel, "Inter.Bandwidth is 0"},
		{"negative latency", doubling(2), bad(func(m *sim.Model) { m.Intra.Latency = -1 }), 8, sim.ErrModel,
			"Intra has a time or rate of -1"},
		{"negative nodes", doubling(2), bad(func(m *sim.Model) { m.NodeRanks = -1 }), 8, sim.ErrModel, "NodeRanks is -1"},
		{"one slot", doubling(2), bad(func(m *sim.Model) { m.Slots = 1 }), 8, sim.ErrModel, "a queue of 1 slots"},
		{"negative γ", doubling(2), bad(func(m *sim.Model) { m.Reduce = -1 }), 8, sim.ErrModel, "Reduce is -1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := sim.Run(context.Background(), tc.sched, tc.model, tc.bytes, sim.Options{})
			require.ErrorContains(t, err, tc.want)
			if tc.is != nil {
				require.ErrorIs(t, err, tc.is)
			}
			_, err2 := sim.Estimate(tc.sched, tc.model, tc.bytes)
			require.EqualError(t, err2, err.Error())
			_, err = sim.Decompose(context.Background(), tc.sched, tc.model, tc.bytes, sim.Options{})
			require.Error(t, err)
		})
	}
}

// A node with other ranks than the others has a card of its own, and a neighbour beyond it is another node's.
func TestUnevenNodes(t *testing.T) {
	m := sim.Ethernet25G
	time := func(nodes ...int) sim.Result {
		m.Nodes = nodes
		res, err := sim.Run(context.Background(), ring.AllReduce{N: 12}, m, 1<<20, sim.Options{})
		require.NoError(t, err)
		return res
	}
	m.NodeRanks = 4
	require.Equal(t, time(), time(4, 4, 4), "a list of equal nodes is NodeRanks")
	m.NodeRanks = 8
	require.Equal(t, time(), time(8, 4), "the last may be the short one")
	require.Equal(t, time(5, 4, 3).InterBytes, time(3, 5, 4).InterBytes, "a ring leaves each of three nodes once")
	require.Less(t, time(5, 7).InterBytes, time(5, 4, 3).InterBytes)
	for _, nodes := range [][]int{{8, 8}, {12, 0}, {13, -1}} {
		m.Nodes = nodes
		_, err := sim.Run(context.Background(), ring.AllReduce{N: 12}, m, 1, sim.Options{})
		require.ErrorIs(t, err, sim.ErrModel)
	}
}
