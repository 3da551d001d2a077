package cudaemu

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/must"
)

// modelled has two devices, 100 GB/s and 1 µs from one to the other and 10 GB/s back, 1 TB/s within.
func modelled(a, b int) Speed {
	switch {
	case a == b:
		return Speed{Bandwidth: 1e12}
	case a == 0 && b == 1:
		return Speed{time.Microsecond, 100e9}
	}
	return Speed{2 * time.Microsecond, 10e9}
}

func TestSpeedOfCopies(t *testing.T) {
	m := must.Get(New(Config{Devices: 2, Plain: true, Speed: modelled}))
	defer m.Close()
	var ctx [2]cuda.Context
	var mem [2]uintptr
	var stream [2]cuda.Stream
	var start, end [2]cuda.Event
	const n = 1 << 20
	on := func(i int, f func() error) { require.NoError(t, cuda.With(m, ctx[i], f)) }
	for i := range ctx {
		ctx[i] = must.Get(m.DevicePrimaryCtxRetain(cuda.Device(i)))
		on(i, func() (err error) {
			mem[i], _ = m.MemAlloc(2 * n)
			stream[i], _ = m.StreamCreate(cuda.StreamNonBlocking, 0)
			start[i], _ = m.EventCreate(0)
			end[i], err = m.EventCreate(0)
			return err
		})
	}
	// timed is how many microseconds a number of copies from a device take.
	timed := func(dev, copies int, dst, src uintptr) (us float64) {
		on(dev, func() error {
			require.NoError(t, m.EventRecord(start[dev], stream[dev]))
			for range copies {
				require.NoError(t, m.MemcpyAsync(dst, src, n, stream[dev]))
			}
			require.NoError(t, m.EventRecord(end[dev], stream[dev]))
			require.NoError(t, m.StreamSynchronize(stream[dev]))
			ms, err := m.EventElapsedTime(start[dev], end[dev])
			us = float64(ms) * 1000
			return err
		})
		return us
	}
	const tolerance = 0.5
	require.InDelta(t, 10*(float64(n)/100e3+1+2), timed(0, 10, mem[1], mem[0]), tolerance)
	require.InDelta(t, 10*(float64(n)/10e3+2+2), timed(1, 10, mem[0], mem[1]), tolerance)
	require.InDelta(t, 2*float64(n)/1e6+2, timed(0, 1, mem[0]+n, mem[0]), tolerance)

	// Both ways at once take as long as the slower one; the same way twice takes twice.
	both := func(second func() error) float64 {
		on(0, func() error { return m.EventRecord(start[0], stream[0]) })
		on(1, func() error {
			require.NoError(t, m.StreamWaitEvent(stream[1], start[0], 0))
			require.NoError(t, second())
			return m.EventRecord(end[1], stream[1])
		})
		var ms float32
		on(0, func() (err error) {
			require.NoError(t, m.MemcpyAsync(mem[1], mem[0], n, stream[0]))
			require.NoError(t, m.StreamWaitEvent(stream[0], end[1], 0))
			require.NoError(t, m.EventRecord(end[0], stream[0]))
			require.NoError(t, m.StreamSynchronize(stream[0]))
			ms, err = m.EventElapsedTime(start[0], end[0])
			return err
		})
		return float64(ms) * 1000
	}
	require.InDelta(t, float64(n)/10e3+2+2, both(func() error { return m.MemcpyAsync(mem[0]+n, mem[1]+n, n, stream[1]) }),
		tolerance)
	require.InDelta(t, 2*float64(n)/100e3+1+2,
		both(func() error { return m.MemcpyAsync(mem[1]+n, mem[0]+n, n, stream[1]) }), tolerance)
}

// A bad cell keeps its bit whatever copies, sets and kernels write, in whatever memory lies there.
func TestBadCell(t *testing.T) {
	m := must.Get(New(Config{Devices: 2, Cells: []Cell{{Device: 1, Byte: 4096 + 5, Bit: 6, One: true}}}))
	defer m.Close()
	for dev := range 2 {
		ctx := must.Get(m.DevicePrimaryCtxRetain(cuda.Device(dev)))
		require.NoError(t, cuda.With(m, ctx, func() error {
			first, err := m.MemAlloc(4000) // takes 4096
			require.NoError(t, err)
			for range 2 {
				p := must.Get(m.MemAlloc(100))
				require.NoError(t, m.MemsetD8(p, 0x11, 100))
				var got [100]byte
				require.NoError(t, m.MemcpyDtoH(got[:], p))
				for i, b := range got {
					want := byte(0x11)
					if dev == 1 && i == 5 {
						want = 0x51
					}
					require.Equal(t, want, b, "device %d, byte %d", dev, i)
				}
				require.NoError(t, m.MemFree(p))
			}
			return m.MemFree(first)
		}))
		require.NoError(t, m.DevicePrimaryCtxRelease(cuda.Device(dev)))
	}
}
