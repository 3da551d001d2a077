package grid

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/ptx"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/ring/tree"
)

// seeds is how many orders of execution are tried: RINGO_SEEDS, or a few; on a GPU, which has its own orders, one for
// each number of ranks.
func seeds() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("RINGO_SEEDS"), 10, 32); err == nil {
		return n
	}
	if gputest.OnGPU() || tier.Race {
		return 3
	}
	return uint64(tier.Count(2, 8))
}

// mixed are operations that follow each other in the same queues.
func mixed(n int) []trial {
	return []trial{
		{name: "ring", schedule: ring.AllReduce{N: n}, t: kernels.Float32, op: &kernels.Sum, count: 900},
		{name: "tree", schedule: tree.AllReduce{N: n}, t: kernels.BFloat16, op: &kernels.Avg, count: 77, inPlace: true},
		{name: "oneshot", schedule: direct.OneShot{N: n}, t: kernels.Int32, op: &kernels.Sum, count: 5},
		{name: "alltoall", schedule: direct.AlltoAll{N: n}, shares: true, t: kernels.Int8, count: 333, in: 1},
	}
}

// TestOrders runs operations one after the other without waiting in between,
// under the emulator's strict memory and many seeds, over both kinds of links.
func TestOrders(t *testing.T) {
	for seed := range seeds() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			n := 2 + int(seed%3)
			r := newRig(t, emulated(t, n, cudaemu.Config{Seed: seed, Link: link(seed + seed/2)}), small(n), options(n))
			var all []*operation
			for i, x := range mixed(n) {
				o := r.prepare(x, seed+uint64(i))
				r.reset(o)
				all = append(all, o)
			}
			for _, o := range all {
				r.run(o)
			}
			for _, o := range all {
				r.check(o)
			}
		})
	}
}

// TestGraphs mixes replays of graphs with operations that are not captured. The
// first ever run of a kernel is in a capture.
func TestGraphs(t *testing.T) {
	tier.Long(t)
	const n = 3
	r := newRig(t, emulated(t, n, cudaemu.Config{}), small(n), options(n))
	var captured, eager []*operation
	for i, x := range mixed(n) {
		captured = append(captured, r.prepare(x, uint64(i)))
		eager = append(eager, r.prepare(x, uint64(i)+100))
	}
	captured = append(captured,
		r.prepare(trial{name: "varied", schedule: ring.AllGather{N: n}, t: kernels.Float32, count: 70, varied: true}, 9))
	var graphs []cuda.GraphExec
	for i, m := range r.ranks {
		r.with(m, func() error {
			require.NoError(t, r.d.StreamBeginCapture(m.stream, cuda.CaptureGlobal))
			for _, o := range captured {
				require.NoError(t, carry(m.engine, &o.jobs[i]))
			}
			g, err := r.d.StreamEndCapture(m.stream)
			require.NoError(t, err)
			x, err := r.d.GraphInstantiate(g, 0)
			graphs = append(graphs, x)
			require.NoError(t, r.d.GraphDestroy(g))
			return err
		})
	}
	for range 3 {
		for i := range mixed(n) {
			r.reset(captured[i])
			r.reset(eager[i])
		}
		r.reset(captured[len(captured)-1])
		r.run(eager[0])
		for i, m := range r.ranks {
			r.with(m, func() error { return r.d.GraphLaunch(graphs[i], m.stream) })
		}
		for _, o := range eager[1:] {
			r.run(o)
		}
		for _, o := range append(captured, eager...) {
			r.check(o)
		}
	}
	for i, m := range r.ranks {
		r.with(m, func() error { return r.d.GraphExecDestroy(graphs[i]) })
	}
	for _, m := range r.ranks {
		started, finished := m.engine.Control().Progress()
		require.EqualValues(t, 3*(len(captured)+len(eager)), started)
		require.Equal(t, started, finished)
	}
}

// TestBroken takes out, one at a time, what orders memory, and has the emulator
// find it.
func TestBroken(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("a GPU would not say what is wrong, but stop working")
	}
	const n = 2
	tests := []struct {
		name         string
		pattern, new string
	}{
		{"slots are posted without a fence", `fence\.acq_rel\.sys;`, ""},
		{"slots are taken without an acquire", `ld\.acquire\.sys`, "ld.relaxed.sys"},
		{"a fence is for its device alone", `fence\.acq_rel\.sys;`, "fence.acq_rel.gpu;"},
		{"threads do not wait for each other at the start", `bar\.red\.or\.pred q, 0, p;`, "vote.sync.any.pred q, p, -1;"},
		{"threads arrive twice", `bar\.arrive (%r\d+), (%r\d+);`, "bar.arrive $1, $2; bar.arrive $1, $2;"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := gputest.Driver(t, gputest.Faults(), gputest.Emu(cudaemu.Config{Devices: n, StallInstructions: 1000}))
			r := newRig(t, d, small(n), options(n))
			for _, m := range r.ranks {
				m.engine.text = func(name ptx.Name) ([]byte, error) {
					text, err := ptx.Text(name)
					broken := regexp.MustCompile(test.pattern).ReplaceAll(text, []byte(test.new))
					require.NotEqual(t, string(text), string(broken))
					return broken, err
				}
			}
			o := r.prepare(trial{name: "ring", schedule: ring.AllReduce{N: n}, t: kernels.Float32, op: &kernels.Sum, count: 900},
				1)
			r.reset(o)
			r.run(o)
			for _, m := range r.ranks {
				_ = cuda.With(d, m.ctx, func() error { return d.StreamSynchronize(m.stream) })
			}
			found := fmt.Sprint(d.(*cudaemu.Machine).Reports())
			require.NotEmpty(t, d.(*cudaemu.Machine).Reports())
			kinds := map[weakmem.FaultKind]int{}
			for _, f := range d.(*cudaemu.Machine).Reports() {
				kinds[f.Kind]++
			}
			require.NotZero(t, kinds[weakmem.Race]+kinds[weakmem.Uninitialized]+kinds[weakmem.BadInstruction], found)
		})
	}
}
