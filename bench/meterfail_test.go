package bench_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bench/meter"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// everything opens two GPUs, measures all that there is, and gives everything back.
func everything(d cuda.Driver) (err error) {
	var gpus []*meter.GPU
	for number := range 2 {
		g, failed := meter.Open(d, number, 20*time.Second)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, g.Close()) }()
		gpus = append(gpus, g)
	}
	ctx := context.Background()
	if _, err := gpus[0].TestMemory(ctx, 1, 4096); err != nil {
		return err
	}
	if _, err := gpus[0].CopyRate(ctx, 4096, 1); err != nil {
		return err
	}
	if _, _, err := gpus[0].HostRates(ctx, 4096, 1); err != nil {
		return err
	}
	p, err := meter.OpenPair(gpus[0], gpus[1], 64<<10)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if _, err := p.Direction(ctx, 0, 1); err != nil {
		return err
	}
	_, err = p.Both(ctx, 1)
	return err
}

// Whichever call of the driver fails, its error is returned, and all that was taken is given back.
func TestMeterCallFails(t *testing.T) {
	ending := []string{"cuMemFree", "cuMemFreeHost", "cuEventDestroy", "cuStreamDestroy", "cuModuleUnload"}
	for _, call := range tier.Some(3, append(ending, "cuDeviceGet", "cuDevicePrimaryCtxRetain",
		"cuStreamCreateWithPriority",
		"cuEventCreate", "cuMemAlloc", "cuModuleLoadData",
		"cuModuleGetFunction", "cuDeviceGetAttribute", "cuDeviceCanAccessPeer", "cuCtxEnablePeerAccess", "cuMemHostAlloc",
		"cuMemsetD8Async", "cuLaunchKernel", "cuStreamQuery",
		"cuMemcpyDtoH", "cuMemcpyHtoD", "cuMemcpyAsync", "cuMemcpyPeerAsync", "cuEventRecord", "cuEventElapsedTime",
		"cuStreamWaitEvent")) {
		// How often a GPU is asked depends on the machine, and how often it looks at lines on what it has seen.
		most, enough := 1000, 3
		switch call {
		case "cuStreamQuery":
			most = 3
		case "cuMemsetD8Async", "cuLaunchKernel", "cuMemcpyDtoH":
			enough = 1
		}
		if tier.Race {
			most = min(most, 5)
		}
		n, well := 0, 0
		for well < enough && n < most {
			n++
			m, err := cudaemu.New(cudaemu.Config{
				Devices: 2, Plain: true, Shapes: []cudaemu.Device{{Memory: mib}, {Memory: mib}},
				Faults: []cudaemu.Injection{{Call: call, Nth: n, Result: cuda.ErrOperatingSystem}},
			})
			require.NoError(t, err)
			if err = everything(m); err == nil {
				well++ // there is no such call, and not a later one either
			} else {
				require.ErrorIs(t, err, cuda.ErrOperatingSystem, "%s, call %d", call, n)
				require.Zero(t, well, "%s, the error of call %d is not told", call, n-1)
			}
			if err := m.Close(); !slices.Contains(ending, call) {
				require.NoError(t, err, "%s, call %d", call, n)
			}
		}
		require.Greater(t, n, well, "%s is never called", call)
	}
}

// Memory that cannot be had in one piece is taken in smaller ones. Less than was wanted is no error, none at all is.
func TestTake(t *testing.T) {
	m := emulate(t, cudaemu.Config{Plain: true, Shapes: []cudaemu.Device{{Memory: 16 * mib}, {}}})
	d := &watched{Driver: m}
	g := open(t, d, 0)
	over, cancel := context.WithCancel(t.Context()) // what is taken is not tested
	cancel()
	take := func(n int, lacks ...int) (sizes []int, err error) {
		t.Helper()
		for _, nth := range lacks {
			m.Inject(cudaemu.Injection{Call: "cuMemAlloc", Nth: nth, Result: cuda.ErrOutOfMemory})
		}
		d.allocs = nil
		got, err := g.TestMemory(over, 1, n)
		total := 0
		for _, a := range d.allocs {
			sizes, total = append(sizes, a.n), total+a.n
		}
		if errors.Is(err, context.Canceled) {
			require.Equal(t, total, got.Bytes)
			err = nil
		}
		return sizes, err
	}
	sizes, err := take(5*mib + 7)
	require.NoError(t, err)
	require.Equal(t, []int{5 * mib}, sizes, "a multiple of 16 bytes")
	sizes, err = take(1)
	require.NoError(t, err)
	require.Equal(t, []int{16}, sizes)
	sizes, err = take(8*mib, 1, 3)
	require.NoError(t, err)
	require.Equal(t, []int{4 * mib, 2 * mib, 2 * mib}, sizes)
	sizes, err = take(6*mib, 1, 2, 4)
	require.NoError(t, err)
	require.Equal(t, []int{3 * mib / 2}, sizes, "there is no more")
	sizes, err = take(mib, 1)
	require.ErrorIs(t, err, cuda.ErrOutOfMemory)
	require.ErrorContains(t, err, "memory to test: ")
	require.Empty(t, sizes)
}

func TestHangError(t *testing.T) {
	require.EqualError(t, &meter.HangError{GPU: 3, What: "a copy", After: 1234567 * time.Microsecond},
		"GPU 3: a copy has not ended after 1.235s")
}
