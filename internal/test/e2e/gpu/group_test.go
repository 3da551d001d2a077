package gpu

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// Several communicators on the same GPUs: used in turn, at once on two streams,
// and in different orders by different ranks.
func TestDeviceCommunicators(t *testing.T) {
	tier.Long(t)
	for _, algo := range tier.Some(2, []string{"", "ring"}) {
		t.Run(algo, func(t *testing.T) {
			list := gputest.GPUs(t, 3)
			sets := make([][]lane, 3)
			for k := range sets {
				sets[k] = lanesOf(t, commtest.OnDevices(t, list, ringo.Config{Algo: algo, Timeout: 20 * time.Second}),
					(*gpu.Device).NewStream)
			}
			for v := byte(1); v < 4; v++ { // in turn
				for k := range sets {
					for i := range sets[k] {
						require.NoError(t, sets[k][i].link(v+byte(k)))
					}
				}
			}
			for k := range sets {
				for i := range sets[k] {
					require.NoError(t, sets[k][i].kept(3*(3+byte(k))))
				}
			}
			var wg sync.WaitGroup
			errs := make([]error, len(sets))
			for k := range sets { // at once
				wg.Go(func() {
					for v := byte(1); v < 8; v++ {
						for i := range sets[k] {
							if err := sets[k][i].link(v); err != nil {
								errs[k] = err
								return
							}
						}
					}
				})
			}
			wg.Wait()
			commtest.NoErrors(t, errs)
			for k := range sets {
				for i := range sets[k] {
					require.NoError(t, sets[k][i].kept(21))
				}
			}
			for v := byte(1); v < 4; v++ { // in other orders
				for i := range list {
					for k := range sets {
						require.NoError(t, sets[(i+k)%len(sets)][i].link(v))
					}
				}
			}
			for k := range sets {
				for i := range sets[k] {
					require.NoError(t, sets[k][i].kept(9))
				}
				destroy(t, sets[k])
			}
		})
	}
}

// One thread queues calls that each have a kernel to load, which a driver does when
// those before have ended.
func TestDeviceGroupLoads(t *testing.T) {
	comms := commtest.OnDevices(t, gputest.GPUs(t, 2), ringo.Config{Timeout: 10 * time.Second})
	lanes := lanesOf(t, comms, (*gpu.Device).NewStream)
	defer destroy(t, lanes)
	g := ringo.NewGroup()
	for i := range lanes {
		for _, op := range []ringo.RedOp{ringo.Sum, ringo.Prod, ringo.Max} {
			call := lanes[i].reduce()
			call.Op = op
			g.Add(comms[i], call)
		}
	}
	require.NoError(t, g.Run())
	for i := range lanes {
		require.NoError(t, comms[i].Synchronize(lanes[i].stream))
	}
}

// A group of a call on host memory and one on a GPU, of two communicators, queues the
// latter from the caller's own thread: the per-thread stream is in order with the rest of
// that thread's work.
func TestGroupOnThread(t *testing.T) {
	list := gputest.GPUs(t, 2)
	host, comms := commtest.Local(t, 2, ringo.Config{}),
		commtest.OnDevices(t, list, ringo.Config{Timeout: 20 * time.Second})
	lanes := lanesOf(t, comms, everyStream["per thread"].make)
	commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		l, x := &lanes[c.Rank()], []int32{1, 2}
		for _, hostFirst := range []bool{true, false} {
			if err := l.fill(7); err != nil {
				return err
			}
			g := ringo.NewGroup()
			if hostFirst {
				g.Add(host[c.Rank()], ringo.AllReduceOf(x, ringo.Sum))
			}
			g.Add(c, l.reduce())
			if !hostFirst {
				g.Add(host[c.Rank()], ringo.AllReduceOf(x, ringo.Sum))
			}
			if err := errors.Join(g.Run(), l.keep(), l.kept(14)); err != nil {
				return err
			}
		}
		if x[0] != 4 || x[1] != 8 {
			return fmt.Errorf("rank %d: the host's result is %d", c.Rank(), x)
		}
		return nil
	}))
}
