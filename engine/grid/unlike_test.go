package grid

import (
	"fmt"
	"testing"

	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
)

// remainders calls f for types and pairs of places: how many elements In and Out begin behind a multiple of unit bytes.
func (r *rig) remainders(unit int, types []kernels.DataType, f func(t kernels.DataType, in, out int)) {
	for _, ty := range types {
		r.sub(ty.String(), func() {
			for i := range unit / ty.Size() {
				for k := range unit / ty.Size() {
					if tier.Pairs() || (i+3*k)%5 == 0 {
						f(ty, i, k)
					}
				}
			}
		})
	}
}

var sizes = []kernels.DataType{kernels.Int8, kernels.BFloat16, kernels.Float32, kernels.Float64}

// TestUnlike has the two buffers begin at every pair of remainders by 16, for each size of
// elements: slices that are sent, combined and kept, kept and passed on, or copied, of a
// few bytes and of several vectors a thread.
func TestUnlike(t *testing.T) {
	tier.Long(t)
	const n = 3
	r := newRig(t, emulated(t, n, cudaemu.Config{Plain: unchecked(true)}), small(n), options(n))
	r.remainders(16, sizes, func(ty kernels.DataType, i, k int) {
		r.try(trial{name: "reduce", schedule: ring.AllReduce{N: n}, t: ty, op: &kernels.Sum, count: 300 + 5*i + k, in: i,
			out: k}, uint64(16*i+k))
		r.try(trial{name: "gather", schedule: ring.AllGather{N: n}, shares: true, t: ty, count: 90 + i + k, in: i, out: k},
			uint64(16*i+k))
	})
}

// TestUnlikeInPlace has slices that are stored where they were read, and sent on, begin at
// every remainder: under several orders of threads.
func TestUnlikeInPlace(t *testing.T) {
	tier.Long(t)
	const n = 3
	for _, seed := range tier.Some(3, []uint64{0, 1, 2}) {
		r := newRig(t, emulated(t, n, cudaemu.Config{Seed: seed}), small(n), options(n))
		for i := range 16 {
			r.sub(fmt.Sprint(seed, i), func() {
				r.try(trial{name: "reduce", schedule: ring.AllReduce{N: n}, t: kernels.Int8, op: &kernels.Sum, count: 2000 + i,
					in: i, inPlace: true}, seed)
				r.try(trial{name: "scatter", schedule: ring.ReduceScatter{N: n}, shares: true, t: kernels.Int8, op: &kernels.Sum,
					count: 501 + i, in: i, inPlace: true}, seed)
			})
		}
	}
}

// TestUnlikeWindows has windows' buffers, and the shares in them, begin at every pair of
// remainders by 16.
func TestUnlikeWindows(t *testing.T) {
	tier.Long(t)
	const n = 3
	r := newRig(t, emulated(t, n, cudaemu.Config{Plain: unchecked(true)}), mailed(n), options(n))
	narrow(r)
	r.remainders(16, sizes, func(ty kernels.DataType, i, k int) {
		x := directTrial{d: []Direct{TwoShot, ReduceScatter, AllGather, AllToAll}[(i+k)%4], t: ty,
			count: (1200 + 17*i + k) / ty.Size(), in: i, out: k}
		if x.d.Reduces() {
			x.op = &kernels.Sum
		}
		r.once(r.prepareWindow(x, false, uint64(i)))
	})
}

// TestUnlikeDirect is TestUnlikeWindows for direct kernels, and for messages that go as notes.
func TestUnlikeDirect(t *testing.T) {
	tier.Long(t)
	const n = 3
	r := newRig(t, emulated(t, n, cudaemu.Config{Plain: unchecked(true)}), mailed(n), options(n))
	r.remainders(8, sizes[:3], func(ty kernels.DataType, i, k int) {
		x := directTrial{d: []Direct{OneShot, TwoShot, ReduceScatter, AllGather}[(i+k)%4], t: ty,
			count: (130 + 17*i + k) / ty.Size(), in: i, out: k}
		if x.d.Reduces() {
			x.op = &kernels.Sum
		}
		r.tryDirect(x, uint64(i))
		x.count = (i + 3*k) % 9
		r.tryDirect(x, uint64(i))
		r.try(trial{name: "gather", schedule: direct.AllGather{N: n}, shares: true, t: ty, count: (100 + i + 5*k) / ty.Size(),
			in: i, out: k}, uint64(k))
	})
}
