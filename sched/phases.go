package sched

// Phases are the parts of a schedule that Then has joined, for engines that carry out one after
// the other as programs of their own, each as wide as its own connections allow. A part has
// the shape of the whole and a part of each rank's steps; all parts, in order, have all of them.
// A schedule that Then has not made is its own only part.
//
// The trap: scratch belongs to a program. Parts that hand data to the next one in Tmp cannot be
// carried out apart.
func Phases(s Schedule) []Schedule {
	ends := endsOf(s)
	parts := make([]Schedule, len(ends))
	begin := func(Rank) int { return 0 }
	for i, end := range ends {
		parts[i] = phase{s, begin, end}
		begin = end
	}
	if len(parts) == 1 {
		parts[0] = s
	}
	return parts
}

// endsOf is where each part ends, by rank.
func endsOf(s Schedule) (ends []func(Rank) int) {
	switch s := s.(type) {
	case then:
		ends = endsOf(s.first)
		for _, end := range endsOf(s.second) {
			ends = append(ends, func(r Rank) int { return s.first.Len(r) + end(r) })
		}
	case relabeled:
		for _, end := range endsOf(s.Schedule) {
			ends = append(ends, func(r Rank) int { return end(s.part[r]) })
		}
	default:
		ends = append(ends, s.Len)
	}
	return ends
}

type phase struct {
	Schedule
	begin, end func(Rank) int
}

func (p phase) Len(r Rank) int { return p.end(r) - p.begin(r) }

func (p phase) At(r Rank, i int) Step { return p.Schedule.At(r, p.begin(r)+i) }
