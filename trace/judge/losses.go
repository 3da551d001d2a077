package judge

import (
	"maps"
	"slices"
)

// A Testimony is which places one place hears just now, and which it has lost: they answer nothing. A place is a host,
// or whatever else is cut off as a whole.
type Testimony struct {
	From        int
	Hears, Lost []int
}

// A Loss is why places hear nothing of each other.
type Loss struct {
	Path       bool  // both Culprits live, and nothing passes between them
	Culprits   []int // ascending; none if it cannot be known
	Candidates []int // if there are no Culprits: some of these or the ways between them are to blame
}

// Losses finds the place or the path that explains all losses. That takes two lost ends, or a lost path with both ends
// alive: a place that has lost others may be the one that is cut off.
func Losses(said []Testimony) Loss {
	lost, heard := map[[2]int]bool{}, map[[2]int]bool{}
	losers := map[int]map[int]bool{} // by lost place
	for _, t := range said {
		for _, p := range t.Lost {
			if p != t.From {
				lost[pairOf(t.From, p)] = true
				if losers[p] == nil {
					losers[p] = map[int]bool{}
				}
				losers[p][t.From] = true
			}
		}
	}
	lives := map[int]bool{}
	for _, t := range said {
		for _, p := range t.Hears {
			if way := pairOf(t.From, p); p != t.From && !lost[way] {
				heard[way] = true
				lives[t.From], lives[p] = true, true
			}
		}
	}
	missed := func(p int) bool { // by two that live
		n := 0
		for q := range losers[p] {
			if lives[q] {
				n++
			}
		}
		return n >= 2 && !lives[p]
	}
	ends := map[int]bool{}
	for way := range lost {
		ends[way[0]], ends[way[1]] = true, true
	}
	for p := range ends {
		explains := missed(p)
		for way := range lost {
			explains = explains && slices.Contains(way[:], p)
		}
		if explains {
			return Loss{Culprits: []int{p}}
		}
	}
	if len(lost) == 1 {
		for way := range lost {
			if lives[way[0]] && lives[way[1]] {
				return Loss{Path: true, Culprits: way[:]}
			}
		}
	}
	maps.DeleteFunc(ends, func(p int, _ bool) bool { // it lives, and has lost only what others have lost too
		if !lives[p] {
			return false
		}
		for way := range lost {
			if slices.Contains(way[:], p) && !missed(way[0]) && !missed(way[1]) {
				return false
			}
		}
		return true
	})
	return Loss{Candidates: slices.Sorted(maps.Keys(ends))}
}

func pairOf(a, b int) [2]int { return [2]int{min(a, b), max(a, b)} }

// A Vote is whom one rank blames for a failure. Who has lost several others at once has no Culprits: it cannot know.
type Vote struct {
	Culprits, Candidates []int
	Path                 bool // between the two Culprits, which are well
}

// Elect returns the ranks that more than half of those who know blame, or the path that most of them name if more than
// half name one: its ends are not counted by themselves. Else it returns the candidates: all that anybody has named.
func Elect(votes []Vote) (culprits, candidates []int) {
	named, count, knowing := map[int]bool{}, map[int]int{}, 0
	paths, all := map[[2]int]int{}, 0
	for _, v := range votes {
		for _, r := range slices.Concat(v.Culprits, v.Candidates) {
			named[r] = true
		}
		if len(v.Culprits) > 0 {
			knowing++
		}
		if v.Path && len(v.Culprits) == 2 {
			paths[[2]int(v.Culprits)]++
			all++
			continue
		}
		for _, r := range v.Culprits {
			count[r]++
		}
	}
	for r, n := range count {
		if 2*n > knowing {
			culprits = append(culprits, r)
		}
	}
	if 2*all > knowing {
		best := [2]int{}
		for p, n := range paths {
			if n > paths[best] || n == paths[best] && slices.Compare(p[:], best[:]) < 0 {
				best = p
			}
		}
		culprits = best[:]
	}
	if slices.Sort(culprits); len(culprits) > 0 {
		return culprits, nil
	}
	return nil, slices.Sorted(maps.Keys(named))
}
