package check

import (
	"fmt"
	"math"
	"slices"
)

// late blames ways whose latency is high.
func (j *netJudge) late() {
	s := &scale{
		cost:  func(w *way) float64 { return w.latency },
		again: func(w *way) float64 { return w.later },
		bound: func(us, noise float64) float64 { return lateFactor*us + lateFloor + min(noise*us, lateCap) },
	}
	for n := range j.networks {
		c := s.compare(j.of(n), j.blamed)
		if c == nil {
			continue
		}
		f := &fault{severity: degraded, code: "late-link", quantity: "latency", whole: "its latency is high", twoWay: true,
			weight: func(w *way) float64 { return w.latency / c.expected[w] },
			text: func(w *way, _ *cause) string {
				return fmt.Sprintf("%s us of latency, the others typically %s", digits(w.latency), digits(c.expected[w]))
			}, again: true}
		j.apart(s, c, "late-between", "latency", "later", func(us float64) string { return digits(us) + " us" })
		j.suspect(c.suspects)
		j.blame(f, c.causes)
	}
}

// slow blames ways whose bandwidth is low.
func (j *netJudge) slow() {
	most := slowCap
	if j.shared {
		most = slowShared
	}
	floor := slowFloor
	s := &scale{
		cost:  func(w *way) float64 { return 1 / w.bandwidth },
		again: func(w *way) float64 { return 1 / w.second },
		bound: func(cost, noise float64) float64 { return cost / (1 - min(most, max(floor, noise))) },
		part:  true,
	}
	for n := range j.networks {
		if floor = slowFloor; farApart(j.of(n)) {
			floor = slowFar
		}
		c := s.compare(j.of(n), j.blamed)
		if c == nil {
			j.slowOfTwo(j.left(n))
			continue
		}
		bad := map[*way]bool{}
		for _, x := range c.causes {
			for _, w := range x.ways {
				bad[w] = true
			}
		}
		f := &fault{severity: degraded, code: "slow-link", quantity: "bandwidth", whole: "its links are slow", each: true,
			weight: func(w *way) float64 { return 1 / (w.bandwidth * c.expected[w]) },
			text: func(w *way, _ *cause) string {
				low, high := math.Inf(1), 0.
				for o, e := range c.expected {
					if !bad[o] && e == c.expected[w] {
						low, high = min(low, o.bandwidth), max(high, o.bandwidth)
					}
				}
				text := fmt.Sprintf("%s GB/s, the others %s", digits(w.bandwidth), span(low, high))
				if w.resent > 0.001 {
					text += fmt.Sprintf(", and %.1f %% of its segments were sent again", 100*w.resent)
				}
				return text
			}, again: true}
		j.apart(s, c, "slow-between", "bandwidth", "slower", func(cost float64) string { return digits(1/cost) + " GB/s" })
		j.suspect(c.suspects)
		j.blame(f, c.causes)
	}
}

// farApart reports whether most ways are longer than farAway.
func farApart(ways []*way) bool {
	var latencies []float64
	for _, w := range ways {
		if !math.IsInf(w.latency, 0) {
			latencies = append(latencies, w.latency)
		}
	}
	return median(latencies) > farAway
}

// suspect has ways measured again.
func (j *netJudge) suspect(ways []*way) {
	for _, w := range ways {
		j.suspects = append(j.suspects, w.subject)
	}
}

// apart adds a remark about groups of hosts that are far from each other: nothing is broken.
func (j *netJudge) apart(s *scale, c *comparison, code, quantity, word string, say func(float64) string) {
	for _, x := range c.between {
		var within, costs []float64
		for w, e := range c.expected {
			from, ok := x.in[w.subject.Host]
			if to, too := x.in[w.subject.To.Host]; ok && too && from == to {
				within = append(within, s.cost(w))
			} else if x.covers(w) {
				costs = append(costs, e)
			}
		}
		if len(within) == 0 || len(costs) == 0 {
			continue
		}
		usual, least, most := median(within), slices.Min(costs), slices.Max(costs)
		times, values := digits(least/usual), say(least)
		if digits(most/usual) != times {
			times, values = times+" to "+digits(most/usual), values+" to "+say(most)
		}
		j.add(well, code, subject{}, most/usual, "%s: the way between them is %s times %s than the ways within (%s, and "+
			"%s), as between racks or sites with a shared uplink: no host is at fault, and collectives over all of them go "+
			"at its pace", x.parties(), times, word, values, say(usual))
		j.last(quantity, x.ways, true)
	}
}

// span writes the range of good values.
func span(low, high float64) string {
	if math.IsInf(low, 0) {
		return "more"
	}
	if a, b := digits(low), digits(high); a != b {
		return a + "–" + b
	}
	return digits(low)
}
