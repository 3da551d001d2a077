package ringo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/direct"
	"github.com/ringo-go/ringo/hier"
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
	algoSteps  // on GPUs: the first of the book, though a kernel has its name
	algoWindow // on GPUs: a kernel that reads and writes registered memory
	algoCopies // on GPUs: copy engines between registered memory
	algos
)

var algoNames = [algos]string{"auto", "ring", "tree", "binomial", "oneshot", "twoshot", "direct", "doubling", "halving", "logstep", "hier", "steps", "window", "copies"}

func (a algo) String() string {
	if a < algos {
		return algoNames[a]
	}
	if a == algoByRank {
		return rankOrder
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
	hier func(nodes, local int, root sched.Rank) sched.Schedule // instead of make: needs nodes
}

// A topology is how ranks lie on nodes: in blocks of local consecutive ranks.
// Where they lie otherwise, or on one node, or one a node, local is the number
// of ranks and hierarchy has nothing to gain.
type topology struct{ ranks, local int }

func topologyOf(hosts []string) topology {
	n := len(hosts)
	flat := topology{ranks: n, local: n}
	local := 1
	for local < n && hosts[local] == hosts[0] {
		local++
	}
	if local == 1 || n%local != 0 {
		return flat
	}
	seen := map[string]bool{}
	for b := 0; b < n; b += local {
		if seen[hosts[b]] {
			return flat
		}
		seen[hosts[b]] = true
		for i := range local {
			if hosts[b+i] != hosts[b] {
				return flat
			}
		}
	}
	return topology{ranks: n, local: local}
}

func (t topology) nodes() int { return t.ranks / t.local }

// book is which algorithms carry out a collective, the default first. This and
// the choice in plan are all that knows algorithms by name.
var book = [kinds][]table{
	KindBarrier: {
		{algo: algoDoubling, make: func(n int, _ sched.Rank) sched.Schedule { return direct.RecursiveDoubling{N: n} }},
	},
	KindAllReduce: {
		{algo: algoRing, make: func(n int, _ sched.Rank) sched.Schedule { return ring.AllReduce{N: n} }},
		{algo: algoTree, make: func(n int, _ sched.Rank) sched.Schedule { return tree.AllReduce{N: n} }},
		{algo: algoOneShot, make: func(n int, _ sched.Rank) sched.Schedule { return direct.OneShot{N: n} }},
		{algo: algoTwoShot, make: func(n int, _ sched.Rank) sched.Schedule { return direct.TwoShot{N: n} }},
		{algo: algoDoubling, make: func(n int, _ sched.Rank) sched.Schedule { return direct.RecursiveDoubling{N: n} }},
		{algo: algoHalving, make: func(n int, _ sched.Rank) sched.Schedule { return direct.HalvingDoubling{N: n} }},
		{algo: algoHier, hier: func(nodes, local int, _ sched.Rank) sched.Schedule {
			return hier.AllReduce(ring.ReduceScatter{N: local}, ring.AllReduce{N: nodes}, ring.AllGather{N: local})
		}},
	},
	KindReduce: {
		{algo: algoRing, make: func(n int, root sched.Rank) sched.Schedule { return ring.Reduce{N: n, Root: root} }},
		{algo: algoTree, make: func(n int, root sched.Rank) sched.Schedule { return tree.Reduce{N: n, Root: root} }},
		{algo: algoBinomial, make: func(n int, root sched.Rank) sched.Schedule { return tree.BinomialReduce{N: n, Root: root} }},
		{algo: algoHier, hier: func(nodes, local int, root sched.Rank) sched.Schedule {
			return hier.Reduce(tree.BinomialReduce{N: local, Root: root % sched.Rank(local)}, tree.BinomialReduce{N: nodes, Root: root / sched.Rank(local)}, root)
		}},
	},
	KindBroadcast: {
		{algo: algoRing, make: func(n int, root sched.Rank) sched.Schedule { return ring.Broadcast{N: n, Root: root} }},
		{algo: algoTree, make: func(n int, root sched.Rank) sched.Schedule { return tree.Broadcast{N: n, Root: root} }},
		{algo: algoBinomial, make: func(n int, root sched.Rank) sched.Schedule { return tree.BinomialBroadcast{N: n, Root: root} }},
		{algo: algoHier, hier: func(nodes, local int, root sched.Rank) sched.Schedule {
			return hier.Broadcast(tree.BinomialBroadcast{N: nodes, Root: root / sched.Rank(local)}, tree.BinomialBroadcast{N: local, Root: root % sched.Rank(local)}, root)
		}},
	},
	KindAllGather: {
		{algo: algoRing, make: func(n int, _ sched.Rank) sched.Schedule { return ring.AllGather{N: n} }},
		{algo: algoDirect, make: func(n int, _ sched.Rank) sched.Schedule { return direct.AllGather{N: n} }},
		{algo: algoLogStep, make: func(n int, _ sched.Rank) sched.Schedule { return direct.LogAllGather{N: n} }},
		{algo: algoHier, hier: func(nodes, local int, _ sched.Rank) sched.Schedule {
			return hier.AllGather(ring.AllGather{N: nodes}, ring.AllGather{N: local})
		}},
	},
	KindReduceScatter: {
		{algo: algoRing, make: func(n int, _ sched.Rank) sched.Schedule { return ring.ReduceScatter{N: n} }},
		{algo: algoDirect, make: func(n int, _ sched.Rank) sched.Schedule { return direct.ReduceScatter{N: n} }},
		{algo: algoLogStep, make: func(n int, _ sched.Rank) sched.Schedule { return direct.LogReduceScatter{N: n} }},
		{algo: algoHier, hier: func(nodes, local int, _ sched.Rank) sched.Schedule {
			return hier.ReduceScatter(ring.ReduceScatter{N: local}, ring.ReduceScatter{N: nodes})
		}},
	},
	KindAlltoAll: {
		{algo: algoDirect, make: func(n int, _ sched.Rank) sched.Schedule { return direct.AllToAll{N: n} }},
	},
	KindAlltoAllv: {
		{algo: algoDirect, make: func(n int, _ sched.Rank) sched.Schedule { return direct.AllToAll{N: n} }},
	},
	KindGather: {
		{algo: algoDirect, make: func(n int, root sched.Rank) sched.Schedule { return direct.Gather{N: n, Root: root} }},
	},
	KindScatter: {
		{algo: algoDirect, make: func(n int, root sched.Rank) sched.Schedule { return direct.Scatter{N: n, Root: root} }},
	},
	KindAllGatherv: {
		{algo: algoRing, make: func(n int, _ sched.Rank) sched.Schedule { return ring.AllGather{N: n} }},
	},
	KindSend: {
		{algo: algoDirect, make: func(n int, peer sched.Rank) sched.Schedule { return send{n, peer} }},
	},
	KindRecv: {
		{algo: algoDirect, make: func(n int, peer sched.Rank) sched.Schedule { return recv{n, peer} }},
	},
}

// offers reports whether the book has an algorithm for a collective here.
func (t *table) offers(topo topology) bool { return t.hier == nil || topo.nodes() > 1 }

// exists reports whether the book has an algorithm for a key.
func (k programKey) exists(topo topology) bool {
	for i := range book[k.kind] {
		if t := &book[k.kind][i]; t.algo == k.algo && t.offers(topo) {
			return true
		}
	}
	return false
}

// schedule makes the table of a key.
func (k programKey) schedule(topo topology) sched.Schedule {
	for _, t := range book[k.kind] {
		switch {
		case t.algo != k.algo && k.algo != algoSteps:
		case t.hier != nil:
			return t.hier(topo.nodes(), topo.local, sched.Rank(k.peer))
		default:
			return t.make(topo.ranks, sched.Rank(k.peer))
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
	a, _ := choosePlan(kind, c.topo, bytes, c.cfg.algo)
	return a
}

const asked = "asked for by RINGO_ALGO or Config.Algo"

// choosePlan is plan with its reason.
func choosePlan(kind Kind, topo topology, bytes int, forced algo) (algo, string) {
	tables, n := book[kind], topo.ranks
	if forced != algoAuto {
		for i := range tables {
			if t := &tables[i]; t.algo == forced && t.offers(topo) {
				return forced, asked
			}
		}
	}
	if topo.nodes() > 1 && bytes > 64<<10 {
		if last := tables[len(tables)-1]; last.hier != nil {
			return last.algo, "several nodes: the least bytes between them"
		}
	}
	switch kind {
	case KindAllReduce:
		switch {
		case n == 2 && bytes <= 16<<10:
			return algoOneShot, "two ranks exchange small data whole: one hop"
		case n > 2 && bytes <= 32<<10:
			return algoDoubling, "small data: the fewest hops"
		case n > 2 && bytes < n*32<<10:
			return algoTwoShot, "middle sizes: two hops and the least bytes; chunks are too small for a ring"
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
	return tables[0].algo, "the default of the collective"
}
