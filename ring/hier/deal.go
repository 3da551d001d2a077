package hier

import (
	"slices"

	"github.com/ringo-go/ringo/sched"
)

// deal is an all-gather or a reduce-scatter in which rank q has counts[q] chunks in place of one: it is
// sched.Split in the most that a rank has, without the steps that would move chunks which are not there.
func deal(s sched.Schedule, counts []int) sched.Schedule {
	most := slices.Max(counts)
	all := sched.Split(s, max(1, most))
	if slices.Min(counts) == most {
		return all
	}
	d := dealt{Schedule: all, kept: make([][]int32, s.Shape().Ranks)}
	for r := range d.kept {
		owners := ownersOf(s, sched.Rank(r))
		for turn := range most {
			for i, owner := range owners {
				if counts[owner] > turn {
					d.kept[r] = append(d.kept[r], int32(turn*len(owners)+i))
				}
			}
		}
	}
	return d
}

type dealt struct {
	sched.Schedule
	kept [][]int32 // steps of each rank
}

func (d dealt) Len(r sched.Rank) int              { return len(d.kept[r]) }
func (d dealt) At(r sched.Rank, i int) sched.Step { return d.Schedule.At(r, int(d.kept[r][i])) }

// ownersOf says whose chunk each step of a rank moves. Of the two buffers one has a chunk of each rank, and the
// other one the rank's own; scratch has what was put there last.
func ownersOf(s sched.Schedule, r sched.Rank) []int {
	all := sched.In
	if s.Shape().Out > s.Shape().In {
		all = sched.Out
	}
	owners, scratch := make([]int, s.Len(r)), map[int32]int{}
	for i := range owners {
		step := s.At(r, i)
		for _, ref := range []sched.Ref{step.Dst, step.Src} { // what is sent counts, if there are both
			switch ref.Buf {
			case sched.None:
			case sched.Tmp:
				if owner, ok := scratch[ref.Chunk]; ok {
					owners[i] = owner
				}
			case all:
				owners[i] = int(ref.Chunk)
			default:
				owners[i] = int(r)
			}
		}
		if step.Dst.Buf == sched.Tmp {
			scratch[step.Dst.Chunk] = owners[i]
		}
	}
	return owners
}

// A hand is how ranks of a node, beyond those of columns, give their chunk to one of these, or get it from it.
type hand struct {
	size, columns int
	shape         sched.Shape
	back          bool
}

func (h hand) Shape() sched.Shape { return h.shape }

// extra is how many ranks a column's rank has data of beside its own.
func (h hand) extra(l int) int { return (h.size-l+h.columns-1)/h.columns - 1 }

// Len is one message of an extra rank. To give, ranks of columns first lay their own chunk beside those of others.
func (h hand) Len(r sched.Rank) int {
	switch {
	case int(r) >= h.columns:
		return 1
	case h.back:
		return h.extra(int(r))
	}
	return 1 + h.extra(int(r))
}

// At names chunk j of a column's rank the one of the rank j times the columns further.
func (h hand) At(r sched.Rank, i int) sched.Step {
	owner, in, out := r%sched.Rank(h.columns), sched.In.At(0), sched.Out.At(0)
	switch {
	case r > owner && h.back:
		return sched.Step{Recv: owner, Dst: out, Send: sched.Nobody}
	case r > owner:
		return sched.Step{Recv: sched.Nobody, Src: in, Send: owner}
	case h.back:
		return sched.Step{Recv: sched.Nobody, Src: sched.Tmp.At(i + 1), Send: r + sched.Rank((i+1)*h.columns)}
	case i == 0:
		return sched.Step{Recv: sched.Nobody, Src: in, Dst: out, Send: sched.Nobody}
	}
	return sched.Step{Recv: r + sched.Rank(i*h.columns), Dst: sched.Out.At(i), Send: sched.Nobody}
}
