// Calls of the driver that fail, one at a time.

package gpucomm

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
)

// alone opens the GPU half of a communicator of one rank, has f use it, and gives everything back.
func alone(d *gpu.Device, f func(g *Comm) error) error {
	g, leave, err := openRank(bootstrap.Local(1)[0], "a", d, func(o *Options) { o.LaunchOrder = true })
	if err == nil {
		err = f(g)
	}
	return errors.Join(err, leave())
}

// Whichever call of the driver fails in Open, the error names it, and nothing is left.
func TestOpenFails(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("a real driver does not fail when it is told to")
	}
	for _, name := range []string{
		"cuDevicePrimaryCtxRetain", "cuDeviceGetAttribute", "cuDeviceGetName", "cuDeviceGetUuid", "cuMemAlloc",
		"cuMemHostAlloc", "cuMemHostGetDevicePointer", "cuMemCreate",
		"cuStreamCreateWithPriority", "cuEventCreate", "cuModuleLoadDataEx", "cuModuleGetFunction", "cuFuncSetAttribute",
		"cuMemcpyAsync",
	} {
		t.Run(name, func(t *testing.T) {
			driver := gputest.Driver(t).(*cudaemu.Machine)
			m, err := gpu.Of(driver)
			require.NoError(t, err)
			d, err := m.Device(0)
			require.NoError(t, err)
			for nth := 1; ; nth++ {
				opened := false
				driver.Inject(cudaemu.Injection{Call: name, Nth: nth, Result: cuda.ErrUnknown})
				err := alone(d, func(g *Comm) error {
					opened = true
					return nil
				})
				require.NoError(t, d.Release())
				if opened {
					break
				}
				require.ErrorIs(t, err, cuda.ErrUnknown)
				require.ErrorContains(t, err, name)
			}
			require.Empty(t, driver.Unreleased())
		})
	}
}

// A call whose work the driver refuses ends the communicator, and the error names it.
func TestCallFails(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("a real driver does not fail when it is told to")
	}
	for _, name := range []string{"cuMemcpyAsync", "cuEventRecord", "cuStreamWaitEvent"} {
		driver := gputest.Driver(t).(*cudaemu.Machine)
		m, err := gpu.Of(driver)
		require.NoError(t, err)
		d, err := m.Device(0)
		require.NoError(t, err)
		x, err := d.Alloc(256)
		require.NoError(t, err)
		require.NoError(t, d.Write(x, make([]byte, 256)))
		reduce := &call.Call{Kind: call.AllReduce, In: x.Slice(0, 64), Out: x.Slice(128, 64), Count: 16,
			Type: kernels.Float32}
		require.NoError(t, alone(d, func(g *Comm) error {
			if err := g.do(reduce); err != nil {
				return err
			}
			driver.Inject(cudaemu.Injection{Call: name, Nth: 1, Result: cuda.ErrUnknown})
			s, err := d.NewStream()
			require.NoError(t, err)
			defer d.DestroyStream(s)
			c := *reduce
			c.Stream = s
			err = g.do(&c)
			require.ErrorIs(t, err, cuda.ErrUnknown, name)
			require.ErrorContains(t, err, "AllReduce #2")
			require.ErrorContains(t, err, name)
			require.ErrorIs(t, g.do(reduce), cuda.ErrUnknown, "it has failed")
			require.Error(t, g.Life.Err())
			return d.Synchronize(s)
		}), name)
		require.NoError(t, d.Free(x))
		require.NoError(t, d.Release())
	}
}
