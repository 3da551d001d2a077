package gpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/must"
	"github.com/ringo-go/ringo/mem"
)

// TestGrant: copies of another GPU reach memory of AllocMapped once access was granted, and memory of Alloc stays as
// before.
func TestGrant(t *testing.T) {
	m := open(t, 3)
	own, other, third := m.devices[0], m.devices[1], m.devices[2]
	read := func(d *Device, r mem.Region) error {
		return d.With(func() error { return d.driver.MemcpyDtoH(make([]byte, 3), r.Ptr()) })
	}
	r := must.Get(own.AllocMapped(100))
	require.NoError(t, own.Write(r, []byte{1, 2, 3}))
	require.Error(t, read(other, r))
	require.NoError(t, own.Grant(r, own, other))
	require.NoError(t, read(other, r))
	require.Error(t, read(third, r), "it was given none")
	require.NoError(t, own.Free(r))
	r = must.Get(own.Alloc(100))
	require.NoError(t, own.Grant(r, other))
	require.NoError(t, own.Free(r))
	e := own.driver.(*cudaemu.Machine)
	for _, call := range []string{"cuDeviceCanAccessPeer", "cuMemSetAccess"} {
		r = must.Get(own.AllocMapped(100))
		e.Inject(cudaemu.Injection{Call: call, Nth: 1, Result: cuda.ErrOperatingSystem})
		require.ErrorIs(t, own.Grant(r, other), cuda.ErrOperatingSystem)
		require.NoError(t, own.Free(r))
	}
}
