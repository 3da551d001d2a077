package check

import "slices"

// A bisection finds the ranks that make collectives fail, by trying groups. It does no I/O: next
// gives disjoint groups to try side by side, learn takes their results.
type bisection struct {
	groups [][]int // to try
	phase  int
	good   []int    // ranks of groups that did well, to be witnesses
	pairs  [][2]int // pairs that fail, and whose cause is not yet known
	cross  [][2][]int
	turn   int    // of a crossing
	first  []bool // of pairs: whether their first ranks did well with a witness

	found
}

// found is the result of a bisection.
type found struct {
	Ranks  []int    // ranks that fail with any other
	Links  [][2]int // pairs that fail only together: each rank has done well with another
	Alone  [][2]int // pairs that fail together, with no other rank left to try them with
	Across bool     // the whole fails, and no part of it does
	Some   bool     // some group did well
}

// The phases.
const (
	halving    = iota // groups that fail are halved
	crossing          // the halves do well and the whole does not: ranks of one half are paired with ranks of the other
	witnessing        // each rank of a failing pair is tried with a rank that does well
)

// crossTurns is how many pairings of two halves are tried.
const crossTurns = 4

func newBisection(ranks []int) *bisection { return &bisection{groups: [][]int{ranks}} }

// next are the groups to try, none at the end.
func (b *bisection) next() [][]int { return b.groups }

// learn takes the result of each group of next: whether it did well.
func (b *bisection) learn(well []bool) {
	groups := b.groups
	b.groups = nil
	b.Some = b.Some || slices.Contains(well, true)
	switch b.phase {
	case halving:
		b.halve(groups, well)
	case crossing:
		b.crossed(groups, well)
	case witnessing:
		b.witnessed(groups, well)
	}
}

func (b *bisection) halve(groups [][]int, well []bool) {
	for i, g := range groups {
		switch {
		case well[i]:
			b.good = append(b.good, g...)
		case len(g) == 1:
			b.Ranks = append(b.Ranks, g[0])
		case len(g) == 2:
			b.pairs = append(b.pairs, [2]int(g))
		default:
			h := len(g) / 2
			b.groups = append(b.groups, g[:h:h], g[h:])
		}
	}
	// Halves of one group stand side by side. If both do well, the fault is between them.
	for i := 0; b.was(groups) && i+1 < len(groups); i += 2 {
		if well[i] && well[i+1] {
			b.cross = append(b.cross, [2][]int{groups[i], groups[i+1]})
		}
	}
	if len(b.groups) == 0 {
		b.enter()
	}
}

// was reports whether groups are halves, and not the whole.
func (b *bisection) was(groups [][]int) bool { return len(groups) > 1 }

// enter begins the next phase.
func (b *bisection) enter() {
	switch {
	case len(b.cross) > 0 && b.turn < crossTurns:
		b.phase = crossing
		for _, c := range b.cross {
			small, large := c[0], c[1]
			for i, r := range small {
				b.groups = append(b.groups, []int{r, large[(i+b.turn)%len(large)]})
			}
		}
		b.turn++
	case len(b.cross) > 0:
		b.cross, b.Across = nil, true
		b.enter()
	case len(b.pairs) > 0:
		b.phase = witnessing
		b.good = slices.DeleteFunc(b.good, func(r int) bool {
			return slices.ContainsFunc(b.pairs, func(p [2]int) bool { return p[0] == r || p[1] == r })
		})
		if n := min(len(b.pairs), len(b.good)); n < len(b.pairs) { // nobody is left to be a witness
			b.Alone = append(b.Alone, b.pairs[n:]...)
			b.pairs = b.pairs[:n]
		}
		b.witnesses(0)
	}
}

// witnesses makes groups of the first (0) or second (1) rank of each pair and a rank that does well.
func (b *bisection) witnesses(which int) {
	for k, p := range b.pairs {
		b.groups = append(b.groups, []int{p[which], b.good[k]})
	}
}

func (b *bisection) crossed(groups [][]int, well []bool) {
	for i, g := range groups {
		if !well[i] {
			b.pairs = append(b.pairs, [2]int(g))
			b.cross = nil
		}
	}
	b.enter()
}

func (b *bisection) witnessed(_ [][]int, well []bool) {
	if b.first == nil {
		b.first = well
		b.witnesses(1)
		return
	}
	for k, p := range b.pairs {
		if b.first[k] && well[k] {
			b.Links = append(b.Links, p)
		}
		if !b.first[k] {
			b.Ranks = append(b.Ranks, p[0])
		}
		if !well[k] {
			b.Ranks = append(b.Ranks, p[1])
		}
	}
	b.pairs = nil
}
