// Package hier composes collectives for machines of machines, where ranks of one
// node reach each other faster than ranks of different nodes: the data is brought
// together inside the nodes first and crosses between them once.
//
// There are N nodes of L ranks; rank node·L+local is number local of its node. N
// and L are the ranks of the schedules given. A local schedule runs in every node
// at once. An across schedule runs in every column at once: the ranks of the same
// number in all nodes. The result is a schedule like any other and can be nested
// again.
//
// The traps: ranks that are numbered otherwise need sched.Relabel, and every
// function panics if the schedules do not have the shapes it needs.
package hier

import (
	"fmt"

	"github.com/ringo-go/ringo/sched"
)

// A grid is N nodes of L ranks.
type grid struct{ nodes, local int }

func gridOf(across, local sched.Schedule) grid {
	return grid{nodes: across.Shape().Ranks, local: local.Shape().Ranks}
}

func (g grid) ranks() int { return g.nodes * g.local }

// node are the ranks of a node.
func (g grid) node(node int) []sched.Rank {
	ranks := make([]sched.Rank, g.local)
	for l := range ranks {
		ranks[l] = sched.Rank(node*g.local + l)
	}
	return ranks
}

// column are the ranks of number l in all nodes.
func (g grid) column(l int) []sched.Rank {
	ranks := make([]sched.Rank, g.nodes)
	for q := range ranks {
		ranks[q] = sched.Rank(q*g.local + l)
	}
	return ranks
}

// inNodes runs s in every node.
func (g grid) inNodes(shape sched.Shape, s sched.Schedule, where func(l sched.Rank, ref sched.Ref) sched.Ref) sched.Schedule {
	groups := make([]sched.Group, g.nodes)
	for q := range groups {
		groups[q] = sched.Group{Schedule: s, Members: g.node(q), Map: where}
	}
	return sched.Beside(shape, groups...)
}

// inColumns runs s in every column.
func (g grid) inColumns(shape sched.Shape, s sched.Schedule, where func(l int, ref sched.Ref) sched.Ref) sched.Schedule {
	groups := make([]sched.Group, g.local)
	for l := range groups {
		groups[l] = sched.Group{Schedule: s, Members: g.column(l), Map: func(_ sched.Rank, ref sched.Ref) sched.Ref {
			return where(l, ref)
		}}
	}
	return sched.Beside(shape, groups...)
}

// need panics unless a schedule has this many chunks in and out for each block,
// and scratch only where it is allowed.
func need(name string, s sched.Schedule, in, out int, scratch bool) {
	shape := s.Shape()
	if shape.In != in || shape.Out != out || shape.Tmp > 0 && !scratch {
		panic(fmt.Sprintf("hier: %s is %+v, needs %d chunks in, %d out, scratch %v", name, shape, in, out, scratch))
	}
}

// up is a rounded up to a multiple of b.
func up(a, b int) int { return (a + b - 1) / b * b }
