package main

import (
	"math"
	"math/rand/v2"

	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// noise is the standard deviation of a point's distance from its moon.
const noise = 0.1

// batch is a rank's part of the points of a step, [points, 2], and the moon of each, [points, 1]. A point depends only
// on the seed, the step and its number in the batch, so ranks need not communicate.
func batch(seed uint64, step, size, rank, ranks int) (points, labels []*tensors.Tensor) {
	n := max(size/ranks, 1)
	x, y := make([]float32, 2*n), make([]float32, n)
	for i := range n {
		number := uint64(step)*uint64(size) + uint64(rank*n+i)
		x[2*i], x[2*i+1], y[i] = point(rand.New(rand.NewPCG(seed, number)))
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(x, n, 2)},
		[]*tensors.Tensor{tensors.FromFlatDataAndDimensions(y, n, 1)}
}

// point is a random point near one of two interlocked half circles, and the number of that half circle.
func point(rng *rand.Rand) (x, y, moon float32) {
	sin, cos := math.Sincos(math.Pi * rng.Float64())
	if rng.IntN(2) == 1 {
		sin, cos, moon = 0.5-sin, 1-cos, 1
	}
	return float32(cos + noise*rng.NormFloat64()), float32(sin + noise*rng.NormFloat64()), moon
}
