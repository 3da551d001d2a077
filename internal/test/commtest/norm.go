package commtest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// A NormTrial is a call with a Norm of all ranks.
type NormTrial struct {
	kernels.Norm
	Kind                   ringo.Kind
	Rows                   int // of a rank's result
	Residual, Bias, Weight bool
	Scale                  float32 // 0: each row's own
	InPlace                bool    // the sum is the residual, the normed rows are In's
	Sum, Normed            bool    // the results that are wanted
}

// RandomNorm is a random trial of few rows.
func RandomNorm(rnd *rand.Rand) NormTrial {
	coin := func() bool { return rnd.IntN(2) == 0 }
	x := NormTrial{
		Kind: []ringo.Kind{ringo.KindAllReduce, ringo.KindReduceScatter}[rnd.IntN(2)], Rows: rnd.IntN(7),
		Residual: coin(), Bias: coin(), Weight: coin(), InPlace: coin(), Sum: coin(), Normed: coin(),
	}
	x.Type = []ringo.DataType{ringo.BFloat16, ringo.Float16, ringo.Float32}[rnd.IntN(3)]
	x.Row, x.Epsilon, x.PlusOne = 8/x.Type.Size()*(1+rnd.IntN(60)), []float32{0, 1e-6}[rnd.IntN(2)], coin()
	if coin() {
		x.Small = []ringo.DataType{ringo.Float8E4M3, ringo.Int8}[rnd.IntN(2)]
		if coin() {
			x.Scale = 0.03
		}
	}
	return x
}

// floats are n random elements of a type.
//
//go:norace
func (x *NormTrial) floats(rnd *rand.Rand, n int) (b []byte) {
	for range n {
		b = encode(b, x.Type, float32(rnd.NormFloat64()))
	}
	return b
}

// Try carries out the trial and compares every byte of every rank with kernels.Norm. Memory is on the ranks' GPUs, or
// the host's.
func (x NormTrial) Try(comms []*ringo.Comm, seed uint64, onGPU bool) error {
	rnd := rand.New(rand.NewPCG(seed, 9))
	n, size := len(comms), x.Type.Size()
	all := x.Rows * x.Row // elements of a result
	whole := all
	if x.Kind == ringo.KindReduceScatter {
		whole *= n
	}
	ins, bias, weight, residual := make([][]byte, n), x.floats(rnd, x.Row), x.floats(rnd, x.Row), x.floats(rnd, whole)
	for r := range ins {
		ins[r] = x.floats(rnd, whole)
	}
	return errors.Join(Each(comms, func(c *ringo.Comm) (err error) {
		first := 0
		if x.Kind == ringo.KindReduceScatter {
			first = c.Rank() * all * size
		}
		want := kernels.NormRows{Scale: x.Scale}
		for _, in := range ins {
			want.In = append(want.In, in[first:][:all*size])
		}
		some := func(is bool, b []byte) []byte {
			if is {
				return b
			}
			return nil
		}
		want.Residual, want.Bias, want.Weight = some(x.Residual, residual[first:][:all*size]), some(x.Bias, bias),
			some(x.Weight, weight)
		want.Sum, want.Normed = some(x.Sum, make([]byte, all*size)), some(x.Normed, make([]byte, all*size))
		want.Small, want.Scales = some(x.Small != 0, make([]byte, all)),
			some(x.Small != 0 && x.Scale == 0, make([]byte, 4*x.Rows))
		x.Apply(&want)

		var placed []ringo.Region // on the GPU
		place := func(b []byte) ringo.Region {
			b = bytes.Clone(b)
			if !onGPU {
				return mem.Host(b)
			}
			if len(b) == 0 {
				return mem.Device(c.Device().Number(), 0, 0)
			}
			r, failed := c.Device().Alloc(len(b))
			err = errors.Join(err, failed)
			if failed == nil {
				placed = append(placed, r)
				err = errors.Join(err, c.Device().Write(r, b))
			}
			return r
		}
		in, res := place(ins[c.Rank()]), place(want.Residual)
		norm := &ringo.Norm{
			Row: x.Row, Epsilon: x.Epsilon, PlusOne: x.PlusOne, Residual: res, Bias: place(want.Bias),
			Weight: place(want.Weight),
			Small:  x.Small, SmallOut: place(want.Small), Scales: place(want.Scales),
		}
		if x.Small != 0 && x.Scale != 0 {
			norm.Scale = place(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x.Scale)))
		}
		call := &ringo.Call{Kind: x.Kind, In: in, Count: all, Type: x.Type, Norm: norm, Out: place(want.Sum)}
		norm.Normed = place(want.Normed)
		if x.InPlace && x.Sum && x.Residual {
			call.Out = res
		}
		if x.InPlace && x.Normed {
			norm.Normed = in.Slice(first, all*size)
		}
		outs := []struct {
			name string
			at   ringo.Region
			want []byte
		}{{"sum", call.Out, want.Sum}, {"normed", norm.Normed, want.Normed}, {"small", norm.SmallOut, want.Small},
			{"scales", norm.Scales, want.Scales}}
		if err == nil {
			err = c.Do(call)
		}
		if err == nil && onGPU {
			err = c.Synchronize(0)
		}
		for _, o := range outs {
			if err != nil || len(o.want) == 0 {
				continue
			}
			got := make([]byte, len(o.want))
			if onGPU {
				err = c.Device().Read(got, o.at.Slice(0, len(got)))
			} else {
				copy(got, o.at.Bytes())
			}
			if !bytes.Equal(got, o.want) {
				err = errors.Join(err, fmt.Errorf("%+v: rank %d: %s is not what it should be", x, c.Rank(), o.name))
			}
		}
		for _, r := range placed {
			err = errors.Join(err, c.Device().Free(r))
		}
		return err
	})...)
}
