package ringo

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/cudaemu"
	"github.com/ringo-go/ringo/internal/gputest"
	"github.com/ringo-go/ringo/internal/race"
)

// What was prepared is only queued: nothing is allocated, made or loaded, except for pages
// of cuMemCreate, which wait for no kernel.
func TestPrepare(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("needs a driver that refuses")
	}
	for _, w := range race.Some(3, everyWay()) {
		t.Run(w.name, func(t *testing.T) {
			list := devices(t, 2)
			w.cfg.Timeout = 20 * time.Second
			comms := onDevices(t, list, w.cfg)
			memory := []Region{alloc(t, list[0], make([]byte, 8192)), alloc(t, list[1], make([]byte, 8192))}
			if w.registered {
				noErrors(t, each(comms, func(c *Comm) error {
					_, err := c.Register(memory[c.Rank()])
					return err
				}))
			}
			var calls []Call
			for _, op := range []RedOp{Sum, Avg, PreMulSum(2)} {
				calls = append(calls, everyCall(2, 256, Float32, op)...)
				calls = append(calls, everyCall(2, 256, Int32, op)...)
			}
			at := func(r int, c Call) *Call {
				size := 4
				if c.Kind == KindBarrier {
					size = 1
				}
				in, out := c.Shape(r, 2)
				c.In, c.Out = memory[r].Slice(0, in*size), memory[r].Slice(4096, out*size)
				if c.Kind == KindAlltoAll {
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
			for _, name := range []string{"cuMemAlloc", "cuMemHostAlloc", "cuMemHostRegister", "cuMemAddressReserve", "cuModuleLoadData", "cuStreamCreateWithPriority", "cuEventCreate"} {
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
// its calls. That works although the driver has calls that allocate or load wait for the
// GPU's kernels, and so for the other rank, for such calls are made before.
func TestFirstCallWhilePeersWait(t *testing.T) {
	for _, algo := range []string{"", "ring", "rank order"} {
		t.Run(algo, func(t *testing.T) {
			list := devices(t, 2, gputest.Emu(cudaemu.Config{LoadsWait: true, AllocsWait: true}))
			cfg := Config{Algo: algo, Timeout: 20 * time.Second}
			if algo == "rank order" {
				cfg.Algo, cfg.Deterministic = "steps", algo
			}
			const count = 1000
			a, b := onDevices(t, list, Config{Timeout: 20 * time.Second}), onDevices(t, list, cfg)
			type rank struct {
				x, y Region
				s, u gpu.Stream
			}
			ranks := make([]rank, 2)
			for r, d := range list {
				v := floats(make([]float32, count))
				ranks[r] = rank{x: alloc(t, d, v), y: alloc(t, d, v)}
				for _, s := range []*gpu.Stream{&ranks[r].s, &ranks[r].u} {
					var err error
					*s, err = d.NewStream()
					require.NoError(t, err)
					defer d.DestroyStream(*s)
				}
			}
			first := func(r int) *Call {
				return &Call{Kind: KindAllReduce, In: ranks[r].x, Out: ranks[r].x, Count: count, Type: Float32, Stream: ranks[r].s}
			}
			second := func(r int) *Call {
				return &Call{Kind: KindAllReduce, In: ranks[r].y, Out: ranks[r].y, Count: count, Type: Int32, Op: PreMulSum(2), Stream: ranks[r].u}
			}
			for r := range ranks {
				require.NoError(t, a[r].Prepare(first(r)))
				require.NoError(t, b[r].Prepare(second(r)))
			}
			noErrors(t, each(a, func(c *Comm) error {
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
