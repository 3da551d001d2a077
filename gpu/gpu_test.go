package gpu

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/must"
)

// Driver is gputest's driver of n devices. gputest imports this package, so an external test sets the variable.
var Driver func(t testing.TB, n int) cuda.Driver

func open(t *testing.T, n int) *Machine {
	m := must.Get(Of(Driver(t, n)))
	t.Cleanup(func() {
		for _, d := range m.devices {
			require.NoError(t, d.Release())
		}
	})
	return m
}

func TestMemory(t *testing.T) {
	d := must.Get(open(t, 1).Device(0))
	r := must.Get(d.Alloc(1000))
	require.Equal(t, 0, r.Dev())
	src := bytes.Repeat([]byte{1, 2, 3, 4, 5}, 200)
	require.NoError(t, d.Write(r, src))
	got := make([]byte, 1000)
	require.NoError(t, d.Read(got, r))
	require.Equal(t, src, got)
	require.EqualError(t, d.Write(r.Slice(0, 10), src), "gpu: write 1000 bytes into 10")
	require.EqualError(t, d.Read(got, r.Slice(0, 10)), "gpu: read 1000 bytes of 10")
	require.NoError(t, d.Free(r))
	var e *cuda.Error
	require.ErrorAs(t, d.Free(r), &e)
}

func TestStreamsAndGraphs(t *testing.T) {
	d := must.Get(open(t, 1).Device(0))
	s := must.Get(d.NewStream())
	r := must.Get(d.Alloc(64))
	start := must.Get(d.NewEvent())
	end := must.Get(d.NewEvent())

	g := must.Get(d.Capture(s, func() error { return d.Set(r.Ptr(), 7, 64, s) }))
	require.NoError(t, d.Set(r.Ptr(), 1, 64, s))
	require.NoError(t, d.Record(start, s))
	require.NoError(t, g.Launch(s))
	require.NoError(t, d.Record(end, s))
	require.NoError(t, d.Synchronize(s))
	got := make([]byte, 64)
	require.NoError(t, d.Read(got, r))
	require.Equal(t, bytes.Repeat([]byte{7}, 64), got)
	ms := must.Get(d.Elapsed(start, end))
	require.GreaterOrEqual(t, ms, float32(0))

	broken := errors.New("broken")
	require.ErrorIs(t, must.Err(d.Capture(s, func() error { return broken })), broken)
	require.NoError(t, d.Set(r.Ptr(), 2, 64, s), "the stream is of use after a capture that failed")

	require.NoError(t, g.Close())
	require.NoError(t, d.Synchronize(s))
	require.NoError(t, d.DestroyEvent(start))
	require.NoError(t, d.DestroyEvent(end))
	require.NoError(t, d.Free(r))
	require.NoError(t, d.DestroyStream(s))
}

// TestMemoryDuringCapture allocates, writes and frees while a stream is captured
// in each of the modes.
func TestMemoryDuringCapture(t *testing.T) {
	d := must.Get(open(t, 1).Device(0))
	s := must.Get(d.NewStream())
	for _, mode := range []cuda.CaptureMode{cuda.CaptureGlobal, cuda.CaptureThreadLocal, cuda.CaptureRelaxed} {
		require.NoError(t, d.With(func() error {
			require.NoError(t, d.driver.StreamBeginCapture(s, mode))
			r := must.Get(d.Alloc(64))
			require.NoError(t, d.Write(r, []byte{1, 2, 3}))
			require.NoError(t, d.Free(r))
			g := must.Get(d.driver.StreamEndCapture(s))
			nodes := must.Get(d.driver.GraphGetNodes(g))
			require.Empty(t, nodes)
			return d.driver.GraphDestroy(g)
		}))
	}
	require.NoError(t, d.DestroyStream(s))
}

func TestOpen(t *testing.T) {
	m := must.Get(Open(Options{Emulate: 2}))
	require.True(t, m.Emulated())
	require.Equal(t, 2, m.Count())
	require.ErrorContains(t, must.Err(m.Device(2)), "no device 2: there are 2")
	d := must.Get(m.Device(1))
	name := must.Get(d.Name())
	require.NotEmpty(t, name)
	require.Equal(t, "emulated CUDA 13.0", d.DriverVersion())
	require.ErrorIs(t, must.Err(d.Alloc(1<<50)), cuda.ErrOutOfMemory)
	r := must.Get(d.Alloc(8))
	require.ErrorContains(t, m.Close(), "8 bytes", "what was not freed is named")
	_ = r

	_, err := Open(Options{Library: filepath.Join(t.TempDir(), "libcuda.so.1")})
	var none *cuda.Unavailable
	require.ErrorAs(t, err, &none)
}

// resetting is a driver whose primary context was reset until it is retained again.
type resetting struct {
	cuda.Driver
	reset bool
}

func (r *resetting) CtxPushCurrent(c cuda.Context) error {
	if r.reset {
		return cuda.ErrContextIsDestroyed
	}
	return r.Driver.CtxPushCurrent(c)
}

func (r *resetting) DevicePrimaryCtxRetain(d cuda.Device) (cuda.Context, error) {
	r.reset = false
	return r.Driver.DevicePrimaryCtxRetain(d)
}

// A program that resets a device between two communicators goes on with it.
func TestDeviceReset(t *testing.T) {
	driver := &resetting{Driver: Driver(t, 1)}
	m := must.Get(Of(driver))
	d := must.Get(m.Device(0))
	_, _, err := d.Memory()
	require.NoError(t, err)
	driver.reset = true
	_, _, err = d.Memory()
	require.NoError(t, err)
	driver.reset = true
	r := must.Get(d.Alloc(8))
	require.NoError(t, d.Free(r))
	driver.reset = true
	c, err := d.Context() // for callers who push the context themselves
	require.NoError(t, err)
	require.NoError(t, driver.CtxPushCurrent(c))
	must.Get(driver.CtxPopCurrent())
	for range 4 { // as often as it was retained, which the emulator counts
		require.NoError(t, driver.DevicePrimaryCtxRelease(0))
	}
}
