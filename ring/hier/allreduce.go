package hier

import "github.com/ringo-go/ringo/sched"

// AllReduce takes the hops of its three parts, and between nodes a rank sends
// only 1/L of what across would send for all the data: each node reduces and
// scatters, each column all-reduces its share, each node gathers.
//
// reduceScatter and allGather are among L ranks, with one chunk a rank and no
// scratch (ring, direct); across is any all-reduce among N.
func AllReduce(reduceScatter, across, allGather sched.Schedule) sched.Schedule {
	g := gridOf(across, reduceScatter)
	m := across.Shape().In
	need("reduce-scatter", reduceScatter, g.local, 1, false)
	need("all-gather", allGather, 1, g.local, false)
	need("across", across, m, m, true)

	// Chunk l·m+c is chunk c of the share of column l.
	k := g.local * m
	shape := sched.Shape{Ranks: g.ranks(), In: k, Out: k, Tmp: up(across.Shape().Tmp, m) * g.local}
	share := func(l int, ref sched.Ref) sched.Ref {
		c := int(ref.Chunk)
		ref.Chunk = int32(c/m*k + l*m + c%m)
		return ref
	}
	scatter := g.inNodes(shape, sched.Split(reduceScatter, m), func(l sched.Rank, ref sched.Ref) sched.Ref {
		if ref.Buf == sched.Out {
			return share(int(l), ref)
		}
		return ref
	})
	gather := g.inNodes(shape, sched.Split(allGather, m), func(l sched.Rank, ref sched.Ref) sched.Ref {
		if ref.Buf == sched.In {
			return share(int(l), ref)
		}
		return ref
	})
	return sched.Then(sched.Then(scatter, g.inColumns(shape, across, share)), gather)
}
