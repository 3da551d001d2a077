package choice

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/ring/book"
	"github.com/ringo-go/ringo/sched"
)

// A Key names a schedule. With a Topology it is one table.
type Key struct {
	Kind call.Kind
	Algo call.Algo
	Peer int32 // root, or the other end of Send and Recv, or -1

	Phase uint8 // from 1: this part of the schedule alone, see Answer.Phases; 0: all of it
}

// table is a line of the book of algorithms under its number, or a Definition.
type table struct {
	algo call.Algo
	book.Algorithm
	ranks func(n int) bool // which sizes a Definition is for; nil for all
}

// lines are the lines of the book, by kind. A kind that the book does not have has one line: its
// own half of a message, or a line of a collective that moves the same data.
var lines = func() (all [call.Kinds][]table) {
	for kind := call.Barrier; kind.Valid(); kind++ {
		c := entry(kind)
		if c == nil {
			continue
		}
		for _, a := range c.Algorithms {
			algo, err := call.ParseAlgo(a.Name)
			if err != nil {
				panic(err) // package call has the names of the book
			}
			all[kind] = append(all[kind], table{algo: algo, Algorithm: a})
		}
	}
	lend := func(to, from call.Kind, algo call.Algo) {
		i := slices.IndexFunc(all[from], func(t table) bool { return t.algo == algo })
		all[to] = all[from][i : i+1]
	}
	lend(call.Barrier, call.AllReduce, call.Doubling)
	lend(call.AlltoAllv, call.AlltoAll, call.Direct)
	lend(call.AllGatherv, call.AllGather, call.Ring)
	message := func(kind call.Kind, half func(n int, peer sched.Rank) sched.Schedule) {
		all[kind] = []table{{algo: call.Direct, Algorithm: book.Algorithm{Flat: half}}}
	}
	message(call.Send, func(n int, peer sched.Rank) sched.Schedule { return send{n, peer} })
	message(call.Recv, func(n int, peer sched.Rank) sched.Schedule { return recv{n, peer} })
	return all
}()

// entry is what the book has of a kind, or nil.
func entry(kind call.Kind) *book.Collective {
	c, err := book.Find(strings.ToLower(kind.String()))
	if err != nil {
		return nil
	}
	return &c
}

// offers reports whether an algorithm is for a topology.
func (t *table) offers(topo Topology) bool {
	return (t.Nodes == nil || topo.grouped() && !(t.Even && slices.Min(topo.Hosts) < topo.most())) &&
		(t.ranks == nil || t.ranks(topo.Ranks))
}

// Exists reports whether the book has a key's algorithm for a topology.
func (k Key) Exists(topo Topology) bool {
	return slices.ContainsFunc(tables(k.Kind), func(t table) bool { return t.algo == k.Algo && t.offers(topo) })
}

// Schedule makes the table of a key, and panics where the book has none. Steps is the default. The
// trap: Order does not apply to schedules that a program has defined.
func (k Key) Schedule(topo Topology) sched.Schedule {
	if k.Phase > 0 {
		whole := k
		whole.Phase = 0
		return sched.Phases(whole.Schedule(topo))[k.Phase-1]
	}
	for _, t := range tables(k.Kind) {
		switch {
		case t.algo != k.Algo && k.Algo != call.Steps:
		case t.Nodes != nil:
			return topo.assign(t.Nodes(topo.Hosts, topo.part(sched.Rank(k.Peer))))
		case k.Kind.Pairwise() || t.algo.IsDefined():
			return t.Flat(topo.Ranks, sched.Rank(k.Peer))
		default:
			return topo.assign(t.Flat(topo.Ranks, topo.part(sched.Rank(k.Peer))))
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
