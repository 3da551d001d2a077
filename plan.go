package ringo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/direct"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/tree"
)

// An algo names a family of schedules.
type algo uint8

const (
	algoAuto algo = iota
	algoRing
	algoTree
	algoBinomial
	algoOneShot
	algoTwoShot
	algoDirect
	algoDoubling
	algoHalving
	algoLogStep
	algoHier
	algos
)

var algoNames = [algos]string{"auto", "ring", "tree", "binomial", "oneshot", "twoshot", "direct", "doubling", "halving", "logstep", "hier"}

func (a algo) String() string {
	if a < algos {
		return algoNames[a]
	}
	return fmt.Sprintf("algo(%d)", uint8(a))
}

// Algorithms are the words of Config.Algo.
func Algorithms() []string { return slices.Clone(algoNames[:]) }

func parseAlgo(s string) (algo, error) {
	if s == "" {
		return algoAuto, nil
	}
	for a, name := range algoNames {
		if strings.EqualFold(s, name) {
			return algo(a), nil
		}
	}
	return 0, fmt.Errorf("%w: algorithm %q is none of %s", ErrInvalid, s, strings.Join(algoNames[:], ", "))
}

// A programKey names a schedule: with the size of the communicator it says
// which table.
type programKey struct {
	kind Kind
	algo algo
	peer int32 // root, or the other end of Send and Recv, or -1
}

// table is one line of the book of algorithms.
type table struct {
	algo algo
	make func(n int, root sched.Rank) sched.Schedule
}

// book is which algorithms carry out a collective, the default first. This and
// the choice in plan are all that knows algorithms by name.
var book = map[Kind][]table{
	KindBarrier: {
		{algoDoubling, func(n int, _ sched.Rank) sched.Schedule { return direct.Doubling{N: n} }},
	},
	KindAllReduce: {
		{algoRing, func(n int, _ sched.Rank) sched.Schedule { return ring.AllReduce{N: n} }},
		{algoTree, func(n int, _ sched.Rank) sched.Schedule { return tree.AllReduce{N: n} }},
		{algoOneShot, func(n int, _ sched.Rank) sched.Schedule { return direct.OneShot{N: n} }},
		{algoTwoShot, func(n int, _ sched.Rank) sched.Schedule { return direct.TwoShot{N: n} }},
		{algoDoubling, func(n int, _ sched.Rank) sched.Schedule { return direct.Doubling{N: n} }},
		{algoHalving, func(n int, _ sched.Rank) sched.Schedule { return direct.Halving{N: n} }},
	},
	KindReduce: {
		{algoRing, func(n int, root sched.Rank) sched.Schedule { return ring.Reduce{N: n, Root: root} }},
		{algoTree, func(n int, root sched.Rank) sched.Schedule { return tree.Reduce{N: n, Root: root} }},
		{algoBinomial, func(n int, root sched.Rank) sched.Schedule { return tree.BinomialReduce{N: n, Root: root} }},
	},
	KindBroadcast: {
		{algoRing, func(n int, root sched.Rank) sched.Schedule { return ring.Broadcast{N: n, Root: root} }},
		{algoTree, func(n int, root sched.Rank) sched.Schedule { return tree.Broadcast{N: n, Root: root} }},
		{algoBinomial, func(n int, root sched.Rank) sched.Schedule { return tree.BinomialBroadcast{N: n, Root: root} }},
	},
	KindAllGather: {
		{algoRing, func(n int, _ sched.Rank) sched.Schedule { return ring.AllGather{N: n} }},
		{algoDirect, func(n int, _ sched.Rank) sched.Schedule { return direct.AllGather{N: n} }},
		{algoLogStep, func(n int, _ sched.Rank) sched.Schedule { return direct.LogAllGather{N: n} }},
	},
	KindReduceScatter: {
		{algoRing, func(n int, _ sched.Rank) sched.Schedule { return ring.ReduceScatter{N: n} }},
		{algoDirect, func(n int, _ sched.Rank) sched.Schedule { return direct.ReduceScatter{N: n} }},
		{algoLogStep, func(n int, _ sched.Rank) sched.Schedule { return direct.LogReduceScatter{N: n} }},
	},
	KindAlltoAll: {
		{algoDirect, func(n int, _ sched.Rank) sched.Schedule { return direct.AllToAll{N: n} }},
	},
	KindAlltoAllv: {
		{algoDirect, func(n int, _ sched.Rank) sched.Schedule { return direct.AllToAll{N: n} }},
	},
	KindGather: {
		{algoDirect, func(n int, root sched.Rank) sched.Schedule { return direct.Gather{N: n, Root: root} }},
	},
	KindScatter: {
		{algoDirect, func(n int, root sched.Rank) sched.Schedule { return direct.Scatter{N: n, Root: root} }},
	},
	KindAllGatherv: {
		{algoRing, func(n int, _ sched.Rank) sched.Schedule { return ring.AllGather{N: n} }},
	},
	KindSend: {
		{algoDirect, func(n int, peer sched.Rank) sched.Schedule { return send{n, peer} }},
	},
	KindRecv: {
		{algoDirect, func(n int, peer sched.Rank) sched.Schedule { return recv{n, peer} }},
	},
}

