package gpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
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
