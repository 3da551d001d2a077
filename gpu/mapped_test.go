package gpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/mem"
)

// A reluctant driver refuses memory that processes share, or one of the calls that map memory.
type reluctant struct {
	cuda.Driver
	unshared       bool
	bad            string
	pages, reserve int // handles and address ranges not yet given back
}

func (v *reluctant) refuse(call string) error {
	if call == v.bad {
		return cuda.ErrNotSupported
	}
	return nil
}

func (v *reluctant) MemCreate(n int, p cuda.AllocationProp) (cuda.MemHandle, error) {
	if v.unshared && p.Shareable {
		return 0, cuda.ErrNotSupported
	}
	h, err := v.Driver.MemCreate(n, p)
	if err == nil {
		v.pages++
	}
	return h, err
}

func (v *reluctant) MemRelease(h cuda.MemHandle) error {
	v.pages--
	return v.Driver.MemRelease(h)
}

func (v *reluctant) MemAddressReserve(n, align int) (uintptr, error) {
	if err := v.refuse("reserve"); err != nil {
		return 0, err
	}
	v.reserve++
	return v.Driver.MemAddressReserve(n, align)
}

func (v *reluctant) MemAddressFree(p uintptr, n int) error {
	v.reserve--
	return v.Driver.MemAddressFree(p, n)
}

func (v *reluctant) MemMap(p uintptr, n int, h cuda.MemHandle) error {
	if err := v.refuse("map"); err != nil {
		return err
	}
	return v.Driver.MemMap(p, n, h)
}

func (v *reluctant) MemSetAccess(p uintptr, n int, devices ...cuda.Device) error {
	if err := v.refuse("access"); err != nil {
		return err
	}
	return v.Driver.MemSetAccess(p, n, devices...)
}

// TestAllocMapped: AllocMapped maps memory also where processes cannot share it. Where a driver cannot map, AllocMapped
// gives everything back and is Alloc.
func TestAllocMapped(t *testing.T) {
	for _, test := range []struct {
		name   string
		driver reluctant
		mapped bool
	}{
		{"shared", reluctant{}, true},
		{"not shared", reluctant{unshared: true}, true},
		{"no addresses", reluctant{bad: "reserve"}, false},
		{"no mapping", reluctant{bad: "map"}, false},
		{"no access", reluctant{bad: "access"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, v := open(t, 1).devices[0], test.driver
			v.Driver, d.driver = d.driver, &v
			r, err := d.AllocMapped(100)
			require.NoError(t, err)
			require.Len(t, d.mapped, map[bool]int{true: 1}[test.mapped])
			require.Equal(t, 100, r.Len())
			data := make([]byte, 100)
			require.NoError(t, d.Write(r, []byte{1, 2, 3}))
			require.NoError(t, d.Read(data[:3], r.Slice(0, 3)))
			require.Equal(t, []byte{1, 2, 3}, data[:3])
			require.NoError(t, d.Free(r))
			require.Empty(t, d.mapped)
			require.Zero(t, v.pages)
			require.Zero(t, v.reserve)
			for _, n := range []int{0, -1} {
				_, err = d.AllocMapped(n)
				require.ErrorIs(t, err, cuda.ErrInvalidValue, "as Alloc has it")
			}
		})
	}
}

// TestGrant: copies of another GPU reach memory of AllocMapped once access was granted, and memory of Alloc stays as
// before.
func TestGrant(t *testing.T) {
	m := open(t, 3)
	own, other, third := m.devices[0], m.devices[1], m.devices[2]
	read := func(d *Device, r mem.Region) error {
		return d.With(func() error { return d.driver.MemcpyDtoH(make([]byte, 3), r.Ptr()) })
	}
	r, err := own.AllocMapped(100)
	require.NoError(t, err)
	require.NoError(t, own.Write(r, []byte{1, 2, 3}))
	require.Error(t, read(other, r))
	require.NoError(t, own.Grant(r, own, other))
	require.NoError(t, read(other, r))
	require.Error(t, read(third, r), "it was given none")
	require.NoError(t, own.Free(r))
	r, err = own.Alloc(100)
	require.NoError(t, err)
	require.NoError(t, own.Grant(r, other))
	require.NoError(t, own.Free(r))
	e := own.driver.(*cudaemu.Machine)
	for _, call := range []string{"cuDeviceCanAccessPeer", "cuMemSetAccess"} {
		r, err = own.AllocMapped(100)
		require.NoError(t, err)
		e.Inject(cudaemu.Injection{Call: call, Nth: 1, Result: cuda.ErrOperatingSystem})
		require.ErrorIs(t, own.Grant(r, other), cuda.ErrOperatingSystem)
		require.NoError(t, own.Free(r))
	}
}
