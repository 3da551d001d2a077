package tune

import "math"

// A run is consecutive sizes that take the same algorithm.
type run struct {
	algo int // column
	last int // size
}

// A noise is how far measurements can be trusted, as shares of a time.
type noise struct {
	same      float64 // two times that differ less are equal
	gain      float64 // an algorithm counts as quicker if it saves more
	switching float64 // the cost of a switch; for a single size, there and back, it is paid twice
}

// Long operations are measured to half a percent, short ones to three.
var (
	short = noise{same: 0.01, gain: 0.03, switching: 0.05}
	long  = noise{same: 0.005, gain: 0.01, switching: 0.02}
)

// longTime is where long operations begin, in microseconds.
const longTime = 500

func noiseOf(us float64) noise {
	if us < longTime {
		return short
	}
	return long
}

// tie is the weight of a loss below gain: enough to prefer the quicker of two that
// cost the same otherwise.
const tie = 0.01

// segment divides sizes into few runs. us[i][a] is the time of algorithm a for the
// i-th size, infinite where it cannot serve. It minimizes the sum of what is lost
// against the best at each size, in logarithms, plus switching for each switch.
func segment(us [][]float64) []run {
	if len(us) == 0 {
		return nil
	}
	algos := len(us[0])
	cost := make([]float64, algos) // of the sizes so far, the last by algorithm a
	from := make([][]int, len(us)) // the algorithm at the size before
	for i := range us {
		best := us[i][least(us[i])]
		cheapest, switching := least(cost), noiseOf(best).switching
		from[i] = make([]int, algos)
		next := make([]float64, algos)
		for a := range next {
			from[i][a], next[a] = a, cost[a]
			if i > 0 && cost[cheapest]+switching < cost[a] {
				from[i][a], next[a] = cheapest, cost[cheapest]+switching
			}
			next[a] += loss(us[i][a], best)
		}
		cost = next
	}
	var back []run
	for i, a := len(us)-1, least(cost); i >= 0; i, a = i-1, from[i][a] {
		if n := len(back); n == 0 || back[n-1].algo != a {
			back = append(back, run{a, i})
		}
	}
	for i, j := 0, len(back)-1; i < j; i, j = i+1, j-1 {
		back[i], back[j] = back[j], back[i]
	}
	return back
}

// loss is the cost of a time at a size where best is the least time.
func loss(us, best float64) float64 {
	if math.IsInf(best, 1) {
		return 0 // nothing was measured
	}
	l, n := math.Log(us/best), noiseOf(best)
	switch {
	case l <= math.Log1p(n.same):
		return 0
	case l <= math.Log1p(n.gain):
		return tie * l
	}
	return l
}

func least(x []float64) int {
	best := 0
	for i := range x {
		if x[i] < x[best] {
			best = i
		}
	}
	return best
}
