package device

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

func TestCheckMemory(t *testing.T) {
	d := gputest.Driver(t)
	_, ctx := gputest.Context(t, d, 0)
	c, err := New(d, ctx)
	require.NoError(t, err)
	defer c.Close()
	const n = 1 << 20
	require.NoError(t, cuda.With(d, ctx, func() error {
		p, err := d.MemAlloc(n)
		require.NoError(t, err)
		pinned, err := d.MemHostAlloc(n, cuda.HostAllocPortable|cuda.HostAllocMapped)
		require.NoError(t, err)
		freed, err := d.MemAlloc(64 << 20)
		require.NoError(t, err)
		require.NoError(t, d.MemFree(freed))
		dev := int(c.device)
		pageable := make([]byte, 64)

		for name, r := range map[string]mem.Region{
			"empty":      mem.Device(dev, 0, 0),
			"all":        mem.Device(dev, p, n),
			"end":        mem.Device(dev, p+n-1, 1),
			"registered": mem.Device(dev, pinned, n),
		} {
			require.NoError(t, c.CheckMemory(r), name)
		}
		tests := []struct {
			name string
			r    mem.Region
			want string
		}{
			{"null", mem.Device(dev, 0, 4), "null"},
			{"too long", mem.Device(dev, p+16, n), "it exceeds its allocation of 1048576 bytes"},
			{"freed", mem.Device(dev, freed+4096, 4),
				"no memory of a GPU: freed, never allocated, or the host's and not registered (cuPointerGetAttribute: "},
			{"the host's", mem.Device(dev, uintptr(unsafe.Pointer(&pageable[0])), 64), "no memory of a GPU"},
		}
		for _, test := range tests {
			err := c.CheckMemory(test.r)
			var wrong *MemoryError
			require.ErrorAs(t, err, &wrong, test.name)
			require.ErrorContains(t, err, test.want, test.name)
			if wrong.Err != nil {
				require.ErrorIs(t, err, cuda.ErrInvalidValue, test.name)
			}
		}
		require.NoError(t, d.MemFreeHost(pinned))
		return d.MemFree(p)
	}))
}

// TestForeignMemory has the second device's memory as a source.
func TestForeignMemory(t *testing.T) {
	d := gputest.Driver(t, gputest.Devices(2))
	_, ctx := gputest.Context(t, d, 0)
	other, otherCtx := gputest.Context(t, d, 1)
	if ok, err := d.DeviceCanAccessPeer(0, other); err != nil || !ok {
		t.Skip("device 0 has no access to the memory of device 1")
	}
	red := reducer(t, kernels.Int64, kernels.Sum, 2)
	var theirs []mem.Region
	var want [][]byte
	require.NoError(t, cuda.With(d, otherCtx, func() error {
		theirs, want = buffers(t, d, 1, kernels.Int64, 4096, 1)
		return nil
	}))
	require.NoError(t, cuda.With(d, ctx, func() error {
		c, err := New(d, ctx)
		require.NoError(t, err)
		require.ErrorContains(t, c.CheckMemory(theirs[0]), "memory of device 1, which is not reached: enable peer access")
		require.NoError(t, c.Close())

		require.NoError(t, d.CtxEnablePeerAccess(otherCtx))
		c, err = New(d, ctx, other)
		require.NoError(t, err)
		require.NoError(t, c.CheckMemory(theirs[0]))
		ours, images := buffers(t, d, 0, kernels.Int64, 4096, 1)
		k, err := c.Kernel(red)
		require.NoError(t, err)
		require.NoError(t, k.Launch(0, &Args{Dst: ours[0], Srcs: []mem.Region{theirs[0], ours[0]}}))
		got := make([]byte, 4096)
		require.NoError(t, d.MemcpyDtoH(got, ours[0].Ptr()))
		red.Combine(want[0], want[0], images[0])
		require.Equal(t, want[0], got)
		release(t, d, ours)
		require.NoError(t, d.CtxDisablePeerAccess(otherCtx))
		return c.Close()
	}))
	require.NoError(t, cuda.With(d, otherCtx, func() error {
		release(t, d, theirs)
		return nil
	}))
}

