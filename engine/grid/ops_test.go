package grid

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/sched"
)

// A reduction is a type with an operator.
type reduction struct {
	t  kernels.DataType
	op kernels.RedOp
}

func (r reduction) String() string { return fmt.Sprintf("%v/%v", r.t, r.op) }

// reductions are all pairs, or some in which each type and each operator occurs, with whole numbers and with floats.
func reductions() (all []reduction) {
	for i, t := range kernels.Types() {
		for k, op := range ops(t) {
			if tier.Pairs() || (i+k)%5 == 0 {
				all = append(all, reduction{t, op})
			}
		}
	}
	return all
}

// ops are all reductions of t, scaled ones with scalars that round or wrap.
func ops(t kernels.DataType) []kernels.RedOp {
	all := []kernels.RedOp{kernels.Sum, kernels.Prod, kernels.Max, kernels.Min, kernels.Avg}
	switch t {
	case kernels.Float16, kernels.BFloat16, kernels.Float32, kernels.Float64, kernels.Float8E4M3, kernels.Float8E5M2:
		return append(all, kernels.PreMulSum(1.0/3))
	}
	return append(all, kernels.BitAnd, kernels.BitOr, kernels.BitXor, kernels.PreMulSumInt(-7))
}

// TestOps runs every type and reduction through schedules in which contributions are sent as they are or scaled,
// combined with what came, and combined in place: with vectors and with elements, by threads and by bulk copies.
func TestOps(t *testing.T) {
	tier.Long(t)
	const n = 3
	d := emulated(t, n, cudaemu.Config{Plain: true})
	for _, bulk := range []bool{false, true} {
		o := options(n)
		if bulk {
			o = bulkOptions(n)
		}
		r := newRig(t, d, small(n), o)
		if bulk {
			r.bulky(func(int) bool { return true })
		}
		for i, red := range reductions() {
			r.sub(fmt.Sprint(red, " bulk ", bulk), func() {
				x := trial{name: "ring", schedule: ring.AllReduce{N: n}, t: red.t, op: &red.op, count: 500/red.t.Size() + 5}
				for in := range 2 {
					if !bulk || tier.Pairs() || in == i%2 {
						x.in = in
						r.try(x, uint64(i))
					}
				}
				r.try(trial{name: "oneshot", schedule: direct.OneShot{N: n}, t: red.t, op: &red.op, count: 300 / red.t.Size(),
					inPlace: true}, uint64(i))
			})
		}
	}
}

// TestScalarOnDevice takes the scalar from device memory.
func TestScalarOnDevice(t *testing.T) {
	const n = 2
	r := newRig(t, emulated(t, n, cudaemu.Config{}), small(n), options(n))
	for _, ty := range []kernels.DataType{kernels.BFloat16, kernels.Float32, kernels.Float64, kernels.Int8,
		kernels.Int64} {
		op := kernels.PreMulSum(3)
		r.try(trial{name: "ring", schedule: ring.AllReduce{N: n}, t: ty, op: &op, count: 100, scalar: true}, 1)
	}
}

// TestPlaces moves elements of all sizes between memory that lies in all ways,
// in all amounts up to some rounds.
func TestPlaces(t *testing.T) {
	const n = 2
	r := newRig(t, emulated(t, n, cudaemu.Config{}), small(n), options(n))
	types := []kernels.DataType{kernels.Int8, kernels.BFloat16, kernels.Float32, kernels.Float64}
	counts := []int{0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 127, 128, 129, 1000, 5000}
	for i, count := range counts {
		r.sub(fmt.Sprint(count), func() {
			for k, ty := range types {
				if !tier.Pairs() && (i+k)%4 > 0 {
					continue
				}
				x := trial{name: "ring", schedule: ring.AllReduce{N: n}, t: ty, op: &kernels.Sum, count: count / ty.Size() * 2,
					in: (i + k) % 3, out: i % 2}
				r.try(x, uint64(i))
				x.inPlace = true
				r.try(x, uint64(i))
				x = trial{name: "gather", schedule: ring.AllGather{N: n}, shares: true, t: ty, count: count / ty.Size(), in: k % 2,
					out: (i + k) % 4}
				r.try(x, uint64(i))
			}
		})
	}
}

// TestVaried has chunks of different sizes, some of them empty.
func TestVaried(t *testing.T) {
	const n = 4
	r := newRig(t, emulated(t, n, cudaemu.Config{}), small(n), options(n))
	for i, c := range []struct {
		name     string
		schedule sched.Schedule
		op       *kernels.RedOp
	}{
		{"allgather", ring.AllGather{N: n}, nil},
		{"alltoall", direct.AlltoAll{N: n}, nil},
		{"reducescatter", ring.ReduceScatter{N: n}, &kernels.Sum},
		{"gather", direct.Gather{N: n, Root: 1}, nil},
		{"scatter", direct.Scatter{N: n, Root: 2}, nil},
	} {
		for _, count := range []int{0, 1, 300} {
			r.sub(fmt.Sprintf("%s/%d", c.name, count), func() {
				r.try(trial{name: c.name, schedule: c.schedule, t: kernels.Float32, op: c.op, count: count, varied: true},
					uint64(i))
			})
		}
	}
}

// TestAgreement: a program has the lanes of its narrowest connection, and a
// schedule with much scratch has smaller pieces.
func TestAgreement(t *testing.T) {
	const n = 8
	board := Board{Ranks: n, MailBytes: 128, Near: Geometry{64, 4, 64 << 10, 0}, Far: Geometry{16, 8, 32 << 10, 0}}
	links := board.Links(0, make([]uint64, n))
	var p Program
	for _, test := range []struct {
		s                          sched.Schedule
		lanes, slots, slice, piece int
	}{
		{ring.AllReduce{N: n}, 64, 4, 64 << 10, 128 << 10},
		{direct.TwoShot{N: n}, 16, 4, 32 << 10, 64 << 10},
		{direct.OneShot{N: n}, 4, 4, 32 << 10, 64 << 10},
		{direct.LogReduceScatter{N: n}, 16, 4, 32 << 10, 64 << 10},
	} {
		p = Program{shape: test.s.Shape()}
		p.shapeOf(test.s, links)
		require.Equal(t, []int{test.lanes, test.slots, test.slice, test.piece}, []int{p.lanes, p.slots, p.slice, p.piece},
			"%T", test.s)
	}
	p = Program{shape: sched.Shape{Ranks: n, In: 1, Out: 1, Tmp: 100}}
	p.shapeOf(ring.AllReduce{N: n}, links)
	require.LessOrEqual(t, p.lanes*100*p.piece, maxTmp)
	require.Zero(t, p.piece%128)
}
