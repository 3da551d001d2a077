package hier

import "github.com/ringo-go/ringo/sched"

// AllGather takes the hops of its two parts, and between nodes a rank sends 1/L
// of what a flat all-gather would: each column gathers, then each node gathers
// what its columns have. across and local have one chunk a rank.
func AllGather(across, local sched.Schedule) sched.Schedule {
	g := gridOf(across, local)
	need("across", across, 1, g.nodes, true)
	need("local", local, 1, g.local, true)

	n := g.ranks()
	tmp := max(across.Shape().Tmp, local.Shape().Tmp*g.nodes)
	first := g.inColumns(sched.Shape{Ranks: n, In: 1, Out: n, Tmp: tmp}, across, func(l int, ref sched.Ref) sched.Ref {
		if ref.Buf == sched.Out {
			ref.Chunk = ref.Chunk*int32(g.local) + int32(l)
		}
		return ref
	})
	second := g.inNodes(sched.Shape{Ranks: n, In: n, Out: n, Tmp: tmp}, sched.Split(local, g.nodes), func(l sched.Rank, ref sched.Ref) sched.Ref {
		switch ref.Buf {
		case sched.In: // what the column brought from node q
			ref.Chunk = ref.Chunk*int32(g.local) + int32(l)
		case sched.Out:
			ref = g.byNode(ref)
		}
		return ref
	})
	return sched.Then(first, second)
}

// byNode turns chunk l·N+q of a node's schedule split in N into chunk q·L+l, the
// one of the rank l of node q.
func (g grid) byNode(ref sched.Ref) sched.Ref {
	l, q := int(ref.Chunk)/g.nodes, int(ref.Chunk)%g.nodes
	ref.Chunk = int32(q*g.local + l)
	return ref
}

// ReduceScatter is AllGather backwards: each node reduces and scatters to its
// columns, then each column to its ranks. The sums of a node lie in scratch,
// N chunks of it.
func ReduceScatter(local, across sched.Schedule) sched.Schedule {
	g := gridOf(across, local)
	need("local", local, g.local, 1, true)
	need("across", across, g.nodes, 1, true)

	n := g.ranks()
	sums := int32(max(local.Shape().Tmp*g.nodes, across.Shape().Tmp)) // where they start in Tmp
	tmp := int(sums) + g.nodes
	first := g.inNodes(sched.Shape{Ranks: n, In: n, Out: 1, Tmp: tmp}, sched.Split(local, g.nodes), func(_ sched.Rank, ref sched.Ref) sched.Ref {
		switch ref.Buf {
		case sched.In:
			ref = g.byNode(ref)
		case sched.Out:
			ref = sched.Ref{Buf: sched.Tmp, Chunk: sums + ref.Chunk}
		}
		return ref
	})
	second := g.inColumns(sched.Shape{Ranks: n, In: 1, Out: 1, Tmp: tmp}, across, func(_ int, ref sched.Ref) sched.Ref {
		if ref.Buf == sched.In {
			ref = sched.Ref{Buf: sched.Tmp, Chunk: sums + ref.Chunk}
		}
		return ref
	})
	return sched.Then(first, second)
}
