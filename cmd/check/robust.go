package check

import (
	"math"
	"slices"
)

// An outlier is a value that is unlike the others.
type outlier struct {
	Index  int
	Value  float64
	Median float64 // of all
	Low    float64 // Low and High are the least and greatest of the values that are no outliers
	High   float64
	Ratio  float64 // Value / Median
}

// outliers are the values that are worse than the others: lower than the median if low is set, else
// higher. A value is worse if its distance from the median exceeds 6 times the spread of the values (the median
// absolute deviation, made comparable to a standard deviation), and exceeds floor, a part of the median: 0.2 for 20 %.
// Fewer than three values have no outliers, and two bad ones of three hide each other.
func outliers(values []float64, floor float64, low bool) []outlier {
	if len(values) < 3 {
		return nil
	}
	m := median(values)
	distances := make([]float64, len(values))
	for i, v := range values {
		distances[i] = math.Abs(v - m)
	}
	bound := max(6*1.4826*median(distances), floor*math.Abs(m))
	var found []outlier
	least, most := math.Inf(1), math.Inf(-1)
	for i, v := range values {
		if low && m-v > bound || !low && v-m > bound {
			found = append(found, outlier{Index: i, Value: v, Median: m, Ratio: v / m})
			continue
		}
		least, most = min(least, v), max(most, v)
	}
	for i := range found {
		found[i].Low, found[i].High = least, most
	}
	return found
}

// median is the median, 0 of nothing.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}
