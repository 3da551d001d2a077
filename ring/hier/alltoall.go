package hier

import "github.com/ringo-go/ringo/sched"

// AlltoAll takes the hops of its two parts, and between nodes a rank sends N-1 messages of L
// chunks, to the ranks of its column alone, where a flat all-to-all sends (N-1)·L messages of
// one to all. In each node rank l gathers what is for column l, and then the columns exchange it.
// What goes between nodes moves inside one first: that is the price, and n chunks of scratch.
// across and local have a chunk for each pair of ranks.
func AlltoAll(across, local sched.Schedule) sched.Schedule {
	g := gridOf(across, local)
	need("across", across, g.nodes, g.nodes, false)
	need("local", local, g.local, g.local, false)

	// Scratch chunk q·L+l is for node q, from rank l of this node.
	n := g.ranks()
	shape := sched.Shape{Ranks: n, In: n, Out: n, Tmp: n}
	first := g.inNodes(shape, sched.Split(local, g.nodes), func(_ sched.Rank, ref sched.Ref) sched.Ref {
		ref = g.byNode(ref)
		if ref.Buf == sched.Out {
			ref.Buf = sched.Tmp
		}
		return ref
	})
	second := g.inColumns(shape, sched.Split(across, g.local), func(_ int, ref sched.Ref) sched.Ref {
		if ref.Buf == sched.In {
			ref.Buf = sched.Tmp
		}
		return ref
	})
	return sched.Then(first, second)
}
