package gpu

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
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
			type rank struct {
				x, y ringo.Region
				s, u gpu.Stream
			}
			ranks := make([]rank, 2)
			for r, d := range list {
				v := commtest.Floats(make([]float32, count))
				ranks[r] = rank{x: commtest.Alloc(t, d, v), y: commtest.Alloc(t, d, v)}
				for _, s := range []*gpu.Stream{&ranks[r].s, &ranks[r].u} {
					var err error
					*s, err = d.NewStream()
					require.NoError(t, err)
					defer d.DestroyStream(*s)
				}
			}
			first := func(r int) *ringo.Call {
				return &ringo.Call{Kind: ringo.KindAllReduce, In: ranks[r].x, Out: ranks[r].x, Count: count, Type: ringo.Float32,
					Stream: ranks[r].s}
			}
			second := func(r int) *ringo.Call {
				return &ringo.Call{Kind: ringo.KindAllReduce, In: ranks[r].y, Out: ranks[r].y, Count: count, Type: ringo.Int32,
					Op: ringo.PreMulSum(2), Stream: ranks[r].u}
			}
			for r := range ranks {
				require.NoError(t, a[r].Prepare(first(r)))
				require.NoError(t, b[r].Prepare(second(r)))
			}
			commtest.NoErrors(t, commtest.Each(a, func(c *ringo.Comm) error {
				if c.Rank() == 0 {
					if err := c.Do(first(0)); err != nil {
						return err
					}
					if err := b[0].Do(second(0)); err != nil {
						return err
					}
				} else {
					if err := b[1].Do(second(1)); err != nil {
						return err
					}
					if err := b[1].Synchronize(ranks[1].u); err != nil {
						return err
					}
					if err := c.Do(first(1)); err != nil {
						return err
					}
				}
				for _, s := range []gpu.Stream{ranks[c.Rank()].s, ranks[c.Rank()].u} {
					if err := c.Synchronize(s); err != nil {
						return fmt.Errorf("rank %d: %w", c.Rank(), err)
					}
				}
				return nil
			}))
		})
	}
}
