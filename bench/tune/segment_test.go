package tune

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// inf is the time of an algorithm that cannot serve.
var inf = math.Inf(1)

func TestSegment(t *testing.T) {
	for name, test := range map[string]struct {
		us   [][]float64
		want []run
	}{
		"nothing":            {nil, nil},
		"one":                {[][]float64{{3}}, []run{{0, 0}}},
		"crossover":          {[][]float64{{1, 2}, {2, 3}, {4, 3}, {8, 4}}, []run{{0, 1}, {1, 3}}},
		"too little":         {[][]float64{{1, 1.2}, {1, 1.2}, {1.02, 1}, {1.02, 1}, {1.02, 1}}, []run{{0, 4}}},
		"no island":          {[][]float64{{1, 1.5}, {1.08, 1}, {1, 1.5}}, []run{{0, 2}}},
		"an island pays":     {[][]float64{{1, 1.5}, {1.3, 1}, {1, 1.5}}, []run{{0, 0}, {1, 1}, {0, 2}}},
		"the quicker of two": {[][]float64{{1.02, 1}, {1.02, 1}}, []run{{1, 1}}},
		"the first of two":   {[][]float64{{1.005, 1}, {1.005, 1}}, []run{{0, 1}}},
		"long ones are sure": {[][]float64{{100, 120}, {2217, 2183}, {4425, 4316}}, []run{{0, 0}, {1, 2}}},
		"cannot serve":       {[][]float64{{1, inf}, {1, inf}, {inf, 9}}, []run{{0, 1}, {1, 2}}},
		"nothing measured":   {[][]float64{{inf, inf}, {2, 1}}, []run{{1, 1}}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, segment(test.us)) })
	}
}

// TestSegmentOfNoise: where algorithms really differ and measurements are noisy, the
// runs are about as many as without noise, and cost little more than the best.
func TestSegmentOfNoise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		algos := rapid.IntRange(1, 6).Draw(t, "algorithms")
		start, rate := make([]float64, algos), make([]float64, algos)
		for a := range algos {
			start[a] = rapid.Float64Range(3, 30).Draw(t, "latency")
			rate[a] = rapid.Float64Range(50, 400).Draw(t, "bandwidth") * 1e3 // bytes a microsecond
		}
		var exact, us [][]float64
		for size := 8.0; size <= 1<<30; size *= 2 {
			row, noisy := make([]float64, algos), make([]float64, algos)
			for a := range row {
				row[a] = start[a] + size/rate[a]
				noisy[a] = row[a] * (1 + rapid.Float64Range(0, noiseOf(row[a]).gain).Draw(t, "noise"))
			}
			exact, us = append(exact, row), append(us, noisy)
		}
		runs := segment(us)
		chosen, best := 0.0, 0.0
		for i, a := range pick(runs, len(us)) {
			row := exact[i]
			chosen += math.Log(row[a])
			best += math.Log(row[least(row)])
			require.LessOrEqual(t, row[a], 1.25*row[least(row)], "size %d", i)
		}
		require.LessOrEqual(t, (chosen-best)/float64(len(us)), 0.04)
		// Lines cross at most once, so each has one stretch where it is best.
		require.LessOrEqual(t, len(runs), algos)
	})
}

// TestSegmentIsLeast: no other choice costs less, by trying them all.
func TestSegmentIsLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const algos = 3
		sizes := rapid.IntRange(1, 6).Draw(t, "sizes")
		us := make([][]float64, sizes)
		for i := range us {
			us[i] = rapid.SliceOfN(rapid.Float64Range(1, 1.4), algos, algos).Draw(t, "us")
			if i >= 3 {
				for a := range us[i] {
					us[i][a] *= longTime
				}
			}
		}
		cost := func(choice []int) (c float64) {
			for i, a := range choice {
				c += loss(us[i][a], us[i][least(us[i])])
				if i > 0 && choice[i-1] != a {
					c += noiseOf(us[i][least(us[i])]).switching
				}
			}
			return c
		}
		lowest := inf
		choice := make([]int, sizes)
		for {
			lowest = min(lowest, cost(choice))
			i := 0
			for i < sizes && choice[i] == algos-1 {
				choice[i], i = 0, i+1
			}
			if i == sizes {
				break
			}
			choice[i]++
		}
		require.InDelta(t, lowest, cost(pick(segment(us), sizes)), 1e-9)
	})
}