// buffers are regions of n bytes on a device, filled with elements.
func buffers(t *testing.T, d cuda.Driver, device int, ty kernels.DataType, n, count int) ([]mem.Region, [][]byte) {
	t.Helper()
	var regions []mem.Region
	var images [][]byte
	for i := range count {
		b := make([]byte, n)
		fill(rand.New(rand.NewPCG(uint64(i), 1)), ty, b)
		p, err := d.MemAlloc(n)
		require.NoError(t, err)
		require.NoError(t, cuda.Write(d, p, b))
		regions, images = append(regions, mem.Device(device, p, n)), append(images, b)
	}
	return regions, images
}

func release(t *testing.T, d cuda.Driver, regions []mem.Region) {
	t.Helper()
	for _, r := range regions {
		require.NoError(t, d.MemFree(r.Ptr()))
	}
}

// TestCapture loads a kernel while its stream is captured and replays the graph.
func TestCapture(t *testing.T) {
	d := gputest.Driver(t)
	_, ctx := gputest.Context(t, d, 0)
	c, err := New(d, ctx)
	require.NoError(t, err)
	red := reducer(t, kernels.Int32, kernels.Sum, 2)
	require.NoError(t, cuda.With(d, ctx, func() error {
		r, images := buffers(t, d, int(c.device), kernels.Int32, 4096, 2)
		s, err := d.StreamCreate(cuda.StreamNonBlocking, 0)
		require.NoError(t, err)
		require.NoError(t, d.StreamBeginCapture(s, cuda.CaptureThreadLocal))
		k, err := c.Kernel(red)
		require.NoError(t, err)
		for range 2 {
			require.NoError(t, k.Launch(s, &Args{Dst: r[0], Srcs: r}))
		}
		g, err := d.StreamEndCapture(s)
		require.NoError(t, err)
		x, err := d.GraphInstantiate(g, 0)
		require.NoError(t, err)
		for range 3 {
			require.NoError(t, d.GraphLaunch(x, s))
		}
		require.NoError(t, d.StreamSynchronize(s))
		want := bytes.Clone(images[0])
		for range 6 {
			red.Combine(want, want, images[1])
		}
		got := make([]byte, 4096)
		require.NoError(t, d.MemcpyDtoH(got, r[0].Ptr()))
		require.Equal(t, want, got)
		require.NoError(t, d.GraphExecDestroy(x))
		require.NoError(t, d.GraphDestroy(g))
		require.NoError(t, d.StreamDestroy(s))
		release(t, d, r)
		return c.Close()
	}))
}

// TestConcurrently has goroutines load and launch at once, each on a stream.
func TestConcurrently(t *testing.T) {
	d := gputest.Driver(t)
	_, ctx := gputest.Context(t, d, 0)
	c, err := New(d, ctx)
	require.NoError(t, err)
	var g errgroup.Group
	require.NoError(t, cuda.With(d, ctx, func() error {
		for i := range 8 {
			red := reducer(t, kernels.BFloat16, ops(kernels.BFloat16)[i%4], 2)
			r, images := buffers(t, d, int(c.device), kernels.BFloat16, 8192, 3)
			defer release(t, d, r)
			s, err := d.StreamCreate(cuda.StreamNonBlocking, 0)
			require.NoError(t, err)
			defer d.StreamDestroy(s)
			g.Go(func() error {
				return cuda.With(d, ctx, func() error { return repeat(d, c, red, s, r, images) })
			})
		}
		return g.Wait()
	}))
	require.NoError(t, c.Close())
}

// repeat combines into the first region some times, and compares the result with red's.
func repeat(d cuda.Driver, c *Combiner, red *kernels.Reducer, s cuda.Stream, r []mem.Region, images [][]byte) error {
	for range 5 {
		k, err := c.Kernel(red)
		if err != nil {
			return err
		}
		if err := k.Launch(s, &Args{Dst: r[0], Srcs: r}); err != nil {
			return err
		}
		red.CombineAll(images[0], images, 0, true)
	}
	if err := d.StreamSynchronize(s); err != nil {
		return err
	}
	got := make([]byte, len(images[0]))
	if err := d.MemcpyDtoH(got, r[0].Ptr()); err != nil {
		return err
	}
	if !bytes.Equal(images[0], got) {
		return errors.New("the result is wrong")
	}
	return nil
}
