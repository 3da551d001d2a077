package gpu

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// A prepared call is only queued: nothing is allocated, made or loaded, except for pages
// of cuMemCreate, which wait for no kernel.
func TestPrepare(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("needs a driver that refuses")
	}
	for _, w := range tier.Some(3, everyWay()) {
		t.Run(w.name, func(t *testing.T) {
			list := gputest.GPUs(t, 2, gputest.Unchecked(2))
			w.cfg.Timeout = 20 * time.Second
			comms := commtest.OnDevices(t, list, w.cfg)
			memory := []ringo.Region{commtest.Alloc(t, list[0], make([]byte, 8192)),
				commtest.Alloc(t, list[1], make([]byte, 8192))}
			if w.registered {
				commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error {
					_, err := c.Register(memory[c.Rank()])
					return err
				}))
			}
			var calls []ringo.Call
			for _, op := range []ringo.RedOp{ringo.Sum, ringo.Avg, ringo.PreMulSum(2)} {
				calls = append(calls, commtest.EveryCall(2, 256, ringo.Float32, op)...)
				calls = append(calls, commtest.EveryCall(2, 256, ringo.Int32, op)...)
			}
			at := func(r int, c ringo.Call) *ringo.Call {
				size := 4
				if c.Kind == ringo.KindBarrier {
					size = 1
				}
				in, out := c.Shape(r, 2)
				c.In, c.Out = memory[r].Slice(0, in*size), memory[r].Slice(4096, out*size)
				if c.Kind == ringo.KindAlltoAll {
					c.Out = c.In // in place
				}
				return &c
			}
			for _, c := range calls {
				for r := range comms {
					require.NoError(t, comms[r].Prepare(at(r, c)))
				}
			}
			m := list[0].Driver().(*cudaemu.Machine)
			for _, name := range []string{"cuMemAlloc", "cuMemHostAlloc", "cuMemHostRegister", "cuMemAddressReserve",
				"cuModuleLoadData", "cuStreamCreateWithPriority", "cuEventCreate"} {
				m.Inject(cudaemu.Injection{Call: name, Chance: 1, Result: cuda.ErrOutOfMemory})
			}
			for _, c := range calls {
				for r := range comms {
					require.NoError(t, comms[r].Do(at(r, c)), "%v", &c)
				}
			}
			for _, c := range comms {
				require.NoError(t, c.Synchronize(0))
			}
		})
	}
}

// Two communicators overlap in another order on each rank, which waits for the host between
// its calls. Calls of the driver that allocate or load would wait for the GPU's kernels, and
// so for the other rank; they are made before.
func TestFirstCallWhilePeersWait(t *testing.T) {
	for _, algo := range []string{"", "ring", "rank order"} {
		t.Run(algo, func(t *testing.T) {
			list := gputest.GPUs(t, 2, gputest.Emu(cudaemu.Config{LoadsWait: true, AllocsWait: true, Plain: true}))
			cfg := ringo.Config{Algo: algo, Timeout: 20 * time.Second}
			if algo == "rank order" {
				cfg.Algo, cfg.Deterministic = "steps", algo
			}
			const count = 1000
			a, b := commtest.OnDevices(t, list, ringo.Config{Timeout: 20 * time.Second}), commtest.OnDevices(t, list, cfg)
			zeros := commtest.Floats(make([]float32, count))
			var calls [2][2]*ringo.Call // by rank, of a and of b
			for r, d := range list {
				x, y := commtest.Alloc(t, d, zeros), commtest.Alloc(t, d, zeros)
				calls[r] = [2]*ringo.Call{
					{Kind: ringo.KindAllReduce, In: x, Out: x, Count: count, Type: ringo.Float32, Stream: commtest.Stream(t, d)},
					{Kind: ringo.KindAllReduce, In: y, Out: y, Count: count, Type: ringo.Int32, Op: ringo.PreMulSum(2),
						Stream: commtest.Stream(t, d)},
				}
				require.NoError(t, errors.Join(a[r].Prepare(calls[r][0]), b[r].Prepare(calls[r][1])))
			}
			commtest.Run(t, a, func(c *commtest.Rank) {
				r := c.Rank()
				first, second := calls[r][0], calls[r][1]
				if r == 0 {
					require.NoError(c, errors.Join(c.Do(first), b[r].Do(second)))
				} else {
					require.NoError(c, errors.Join(b[r].Do(second), b[r].Synchronize(second.Stream), c.Do(first)))
				}
				require.NoError(c, errors.Join(c.Synchronize(first.Stream), c.Synchronize(second.Stream)))
			})
		})
	}
}
