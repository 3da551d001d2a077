package gpu

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// TestNorm: rows have the bits of kernels.Norm whatever carries them out: a kernel over NVLink or PCIe, in one hop or
// in two, or other collectives, also where GPUs do not reach each other.
func TestNorm(t *testing.T) {
	type path struct {
		name   string
		ranks  int
		link   func(a, b int) cuda.Link
		config func(rank int) ringo.Config
		folds  bool // other collectives carry it out
	}
	for _, test := range tier.Some(2, []path{
		{"alone", 1, nil, nil, true},
		{"NVLink", 2, nil, nil, false},
		{"PCIe", 2, gputest.PCIe, nil, false},
		{"two hops", 3, nil, func(int) ringo.Config { return ringo.Config{Algo: "twoshot"} }, false},
		{"in steps", 3, nil, func(int) ringo.Config { return ringo.Config{Algo: "steps"} }, true},
		{"host memory", 2, nil, func(int) ringo.Config { return commtest.Under(ringo.Config{}, "RINGO_P2P_DISABLE=1") },
			false},
		{"bridge", 2, nil, func(int) ringo.Config {
			return commtest.Under(ringo.Config{}, "RINGO_P2P_DISABLE=1", "RINGO_SHM_DISABLE=1")
		}, true},
		{"two hosts", 3, nil, func(r int) ringo.Config { return ringo.Config{HostID: fmt.Sprint("host", r/2)} }, true},
	}) {
		t.Run(test.name, func(t *testing.T) {
			o := []gputest.Option{gputest.NVLink()}
			if test.link != nil {
				o = append(o, gputest.Emu(cudaemu.Config{Link: test.link}))
			}
			by := new(commtest.Algos)
			comms := commtest.OnHosts(t, gputest.GPUs(t, test.ranks, o...), func(r int) (cfg ringo.Config) {
				if test.config != nil {
					cfg = test.config(r)
				}
				cfg.Observer = by
				return cfg
			})
			for seed := range uint64(tier.Count(3, 24)) {
				x := commtest.RandomNorm(rand.New(rand.NewPCG(seed, 3)))
				require.NoError(t, x.Try(comms, seed, true))
				require.Equal(t, test.folds, by.Last(0) == call.ByRank.String())
			}
		})
	}
}

// TestNormUnlike: ranks whose norms behind the sum differ, or of which one has none, hear of both calls.
func TestNormUnlike(t *testing.T) {
	for _, other := range []string{"AllReduce #1 (1 rows of 64, norm with epsilon 0.5, float32)",
		"AllReduce #1 (count 64, float32, sum)"} {
		list := gputest.GPUs(t, 2)
		comms := commtest.OnDevices(t, list, ringo.Config{})
		memory := commtest.Memories(t, list, 1024)
		errs := commtest.Each(comms, func(c *ringo.Comm) error {
			at := memory[c.Rank()]
			call := &ringo.Call{
				Kind: ringo.KindAllReduce, In: at.Slice(0, 256), Out: at.Slice(256, 256), Count: 64, Type: ringo.Float32,
				Norm: &ringo.Norm{Row: 64, Epsilon: float32(c.Rank()+1) / 4, Normed: at.Slice(512, 256)},
			}
			if c.Rank() == 1 && strings.Contains(other, "count") {
				call.Norm = nil
			}
			return errors.Join(c.Do(call), c.Synchronize(0))
		})
		err := errors.Join(errs...)
		require.ErrorIs(t, err, ringo.ErrMismatch)
		require.ErrorContains(t, err, "rank 0 calls AllReduce #1 (1 rows of 64, norm with epsilon 0.25, float32)")
		require.ErrorContains(t, err, "rank 1 calls "+other)
	}
}

// TestNormTimeout: graphs of decoding steps end by the deadline when a rank does not launch its own, and the error
// names it.
func TestNormTimeout(t *testing.T) {
	tier.Long(t)
	const n, row = 3, 512
	for _, way := range tier.Some(3, []string{"p2p", "host memory", "bridge"}) {
		t.Run(way, func(t *testing.T) {
			list, cfg := gputest.GPUs(t, n, waiting(n)), ways[way]
			cfg.Timeout = 2 * realTime // which the loading is part of
			comms := commtest.OnDevices(t, list, cfg)
			memory := commtest.Memories(t, list, 8*row)
			streams := commtest.Streams(t, list)
			// loads the kernels
			commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error { return step(c, memory[c.Rank()], row, 0) }))
			begin := time.Now()
			errs := commtest.Each(comms[:n-1], func(c *ringo.Comm) error {
				s := streams[c.Rank()]
				g, err := c.Device().Capture(s, func() error { return step(c, memory[c.Rank()], row, s) })
				if err != nil {
					return err
				}
				return errors.Join(g.Launch(s), g.Close(), c.Synchronize(s))
			})
			require.Less(t, time.Since(begin), tier.Patience)
			require.ErrorIs(t, errors.Join(errs...), ringo.ErrTimeout)
			for _, err := range errs {
				require.Error(t, err)
				blames(t, err, fmt.Sprint("rank ", n-1))
			}
		})
	}
}

// step is what a layer of a model queues: two all-reduces of rows, each normed.
func step(c *ringo.Comm, at ringo.Region, row int, s gpu.Stream) error {
	part := func(i int) ringo.Region { return at.Slice(i*2*row, 2*row) }
	for range 2 {
		err := c.Do(&ringo.Call{
			Kind: ringo.KindAllReduce, In: part(0), Out: part(1), Count: row, Type: ringo.BFloat16, Stream: s,
			Norm: &ringo.Norm{Row: row, Epsilon: 1e-5, Residual: part(1), Weight: part(2), Normed: part(3)},
		})
		if err != nil {
			return err
		}
	}
	return nil
}
