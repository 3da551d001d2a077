package check

import (
	"math"
	"slices"
)

// A scale is a quantity by which ways are compared with each other. Of cost, more is worse; 0 was not measured.
type scale struct {
	cost  func(*way) float64
	again func(*way) float64                    // the second best cost that was measured, 0 for none
	bound func(expected, noise float64) float64 // the cost from which a way is bad
	part  bool                                  // ways that are used at once have a part each
}

// A comparison is what ways have shown by one quantity.
type comparison struct {
	expected map[*way]float64 // cost of a good way in its place: within a group of hosts, or between two
	between  []cause          // groups of hosts whose ways to each other are worse than those within
	causes   []cause          // of ways that are worse than expected
	blamed   map[*way]bool    // for another fault, which may be why they are worse
	noise    float64          // spread of measurements as a part of the expected cost
	suspects []*way           // worse than expected, by chance or not, the worst first
}

// compare finds ways that are worse than others: than the cost that more than half of the hosts reach, and between
// groups of hosts than other ways there. It returns nil for fewer than three hosts.
func (s *scale) compare(ways []*way, blamed map[*way]bool) *comparison {
	ways = slices.DeleteFunc(slices.Clone(ways), func(w *way) bool { return s.cost(w) == 0 || math.IsInf(s.cost(w), 0) })
	usual := s.usual(ways)
	if usual == 0 {
		return nil
	}
	c := &comparison{expected: map[*way]float64{}, blamed: blamed}
	for _, w := range ways {
		c.expected[w] = usual
	}
	for range 3 { // groups of groups
		c.causes, c.noise = explain(ways, s.mark(ways, c, 0), false), 0
		if len(c.causes) > 0 {
			c.noise = s.noise(ways, c)
			c.causes = explain(ways, s.mark(ways, c, 0.5), false) // several ways err less than one
			c.causes = slices.DeleteFunc(c.causes, func(x cause) bool {
				w := x.ways[0]
				return x.host == "" && x.groups == nil &&
					s.cost(w) <= s.bound(s.sharers(w, c)*c.expected[w], c.noise)
			})
		}
		if !s.apart(ways, c) {
			break
		}
	}
	for w, m := range s.mark(ways, c, 0) {
		if m == bad {
			c.suspects = append(c.suspects, w)
		}
	}
	slices.SortFunc(c.suspects, func(a, b *way) int {
		return cmpWays(s.cost(b)/c.expected[b], s.cost(a)/c.expected[a], b, a)
	})
	all := slices.DeleteFunc(c.causes, func(x cause) bool { return !s.steady(&x) })
	c.causes = slices.DeleteFunc(slices.Clone(all), func(x cause) bool {
		return x.sends && x.receives && s.hidden(&x, ways, all, c)
	})
	return c
}

// steadyTimes is how many times worse than the best a second measurement of a way may be: what a link is set to shows
// again, and the stalls of a busy host differ.
const steadyTimes = 1.25

// repeat is how many times worse than the best the second best measurement of a way was, 0 if there is none.
func (s *scale) repeat(w *way) float64 {
	if again := s.again(w); again > 0 && !math.IsInf(again, 0) {
		return again / s.cost(w)
	}
	return 0
}

// steady reports whether measurements of the ways of a cause agree with those before: of half of the ways that were
// measured again, and of a pair's only way.
func (s *scale) steady(c *cause) bool {
	again, agree := 0, 0
	for _, w := range c.ways {
		switch r := s.repeat(w); {
		case r > steadyTimes:
			again++
		case r > 0:
			again, agree = again+1, agree+1
		}
	}
	return 2*agree >= again && (agree > 0 || len(c.ways) > 1)
}

// hiding is how many times worse a way is than a host's others that may hide that the two hosts are near to each other,
// and how many times better a way is that shows it.
const hiding = 1.15

// hidden reports whether a host's bad ways may be those of a group: the way to another host, which would show it, is
// worse for another reason, or that host is nearer than it is to the others. Nothing is known of the host until the
// other is mended: two hosts at fault are as far from each other as the worse one is from all.
func (s *scale) hidden(x *cause, ways []*way, causes []cause, c *comparison) bool {
	level := s.level(x)
	pairs := map[[2]string]float64{} // the cost of the worse way of each
	for _, w := range ways {
		pairs[pairOfHosts(w)] = max(pairs[pairOfHosts(w)], s.cost(w))
	}
	far, all := map[string]int{}, map[string]int{} // ways with third hosts: blamed and worse than expected, and all
	for _, w := range ways {
		if a, b := w.subject.Host, w.subject.To.Host; a != x.host && b != x.host {
			all[a], all[b] = all[a]+1, all[b]+1
			if c.blamed[w] && s.cost(w) > s.bound(c.expected[w], 0) {
				far[a], far[b] = far[a]+1, far[b]+1
			}
		}
	}
	return slices.ContainsFunc(ways, func(w *way) bool {
		other := w.subject.To.Host
		if w.subject.Host != x.host && other != x.host {
			return false
		} else if other == x.host {
			other = w.subject.Host
		}
		if c.blamed[w] && 2*far[other] >= all[other] {
			return true
		}
		cost := pairs[pairOfHosts(w)]
		return slices.ContainsFunc(causes, func(y cause) bool {
			return y.host == other && (cost > hiding*level || hiding*cost < s.level(&y))
		})
	})
}