// schedule makes the table of a key.
func (k programKey) schedule(n int) sched.Schedule {
	for _, t := range book[k.kind] {
		if t.algo == k.algo {
			return t.make(n, sched.Rank(k.peer))
		}
	}
	panic(fmt.Sprintf("ringo: %v has no algorithm %v", k.kind, k.algo))
}

// send and recv are one rank's half of a message; see Comm.Do.
type send struct {
	n    int
	peer sched.Rank
}

func (s send) Shape() sched.Shape { return sched.Shape{Ranks: s.n, In: 1} }
func (s send) Len(sched.Rank) int { return 1 }
func (s send) At(sched.Rank, int) sched.Step {
	return sched.Step{Recv: sched.Nobody, Src: sched.Ref{Buf: sched.In}, Send: s.peer}
}

type recv send

func (s recv) Shape() sched.Shape { return sched.Shape{Ranks: s.n, Out: 1} }
func (s recv) Len(sched.Rank) int { return 1 }
func (s recv) At(sched.Rank, int) sched.Step {
	return sched.Step{Recv: s.peer, Dst: sched.Ref{Buf: sched.Out}, Send: sched.Nobody}
}

// plan chooses the algorithm of a collective of this many bytes (Count of them).
// It is a pure function of what all ranks know alike, so they choose alike.
func (c *Comm) plan(kind Kind, bytes int) algo {
	a, _ := choosePlan(kind, c.size, bytes, c.cfg.algo)
	return a
}

// choosePlan is plan with its reason.
func choosePlan(kind Kind, n, bytes int, forced algo) (algo, string) {
	tables := book[kind]
	if forced != algoAuto {
		for _, t := range tables {
			if t.algo == forced {
				return forced, "asked for by RINGO_ALGO or Config.Algo"
			}
		}
	}
	switch kind {
	case KindAllReduce:
		switch {
		case n == 2 && bytes <= 16<<10:
			return algoOneShot, "two ranks exchange small data whole: one hop"
		case n > 2 && bytes <= 2<<10:
			return algoDoubling, "small data: the fewest hops"
		case n > 2 && bytes <= 64<<10:
			return algoTwoShot, "middle sizes: two hops and the least bytes"
		}
		return algoRing, "large data: the least bytes, streamed around the ring"
	case KindReduce, KindBroadcast:
		if bytes <= 64<<10 {
			return algoBinomial, "small data: log n hops"
		}
	case KindAllGather, KindReduceScatter:
		if bytes <= 64<<10 {
			return algoDirect, "small data: one hop"
		}
	}
	return tables[0].algo, "the default of " + kind.String()
}
