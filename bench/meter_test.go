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

// emulate makes emulated GPUs. Their reports of faults fail the test.
func emulate(t *testing.T, c cudaemu.Config) *cudaemu.Machine {
	t.Helper()
	c.Report = nil
	if c.Devices == 0 {
		c.Devices = 2
	}
	m, err := cudaemu.New(c)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, f := range m.Reports() {
			t.Error(f)
		}
		if len(c.Faults) == 0 {
			require.NoError(t, m.Close())
		} else {
			m.Close() // a GPU that hangs gives nothing back
		}
	})
	return m
}

func open(t *testing.T, d cuda.Driver, number int) *meter.GPU {
	t.Helper()
	g, err := meter.Open(d, number, 20*time.Second)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}

func pair(t *testing.T, d cuda.Driver) *meter.Pair {
	t.Helper()
	p, err := meter.OpenPair(open(t, d, 0), open(t, d, 1), 64<<10)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

const mib = 1 << 20

func TestHealthyMemory(t *testing.T) {
	m := emulate(t, cudaemu.Config{Shapes: []cudaemu.Device{{Memory: mib / 4}}, Seed: 1})
	got, err := open(t, m, 0).TestMemory(context.Background(), 0.25, mib)
	require.NoError(t, err)
	require.Zero(t, got.Count)
	require.InDelta(t, mib/16, got.Bytes, 4096)
}

// A cell that is stuck is found at its address, and with its bit.
func TestBadCells(t *testing.T) {
	for _, one := range []bool{false, true} {
		cell := cudaemu.Cell{Byte: 40_000, Bit: 3, One: one}
		m := emulate(t, cudaemu.Config{Shapes: []cudaemu.Device{{Memory: mib / 2}}, Plain: true, Cells: []cudaemu.Cell{cell}})
		got, err := open(t, m, 0).TestMemory(context.Background(), 0.25, mib)
		require.NoError(t, err)
		require.Equal(t, 3, got.Count, "in half of the six patterns the bit is as it should be")
		require.Len(t, got.Wrong, 3)
		for _, w := range got.Wrong {
			require.Equal(t, got.Wrong[0].Address, w.Address)
			require.EqualValues(t, 1<<3<<(8*(cell.Byte%8)), w.Bits())
		}
		zeros, ones := meter.Stuck(got.Wrong)
		if one {
			require.Zero(t, zeros)
			require.EqualValues(t, 1<<3, ones)
		} else {
			require.Zero(t, ones)
			require.EqualValues(t, 1<<3, zeros)
		}
	}
}

// fast is 1 TB/s in memory, 100 GB/s and 700 ns between GPUs, 20 GB/s and 1 µs to the host.
func fast(from, to int) cudaemu.Speed {
	switch {
	case from == cudaemu.Host || to == cudaemu.Host:
		return cudaemu.Speed{Latency: time.Microsecond, Bandwidth: 20e9}
	case from == to:
		return cudaemu.Speed{Latency: 300 * time.Nanosecond, Bandwidth: 1e12}
	}
	return cudaemu.Speed{Latency: 700 * time.Nanosecond, Bandwidth: 100e9}
}

func TestRates(t *testing.T) {
	m := emulate(t, cudaemu.Config{Plain: true, Speed: fast})
	ctx := context.Background()
	g := open(t, m, 0)
	r, err := g.CopyRate(ctx, 4*mib, 1)
	require.NoError(t, err)
	require.InEpsilon(t, 1e12, r, 0.3)
	in, out, err := g.HostRates(ctx, mib, 1)
	require.NoError(t, err)
	require.InEpsilon(t, 20e9, in, 0.1)
	require.InEpsilon(t, 20e9, out, 0.1)

	p, err := meter.OpenPair(g, open(t, m, 1), 4*mib)
	require.NoError(t, err)
	defer p.Close()
	both, err := p.Both(ctx, 1)
	require.NoError(t, err)
	require.InEpsilon(t, 200e9, both, 0.3)
	for i := range 2 {
		w, err := p.Direction(ctx, i, 1)
		require.NoError(t, err)
		require.InEpsilon(t, 100e9, w.Rate, 0.3)
		require.InDelta(t, 700, w.Latency.Nanoseconds(), 30)
		require.Equal(t, cuda.NVLink, w.Link)
		require.Zero(t, w.Wrong)
		require.Zero(t, w.Lines.Torn)
	}
}

// Torn lines are found in the direction in which the link tears them, and not in the other.
func TestLines(t *testing.T) {
	m := emulate(t, cudaemu.Config{Seed: 1, Tears: func(a, b int) bool { return a == 1 && b == 0 }})
	p := pair(t, m)
	for i := range 2 {
		w, err := p.Direction(context.Background(), i, 1)
		require.NoError(t, err)
		require.Zero(t, w.Wrong)
		require.Greater(t, w.Lines.Seen, 1)
		if i == 1 {
			require.Positive(t, w.Lines.Torn)
			require.Less(t, w.Lines.Old, w.Lines.New)
		} else {
			require.Zero(t, w.Lines.Torn)
		}
	}
}

func TestNoAccessOneWay(t *testing.T) {
	m := emulate(t, cudaemu.Config{Peers: func(a, b int) bool { return a == 0 }, Plain: true})
	p := pair(t, m)
	for i, want := range []bool{true, false} {
		w, err := p.Direction(context.Background(), i, 1)
		require.NoError(t, err)
		require.Equal(t, want, w.Access)
		require.Positive(t, w.Rate)
	}
}

func TestMeterHang(t *testing.T) {
	m := emulate(t, cudaemu.Config{Plain: true, Faults: []cudaemu.Injection{{Call: "kernel compare", Nth: 1, Hang: true}}})
	g := open(t, m, 1)
	g.Patience = 100 * time.Millisecond
	_, err := g.TestMemory(context.Background(), 1, 4096)
	var hang *meter.HangError
	require.ErrorAs(t, err, &hang)
	require.Equal(t, 1, hang.GPU)
	require.Equal(t, "reading memory with the pattern address in address", hang.What)
	require.Equal(t, error(hang), g.Health(), "at once, and of the same work")
}

func TestMeterLost(t *testing.T) {
	m := emulate(t, cudaemu.Config{Plain: true})
	g, err := meter.Open(m, 0, 20*time.Second)
	require.NoError(t, err)
	require.NoError(t, g.Health())
	m.LoseDevice(0, cuda.ErrECCUncorrectable)
	_, err = g.TestMemory(context.Background(), 1, 4096)
	require.ErrorIs(t, err, cuda.ErrECCUncorrectable)
	require.ErrorIs(t, g.Health(), cuda.ErrECCUncorrectable)
}

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
