package hier

import "github.com/ringo-go/ringo/sched"

// AlltoAll takes the hops of its two parts, and between nodes a rank sends N-1 messages of L
// chunks, to the ranks of its column alone, where a flat all-to-all sends (N-1)·L messages of
// one to all. In each node rank l gathers what is for column l, and then the columns exchange it.
// What goes between nodes moves inside one first: that is the price, and n chunks of scratch.
// across and local have a chunk for each pair of ranks.
func AlltoAll(across, local sched.Schedule) sched.Schedule {
	nodes, size := across.Shape().Ranks, local.Shape().Ranks
	need("across", across, nodes, nodes, false)
	need("local", local, size, size, false)

	// Scratch chunk q·L+l is for node q, from rank l of this node.
	n := Even(nodes, size)
	shape := sched.Shape{Ranks: n.ranks(), In: n.ranks(), Out: n.ranks(), Tmp: n.ranks()}
	first := n.inNodes(shape, func(int) sched.Schedule { return sched.Split(local, nodes) },
		func(_ sched.Rank, ref sched.Ref) sched.Ref {
			l, q := int(ref.Chunk)/nodes, int(ref.Chunk)%nodes
			ref.Chunk = int32(q*size + l)
			if ref.Buf == sched.Out {
				ref.Buf = sched.Tmp
			}
			return ref
		})
	second := n.inColumns(shape, func(int) sched.Schedule { return sched.Split(across, size) },
		func(_, _ int, ref sched.Ref) sched.Ref {
			if ref.Buf == sched.In {
				ref.Buf = sched.Tmp
			}
			return ref
		})
	return sched.Then(first, second)
}
