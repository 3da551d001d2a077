package tune

import "math"

// A run is consecutive sizes that take the same algorithm.
type run struct {
	algo int // column
	last int // size
}

const (
	// gain is by how much another algorithm has to be quicker to count as quicker.
	gain = 0.03
	// turn is what a switch of algorithms costs, as a share of one size's time:
	// a single size makes an island only if it loses twice as much without.
	turn = 0.05
	// tie weighs losses below gain, so that the quicker of two is taken where both
	// would do, and same is what is no loss at all: the first of two is taken.
	tie, same = 0.01, 0.01
)

// segment divides sizes into few runs. us[i][a] is the time of algorithm a for
// the i-th size, infinite where it cannot serve. It
// minimizes the sum of what is lost against the best at each size, in logarithms,
// and of turn for each switch.
func segment(us [][]float64) []run {
	if len(us) == 0 {
		return nil
	}
	algos := len(us[0])
	cost := make([]float64, algos) // of the sizes so far, the last by algorithm a
	from := make([][]int, len(us)) // the algorithm before it
	for i := range us {
		best := least(us[i])
		cheapest := least(cost)
		from[i] = make([]int, algos)
		next := make([]float64, algos)
		for a := range next {
			from[i][a], next[a] = a, cost[a]
			if i > 0 && cost[cheapest]+turn < cost[a] {
				from[i][a], next[a] = cheapest, cost[cheapest]+turn
			}
			next[a] += loss(us[i][a], us[i][best])
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

// loss is what one size's time costs that could be best.
func loss(us, best float64) float64 {
	if math.IsInf(best, 1) {
		return 0 // nothing was measured
	}
	l := math.Log(us / best)
	switch {
	case l <= math.Log1p(same):
		return 0
	case l <= math.Log1p(gain):
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