func pairOfHosts(w *way) [2]string {
	return [2]string{min(w.subject.Host, w.subject.To.Host), max(w.subject.Host, w.subject.To.Host)}
}

// level is the typical cost of the bad ways of a cause.
func (s *scale) level(c *cause) float64 {
	var costs []float64
	for _, w := range c.ways {
		costs = append(costs, s.cost(w))
	}
	return median(costs)
}

// usual returns the typical cost of good ways. One sick host does not hide in it, even where half of all ways are that
// host's, nor do half of the hosts make the others sick by being quicker.
func (s *scale) usual(ways []*way) float64 {
	best := map[string]float64{}
	for _, w := range ways {
		for _, h := range []string{w.subject.Host, w.subject.To.Host} {
			if old, ok := best[h]; !ok || s.cost(w) < old {
				best[h] = s.cost(w)
			}
		}
	}
	if len(best) < 3 {
		return 0
	}
	var bests, near []float64
	for _, v := range best {
		bests = append(bests, v)
	}
	slices.Sort(bests)
	reached := bests[len(bests)/2]
	for _, w := range ways {
		if 0.75*s.cost(w) <= reached && 0.75*reached <= s.cost(w) {
			near = append(near, s.cost(w))
		}
	}
	return median(near)
}

// sharers is how many ways may use an uplink at once that a way between groups takes.
func (s *scale) sharers(w *way, c *comparison) float64 {
	for _, x := range c.between {
		if s.part && x.covers(w) {
			return float64(min(len(x.groups[x.in[w.subject.Host]]), len(x.groups[x.in[w.subject.To.Host]])))
		}
	}
	return 1
}

// mark marks ways by their expected cost, and a part of the noise. Ways near the bound are open.
func (s *scale) mark(ways []*way, c *comparison, part float64) map[*way]mark {
	marks := map[*way]mark{}
	for _, w := range ways {
		cost, expected := s.cost(w), c.expected[w]
		bound := s.bound(expected, part*c.noise)
		switch {
		case cost > bound && c.blamed[w]:
			marks[w] = known
		case cost > bound:
			marks[w] = bad
		case cost <= expected+0.6*(bound-expected):
			marks[w] = good
		}
	}
	return marks
}

// noise is the spread of ways that no host and no groups explain, and of repeated measurements of one way: six standard
// deviations.
func (s *scale) noise(ways []*way, c *comparison) float64 {
	large := slices.DeleteFunc(slices.Clone(c.causes), func(x cause) bool { return x.host == "" && x.groups == nil })
	var off, repeats []float64
	for _, w := range ways {
		if c.blamed[w] || slices.ContainsFunc(large, func(x cause) bool { return x.covers(w) }) {
			continue
		}
		off = append(off, math.Abs(s.cost(w)/c.expected[w]-1))
		if r := s.repeat(w); r > 0 {
			repeats = append(repeats, r-1)
		}
	}
	return max(6*1.4826*median(off), 3*median(repeats))
}

// apart sets what is expected between groups of hosts, and reports whether there are new ones. A host that is as far
// from all others as the groups are from each other is a group too: its own place may be another.
func (s *scale) apart(ways []*way, c *comparison) bool {
	found := false
	for _, x := range c.causes {
		if x.groups == nil {
			continue
		}
		found = true
		level := s.level(&x)
		for _, y := range c.causes {
			if y.sends && y.receives && !x.oneWay && s.level(&y) <= s.bound(level, 0) {
				x.join(y.host)
			}
		}
		between := map[[2]int][]float64{}
		at := func(w *way) [2]int {
			i, k := x.in[w.subject.Host], x.in[w.subject.To.Host]
			return [2]int{min(i, k), max(i, k)}
		}
		for _, w := range ways {
			if x.covers(w) {
				between[at(w)] = append(between[at(w)], s.cost(w))
			}
		}
		for k, costs := range between {
			between[k] = []float64{median(costs)}
		}
		for _, w := range ways {
			if x.covers(w) {
				c.expected[w] = max(c.expected[w], between[at(w)][0])
			}
		}
		x.ways = slices.DeleteFunc(slices.Clone(ways), func(w *way) bool { return !x.covers(w) })
		c.between = append(c.between, x)
	}
	return found
}
