package choice

import (
	"fmt"
	"slices"

	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/direct"
	"github.com/ringo-go/ringo/hier"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/tree"
)

// A Key names a schedule: with the size of the communicator it says which table.
type Key struct {
	Kind call.Kind
	Algo call.Algo
	Peer int32 // root, or the other end of Send and Recv, or -1

	Phase uint8 // from 1: this part of the schedule alone, see Phases; 0: all of it
}

// table is one line of the book of algorithms.
type table struct {
	algo call.Algo
	make func(n int, root sched.Rank) sched.Schedule
	hier func(nodes, local int, root sched.Rank) sched.Schedule // instead of make: needs nodes

	ranks func(n int) bool // which sizes it is for; nil for all
}

// book is which algorithms carry out a collective, the default first. It and the
// thresholds of Chooser are all that knows algorithms by name.
var book = [call.Kinds][]table{
	call.Barrier: {
		{algo: call.Doubling, make: func(n int, _ sched.Rank) sched.Schedule { return direct.RecursiveDoubling{N: n} }},
	},
	call.AllReduce: {
		{algo: call.Ring, make: func(n int, _ sched.Rank) sched.Schedule { return ring.AllReduce{N: n} }},
		{algo: call.Tree, make: func(n int, _ sched.Rank) sched.Schedule { return tree.AllReduce{N: n} }},
		{algo: call.OneShot, make: func(n int, _ sched.Rank) sched.Schedule { return direct.OneShot{N: n} }},
		{algo: call.TwoShot, make: func(n int, _ sched.Rank) sched.Schedule { return direct.TwoShot{N: n} }},
		{algo: call.Doubling, make: func(n int, _ sched.Rank) sched.Schedule { return direct.RecursiveDoubling{N: n} }},
		{algo: call.Halving, make: func(n int, _ sched.Rank) sched.Schedule { return direct.HalvingDoubling{N: n} }},
		{algo: call.Hier, hier: func(nodes, local int, _ sched.Rank) sched.Schedule {
			return hier.AllReduce(ring.ReduceScatter{N: local}, ring.AllReduce{N: nodes}, ring.AllGather{N: local})
		}},
		{algo: call.HierTree, hier: func(nodes, local int, _ sched.Rank) sched.Schedule {
			return hier.AllReduce(ring.ReduceScatter{N: local}, tree.AllReduce{N: nodes}, ring.AllGather{N: local})
		}},
		{algo: call.HierLog, hier: func(nodes, local int, _ sched.Rank) sched.Schedule {
			return hier.AllReduce(direct.ReduceScatter{N: local}, direct.RecursiveDoubling{N: nodes}, direct.AllGather{N: local})
		}},
	},
	call.Reduce: {
		{algo: call.Ring, make: func(n int, root sched.Rank) sched.Schedule { return ring.Reduce{N: n, Root: root} }},
		{algo: call.Tree, make: func(n int, root sched.Rank) sched.Schedule { return tree.Reduce{N: n, Root: root} }},
		{algo: call.Binomial, make: func(n int, root sched.Rank) sched.Schedule { return tree.BinomialReduce{N: n, Root: root} }},
		{algo: call.Hier, hier: func(nodes, local int, root sched.Rank) sched.Schedule {
			return hier.Reduce(tree.BinomialReduce{N: local, Root: root % sched.Rank(local)}, tree.BinomialReduce{N: nodes, Root: root / sched.Rank(local)}, root)
		}},
		{algo: call.HierTree, hier: func(nodes, local int, root sched.Rank) sched.Schedule {
			return hier.Reduce(ring.Reduce{N: local, Root: root % sched.Rank(local)}, tree.Reduce{N: nodes, Root: root / sched.Rank(local)}, root)
		}},
	},
	call.Broadcast: {
		{algo: call.Ring, make: func(n int, root sched.Rank) sched.Schedule { return ring.Broadcast{N: n, Root: root} }},
		{algo: call.Tree, make: func(n int, root sched.Rank) sched.Schedule { return tree.Broadcast{N: n, Root: root} }},
		{algo: call.Binomial, make: func(n int, root sched.Rank) sched.Schedule { return tree.BinomialBroadcast{N: n, Root: root} }},
		{algo: call.Hier, hier: func(nodes, local int, root sched.Rank) sched.Schedule {
			return hier.Broadcast(tree.BinomialBroadcast{N: nodes, Root: root / sched.Rank(local)}, tree.BinomialBroadcast{N: local, Root: root % sched.Rank(local)}, root)
		}},
		{algo: call.HierTree, hier: func(nodes, local int, root sched.Rank) sched.Schedule {
			return hier.Broadcast(tree.Broadcast{N: nodes, Root: root / sched.Rank(local)}, ring.Broadcast{N: local, Root: root % sched.Rank(local)}, root)
		}},
	},
	call.AllGather: {
		{algo: call.Ring, make: func(n int, _ sched.Rank) sched.Schedule { return ring.AllGather{N: n} }},
		{algo: call.Direct, make: func(n int, _ sched.Rank) sched.Schedule { return direct.AllGather{N: n} }},
		{algo: call.LogStep, make: func(n int, _ sched.Rank) sched.Schedule { return direct.LogAllGather{N: n} }},
		{algo: call.Hier, hier: func(nodes, local int, _ sched.Rank) sched.Schedule {
			return hier.AllGather(ring.AllGather{N: nodes}, ring.AllGather{N: local})
		}},
		{algo: call.HierLog, hier: func(nodes, local int, _ sched.Rank) sched.Schedule {
			return hier.AllGather(direct.LogAllGather{N: nodes}, direct.AllGather{N: local})
		}},
	},
	call.ReduceScatter: {
		{algo: call.Ring, make: func(n int, _ sched.Rank) sched.Schedule { return ring.ReduceScatter{N: n} }},
		{algo: call.Direct, make: func(n int, _ sched.Rank) sched.Schedule { return direct.ReduceScatter{N: n} }},
		{algo: call.LogStep, make: func(n int, _ sched.Rank) sched.Schedule { return direct.LogReduceScatter{N: n} }},
		{algo: call.Hier, hier: func(nodes, local int, _ sched.Rank) sched.Schedule {
			return hier.ReduceScatter(ring.ReduceScatter{N: local}, ring.ReduceScatter{N: nodes})
		}},
		{algo: call.HierLog, hier: func(nodes, local int, _ sched.Rank) sched.Schedule {
			return hier.ReduceScatter(direct.ReduceScatter{N: local}, direct.LogReduceScatter{N: nodes})
		}},
	},
	call.AlltoAll: {
		{algo: call.Direct, make: func(n int, _ sched.Rank) sched.Schedule { return direct.AlltoAll{N: n} }},
		{algo: call.Hier, hier: func(nodes, local int, _ sched.Rank) sched.Schedule {
			return hier.AlltoAll(direct.AlltoAll{N: nodes}, direct.AlltoAll{N: local})
		}},
	},
	call.AlltoAllv: {
		{algo: call.Direct, make: func(n int, _ sched.Rank) sched.Schedule { return direct.AlltoAll{N: n} }},
	},
	call.Gather: {
		{algo: call.Direct, make: func(n int, root sched.Rank) sched.Schedule { return direct.Gather{N: n, Root: root} }},
	},
	call.Scatter: {
		{algo: call.Direct, make: func(n int, root sched.Rank) sched.Schedule { return direct.Scatter{N: n, Root: root} }},
	},
	call.AllGatherv: {
		{algo: call.Ring, make: func(n int, _ sched.Rank) sched.Schedule { return ring.AllGather{N: n} }},
	},
	call.Send: {
		{algo: call.Direct, make: func(n int, peer sched.Rank) sched.Schedule { return send{n, peer} }},
	},
	call.Recv: {
		{algo: call.Direct, make: func(n int, peer sched.Rank) sched.Schedule { return recv{n, peer} }},
	},
}

