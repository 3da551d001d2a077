package bench_test

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bench/meter"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/mem"
)

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
