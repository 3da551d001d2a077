package main

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// lossOf is the sum of the cross-entropies of a network with these parameters,
// computed in float64 and in the simplest way.
func lossOf(widths []int, params [][]float64, inputs [][]float64, labels []byte) float64 {
	var loss float64
	for s, x := range inputs {
		for l, p := range params {
			in, out := widths[l], widths[l+1]
			y := make([]float64, out)
			for j := range out {
				y[j] = p[in*out+j]
				for i := range in {
					y[j] += x[i] * p[i*out+j]
				}
				if l < len(params)-1 {
					y[j] = math.Max(y[j], 0)
				}
			}
			x = y
		}
		var sum float64
		for _, v := range x {
			sum += math.Exp(v)
		}
		loss += math.Log(sum) - x[labels[s]]
	}
	return loss
}

// Gradients are the finite differences of lossOf, an independent implementation.
func TestGradient(t *testing.T) {
	for name, widths := range map[string][]int{
		"linear": {5, 3}, "one hidden": {6, 7, 4}, "two hidden": {4, 8, 5, 3}, "one class": {3, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			const samples = 5
			n := newNetwork(samples+1, widths...) // a larger capacity must not matter
			n.randomize(rng)
			params := make([][]float64, len(n.layers))
			for l, p := range n.layers {
				for i := range p.params {
					p.params[i] += 0.1 * float32(rng.NormFloat64()) // biases too
					params[l] = append(params[l], float64(p.params[i]))
				}
			}
			var inputs [][]float64
			var labels []byte
			for s := range samples {
				image := make([]byte, widths[0])
				var x []float64
				for i := range image {
					image[i] = byte(rng.IntN(256))
					x = append(x, float64(image[i])/255)
				}
				n.input(s, image)
				inputs = append(inputs, x)
				labels = append(labels, byte(rng.IntN(widths[len(widths)-1])))
			}

			n.forward(samples)
			loss, _ := n.judge(labels)
			require.InDelta(t, lossOf(widths, params, inputs, labels), loss, 1e-5)
			var order []int
			n.backward(samples, func(l int) { order = append(order, l) })
			for i, l := range order {
				require.Equal(t, len(n.layers)-1-i, l, "last layer first")
			}
			const eps = 1e-6
			for l, p := range n.layers {
				for i := range p.params {
					v := params[l][i]
					params[l][i] = v + eps
					up := lossOf(widths, params, inputs, labels)
					params[l][i] = v - eps
					down := lossOf(widths, params, inputs, labels)
					params[l][i] = v
					require.InDelta(t, (up-down)/(2*eps), p.grads[i], 1e-4, "layer %d, parameter %d", l, i)
				}
			}
		})
	}
}

// Gradients of parts sum to the gradient of the whole, and no samples have gradient 0.
func TestGradientOfParts(t *testing.T) {
	d := makeGlyphs(1, 1, 9)
	gradient := func(low, high int) []float32 {
		n := newNetwork(9, d.pixels, 6, glyphClasses)
		n.randomize(rand.New(rand.NewPCG(3, 4)))
		for i := low; i < high; i++ {
			n.input(i-low, d.image(i))
		}
		n.forward(high - low)
		n.judge(d.labels[low:high])
		n.backward(high-low, func(int) {})
		return n.layers[0].grads
	}
	whole, a, b := gradient(0, 9), gradient(0, 4), gradient(4, 9)
	for i := range whole {
		require.InDelta(t, whole[i], a[i]+b[i], 1e-4)
	}
	for _, g := range gradient(3, 3) {
		require.Zero(t, g)
	}
}

func TestJudge(t *testing.T) {
	n := newNetwork(2, 1, 3)
	copy(n.acts[1], []float32{0, 0, 0, 1e4, 0, -1e4}) // sample 1 overflows a naive softmax
	loss, correct := n.judge([]byte{1, 0})
	require.InDelta(t, math.Log(3), loss, 1e-6)
	require.Equal(t, 1, correct)
	require.InDeltaSlice(t, []float64{1. / 3, -2. / 3, 1. / 3, 0, 0, 0}, n.delta[0], 1e-6)
}

func TestDescend(t *testing.T) {
	n := newNetwork(1, 1, 1)
	l := n.layers[0]
	for range 2 {
		copy(l.grads, []float32{8, -8})
		n.descend(0.5, 0.5, 0.25)
	}
	require.Equal(t, []float32{-1 - 1.5, 1 + 1.5}, l.params) // velocity 2, then 3
}
