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

// TestUnlike has the two buffers begin at every pair of remainders by 16, for each size of
// elements: slices that are sent, combined and kept, kept and passed on, or copied, of a
// few bytes and of several vectors a thread.
func TestUnlike(t *testing.T) {
	tier.Long(t)
	const n = 3
	r := newRig(t, emulated(t, n, cudaemu.Config{Plain: unchecked(true)}), small(n), options(n))
	for _, ty := range []kernels.DataType{kernels.Int8, kernels.BFloat16, kernels.Float32, kernels.Float64} {
		size := ty.Size()
		r.sub(ty.String(), func() {
			for i := range 16 / size {
				for k := range 16 / size {
					if !tier.Pairs() && (i+3*k)%5 > 0 {
						continue
					}
					seed := uint64(16*i + k)
					r.try(trial{name: "reduce", schedule: ring.AllReduce{N: n}, t: ty, op: &kernels.Sum, count: 300 + 5*i + k, in: i,
						out: k}, seed)
					r.try(trial{name: "gather", schedule: ring.AllGather{N: n}, shares: true, t: ty, count: 90 + i + k, in: i, out: k},
						seed)
				}
			}
		})
	}
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
	for _, ty := range []kernels.DataType{kernels.Int8, kernels.BFloat16, kernels.Float32, kernels.Float64} {
		size := ty.Size()
		r.sub(ty.String(), func() {
			for i := range 16 / size {
				for k := range 16 / size {
					if !tier.Pairs() && (i+3*k)%5 > 0 {
						continue
					}
					x := directTrial{d: []Direct{TwoShot, ReduceScatter, AllGather, AllToAll}[(i+k)%4], t: ty,
						count: (1200 + 17*i + k) / size, in: i, out: k}
					if x.d.Reduces() {
						x.op = &kernels.Sum
					}
					o := r.prepareWindow(x, false, uint64(i))
					r.reset(o)
					r.run(o)
					r.check(o)
					r.free()
				}
			}
		})
	}
}

// TestUnlikeDirect is TestUnlikeWindows for direct kernels, and for messages that go as notes.
func TestUnlikeDirect(t *testing.T) {
	tier.Long(t)
	const n = 3
	r := newRig(t, emulated(t, n, cudaemu.Config{Plain: unchecked(true)}), mailed(n), options(n))
	for _, ty := range []kernels.DataType{kernels.Int8, kernels.BFloat16, kernels.Float32} {
		size := ty.Size()
		r.sub(ty.String(), func() {
			for i := range 8 / size {
				for k := range 8 / size {
					if !tier.Pairs() && (i+3*k)%4 > 0 {
						continue
					}
					x := directTrial{d: []Direct{OneShot, TwoShot, ReduceScatter, AllGather}[(i+k)%4], t: ty,
						count: (130 + 17*i + k) / size, in: i, out: k}
					if x.d.Reduces() {
						x.op = &kernels.Sum
					}
					r.tryDirect(x, uint64(i))
					x.count = (i + 3*k) % 9
					r.tryDirect(x, uint64(i))
					r.try(trial{name: "gather", schedule: direct.AllGather{N: n}, shares: true, t: ty, count: (100 + i + 5*k) / size,
						in: i, out: k}, uint64(k))
				}
			}
		})
	}
}
