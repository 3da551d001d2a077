package hier

import "github.com/ringo-go/ringo/sched"

// Broadcast takes the hops of its two parts, and the data crosses to each node
// once: from the root along its column, and then inside every node. across
// starts from the root's node and local from the root's number in it.
func Broadcast(across, local sched.Schedule, root sched.Rank) sched.Schedule {
	g := gridOf(across, local)
	a, b := across.Shape().In, local.Shape().In
	need("across", across, a, a, true)
	need("local", local, b, b, true)

	across, local = sched.Split(across, b), sched.Split(local, a)
	shape := sched.Shape{Ranks: g.ranks(), In: a * b, Out: a * b, Tmp: max(across.Shape().Tmp, local.Shape().Tmp)}
	column := sched.Group{Schedule: across, Members: g.column(int(root) % g.local)}
	return sched.Then(sched.Beside(shape, column), g.inNodes(shape, local, nil))
}

// Reduce is Broadcast backwards: every node reduces to its rank in the root's
// column, and the column reduces to the root. The sums of the nodes lie in
// scratch.
func Reduce(local, across sched.Schedule, root sched.Rank) sched.Schedule {
	g := gridOf(across, local)
	a, b := across.Shape().In, local.Shape().In
	need("local", local, b, b, true)
	need("across", across, a, a, true)

	across, local = sched.Split(across, b), sched.Split(local, a)
	k := a * b
	sums := up(max(across.Shape().Tmp, local.Shape().Tmp), k) // where they start in Tmp
	shape := sched.Shape{Ranks: g.ranks(), In: k, Out: k, Tmp: sums + k}
	lay := func(buf sched.Buffer) func(sched.Rank, sched.Ref) sched.Ref {
		return func(_ sched.Rank, ref sched.Ref) sched.Ref {
			if ref.Buf == buf {
				return sched.Ref{Buf: sched.Tmp, Chunk: int32(sums) + ref.Chunk}
			}
			return ref
		}
	}
	column := sched.Group{Schedule: across, Members: g.column(int(root) % g.local), Map: lay(sched.In)}
	return sched.Then(g.inNodes(shape, local, lay(sched.Out)), sched.Beside(shape, column))
}
