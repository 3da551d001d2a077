package device

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// The data of the comparisons are ordinary numbers, which round, and edge cases.

// formats are the numbers of bits of the exponent and the mantissa of floats.
var formats = map[kernels.DataType][2]int{
	kernels.Float64: {11, 52}, kernels.Float32: {8, 23}, kernels.Float16: {5, 10}, kernels.BFloat16: {8, 7},
	kernels.Float8E4M3: {4, 3}, kernels.Float8E5M2: {5, 2},
}

// edges are bit patterns worth trying.
func edges(t kernels.DataType) []uint64 {
	top := uint64(1) << (8*t.Size() - 1)
	f, ok := formats[t]
	if !ok {
		return []uint64{0, 1, top - 1, top, 2*top - 1}
	}
	inf, one := (uint64(1)<<f[0]-1)<<f[1], (uint64(1)<<(f[0]-1)-1)<<f[1]
	least := uint64(1) << f[1]
	var all []uint64
	for _, v := range []uint64{0, 1, least - 1, least, one, one + 1, inf - 1, inf, inf + 1, inf | least>>1, top - 1} {
		all = append(all, v, v|top)
	}
	return all
}

// fill makes elements: any bits, edges, and numbers near 1.
func fill(r *rand.Rand, t kernels.DataType, b []byte) {
	special := edges(t)
	f := formats[t]
	for at := 0; at < len(b); at += t.Size() {
		v := r.Uint64()
		switch k := r.IntN(8); {
		case k < 2:
			v = special[r.IntN(len(special))]
		case k < 6 && f[0] > 0:
			one := (uint64(1)<<(f[0]-1) - 1) << f[1]
			v = v&(1<<(8*t.Size()-1)|1<<(f[1]+1)-1) ^ one // 0.5 to 2 or so, both signs
		}
		put(b[at:at+t.Size()], v)
	}
}

func put(b []byte, v uint64) {
	for i := range b {
		b[i] = byte(v >> (8 * i))
	}
}

// ops are all reductions of t, scaled ones with scalars that round or wrap.
func ops(t kernels.DataType) []kernels.RedOp {
	all := []kernels.RedOp{kernels.Sum, kernels.Prod, kernels.Max, kernels.Min, kernels.Avg}
	if _, float := formats[t]; float {
		return append(all, kernels.PreMulSum(1.0/3), kernels.PreMulSum(-3e5))
	}
	return append(all, kernels.BitAnd, kernels.BitOr, kernels.BitXor, kernels.PreMulSumInt(-7),
		kernels.PreMulSumInt(1<<62+12345))
}

// combiners are one Combiner with the kernels for the device, and one with the kernels
// for the oldest devices.
func combiners(t testing.TB, d cuda.Driver, ctx cuda.Context) []*Combiner {
	t.Helper()
	var all []*Combiner
	for _, capability := range []int{1000, 70} {
		c, err := New(d, ctx)
		require.NoError(t, err)
		c.capability = min(c.capability, capability)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		all = append(all, c)
	}
	return all
}

// A trial is one launch.
type trial struct {
	r             *kernels.Reducer
	k, count      int
	contributions uint64
	finish        bool
	offsets       []int // of dst and of the sources from a multiple of 256 bytes, in elements
	over          int   // index of the source that is dst too, -1 for none
	scalar        bool  // the scalar lies in device memory
	plain         bool
	threads       int // at most
	blocks        int // at most
}

func (x trial) String() string {
	return fmt.Sprintf("%d sources of %d elements at %v, contributions %b, finish %v, over %d, scalar on device %v, "+
		"plain %v, %d blocks of %d",
		x.k, x.count, x.offsets, x.contributions, x.finish, x.over, x.scalar, x.plain, x.blocks, x.threads)
}

// trials are launches of each number of sources on both kernels; all other fields
// are random.
func trials(rnd *rand.Rand, r *kernels.Reducer) []trial {
	size := r.Type().Size()
	p, _ := r.Program()
	var all []trial
	for k := 1; k <= MaxSources; k++ {
		for _, plain := range []bool{false, true} {
			x := trial{r: r, k: k, plain: plain, over: -1, blocks: 1 + rnd.IntN(2), threads: 32 << rnd.IntN(2)}
			x.contributions = []uint64{0, 1<<k - 1, rnd.Uint64N(1 << k)}[rnd.IntN(3)]
			x.finish = rnd.IntN(2) == 0
			x.scalar = p.Op == "premulsum" && rnd.IntN(3) == 0
			round := x.blocks * x.threads * 32 / size // elements of one turn of the grid
			x.count = []int{1, 2 + rnd.IntN(32), round / 3, round + rnd.IntN(round/2), 2*round + 1}[rnd.IntN(5)]
			if plain {
				x.count = min(x.count, 3*x.blocks*x.threads-5)
			}
			for range k + 1 {
				x.offsets = append(x.offsets, rnd.IntN(32/size))
			}
			if rnd.IntN(4) > 0 { // the same for all
				for i := range x.offsets {
					x.offsets[i] = x.offsets[0]%(16/size) + rnd.IntN(2)*16/size
				}
			}
			if rnd.IntN(3) == 0 {
				x.over = rnd.IntN(k)
			}
			all = append(all, x)
		}
	}
	return all
}

