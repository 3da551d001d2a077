package hier

import "github.com/ringo-go/ringo/sched"

// Broadcast takes the hops of its two parts, and the data crosses to each node
// once: from the root along its column, and then inside every node. across
// starts from the root's node and local from the root's number in it.
func Broadcast(across, local sched.Schedule, root sched.Rank) sched.Schedule {
	return evenOf(across, local).Broadcast(across, func(int, sched.Rank) sched.Schedule { return local }, root)
}

// Broadcast is the function, for nodes of any sizes. local is for a node of so many ranks and a root among them.
func (n Nodes) Broadcast(across sched.Schedule, local func(size int, root sched.Rank) sched.Schedule,
	root sched.Rank) sched.Schedule {
	inside, a, b, tmp := n.rooted(across, local, root)
	shape := sched.Shape{Ranks: n.ranks(), In: a * b, Out: a * b, Tmp: tmp}
	column := sched.Group{Schedule: sched.Split(across, b), Members: n.column(root)}
	return sched.Then(sched.Beside(shape, column), n.inNodes(shape, inside, nil))
}

// number is the rank of a node that stands for it, where the root is.
func (n Nodes) number(size int, root sched.Rank) sched.Rank {
	_, number := n.Seat(root)
	return number % sched.Rank(size)
}

// column are the ranks that stand for their nodes.
func (n Nodes) column(root sched.Rank) []sched.Rank {
	ranks, first := make([]sched.Rank, len(n)), 0
	for q, size := range n {
		ranks[q] = sched.Rank(first) + n.number(size, root)
		first += size
	}
	return ranks
}

// rooted are the schedules of nodes, in parts; the chunks of across and of local, and the scratch that either takes.
func (n Nodes) rooted(across sched.Schedule, local func(int, sched.Rank) sched.Schedule,
	root sched.Rank) (inside func(int) sched.Schedule, a, b, tmp int) {
	a = across.Shape().In
	need("across", across, a, a, true)
	b = local(n[0], n.number(n[0], root)).Shape().In
	tmp = across.Shape().Tmp * b
	for _, size := range n {
		s := local(size, n.number(size, root))
		need("local", s, b, b, true)
		tmp = max(tmp, s.Shape().Tmp*a)
	}
	return func(size int) sched.Schedule { return sched.Split(local(size, n.number(size, root)), a) }, a, b, tmp
}

// Reduce is Broadcast backwards: every node reduces to its rank in the root's
// column, and the column reduces to the root. The sums of the nodes lie in
// scratch.
func Reduce(local, across sched.Schedule, root sched.Rank) sched.Schedule {
	return evenOf(across, local).Reduce(func(int, sched.Rank) sched.Schedule { return local }, across, root)
}

// Reduce is the function, for nodes of any sizes. local is for a node of so many ranks and a root among them.
func (n Nodes) Reduce(local func(size int, root sched.Rank) sched.Schedule, across sched.Schedule,
	root sched.Rank) sched.Schedule {
	inside, a, b, tmp := n.rooted(across, local, root)
	k := a * b
	sums := up(tmp, k) // where they start in Tmp
	shape := sched.Shape{Ranks: n.ranks(), In: k, Out: k, Tmp: sums + k}
	lay := func(buf sched.Buffer) func(sched.Rank, sched.Ref) sched.Ref {
		return func(_ sched.Rank, ref sched.Ref) sched.Ref {
			if ref.Buf == buf {
				return sched.Ref{Buf: sched.Tmp, Chunk: int32(sums) + ref.Chunk}
			}
			return ref
		}
	}
	column := sched.Group{Schedule: sched.Split(across, b), Members: n.column(root), Map: lay(sched.In)}
	return sched.Then(n.inNodes(shape, inside, lay(sched.Out)), sched.Beside(shape, column))
}
