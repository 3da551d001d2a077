package sched

import "fmt"

// Relabel lets rank order[i] play the part of rank i: a ring then runs along
// order. Roots move with the ranks, and so do the chunks of In and Out that
// belong to a rank, so that the goal stays the same but for its root.
//
// It panics if order is not a permutation of the ranks of s.
func Relabel(s Schedule, order []Rank) Schedule {
	shape := s.Shape()
	n := shape.Ranks
	if len(order) != n {
		panic(fmt.Sprintf("sched: relabel: order of %d for %d ranks", len(order), n))
	}
	l := relabeled{Schedule: s, shape: shape, rank: order, part: make([]Rank, n)}
	seen := make([]bool, n)
	for i, r := range order {
		if r < 0 || int(r) >= n || seen[r] {
			panic(fmt.Sprintf("sched: relabel: order[%d] = %d is out of range or there twice", i, r))
		}
		seen[r] = true
		l.part[r] = Rank(i)
	}
	switch {
	case shape.In == n*shape.Out:
		l.block[In] = shape.Out
	case shape.Out == n*shape.In:
		l.block[Out] = shape.In
	case shape.In == shape.Out && shape.In%n == 0:
		// All-to-all needs this and the others do not mind. Scratch is lined up
		// with the data, so it moves too, in whole blocks.
		l.block = [4]int{In: shape.In / n, Out: shape.In / n, Tmp: shape.In / n}
		l.shape.Tmp = (shape.Tmp + shape.In - 1) / shape.In * shape.In
	}
	return l
}

type relabeled struct {
	Schedule
	shape Shape
	rank  []Rank // that plays a part
	part  []Rank // that a rank plays
	block [4]int // by Buffer: how many chunks move with a rank, 0 if none do
}

func (l relabeled) Shape() Shape { return l.shape }

func (l relabeled) Len(r Rank) int { return l.Schedule.Len(l.part[r]) }

func (l relabeled) At(r Rank, i int) Step {
	t := l.Schedule.At(l.part[r], i)
	return Step{Recv: l.peer(t.Recv), Send: l.peer(t.Send), Src: l.ref(t.Src), Dst: l.ref(t.Dst)}
}

func (l relabeled) peer(p Rank) Rank {
	if p == Nobody {
		return Nobody
	}
	return l.rank[p]
}

func (l relabeled) ref(r Ref) Ref {
	block := int32(l.block[r.Buf])
	if block == 0 {
		return r
	}
	all := block * int32(len(l.rank))
	owner := l.rank[r.Chunk%all/block]
	r.Chunk = r.Chunk/all*all + int32(owner)*block + r.Chunk%block
	return r
}
