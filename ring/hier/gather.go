package hier

import (
	"slices"

	"github.com/ringo-go/ringo/sched"
)

// AllGather takes the hops of its two parts, and between nodes a rank sends 1/L
// of what a flat all-gather would: each column gathers, then each node gathers
// what its columns have. across and local have one chunk a rank.
func AllGather(across, local sched.Schedule) sched.Schedule {
	return evenOf(across, local).AllGather(across, always(local))
}

// AllGather is the function, for nodes of any sizes: it takes one hop more if they differ.
func (n Nodes) AllGather(across sched.Schedule, local func(size int) sched.Schedule) sched.Schedule {
	need("across", across, 1, len(n), true)
	c, ranks := n.lists(), n.ranks()
	tmp := across.Shape().Tmp * c.most
	for _, size := range n {
		tmp = max(tmp, local(size).Shape().Tmp*c.longest)
	}
	in := 1
	if n.hands() {
		in = ranks
	}
	first := n.inColumns(sched.Shape{Ranks: ranks, In: in, Out: ranks, Tmp: tmp}, func(l int) sched.Schedule {
		return deal(across, c.counts[l])
	}, func(l, node int, ref sched.Ref) sched.Ref {
		switch q, j := int(ref.Chunk)/c.turns[l], int(ref.Chunk)%c.turns[l]; {
		case ref.Buf == sched.Out:
			ref.Chunk = int32(c.rank(l, q, j))
		case ref.Buf == sched.In && in > 1:
			ref.Chunk = int32(c.rank(l, node, j))
		}
		return ref
	})
	if n.hands() {
		first = sched.Then(n.handOver(sched.Shape{Ranks: ranks, In: 1, Out: ranks, Tmp: tmp}), first)
	}
	second := n.inNodes(sched.Shape{Ranks: ranks, In: ranks, Out: ranks, Tmp: tmp}, func(size int) sched.Schedule {
		s := local(size)
		need("local", s, 1, size, true)
		return deal(s, c.lengths(size))
	}, func(l sched.Rank, ref sched.Ref) sched.Ref {
		switch at := int(ref.Chunk); ref.Buf {
		case sched.In: // what the column brought
			ref.Chunk = int32(c.members[l][at])
		case sched.Out:
			ref.Chunk = int32(c.members[at/c.longest][at%c.longest])
		}
		return ref
	})
	return sched.Then(first, second)
}

// handOver has every column's rank hold the chunks of its node that it stands for.
func (n Nodes) handOver(shape sched.Shape) sched.Schedule {
	groups, first := make([]sched.Group, len(n)), 0
	for q, size := range n {
		begin := first
		group := sched.Group{Schedule: hand{size: size, columns: n.columns(),
			shape: sched.Shape{Ranks: size, In: 1, Out: size}}}
		for l := range size {
			group.Members = append(group.Members, sched.Rank(begin+l))
		}
		group.Map = func(l sched.Rank, ref sched.Ref) sched.Ref {
			if ref.Buf == sched.Out {
				ref.Chunk = int32(begin+int(l)) + ref.Chunk*int32(n.columns())
			}
			return ref
		}
		groups[q] = group
		first += size
	}
	return sched.Beside(shape, groups...)
}

// lists say whose data columns have.
type lists struct {
	members [][]int // by column, node by node
	counts  [][]int // how many of them are of a node, by column and node
	begins  [][]int // where in members a node's begin
	turns   []int   // the most of counts, by column
	longest int     // of members
	most    int     // of turns
}

func (n Nodes) lists() (c lists) {
	for l := range n.columns() {
		counts, begins := make([]int, len(n)), make([]int, len(n))
		sum := 0
		for q := range n {
			counts[q], begins[q] = n.held(q, l), sum
			sum += counts[q]
		}
		c.members, c.counts, c.begins = append(c.members, n.members(l)), append(c.counts, counts), append(c.begins, begins)
		c.turns = append(c.turns, slices.Max(counts))
		c.longest, c.most = max(c.longest, sum), max(c.most, c.turns[l])
	}
	return c
}

// rank is whose chunk number j of a node is in a column.
func (c *lists) rank(column, node, j int) int { return c.members[column][c.begins[column][node]+j] }

// lengths are how many chunks each rank of a node has to give: none beyond the columns.
func (c *lists) lengths(size int) []int {
	counts := make([]int, size)
	for l := range c.members {
		counts[l] = len(c.members[l])
	}
	return counts
}

// ReduceScatter is AllGather backwards: each node reduces and scatters to its
// columns, then each column to its ranks. The sums of a node lie in scratch,
// N chunks of it.
func ReduceScatter(local, across sched.Schedule) sched.Schedule {
	return evenOf(across, local).ReduceScatter(always(local), across)
}

// ReduceScatter is the function, for nodes of any sizes: it takes one hop more if they differ.
func (n Nodes) ReduceScatter(local func(size int) sched.Schedule, across sched.Schedule) sched.Schedule {
	need("across", across, len(n), 1, true)
	c, ranks := n.lists(), n.ranks()
	sums := across.Shape().Tmp * c.most // where they start in Tmp
	for _, size := range n {
		sums = max(sums, local(size).Shape().Tmp*c.longest)
	}
	tmp := sums + c.longest
	sum := func(column, node, j int) sched.Ref { return sched.Tmp.At(sums + c.begins[column][node] + j) }
	first := n.inNodes(sched.Shape{Ranks: ranks, In: ranks, Out: 1, Tmp: tmp}, func(size int) sched.Schedule {
		s := local(size)
		need("local", s, size, 1, true)
		return deal(s, c.lengths(size))
	}, func(_ sched.Rank, ref sched.Ref) sched.Ref {
		switch at := int(ref.Chunk); ref.Buf {
		case sched.In:
			ref.Chunk = int32(c.members[at/c.longest][at%c.longest])
		case sched.Out:
			ref = sched.Tmp.At(sums + at)
		}
		return ref
	})
	shape := sched.Shape{Ranks: ranks, In: 1, Out: 1, Tmp: tmp}
	second := n.inColumns(shape, func(l int) sched.Schedule { return deal(across, c.counts[l]) },
		func(l, node int, ref sched.Ref) sched.Ref {
			switch q, j := int(ref.Chunk)/c.turns[l], int(ref.Chunk)%c.turns[l]; {
			case ref.Buf == sched.In:
				ref = sum(l, q, j)
			case ref.Buf == sched.Out && j > 0: // of a rank that gets it from here
				ref = sum(l, node, j)
			}
			return ref
		})
	whole := sched.Then(first, second)
	if !n.hands() {
		return whole
	}
	groups, begin := make([]sched.Group, len(n)), 0
	for q, size := range n {
		group := sched.Group{Schedule: hand{size: size, columns: n.columns(), shape: sched.Shape{Ranks: size, In: 1, Out: 1},
			back: true}}
		for l := range size {
			group.Members = append(group.Members, sched.Rank(begin+l))
		}
		group.Map = func(l sched.Rank, ref sched.Ref) sched.Ref {
			if ref.Buf == sched.Tmp {
				return sum(int(l), q, int(ref.Chunk))
			}
			return ref
		}
		groups[q] = group
		begin += size
	}
	return sched.Then(whole, sched.Beside(shape, groups...))
}
