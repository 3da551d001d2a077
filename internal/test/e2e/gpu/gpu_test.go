package gpu

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/mem"
)

// The simplest program on GPUs: an all-reduce of all ranks, and its sum.
func TestDeviceAllReduce(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			list := gputest.GPUs(t, n)
			comms := commtest.OnDevices(t, list, ringo.Config{})
			const count = 1001
			var in, out []mem.Region
			for r, d := range list {
				x := make([]float32, count)
				for i := range x {
					x[i] = float32(i%13 + r)
				}
				in = append(in, commtest.Alloc(t, d, commtest.Floats(x)))
				out = append(out, commtest.Alloc(t, d, make([]byte, 4*count)))
			}
			// One goroutine drives all ranks: nothing here waits.
			for r, c := range comms {
				require.NoError(t, c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: in[r], Out: out[r], Count: count,
					Type: ringo.Float32, Op: ringo.Sum}))
			}
			for r, c := range comms {
				require.NoError(t, c.Synchronize(0))
				got := make([]byte, 4*count)
				require.NoError(t, list[r].Read(got, out[r]))
				want := make([]float32, count)
				for i := range want {
					want[i] = float32(n*(i%13) + n*(n-1)/2)
				}
				require.Equal(t, commtest.Floats(want), got)
			}
		})
	}
}

func TestDeviceMismatch(t *testing.T) {
	list := gputest.GPUs(t, 2)
	comms := commtest.OnDevices(t, list, ringo.Config{Timeout: 20 * time.Second})
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for r, c := range comms {
		x := commtest.Alloc(t, list[r], make([]byte, 4096))
		wg.Go(func() {
			call := &ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 1000 + r, Type: ringo.Float32}
			if errs[r] = c.Do(call); errs[r] != nil {
				return
			}
			if errs[r] = c.Synchronize(0); errs[r] != nil {
				return
			}
			for deadline := time.Now().Add(10 * time.Second); errs[r] == nil &&
				time.Now().Before(deadline); time.Sleep(time.Millisecond) {
				errs[r] = c.Err()
			}
		})
	}
	wg.Wait()
	named := 0
	for _, err := range errs {
		require.Error(t, err)
		if strings.Contains(err.Error(), "count 1000") && strings.Contains(err.Error(), "count 1001") {
			named++
		}
	}
	require.NotZero(t, named, "both calls are named")
}

func TestDeviceWrongMemory(t *testing.T) {
	list := gputest.GPUs(t, 2)
	comms := commtest.OnDevices(t, list, ringo.Config{})
	x := commtest.Alloc(t, list[1], make([]byte, 64))
	err := comms[0].Do(&ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 4, Type: ringo.Float32})
	require.ErrorIs(t, err, ringo.ErrInvalid)
	require.ErrorContains(t, err, "memory of device 1, but the rank's GPU is device 0")
	host := make([]float32, 4)
	err = comms[0].Do(&ringo.Call{Kind: ringo.KindAllReduce, In: mem.Of(host), Out: x, Count: 4, Type: ringo.Float32})
	require.ErrorIs(t, err, ringo.ErrInvalid)
	require.NoError(t, comms[0].Err(), "the communicator stays usable")

	alone := commtest.Local(t, 1, ringo.Config{})[0]
	err = alone.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 4, Type: ringo.Float32})
	require.ErrorIs(t, err, ringo.ErrUnsupported)
	require.ErrorContains(t, err, "no rank has a GPU")
}
