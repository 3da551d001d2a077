package check

import (
	"fmt"
	"math"
	"slices"
)

// loss blames ways that lose packets. What counts is small messages, one in a segment, with no stream beside them: so
// no queue is full, and the kernels at both ends know of each segment whether it had to be sent again.
func (j *netJudge) loss() {
	f := &fault{severity: degraded, code: "loss", quantity: "bandwidth", whole: "it loses packets",
		weight: func(w *way) float64 { return 10 + w.lost/max(w.segments, 1) },
		text: func(_ *way, c *cause) string {
			sum := c.lost()
			return fmt.Sprintf("%.0f of %.0f segments of small messages (%s %%) were lost and sent again", sum.lost,
				sum.segments, digits(100*sum.lost/sum.segments))
		}, again: true}
	for n := range j.networks {
		ways := j.left(n)
		j.suspect(lossy(ways))
		causes := explain(ways, lossMarks(ways), false)
		j.blame(f, causes)
		heavy := slices.DeleteFunc(causes, func(c cause) bool { return c.lost().lost < fatalLoss*c.lost().segments })
		for _, w := range ways {
			if w.failed != "" && !slices.ContainsFunc(heavy, func(c cause) bool { return c.concerns(w) }) {
				delete(j.blamed, w) // for another reason
			}
		}
	}
}

// fatalLoss is the part of lost segments that may keep a connection from coming about or a stream from ending.
const fatalLoss = 0.05

// excuseLosses takes back what is said of ranks whose messages may be lost on the way to the first.
func (r *report) excuseLosses() {
	for _, l := range r.Findings {
		if l.Code != "loss" || l.Weight < 10+fatalLoss {
			continue
		}
		ill := func(host string) bool { return host != "" && (host == l.Subject.Host || host == l.Subject.To.Host) }
		first, pair := ill(r.Hosts[0].Name), l.Subject.IsPair()
		for i := range r.Findings {
			f := &r.Findings[i]
			if !slices.Contains([]string{"absent", "died", "stopped", "cut-off", "stuck"}, f.Code) || f.Severity == unjudged ||
				f.Code == "died" && f.Stage != rendezvous {
				continue
			}
			own := ill(f.Subject.Host) || ill(f.Subject.To.Host)
			if l.Subject == (subject{}) || first && !pair || own && (first || !pair) {
				f.Severity, f.Text = unjudged, "much is lost on the way to the first host, as another finding says, so this may "+
					"be no fault of its own: "+f.Text
			}
		}
	}
}

// lost is what the bad ways of a cause have lost together.
func (c *cause) lost() (sum way) {
	for _, w := range c.ways {
		sum.lost, sum.segments = sum.lost+w.lost, sum.segments+w.segments
	}
	return sum
}

// An ending is one end of ways: what a host sends, or what it receives.
type ending struct {
	host  string
	sends bool
}

func endings(w *way) [2]ending { return [2]ending{{w.subject.Host, true}, {w.subject.To.Host, false}} }

// lossMarks marks ways by how likely the losses are by chance. A way is bad if it has lost more than a good one would,
// or if it is one of several ways of a host that have together. It is good if it has lost less than the bad ways of
// its hosts would have it lose, and else open: small losses show in many segments only.
func lossMarks(ways []*way) map[*way]mark {
	marks := map[*way]mark{}
	chance := lossChance / float64(max(len(ways), 1))
	all := map[ending][]*way{}
	for _, w := range ways {
		if significant(w.lost, w.segments, chance) {
			marks[w] = bad
		}
		for _, e := range endings(w) {
			all[e] = append(all[e], w)
		}
	}
	rate := map[ending]float64{} // of the bad ways
	for e, list := range all {
		var sum, own, worst way
		for _, w := range list {
			sum.lost, sum.segments = sum.lost+w.lost, sum.segments+w.segments
			if marks[w] == bad {
				own.lost, own.segments = own.lost+w.lost, own.segments+w.segments
			}
			if w.lost > worst.lost {
				worst = *w
			}
		}
		rest, of := sum.lost-worst.lost, sum.segments-worst.segments
		switch {
		case rest > 1 && chanceOf(rest, lossUsual*of) < 0.01 && significant(sum.lost, sum.segments, chance):
			rate[e] = sum.lost / sum.segments
			for _, w := range list {
				if w.lost > 0 && fits(w, rate[e]) {
					marks[w] = bad
				}
			}
		case own.segments > 0:
			rate[e] = own.lost / own.segments
		}
	}
	for _, w := range ways {
		least := math.Inf(1)
		for _, e := range endings(w) {
			if r, ok := rate[e]; ok {
				least = min(least, r)
			}
		}
		if marks[w] != bad && w.segments > 0 && (math.IsInf(least, 0) || !fits(w, least)) {
			marks[w] = good
		}
	}
	return marks
}

// lossy are the ways of hosts that have lost a little, which more segments would show to be chance or not.
func lossy(ways []*way) (list []*way) {
	lost := map[ending]float64{}
	for _, w := range ways {
		for _, e := range endings(w) {
			lost[e] += w.lost
		}
	}
	for _, w := range ways {
		if e := endings(w); lost[e[0]] > 1 || lost[e[1]] > 1 {
			list = append(list, w)
		}
	}
	return list
}

// significant reports whether a good way would not lose so much, by a chance.
func significant(lost, segments, chance float64) bool {
	return lost >= lossLeast && lost > lossUsual*segments && chanceOf(lost, lossUsual*segments) < chance
}

// unlikely is the chance below which a way does not lose as much as another.
const unlikely = 1e-4

// fits reports whether a way that loses a part of its segments may have lost as few as it has.
func fits(w *way, part float64) bool { return chanceOf(w.lost+1, part*w.segments) < 1-unlikely }

// chanceOf is the chance of n events or more where mean are expected: Poisson's, which bounds the binomial's.
func chanceOf(n, mean float64) float64 {
	fewer := 0.
	for k := 0.; k < n && mean > 0; k++ {
		lg, _ := math.Lgamma(k + 1)
		fewer += math.Exp(k*math.Log(mean) - mean - lg)
	}
	if mean == 0 && n > 0 {
		return 0
	}
	return max(0, 1-fewer)
}
