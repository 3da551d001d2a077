package gpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/must"
	"github.com/ringo-go/ringo/mem"
)

// TestEachCallFails: when a call of the driver fails, the function that makes the call returns the error, no other
// does, and the same function works afterwards.
func TestEachCallFails(t *testing.T) {
	m := must.Get(cudaemu.New(cudaemu.Config{Devices: 2, Plain: true}))
	machine := must.Get(Of(m))
	d, other := machine.devices[0], machine.devices[1]
	var (
		s           Stream
		start, end  Event
		r, mapped   mem.Region
		g           *Graph
		module      *Module
		data        = []byte{1, 2, 3, 4}
		free, total int
	)
	for _, c := range []struct {
		call string
		f    func() error
	}{
		{"cuDevicePrimaryCtxRetain", func() error { return must.Err(d.Context()) }},
		{"cuDeviceGetName", func() error { return must.Err(d.Name()) }},
		{"cuStreamCreateWithPriority", func() (err error) { s, err = d.NewStream(); return err }},
		{"cuMemAlloc", func() (err error) { r, err = d.Alloc(64); return err }},
		{"cuMemGetInfo", func() (err error) { free, total, err = d.Memory(); return err }},
		{"cuMemsetD8Async", func() error { return d.Set(r.Ptr(), 7, 64, s) }},
		{"cuStreamSynchronize", func() error { return d.Synchronize(s) }},
		{"cuMemcpyHtoD", func() error { return d.Write(r, data) }},
		{"cuMemcpyDtoH", func() error { return d.Read(data, r) }},
		{"cuEventCreate", func() (err error) { start, err = d.NewEvent(); return err }},
		{"cuEventCreate", func() (err error) { end, err = d.NewEvent(); return err }},
		{"cuEventRecord", func() error { return d.Record(start, s) }},
		{"cuEventRecord", func() error { return d.Record(end, s) }},
		{"cuStreamWaitEvent", func() error { return d.WaitEvent(s, end) }},
		{"cuStreamSynchronize", func() error { return d.Synchronize(s) }},
		{"cuEventElapsedTime", func() error { return must.Err(d.Elapsed(start, end)) }},
		{"cuStreamBeginCapture", func() error { _, err := d.Capture(s, func() error { return nil }); return err }},
		{"cuStreamEndCapture", func() error { // the stream goes on capturing
			x := must.Get(d.NewStream())
			return must.Err(d.Capture(x, func() error { return nil }))
		}},
		{"cuGraphInstantiateWithFlags", func() (err error) {
			g, err = d.Capture(s, func() error { return d.Set(r.Ptr(), 9, 64, s) })
			return err
		}},
		{"cuGraphLaunch", func() error { return g.Launch(s) }},
		{"cuGraphExecDestroy", func() error { return g.Close() }},
		{"cuModuleLoadData", func() (err error) {
			module, err = d.Load([]byte(".version 7.0\n.target sm_80\n.address_size 64\n.visible .global .u32 v;\n.visible " +
				".entry k() { ret; }\n"))
			return err
		}},
		{"cuModuleGetFunction", func() error { return must.Err(module.Kernel("k")) }},
		{"cuModuleGetGlobal", func() error { return must.Err(module.Variable("v")) }},
		{"cuDeviceCanAccessPeer", func() error { return d.Reach(other) }},
		{"cuCtxEnablePeerAccess", func() error { return d.Reach(other) }},
		{"cuPointerGetAttribute", func() error { return d.With(func() error { return must.Err(d.Check(r)) }) }},
		{"cuEventDestroy", func() error { return d.DestroyEvent(start) }},
		{"cuEventDestroy", func() error { return d.DestroyEvent(end) }},
		{"cuStreamDestroy", func() error { return d.DestroyStream(s) }},
		{"cuMemFree", func() error { return d.Free(r) }},
		{"cuModuleUnload", func() error { return module.Close() }},
	} {
		m.Inject(cudaemu.Injection{Call: c.call, Nth: 1, Result: cuda.ErrOperatingSystem})
		require.ErrorIs(t, c.f(), cuda.ErrOperatingSystem, c.call)
		if c.call == "cuModuleUnload" {
			break // the module is closed and cannot be used again
		}
		if c.call != "cuCtxEnablePeerAccess" && c.call != "cuDeviceCanAccessPeer" {
			require.NoError(t, c.f(), c.call)
		}
	}
	require.NoError(t, d.Reach(other))
	require.Positive(t, free)
	require.Greater(t, total, free, "the stream's work and 64 bytes")
	require.Equal(t, []byte{1, 2, 3, 4}, data)

	// Memory that cannot be mapped is allocated as other memory is, and nothing of the attempt is left.
	before := 0
	for _, call := range []string{"", "cuMemGetAllocationGranularity", "cuMemCreate", "cuMemAddressReserve", "cuMemMap",
		"cuMemSetAccess"} {
		for range 2 { // a first attempt may be repeated without a handle for others
			if call != "" {
				m.Inject(cudaemu.Injection{Call: call, Nth: 1, Result: cuda.ErrOutOfMemory})
			}
		}
		mapped, err := d.AllocMapped(100)
		require.NoError(t, err, call)
		_, was := d.mapped[mapped.Ptr()]
		require.Equal(t, call == "", was, call)
		require.NoError(t, d.Write(mapped, data))
		require.NoError(t, d.Free(mapped))
		require.Empty(t, d.mapped)
		free, _, err := d.Memory()
		require.NoError(t, err)
		if call != "" {
			require.Equal(t, before, free, "%s: what was taken is given back", call)
		}
		before = free
	}
	m.Inject(cudaemu.Injection{Call: "cuMemCreate", Nth: 1, Result: cuda.ErrNotSupported})
	mapped = must.Get(d.AllocMapped(100))
	require.Len(t, d.mapped, 1, "mapped, though no process can share it")
	require.NoError(t, d.Free(mapped))
	for _, n := range []int{0, -1} {
		require.ErrorIs(t, must.Err(d.AllocMapped(n)), cuda.ErrInvalidValue, "as Alloc has it")
	}
	for _, call := range []string{"cuMemUnmap", "cuMemAddressFree"} {
		mapped = must.Get(d.AllocMapped(100))
		m.Inject(cudaemu.Injection{Call: call, Nth: 1, Result: cuda.ErrOperatingSystem})
		require.ErrorIs(t, d.Free(mapped), cuda.ErrOperatingSystem, call)
	}
	m.Inject(cudaemu.Injection{Call: "cuDevicePrimaryCtxRelease", Nth: 1, Result: cuda.ErrOperatingSystem})
	require.ErrorIs(t, d.Release(), cuda.ErrOperatingSystem)
	require.NoError(t, d.Release(), "there is nothing to release any more")
}