// TestCombine compares both kernels with the Go arithmetic, bit for bit, and
// looks for stores outside of dst.
func TestCombine(t *testing.T) {
	tier.Long(t)
	d := gputest.Driver(t)
	_, ctx := gputest.Context(t, d, 0)
	for _, c := range combiners(t, d, ctx) {
		for _, ty := range kernels.Types() {
			for i, op := range ops(ty) {
				if !tier.Full() && (i+int(ty))%3 > 0 {
					continue // each operator is tried on some types
				}
				r := reducer(t, ty, op, 5)
				k, err := c.Kernel(r)
				require.NoError(t, err)
				if k.m.name.SM == 70 && c.capability > 70 {
					continue // the other Combiner has it too
				}
				t.Run(fmt.Sprintf("%v/%v/sm_%d", ty, op, k.m.name.SM), func(t *testing.T) {
					require.NoError(t, cuda.With(d, ctx, func() error {
						rnd := rand.New(rand.NewPCG(uint64(ty), uint64(i)))
						for range tier.Count(1, 2) {
							for _, x := range trials(rnd, r) {
								try(t, d, &k, x)
							}
						}
						return nil
					}))
				})
			}
		}
	}
}

const guard = 64 // bytes around dst

func try(t *testing.T, d cuda.Driver, k *Kernel, x trial) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(9, uint64(x.count)))
	ty := x.r.Type()
	size := ty.Size()
	n := x.count * size

	var held []uintptr
	defer func() {
		for _, p := range held {
			require.NoError(t, d.MemFree(p))
		}
	}()
	upload := func(b []byte) uintptr {
		p, err := d.MemAlloc(len(b))
		require.NoError(t, err)
		held = append(held, p)
		require.NoError(t, cuda.Write(d, p, b))
		return p
	}
	device := int(k.c.device)

	// Sources end with their allocations; dst lies between guards.
	srcs, images := make([][]byte, x.k), make([][]byte, x.k)
	a := Args{Contributions: x.contributions, Finish: x.finish}
	for i := range srcs {
		images[i] = bytes.Repeat([]byte{0xa5}, guard+x.offsets[i+1]*size+n)
		srcs[i] = images[i][len(images[i])-n:]
		fill(rnd, ty, srcs[i])
		if i == x.over {
			images[i] = append(images[i], bytes.Repeat([]byte{0xa5}, guard)...)
			srcs[i] = images[i][len(images[i])-guard-n:][:n]
		}
		a.Srcs = append(a.Srcs, mem.Device(device, upload(images[i])+uintptr(guard+x.offsets[i+1]*size), n))
	}
	out := bytes.Repeat([]byte{0x5a}, 2*guard+x.offsets[0]*size+n)
	at := guard + x.offsets[0]*size
	if x.over >= 0 {
		out, at = slices.Clone(images[x.over]), guard+x.offsets[x.over+1]*size
		a.Dst = a.Srcs[x.over]
	} else {
		a.Dst = mem.Device(device, upload(out)+uintptr(at), n)
	}
	r := x.r
	if x.scalar {
		var scalar []byte
		r, scalar = otherScalar(t, rnd, ty)
		a.Scalar = upload(scalar)
	}
	r.CombineAll(out[at:at+n], srcs, x.contributions, x.finish)

	m := *k.m
	f := &m.combine
	if x.plain {
		f = &m.plain
	}
	f.threads, f.maxBlocks = x.threads, x.blocks
	small := Kernel{k.c, &m, k.t, k.program}
	require.NoError(t, small.launch(f, 0, &a), x)
	require.NoError(t, d.CtxSynchronize(), x)

	got := make([]byte, len(out))
	require.NoError(t, d.MemcpyDtoH(got, a.Dst.Ptr()-uintptr(at)), x)
	if !bytes.Equal(out, got) {
		t.Fatalf("%v: %s", x, difference(ty, srcs, out, got, at))
	}
	for i, image := range images {
		if i != x.over {
			got := make([]byte, len(image))
			require.NoError(t, d.MemcpyDtoH(got, a.Srcs[i].Ptr()-uintptr(len(image)-n)))
			require.True(t, bytes.Equal(image, got), "%v changed source %d", x, i)
		}
	}
}

// otherScalar makes a random scalar: the reduction that has it, and its bytes for device memory.
func otherScalar(t *testing.T, rnd *rand.Rand, ty kernels.DataType) (*kernels.Reducer, []byte) {
	b := make([]byte, ty.Size())
	fill(rnd, ty, b)
	var v uint64
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	var op kernels.RedOp
	switch ty {
	case kernels.Float64:
		op = kernels.PreMulSum(math.Float64frombits(v))
	case kernels.Float32:
		op = kernels.PreMulSum(float64(math.Float32frombits(uint32(v))))
	case kernels.Float16:
		op = kernels.PreMulSum(float64(kernels.F16(v).Float32()))
	case kernels.BFloat16:
		op = kernels.PreMulSum(float64(kernels.BF16(v).Float32()))
	case kernels.Float8E4M3:
		op = kernels.PreMulSum(float64(kernels.F8E4M3(v).Float32()))
	case kernels.Float8E5M2:
		op = kernels.PreMulSum(float64(kernels.F8E5M2(v).Float32()))
	default:
		op = kernels.PreMulSumInt(int64(v))
	}
	return reducer(t, ty, op, 5), b
}

// difference describes the first element in which got differs from want; the result begins at byte at.
func difference(t kernels.DataType, srcs [][]byte, want, got []byte, at int) string {
	size := t.Size()
	for i := range want {
		switch e := (i - at) / size; {
		case want[i] == got[i]:
		case i < at || e >= len(srcs[0])/size:
			return fmt.Sprintf("byte %d, which is not of dst, was written", i-at)
		default:
			s := ""
			for _, src := range srcs {
				s += fmt.Sprintf(" %x", src[e*size:(e+1)*size])
			}
			return fmt.Sprintf("element %d is %x, want %x, of%s (little endian)",
				e, got[at+e*size:at+(e+1)*size], want[at+e*size:at+(e+1)*size], s)
		}
	}
	return "lengths differ"
}
