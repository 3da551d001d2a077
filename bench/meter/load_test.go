package meter

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/mem"
	"github.com/stretchr/testify/require"
)

// openDevice is a device that the test gives back at its end.
func openDevice(t *testing.T) *gpu.Device {
	m, err := gpu.Of(gputest.Driver(t))
	require.NoError(t, err)
	dev, err := m.Device(0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Release()) })
	return dev
}

// Constants of multiply, under the same names as in kernels/cuda/meter.cu.
const (
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
	dev := openDevice(t)
	l, err := NewLoad(dev)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	s, err := dev.NewStream()
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.DestroyStream(s)) }()
	const waves = 2
	for _, rounds := range []int{0, 1, 3} {
		require.NoError(t, l.Launch(s, waves, rounds))
		require.NoError(t, dev.Synchronize(s))
		n := waves * l.Wave() * threads
		b := make([]byte, 4*n)
		require.NoError(t, dev.Read(b, mem.Device(dev.Number(), l.sums, len(b))))
		for i := range n {
			got := math.Float32frombits(binary.NativeEndian.Uint32(b[4*i:]))
			require.Equal(t, sum(i%threads, rounds), got, "thread %d after %d rounds", i, rounds)
		}
	}
}

// A block has a multiprocessor to itself: nothing that needs shared memory fits beside it.
func TestBlockIsAlone(t *testing.T) {
	dev := openDevice(t)
	l, err := NewLoad(dev)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	require.NoError(t, dev.With(func() error {
		n, err := dev.Driver().OccupancyMaxActiveBlocksPerMultiprocessor(l.f, threads, l.shared)
		require.Equal(t, 1, n)
		most, err2 := dev.Driver().DeviceGetAttribute(cuda.AttrMaxSharedPerMultiprocessor, dev.Handle())
		require.NoError(t, err2)
		require.LessOrEqual(t, most-l.shared, 1<<10, "what is left is what the driver takes for a block")
		return err
	}))
}
