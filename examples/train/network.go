package main

import (
	"math"
	"math/rand/v2"
)

// A layer is y = x·W + b. W [in][out] and b [out] lie in one slice, and so do
// their gradients: a layer is one all-reduce.
type layer struct {
	in, out  int
	params   []float32 // W, then b
	grads    []float32 // ∂(sum of the samples' losses) by params
	velocity []float32
}

// A network is layers with max(0, y) between them: a multi-layer perceptron. acts
// and delta hold the values of a forward and a backward pass, a row for each sample.
type network struct {
	layers []layer
	acts   [][]float32 // acts[l] [capacity·in of layer l] is the input of layer l; the last is the output
	delta  [][]float32 // delta[l] [capacity·out of layer l] is ∂loss/∂output of layer l
}

// newNetwork makes a network of these widths, input first, for up to capacity
// samples at a time. Its parameters are zero; see randomize.
func newNetwork(capacity int, widths ...int) *network {
	n := &network{acts: [][]float32{make([]float32, capacity*widths[0])}}
	for i, out := range widths[1:] {
		size := (widths[i] + 1) * out
		n.layers = append(n.layers, layer{
			in: widths[i], out: out,
			params: make([]float32, size), grads: make([]float32, size), velocity: make([]float32, size),
		})
		n.acts = append(n.acts, make([]float32, capacity*out))
		n.delta = append(n.delta, make([]float32, capacity*out))
	}
	return n
}

// size is the number of parameters.
func (n *network) size() (sum int) {
	for _, l := range n.layers {
		sum += len(l.params)
	}
	return sum
}

// randomize draws the weights with variance 2/in and leaves the biases zero.
//
// Source: K. He et al., "Delving Deep into Rectifiers", 2015, section 2.2.
func (n *network) randomize(rng *rand.Rand) {
	for _, l := range n.layers {
		scale := math.Sqrt(2 / float64(l.in))
		for i := range l.params[:l.in*l.out] {
			l.params[i] = float32(scale * rng.NormFloat64())
		}
	}
}

// input stores the picture of sample s, as numbers from 0 to 1.
func (n *network) input(s int, image []byte) {
	x := row(n.acts[0], s, n.layers[0].in)
	for i, p := range image {
		x[i] = float32(p) / 255
	}
}

func row(rows []float32, i, width int) []float32 { return rows[i*width : (i+1)*width] }

// forward computes the outputs of samples 0…count-1.
func (n *network) forward(count int) {
	for l, p := range n.layers {
		last := l == len(n.layers)-1
		for s := range count {
			x, y := row(n.acts[l], s, p.in), row(n.acts[l+1], s, p.out)
			copy(y, p.params[p.in*p.out:])
			for i, xi := range x {
				if xi != 0 { // half of the pixels and of the hidden values are 0
					axpy(y, xi, row(p.params, i, p.out))
				}
			}
			if !last {
				for j := range y {
					y[j] = max(y[j], 0)
				}
			}
		}
	}
}

// axpy adds a·x to y.
func axpy(y []float32, a float32, x []float32) {
	x = x[:len(y)]
	for i := range y {
		y[i] += a * x[i]
	}
}

// dot is x·y.
func dot(x, y []float32) (sum float32) {
	y = y[:len(x)]
	for i := range x {
		sum += x[i] * y[i]
	}
	return sum
}

// judge compares the outputs with the labels. It returns the sum of the cross-entropies
// after softmax, and how many samples have their largest output at the label. For
// backward it leaves the gradient in delta: softmax − one-hot.
func (n *network) judge(labels []byte) (loss float64, correct int) {
	top := len(n.layers) - 1
	width := n.layers[top].out
	for s, label := range labels {
		y, d := row(n.acts[top+1], s, width), row(n.delta[top], s, width)
		best := 0
		for j := range y {
			if y[j] > y[best] {
				best = j
			}
		}
		var sum float64
		for j := range y {
			e := math.Exp(float64(y[j] - y[best]))
			d[j] = float32(e)
			sum += e
		}
		for j := range d {
			d[j] /= float32(sum)
		}
		d[label]--
		loss += math.Log(sum) - float64(y[label]-y[best])
		if best == int(label) {
			correct++
		}
	}
	return loss, correct
}

// backward computes the gradients of the loss that judge found, from the last
// layer to the first, and calls ready as soon as those of a layer are complete:
// from then on it does not touch them any more.
func (n *network) backward(count int, ready func(l int)) {
	for l := len(n.layers) - 1; l >= 0; l-- {
		p := n.layers[l]
		clear(p.grads)
		bias := p.grads[p.in*p.out:]
		for s := range count {
			d := row(n.delta[l], s, p.out)
			for i, xi := range row(n.acts[l], s, p.in) {
				if xi != 0 {
					axpy(row(p.grads, i, p.out), xi, d)
				}
			}
			axpy(bias, 1, d)
		}
		ready(l)
		if l == 0 {
			break
		}
		for s := range count {
			d, below := row(n.delta[l], s, p.out), row(n.delta[l-1], s, p.in)
			for i, xi := range row(n.acts[l], s, p.in) {
				below[i] = 0
				if xi > 0 { // where max(0, y) is 0 the gradient is 0
					below[i] = dot(d, row(p.params, i, p.out))
				}
			}
		}
	}
}

// descend makes a step of gradient descent with momentum, on gradients times
// scale. The conversions keep the compiler from fusing multiplication and addition,
// which some processors would round differently. So ranks on different machines
// compute the same bits.
func (n *network) descend(rate, momentum, scale float32) {
	for _, l := range n.layers {
		for i, g := range l.grads {
			l.velocity[i] = float32(momentum*l.velocity[i]) + float32(g*scale)
			l.params[i] -= float32(rate * l.velocity[i])
		}
	}
}
