package hier

import "github.com/ringo-go/ringo/sched"

// AllReduce takes the hops of its three parts, and between nodes a rank sends
// only 1/L of what across would send for all the data: each node reduces and
// scatters, each column all-reduces its share, each node gathers.
//
// reduceScatter and allGather are among L ranks, with one chunk a rank and no
// scratch (ring, direct); across is any all-reduce among N.
func AllReduce(reduceScatter, across, allGather sched.Schedule) sched.Schedule {
	return evenOf(across, reduceScatter).AllReduce(always(reduceScatter), across, always(allGather))
}

// AllReduce is the function, for nodes of any sizes: the data are divided among as many ranks of each node as the
// smallest has. The schedules are those of a node of so many ranks.
func (n Nodes) AllReduce(reduceScatter func(size int) sched.Schedule, across sched.Schedule,
	allGather func(size int) sched.Schedule) sched.Schedule {
	m, columns := across.Shape().In, n.columns()
	need("across", across, m, m, true)

	// Chunk l·m+c is chunk c of the share of column l.
	k := columns * m
	shape := sched.Shape{Ranks: n.ranks(), In: k, Out: k, Tmp: up(across.Shape().Tmp, m) * columns}
	shares := func(s sched.Schedule, size int) sched.Schedule {
		counts := make([]int, size)
		for l := range columns {
			counts[l] = m
		}
		return deal(s, counts)
	}
	share := func(l int, ref sched.Ref) sched.Ref {
		c := int(ref.Chunk)
		ref.Chunk = int32(c/m*k + l*m + c%m)
		return ref
	}
	scatter := n.inNodes(shape, func(size int) sched.Schedule {
		s := reduceScatter(size)
		need("reduce-scatter", s, size, 1, false)
		return shares(s, size)
	}, func(l sched.Rank, ref sched.Ref) sched.Ref {
		if ref.Buf == sched.Out {
			return share(int(l), ref)
		}
		return ref
	})
	gather := n.inNodes(shape, func(size int) sched.Schedule {
		s := allGather(size)
		need("all-gather", s, 1, size, false)
		return shares(s, size)
	}, func(l sched.Rank, ref sched.Ref) sched.Ref {
		if ref.Buf == sched.In {
			return share(int(l), ref)
		}
		return ref
	})
	cross := n.inColumns(shape, func(int) sched.Schedule { return across },
		func(l, _ int, ref sched.Ref) sched.Ref { return share(l, ref) })
	return sched.Then(sched.Then(scatter, cross), gather)
}
