package grid

import (
	"fmt"
	"testing"

	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
)

// TestDirectOps runs every type and reduction, with words and with elements.
func TestDirectOps(t *testing.T) {
	tier.Long(t)
	const n = 3
	r := newRig(t, emulated(t, n, cudaemu.Config{Plain: true}), mailed(n), options(n))
	torn := newRig(t, emulated(t, n, cudaemu.Config{Link: link(1)}), mailed(n), options(n))
	for i, red := range reductions() {
		x, y := r, torn
		if i%2 == 1 {
			x, y = torn, r
		}
		trial := directTrial{d: TwoShot, t: red.t, op: &red.op, count: 480/red.t.Size() + 1}
		x.sub(fmt.Sprintf("%v/twoshot", red), func() { x.tryDirect(trial, uint64(i)) })
		trial.in, trial.d = 1, OneShot
		y.sub(fmt.Sprintf("%v/oneshot", red), func() { y.tryDirect(trial, uint64(i)) })
	}
	for _, ty := range []kernels.DataType{kernels.BFloat16, kernels.Float64, kernels.Int8} {
		op := kernels.PreMulSum(3)
		r.tryDirect(directTrial{d: OneShot, t: ty, op: &op, count: 100, scalar: true}, 1)
	}
}

// TestDirectScalars gives each rank a scalar of its own: what it sends is multiplied by that and rounded, wherever the
// data lie, and combined as it comes.
func TestDirectScalars(t *testing.T) {
	const n = 3
	whole := newRig(t, emulated(t, n, cudaemu.Config{Plain: true}), mailed(n), options(n))
	torn := newRig(t, emulated(t, n, cudaemu.Config{Link: link(1)}), mailed(n), options(n))
	op := kernels.PreMulSum(2)
	for i, ty := range kernels.Types() {
		for k, d := range []Direct{OneShot, TwoShot, ReduceScatter, Reduce} {
			if !tier.Pairs() && (i+k)%2 > 0 {
				continue
			}
			x, r := directTrial{d: d, t: ty, op: &op, count: 480/ty.Size() + k%2, early: true, inPlace: i%3 == 0, in: i % 2},
				whole
			if i%4 > 1 {
				r = torn
			}
			r.sub(fmt.Sprintf("%v/%v", ty, d), func() { r.tryDirect(x, uint64(i)) })
		}
	}
}

// TestDirectMany runs a reduction again and again, so that faster and slower ranks use
// both halves of the mailboxes.
func TestDirectMany(t *testing.T) {
	const n = 4
	for turn := range uint64(2) {
		r := newRig(t, emulated(t, n, cudaemu.Config{Seed: 5, Link: link(turn)}), mailed(n), options(n))
		o := r.prepareDirect(directTrial{d: OneShot, t: kernels.Int32, op: &kernels.Max, count: 50, inPlace: true}, 1)
		r.reset(o)
		for range 30 {
			r.run(o)
		}
		r.check(o)
	}
}
