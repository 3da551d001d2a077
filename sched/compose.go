package sched

import "fmt"

// Then runs second after first, with first's Out as the In of second: second works in
// place. No barrier lies between them: a rank goes on as soon as its own part of first
// is done. If both pass Check at a depth, so does the composition, because between the
// same two ranks a message of second is queued after all those of first.
//
// It panics unless first and second have the same ranks and first's Out,
// second's In and second's Out the same number of chunks.
func Then(first, second Schedule) Schedule {
	a, b := first.Shape(), second.Shape()
	if a.Ranks != b.Ranks || a.Out != b.In || a.Out != b.Out {
		panic(fmt.Sprintf("sched: then: %+v does not fit after %+v", b, a))
	}
	return then{first, second}
}

type then struct{ first, second Schedule }

func (t then) Shape() Shape {
	s := t.first.Shape()
	s.Tmp = max(s.Tmp, t.second.Shape().Tmp)
	return s
}

func (t then) Len(r Rank) int { return t.first.Len(r) + t.second.Len(r) }

func (t then) At(r Rank, i int) Step {
	n := t.first.Len(r)
	if i < n {
		return t.first.At(r, i)
	}
	s := t.second.At(r, i-n)
	if s.Src.Buf == In {
		s.Src.Buf = Out
	}
	if s.Recv == Nobody && s.Send != Nobody && s.Src == s.Dst {
		s.Dst = Ref{} // it is there already
	}
	return s
}

// Split cuts every chunk in m parts and runs s for each part in turn: part j of
// chunk c is chunk c·m+j. The goal stays the same, with blocks of m times as
// many chunks. A chain or tree whose messages are single steps becomes a
// pipeline of m.
func Split(s Schedule, m int) Schedule {
	if m < 1 {
		panic(fmt.Sprintf("sched: split in %d", m))
	}
	return split{s, m}
}

type split struct {
	Schedule
	m int
}

func (s split) Shape() Shape {
	shape := s.Schedule.Shape()
	shape.In *= s.m
	shape.Out *= s.m
	shape.Tmp *= s.m
	return shape
}

func (s split) Len(r Rank) int { return s.m * s.Schedule.Len(r) }

func (s split) At(r Rank, i int) Step {
	n := s.Schedule.Len(r)
	part := i / n
	t := s.Schedule.At(r, i-part*n)
	for _, ref := range []*Ref{&t.Src, &t.Dst} {
		if ref.Buf != None {
			ref.Chunk = ref.Chunk*int32(s.m) + int32(part)
		}
	}
	return t
}

// A Group is some ranks of a communicator that run a schedule among themselves.
type Group struct {
	Schedule Schedule
	Members  []Rank // Members[i] plays rank i
	// Map maps a chunk of the schedule to a chunk in the memory of the member
	// that plays rank i; nil is the same chunk. It must be pure.
	Map func(i Rank, ref Ref) Ref
}

// Beside lets groups run side by side in a communicator of this shape. A rank in
// no group has no steps.
//
// It panics if a rank is in two groups, is none of the shape's, or if a group
// has other than as many members as its schedule has ranks.
func Beside(shape Shape, groups ...Group) Schedule {
	b := beside{shape: shape, groups: groups, seat: make([]seat, shape.Ranks)}
	for i := range b.seat {
		b.seat[i].group = -1
	}
	for g, group := range groups {
		if n := group.Schedule.Shape().Ranks; n != len(group.Members) {
			panic(fmt.Sprintf("sched: beside: group %d has %d members for %d ranks", g, len(group.Members), n))
		}
		for i, r := range group.Members {
			if r < 0 || int(r) >= shape.Ranks || b.seat[r].group >= 0 {
				panic(fmt.Sprintf("sched: beside: rank %d of group %d is out of range or in two groups", r, g))
			}
			b.seat[r] = seat{int32(g), Rank(i)}
		}
	}
	return b
}

type beside struct {
	shape  Shape
	groups []Group
	seat   []seat // of each rank
}

// A seat is the group of a rank, and the rank that it plays there.
type seat struct {
	group int32 // -1 for none
	rank  Rank
}

func (b beside) Shape() Shape { return b.shape }

func (b beside) Len(r Rank) int {
	at := b.seat[r]
	if at.group < 0 {
		return 0
	}
	return b.groups[at.group].Schedule.Len(at.rank)
}

func (b beside) At(r Rank, i int) Step {
	at := b.seat[r]
	g := &b.groups[at.group]
	t := g.Schedule.At(at.rank, i)
	return Step{
		Recv: g.member(t.Recv), Send: g.member(t.Send),
		Src: g.mapped(at.rank, t.Src), Dst: g.mapped(at.rank, t.Dst),
	}
}

func (g *Group) member(i Rank) Rank {
	if i == Nobody {
		return Nobody
	}
	return g.Members[i]
}

func (g *Group) mapped(i Rank, ref Ref) Ref {
	if g.Map == nil || ref.Buf == None {
		return ref
	}
	return g.Map(i, ref)
}
