package ringo

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/gputest"
	"github.com/ringo-go/ringo/mem"
)

// devices opens n devices, of the emulator unless REQUIRE=cuda.
func devices(t testing.TB, n int, o ...gputest.Option) []*gpu.Device {
	t.Helper()
	return devicesOf(t, gputest.Driver(t, append(o, gputest.Devices(n), gputest.Warm())...), n)
}

// devicesOf opens n devices of a driver.
func devicesOf(t testing.TB, d cuda.Driver, n int) []*gpu.Device {
	t.Helper()
	m, err := gpu.Of(d)
	require.NoError(t, err)
	list := make([]*gpu.Device, n)
	for i := range list {
		list[i], err = m.Device(i)
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		for _, d := range list {
			require.NoError(t, d.Release())
		}
	})
	return list
}

// onDevices makes a communicator of a rank a device.
func onDevices(t testing.TB, list []*gpu.Device, cfg Config) []*Comm {
	t.Helper()
	cfg.Devices = list
	comms, err := OpenLocal(len(list), cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, c := range comms {
			c.Close()
		}
	})
	return comms
}

// alloc is device memory with the given content.
func alloc(t testing.TB, d *gpu.Device, b []byte) mem.Region {
	t.Helper()
	return allocWith(t, d, d.Alloc, b)
}

// allocMapped is memory for windows in which copy engines work.
func allocMapped(t testing.TB, d *gpu.Device, b []byte) mem.Region {
	t.Helper()
	return allocWith(t, d, d.AllocMapped, b)
}

func allocWith(t testing.TB, d *gpu.Device, alloc func(int) (mem.Region, error), b []byte) mem.Region {
	t.Helper()
	r, err := alloc(len(b))
	require.NoError(t, err)
	require.NoError(t, d.Write(r, b))
	t.Cleanup(func() { require.NoError(t, d.Free(r)) })
	return r
}

func floats(x []float32) []byte {
	b := make([]byte, 0, 4*len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func TestDeviceAllReduce(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			list := devices(t, n)
			comms := onDevices(t, list, Config{})
			const count = 1001
			var in, out []mem.Region
			for r, d := range list {
				x := make([]float32, count)
				for i := range x {
					x[i] = float32(i%13 + r)
				}
				in = append(in, alloc(t, d, floats(x)))
				out = append(out, alloc(t, d, make([]byte, 4*count)))
			}
			// One goroutine drives all ranks: nothing here waits.
			for r, c := range comms {
				require.NoError(t, c.Do(&Call{Kind: KindAllReduce, In: in[r], Out: out[r], Count: count, Type: Float32, Op: Sum}))
			}
			for r, c := range comms {
				require.NoError(t, c.Synchronize(0))
				got := make([]byte, 4*count)
				require.NoError(t, list[r].Read(got, out[r]))
				want := make([]float32, count)
				for i := range want {
					want[i] = float32(n*(i%13) + n*(n-1)/2)
				}
				require.Equal(t, floats(want), got)
			}
		})
	}
}

func TestDeviceMismatch(t *testing.T) {
	list := devices(t, 2)
	comms := onDevices(t, list, Config{Timeout: 20 * time.Second})
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for r, c := range comms {
		x := alloc(t, list[r], make([]byte, 4096))
		wg.Go(func() {
			call := &Call{Kind: KindAllReduce, In: x, Out: x, Count: 1000 + r, Type: Float32}
			if errs[r] = c.Do(call); errs[r] != nil {
				return
			}
			if errs[r] = c.Synchronize(0); errs[r] != nil {
				return
			}
			for deadline := time.Now().Add(10 * time.Second); errs[r] == nil && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
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
	list := devices(t, 2)
	comms := onDevices(t, list, Config{})
	x := alloc(t, list[1], make([]byte, 64))
	err := comms[0].Do(&Call{Kind: KindAllReduce, In: x, Out: x, Count: 4, Type: Float32})
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "memory of device 1, but the rank's GPU is device 0")
	host := make([]float32, 4)
	err = comms[0].Do(&Call{Kind: KindAllReduce, In: mem.Of(host), Out: x, Count: 4, Type: Float32})
	require.ErrorIs(t, err, ErrInvalid)
	require.NoError(t, comms[0].Err(), "the communicator stays usable")

	alone := local(t, 1, Config{})[0]
	err = alone.Do(&Call{Kind: KindAllReduce, In: x, Out: x, Count: 4, Type: Float32})
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorContains(t, err, "no rank has a GPU")
}
