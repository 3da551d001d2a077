package commtest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// Exact is a Config whose reductions are in order of rank.
var Exact = ringo.Config{Deterministic: call.RankOrder}

// With is the Config Exact with the changes of f.
func With(f func(c *ringo.Config)) ringo.Config {
	c := Exact
	f(&c)
	return c
}

// value is an element as a float64.
func value(t ringo.DataType, b []byte) float64 {
	switch t {
	case ringo.Float16:
		return float64(kernels.F16(binary.NativeEndian.Uint16(b)).Float32())
	case ringo.BFloat16:
		return float64(kernels.BF16(binary.NativeEndian.Uint16(b)).Float32())
	case ringo.Float32:
		return float64(math.Float32frombits(binary.NativeEndian.Uint32(b)))
	case ringo.Float64:
		return math.Float64frombits(binary.NativeEndian.Uint64(b))
	case ringo.Float8E4M3:
		return float64(kernels.F8E4M3(b[0]).Float32())
	}
	return float64(kernels.F8E5M2(b[0]).Float32())
}

// element is x in a type's format, rounded to nearest even, NaNs alike.
func element(b []byte, t ringo.DataType, x float64) []byte {
	switch {
	case t == ringo.Float64 && x != x:
		return append(b, bytesOf(uint64(math.MaxInt64))...)
	case t == ringo.Float64:
		return append(b, bytesOf(x)...)
	case t == ringo.Float32 && x != x:
		return append(b, bytesOf(uint32(math.MaxInt32))...)
	}
	return encode(b, t, float32(x))
}

// folded is the result by definition: the ranks' contributions are added one after the other.
func folded(t ringo.DataType, op ringo.RedOp, scales []float64, ins [][]byte) (out []byte) {
	n, size := len(ins), t.Size()
	step := func(x float64) float64 { // of the arithmetic
		if t == ringo.Float64 {
			return x
		}
		return float64(float32(x))
	}
	for at := 0; at < len(ins[0]); at += size {
		var sum float64
		for r, in := range ins {
			x := value(t, in[at:at+size])
			switch op.Kind {
			case kernels.KindAvg:
				x = step(x * step(1/float64(n)))
			case kernels.KindPreMulSum: // is rounded before it is sent
				x = value(t, element(nil, t, step(x*step(scales[r]))))
			}
			switch {
			case r == 0:
				sum = x
			case op.Kind == kernels.KindProd:
				sum = step(sum * x)
			default:
				sum = step(sum + x)
			}
		}
		out = element(out, t, sum)
	}
	return out
}

// A Trial is a reduction with random data.
type Trial struct {
	Kind    ringo.Kind
	Typ     ringo.DataType
	Op      ringo.RedOp
	Count   int
	Root    int
	InPlace bool
	Seed    uint64
}

func (x Trial) String() string {
	return fmt.Sprintf("%v of %d %v, %v, root %d, in place %v, seed %d", x.Kind, x.Count, x.Typ, x.Op, x.Root,
		x.InPlace, x.Seed)
}

// scale of a rank in a PreMulSum: not the same for all.
func (x Trial) scale(r int) float64 { return x.Op.Scale * float64(r+1) / 3 }

// Ins are the ranks' contributions: numbers of very different size, whose sum depends
// on the order in which they are added.
func (x Trial) Ins(n int) [][]byte {
	ins := make([][]byte, n)
	for r := range ins {
		rng := rand.New(rand.NewPCG(x.Seed, uint64(r)))
		in, _ := (&ringo.Call{Kind: x.Kind, Count: x.Count}).Shape(r, n)
		for range in {
			ins[r] = element(ins[r], x.Typ, math.Ldexp(rng.Float64()-0.5, rng.IntN(12)-4))
		}
	}
	return ins
}

// wants is what every rank must get, nil for none.
func (x Trial) wants(ins [][]byte) [][]byte {
	scales := make([]float64, len(ins))
	for r := range scales {
		scales[r] = x.scale(r)
	}
	all := folded(x.Typ, x.Op, scales, ins)
	outs := make([][]byte, len(ins))
	share := x.Count * x.Typ.Size()
	for r := range outs {
		switch {
		case x.Kind == ringo.KindReduceScatter:
			outs[r] = all[r*share : (r+1)*share]
		case x.Kind == ringo.KindAllReduce || r == x.Root:
			outs[r] = all
		}
	}
	return outs
}