// offers reports whether the book has an algorithm for a collective here.
func (t *table) offers(topo Topology) bool {
	return (t.hier == nil || topo.Nodes() > 1) && (t.ranks == nil || t.ranks(topo.Ranks))
}

// Exists reports whether the book has an algorithm for a key.
func (k Key) Exists(topo Topology) bool {
	return slices.ContainsFunc(tables(k.Kind), func(t table) bool { return t.algo == k.Algo && t.offers(topo) })
}

// Phases is in how many parts a schedule may be carried out, one after the other: inside the
// nodes, across them, inside. So GPUs of a node move data as fast as they can, and not in as few
// lanes as the network between nodes has. It is 1 where parts hand each other scratch.
func (k Key) Phases(topo Topology) int {
	if topo.Nodes() == 1 || k.Kind != call.AllReduce && k.Kind != call.AllGather || k.Algo < call.Hier || k.Algo > call.HierLog {
		return 1
	}
	return len(sched.Phases(k.Schedule(topo)))
}

// Schedule makes the table of a key. Those that a program has defined say themselves which
// rank does what.
func (k Key) Schedule(topo Topology) sched.Schedule {
	if k.Phase > 0 {
		whole := k
		whole.Phase = 0
		return sched.Phases(whole.Schedule(topo))[k.Phase-1]
	}
	for _, t := range tables(k.Kind) {
		switch {
		case t.algo != k.Algo && k.Algo != call.Steps:
		case t.hier != nil:
			return topo.place(t.hier(topo.Nodes(), topo.Local, topo.part(sched.Rank(k.Peer))))
		case k.Kind.Pairwise() || t.algo.IsDefined():
			return t.make(topo.Ranks, sched.Rank(k.Peer))
		default:
			return topo.place(t.make(topo.Ranks, topo.part(sched.Rank(k.Peer))))
		}
	}
	panic(fmt.Sprintf("choice: %v has no algorithm %v", k.Kind, k.Algo))
}

// send and recv are one rank's half of a message.
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

// Default is the first algorithm of a collective.
func Default(kind call.Kind) call.Algo { return tables(kind)[0].algo }
