package grid

import (
	"fmt"
	"math/rand/v2"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/sched"
)

// A trial is an operation of all ranks.
type trial struct {
	name     string
	schedule sched.Schedule
	shares   bool // chunks are the ranks' shares of count elements each, not parts of count elements
	t        kernels.DataType
	op       *kernels.RedOp // nil: copies
	count    int
	in, out  int  // elements by which the buffers are off a multiple of 256 bytes
	inPlace  bool // as far as the collective has such a form
	varied   bool // chunks of different sizes
	scalar   bool // of the operation, in device memory
}

func (x trial) String() string {
	op := "copy"
	if x.op != nil {
		op = x.op.String()
	}
	return fmt.Sprintf("%s/%v/%s/%d elements at %d and %d, in place %v, varied %v", x.name, x.t, op, x.count, x.in, x.out,
		x.inPlace, x.varied)
}

// layouts are where the chunks of a rank lie.
func (x *trial) layouts(rank sched.Rank) (in, out engine.Layout) {
	shape, size := x.schedule.Shape(), x.t.Size()
	switch {
	case x.varied && shape.In > 1 && shape.Out > 1: // from a to b
		n := func(a, b int) int {
			if a == 1 && b == 2 {
				return 0
			}
			return x.count + (2*a+b)%5
		}
		return scattered(n, int(rank), shape.Ranks, size),
			scattered(func(a, b int) int { return n(b, a) }, int(rank), shape.Ranks, size)
	case x.varied: // the share of rank q
		n := func(_, q int) int {
			if q == 1 {
				return 0
			}
			return x.count + q
		}
		all := scattered(n, 0, shape.Ranks, size)
		own := engine.Layout{Total: all.Len[rank], Chunk: all.Len[rank]}
		if shape.In > 1 {
			return all, own
		}
		return own, all
	case x.shares:
		one := x.count * size
		return engine.Layout{Total: shape.In * one, Chunk: one}, engine.Layout{Total: shape.Out * one, Chunk: one}
	}
	in = engine.Even(x.count*size, shape.In, size)
	return in, in
}

// scattered are chunks of n(a, q) elements with an element between some of them.
func scattered(n func(a, q int) int, a, chunks, size int) (l engine.Layout) {
	at := 0
	for q := range chunks {
		l.Off, l.Len = append(l.Off, at*size), append(l.Len, n(a, q)*size)
		at += n(a, q) + q%2
	}
	return l
}

const guard = 64

// buffers are a rank's memory on the host: one image for both buffers in place,
// with guards around.
func (x *trial) buffers(rank sched.Rank, rnd *rand.Rand) (images [][]byte, in, out func([][]byte) []byte, inL,
	outL engine.Layout) {
	inL, outL = x.layouts(rank)
	size := x.t.Size()
	n := func(l engine.Layout, chunks int) int {
		end := 0
		for c := range chunks {
			off, n := l.Extent(c)
			end = max(end, off+n)
		}
		return end
	}
	shape := x.schedule.Shape()
	inN, outN := n(inL, shape.In), n(outL, shape.Out)
	image := func(off, n int) []byte {
		b := make([]byte, guard+off*size+n+guard)
		fill(rnd, x.t, b[:len(b)/size*size])
		return b
	}
	at := func(i, off, n int) func([][]byte) []byte {
		return func(images [][]byte) []byte { return images[i][off : off+n] }
	}
	if !x.inPlace {
		a, b := guard+x.in*size, guard+x.out*size
		return [][]byte{image(x.in, inN), image(x.out, outN)}, at(0, a, inN), at(1, b, outN), inL, outL
	}
	a := guard + x.in*size
	share := int(rank) * x.count * size
	switch {
	case x.shares && shape.In > shape.Out:
		return [][]byte{image(x.in, inN)}, at(0, a, inN), at(0, a+share, outN), inL, outL
	case x.shares && shape.In < shape.Out:
		return [][]byte{image(x.in, outN)}, at(0, a+share, inN), at(0, a, outN), inL, outL
	}
	return [][]byte{image(x.in, inN)}, at(0, a, inN), at(0, a, outN), inL, outL
}

// fill makes numbers near 1, and some of any bits.
func fill(rnd *rand.Rand, t kernels.DataType, b []byte) {
	exponents := map[kernels.DataType]uint64{
		kernels.Float64: 0x3ff << 52, kernels.Float32: 0x7f << 23, kernels.Float16: 15 << 10, kernels.BFloat16: 0x7f << 7,
		kernels.Float8E4M3: 7 << 3, kernels.Float8E5M2: 15 << 2,
	}
	size := t.Size()
	one := exponents[t]
	for at := 0; at < len(b); at += size {
		v := rnd.Uint64()
		if one != 0 && rnd.IntN(8) > 0 { // from 0.5 to 4, both signs
			low := one & -one
			v = v&(1<<(8*size-1)|low-1) | (one + low*(rnd.Uint64N(3)) - low)
		}
		for i := range size {
			b[at+i] = byte(v >> (8 * i))
		}
	}
}

func unit(t kernels.DataType) []byte {
	b := make([]byte, t.Size())
	switch t {
	case kernels.Float32:
		b[2], b[3] = 0x80, 0x3f
	case kernels.BFloat16:
		b[0], b[1] = 0x80, 0x3f
	case kernels.Float64:
		b[6], b[7] = 0xf0, 0x3f
	case kernels.Float16:
		b[1] = 0x3c
	case kernels.Float8E4M3:
		b[0] = 0x38
	case kernels.Float8E5M2:
		b[0] = 0x3c
	default:
		b[0] = 1
	}
	return b
}