// Call is a rank's call; in is its memory, out as well unless it is in place.
func (x Trial) Call(r, n int, in, out ringo.Region) ringo.Call {
	c := ringo.Call{Kind: x.Kind, In: in, Out: out, Count: x.Count, Type: x.Typ, Op: x.Op, Root: x.Root}
	if x.Op.Kind == kernels.KindPreMulSum {
		c.Op = ringo.PreMulSum(x.scale(r))
	}
	if x.InPlace {
		share := x.Count * x.Typ.Size()
		if c.Out = in; x.Kind == ringo.KindReduceScatter {
			c.Out = in.Slice(r*share, share)
		}
	}
	return c
}

// OnHost carries a trial out on host memory.
func (x Trial) OnHost(comms []*ringo.Comm) error {
	n := len(comms)
	ins := x.Ins(n)
	wants := x.wants(ins)
	for r, err := range Each(comms, func(c *ringo.Comm) error {
		r := c.Rank()
		out := make([]byte, len(wants[r]))
		call := x.Call(r, n, mem.Host(bytes.Clone(ins[r])), mem.Host(out))
		if err := c.Do(&call); err != nil {
			return err
		}
		return x.compare(r, wants[r], call.Out.Bytes())
	}) {
		if err != nil {
			return fmt.Errorf("rank %d of %d: %w", r, n, err)
		}
	}
	return nil
}

func (x Trial) compare(r int, want, got []byte) error {
	size := x.Typ.Size()
	if want == nil || bytes.Equal(want, got[:len(want)]) {
		return nil
	}
	for at := 0; at < len(want); at += size {
		if w, g := want[at:at+size], got[at:at+size]; !bytes.Equal(w, g) {
			return fmt.Errorf("%v: rank %d: element %d is %x (%g), want %x (%g)", x, r, at/size, g, value(x.Typ, g), w,
				value(x.Typ, w))
		}
	}
	return nil
}

// OrderedOps are the reductions whose bits depend on the order.
var OrderedOps = []ringo.RedOp{ringo.Sum, ringo.Prod, ringo.Avg, ringo.PreMulSum(0.3)}

var (
	FloatTypes = []ringo.DataType{ringo.Float16, ringo.Float32, ringo.Float64, ringo.BFloat16, ringo.Float8E4M3,
		ringo.Float8E5M2}
	Reductions = []ringo.Kind{ringo.KindAllReduce, ringo.KindReduce, ringo.KindReduceScatter}
)

// Trials are all reductions of n ranks, with counts in turn.
func Trials(n int, counts ...int) (all []Trial) {
	for _, kind := range Reductions {
		for _, typ := range FloatTypes {
			for _, op := range OrderedOps {
				i := len(all)
				all = append(all, Trial{kind, typ, op, counts[i%len(counts)], i % n, i/len(counts)%2 == 1, uint64(i)})
			}
		}
	}
	return all
}

// OnGPUs carries a trial out on GPU memory, which it allocates unless memory is given.
// It allocates and frees nothing beside the operation: such calls may wait for all
// kernels of a GPU, which ranks may share.
func (x Trial) OnGPUs(comms []*ringo.Comm, memory ...ringo.Region) error {
	n := len(comms)
	ins := x.Ins(n)
	wants := x.wants(ins)
	own := len(memory) == 0
	if own {
		memory = make([]ringo.Region, n)
	}
	calls := make([]ringo.Call, n)
	for _, step := range []func(r int, c *ringo.Comm, d *gpu.Device) error{
		func(r int, _ *ringo.Comm, d *gpu.Device) (err error) {
			if half := max(len(ins[r]), len(wants[r]), 16); own {
				if memory[r], err = d.Alloc(2 * half); err != nil {
					return err
				}
			}
			half := memory[r].Len() / 2
			room := half
			if x.Count == 0 {
				room = 0 // a call that moves nothing has no memory
			}
			calls[r] = x.Call(r, n, memory[r].Slice(0, room), memory[r].Slice(half, room))
			calls[r].Stream, err = d.NewStream()
			return errors.Join(err, d.Write(memory[r].Slice(0, len(ins[r])), ins[r]))
		},
		func(r int, c *ringo.Comm, _ *gpu.Device) error {
			return errors.Join(c.Do(&calls[r]), c.Synchronize(calls[r].Stream))
		},
		func(r int, _ *ringo.Comm, d *gpu.Device) error {
			got := make([]byte, len(wants[r]))
			err := errors.Join(d.Read(got, calls[r].Out.Slice(0, len(got))), d.DestroyStream(calls[r].Stream))
			if own {
				err = errors.Join(err, d.Free(memory[r]))
			}
			return errors.Join(err, x.compare(r, wants[r], got))
		},
	} {
		for r, err := range Each(comms, func(c *ringo.Comm) error { return step(c.Rank(), c, c.Device()) }) {
			if err != nil {
				return fmt.Errorf("rank %d of %d: %w", r, n, err)
			}
		}
	}
	return nil
}
