package p2p_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/transport/p2p"
)

// A refusing driver fails at one of the calls by which memory is mapped.
type refusing struct {
	cuda.Driver
	mu   sync.Mutex
	left int // calls before that one
	call string
}

var errRefused = errors.New("refused by the driver")

func (d *refusing) fails(call string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left--; d.left == -1 {
		d.call = call
		return errRefused
	}
	return nil
}

// failed is the call that has failed, "" if none has.
func (d *refusing) failed() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.call
}

func (d *refusing) MemCreate(n int, p cuda.AllocationProp) (cuda.MemHandle, error) {
	if err := d.fails("MemCreate"); err != nil {
		return 0, err
	}
	return d.Driver.MemCreate(n, p)
}

func (d *refusing) MemAddressReserve(n, align int) (uintptr, error) {
	if err := d.fails("MemAddressReserve"); err != nil {
		return 0, err
	}
	return d.Driver.MemAddressReserve(n, align)
}

func (d *refusing) MemMap(p uintptr, n int, h cuda.MemHandle) error {
	if err := d.fails("MemMap"); err != nil {
		return err
	}
	return d.Driver.MemMap(p, n, h)
}

func (d *refusing) MemSetAccess(p uintptr, n int, devices ...cuda.Device) error {
	if err := d.fails("MemSetAccess"); err != nil {
		return err
	}
	return d.Driver.MemSetAccess(p, n, devices...)
}

func (d *refusing) MemExportToShareableHandle(h cuda.MemHandle) (int, error) {
	if err := d.fails("MemExportToShareableHandle"); err != nil {
		return -1, err
	}
	return d.Driver.MemExportToShareableHandle(h)
}

func (d *refusing) MemImportFromShareableHandle(fd int) (cuda.MemHandle, error) {
	if err := d.fails("MemImportFromShareableHandle"); err != nil {
		return 0, err
	}
	return d.Driver.MemImportFromShareableHandle(fd)
}

// TestRangeDriverRefuses: whichever call the driver refuses while a rank gets memory of another process, the rank says
// so, nothing is left of what was made before, and the next try succeeds.
func TestRangeDriverRefuses(t *testing.T) {
	d := gputest.Driver(t, gputest.Devices(2))
	calls := map[string]bool{}
	for fault, done := 0, false; !done; fault++ {
		f := &refusing{Driver: d, left: fault}
		t.Run(fmt.Sprint(fault), func(t *testing.T) {
			owner, other := newUser(t, f, 0, 0, "p"), newUser(t, f, 1, 1, "q")
			before := owner.used()
			a, ao := owner.addresses(true, page, 2*page)
			b, bo := other.addresses(true, page)
			for _, o := range []*p2p.RangeOffer{ao, bo} {
				if o.Refused != "" {
					require.Contains(t, o.Refused, errRefused.Error(), f.failed())
					calls[f.failed()] = true
					owner.holds(t, before, 0)
					return
				}
			}
			at, err := b.Open(ao)
			said := err != nil
			if said {
				require.ErrorIs(t, err, errRefused)
				calls[f.failed()] = true
				at, err = b.Open(ao)
			}
			require.NoError(t, err)
			owner.holds(t, before, 0)
			if err = b.Bring(ao, 1); err != nil {
				require.ErrorContains(t, err, "p2p: rank 1 needs memory of rank 0: ")
				require.ErrorContains(t, err, errRefused.Error())
				calls[f.failed()] = true
				said, err = true, b.Bring(ao, 1)
			}
			require.NoError(t, err)
			require.Equal(t, f.failed() != "", said, f.failed())
			done = !said
			owner.holds(t, before, 2*page)
			other.write(at+page, "from another process")
			require.NoError(t, a.Bring(ao, 1))
			require.Equal(t, "from another process", owner.read(ao.Addr+page, 20))
		})
	}
	for _, call := range []string{"MemCreate", "MemAddressReserve", "MemMap", "MemSetAccess", "MemExportToShareableHandle",
		"MemImportFromShareableHandle"} {
		require.Contains(t, calls, call)
	}
}
