// Package hier composes collectives for machines of machines, where ranks of one
// node reach each other faster than ranks of different nodes: the data is brought
// together inside the nodes first and crosses between them once.
//
// Nodes says how many ranks each node has. A local schedule runs in every node
// at once. An across schedule runs in every column at once: the ranks of the same
// number in all nodes. There are as many columns as the smallest node has ranks; other ranks of a
// larger node hand their data to a column's rank of their node and get theirs from it. The result
// is a schedule like any other and can be nested again. The functions of this package are for nodes of
// equally many ranks: N nodes of L, the ranks of the schedules given, where rank node·L+local is
// number local of its node.
//
// The traps: ranks that are numbered otherwise need sched.Relabel, and every
// function panics if the schedules do not have the shapes it needs.
package hier

import (
	"fmt"
	"slices"

	"github.com/ringo-go/ringo/sched"
)

// Nodes are the ranks of each node. Those of one node follow each other.
type Nodes []int

// Even is nodes of local ranks each.
func Even(nodes, local int) Nodes { return slices.Repeat(Nodes{local}, nodes) }

// evenOf is for schedules of N nodes and of L ranks in each.
func evenOf(across, local sched.Schedule) Nodes {
	return Even(across.Shape().Ranks, local.Shape().Ranks)
}

// always is one local schedule, of nodes that are alike.
func always(s sched.Schedule) func(int) sched.Schedule {
	return func(int) sched.Schedule { return s }
}

func (n Nodes) ranks() (sum int) {
	for _, size := range n {
		sum += size
	}
	return sum
}

// columns is how many ranks of each node reach others.
func (n Nodes) columns() int { return slices.Min(n) }

// Seat is a rank's node, and its number there.
func (n Nodes) Seat(r sched.Rank) (node int, number sched.Rank) {
	for number = r; int(number) >= n[node]; node++ {
		number -= sched.Rank(n[node])
	}
	return node, number
}

// hands reports whether ranks hand data to those of columns, as some node has more of them.
func (n Nodes) hands() bool { return slices.Max(n) > n.columns() }

// held is of how many ranks a node's rank in a column holds the data: its own and those of its
// node that are a multiple of the columns further.
func (n Nodes) held(node, column int) int {
	return (n[node] - column + n.columns() - 1) / n.columns()
}

// members are the ranks whose data a column has, node by node.
func (n Nodes) members(column int) (list []int) {
	for node, first := 0, 0; node < len(n); first, node = first+n[node], node+1 {
		for l := column; l < n[node]; l += n.columns() {
			list = append(list, first+l)
		}
	}
	return list
}

// inNodes runs the schedule of each node's size in every node. where maps the chunks of the rank of number l.
func (n Nodes) inNodes(shape sched.Shape, of func(size int) sched.Schedule,
	where func(l sched.Rank, ref sched.Ref) sched.Ref) sched.Schedule {
	groups, made, first := make([]sched.Group, len(n)), map[int]sched.Schedule{}, 0
	for q, size := range n {
		if made[size] == nil {
			made[size] = of(size)
		}
		ranks := make([]sched.Rank, size)
		for l := range ranks {
			ranks[l] = sched.Rank(first + l)
		}
		groups[q] = sched.Group{Schedule: made[size], Members: ranks, Map: where}
		first += size
	}
	return sched.Beside(shape, groups...)
}

// inColumns runs the schedule of each column in it. where maps the chunks of column l's rank in a node.
func (n Nodes) inColumns(shape sched.Shape, of func(l int) sched.Schedule,
	where func(l, node int, ref sched.Ref) sched.Ref) sched.Schedule {
	groups := make([]sched.Group, n.columns())
	for l := range groups {
		ranks, first := make([]sched.Rank, len(n)), 0
		for q, size := range n {
			ranks[q] = sched.Rank(first + l)
			first += size
		}
		groups[l] = sched.Group{Schedule: of(l), Members: ranks, Map: func(q sched.Rank, ref sched.Ref) sched.Ref {
			return where(l, int(q), ref)
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
