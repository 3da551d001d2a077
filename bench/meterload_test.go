package bench_test

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bench/meter"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/mem"
)

// A watched driver notes the memory that was allocated, and the last launch.
type watched struct {
	cuda.Driver
	allocs []struct {
		p uintptr
		n int
	}
	f      cuda.Function
	launch cuda.Launch
}

func (w *watched) MemAlloc(n int) (uintptr, error) {
	p, err := w.Driver.MemAlloc(n)
	if err == nil {
		w.allocs = append(w.allocs, struct {
			p uintptr
			n int
		}{p, n})
	}
	return p, err
}

func (w *watched) LaunchKernel(f cuda.Function, l *cuda.Launch, args []byte) error {
	w.f, w.launch = f, *l
	return w.Driver.LaunchKernel(f, l, args)
}

// openDevice is a device that the test gives back at its end, with its driver.
func openDevice(t *testing.T) (*watched, *gpu.Device) {
	d := &watched{Driver: gputest.Driver(t)}
	m, err := gpu.Of(d)
	require.NoError(t, err)
	dev, err := m.Device(0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Release()) })
	return d, dev
}

// openLoad is a Load and a stream on a device.
func openLoad(t *testing.T) (*watched, *gpu.Device, *meter.Load, gpu.Stream) {
	d, dev := openDevice(t)
	l, err := meter.NewLoad(dev)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	s, err := dev.NewStream()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.DestroyStream(s)) })
	return d, dev, l, s
}

// Constants of multiply, under the same names as in kernels/cuda/meter.cu.
const (
	threads = 256
	side    = 4
	depth   = 8
	rowStep = 24
	colStep = 20
)

// element is a number of the tile, by its thread.
func element(thread int) float32 { return float32(thread%8)*0.25 - 0.875 }

// sum is the number that a thread stores after some rounds: the definition of the kernel.
func sum(thread, rounds int) float32 {
	var sums [side * side]float32
	for range rounds {
		for k := range depth {
			for i := range side {
				for j := range side {
					row, col := element(thread/16*side+k*rowStep+i), element(thread%16*side+k*colStep+j)
					sums[i*side+j] += row * col
				}
			}
		}
	}
	for _, x := range sums[1:] {
		sums[0] += x
	}
	return sums[0]
}

// Every thread of every block of every wave does all rounds.
func TestLoad(t *testing.T) {
	d, dev, l, s := openLoad(t)
	require.Len(t, d.allocs, 1)
	const waves = 2
	for _, rounds := range []int{0, 1, 3} {
		require.NoError(t, l.Launch(s, waves, rounds))
		require.NoError(t, dev.Synchronize(s))
		n := waves * l.Wave() * threads
		b := make([]byte, 4*n)
		require.NoError(t, dev.Read(b, mem.Device(dev.Number(), d.allocs[0].p, len(b))))
		for i := range n {
			got := math.Float32frombits(binary.NativeEndian.Uint32(b[4*i:]))
			require.Equal(t, sum(i%threads, rounds), got, "thread %d after %d rounds", i, rounds)
		}
	}
}

// A block has a multiprocessor to itself: nothing that needs shared memory fits beside it.
func TestBlockIsAlone(t *testing.T) {
	d, dev, l, s := openLoad(t)
	require.NoError(t, l.Launch(s, 1, 0))
	require.NoError(t, dev.Synchronize(s))
	require.NoError(t, dev.With(func() error {
		n, err := d.OccupancyMaxActiveBlocksPerMultiprocessor(d.f, threads, d.launch.Shared)
		require.Equal(t, 1, n)
		most, err2 := d.DeviceGetAttribute(cuda.AttrMaxSharedPerMultiprocessor, dev.Handle())
		require.NoError(t, err2)
		require.LessOrEqual(t, most-d.launch.Shared, 1<<10, "what is left is what the driver takes for a block")
		return err
	}))
}

// A product is one block a multiprocessor, which does its depth, and leaves room for a block of one warp
// and 5 KB of shared memory.
func TestProduct(t *testing.T) {
	d, dev, l, s := openLoad(t)
	p, err := meter.NewProduct(l, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	require.NoError(t, p.Shape(64, 3))
	require.NoError(t, p.Launch(s))
	require.NoError(t, p.Shape(64, 2))
	require.NoError(t, p.Launch(s))
	require.NoError(t, dev.Synchronize(s))
	if gputest.OnGPU() && p.Name() == "cuBLASLt" {
		return
	}
	require.Equal(t, "a kernel of one block a multiprocessor", p.Name())
	require.EqualValues(t, l.Wave(), d.launch.Grid.X)
	b := make([]byte, 4*l.Wave()*threads)
	require.NoError(t, dev.Read(b, mem.Device(dev.Number(), d.allocs[0].p, len(b))))
	for i := range l.Wave() * threads {
		require.Equal(t, sum(i%threads, 2), math.Float32frombits(binary.NativeEndian.Uint32(b[4*i:])), "thread %d", i)
	}
	require.NoError(t, dev.With(func() error {
		n, err := d.OccupancyMaxActiveBlocksPerMultiprocessor(d.f, threads, d.launch.Shared)
		require.Equal(t, 1, n)
		most, err2 := d.DeviceGetAttribute(cuda.AttrMaxSharedPerMultiprocessor, dev.Handle())
		require.NoError(t, err2)
		require.GreaterOrEqual(t, most-d.launch.Shared-2<<10, 5<<10, "behind what the driver takes for two blocks")
		return err
	}))
}

// A file of cuBLASLt that is named has to be there, on a GPU; the emulator has no use for it.
func TestProductNames(t *testing.T) {
	_, _, l, _ := openLoad(t)
	p, err := meter.NewProduct(l, filepath.Join(t.TempDir(), "none.so"))
	if gputest.OnGPU() {
		require.ErrorContains(t, err, "none.so")
		return
	}
	require.NoError(t, err)
	require.Equal(t, "a kernel of one block a multiprocessor", p.Name())
	require.NoError(t, p.Close())
}
