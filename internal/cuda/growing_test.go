package cuda

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/must"
)

// paging is a driver with virtual memory, in pages of 64 bytes, that notes its calls. It fails one of them.
type paging struct {
	Driver
	calls   []string
	without bool   // virtual memory
	room    int    // bytes; 0 is no bound
	failing string // a call as it is noted, or its name
	blocks  int
}

var errPaging = errors.New("no")

func (d *paging) note(name string, args ...any) error {
	text := strings.TrimSpace(fmt.Sprintln(append([]any{name}, args...)...))
	d.calls = append(d.calls, text)
	if text == d.failing || name == d.failing {
		return errPaging
	}
	return nil
}

// noted are the calls since the last time.
func (d *paging) noted() string {
	calls := strings.Join(d.calls, "; ")
	d.calls = nil
	return calls
}

func (d *paging) CtxGetCurrent() (Context, error) { return 7, nil }
func (d *paging) ThreadExchangeStreamCaptureMode(m CaptureMode) (CaptureMode, error) {
	return CaptureGlobal, nil
}

func (d *paging) DeviceGetAttribute(a DeviceAttribute, _ Device) (int, error) {
	if d.without || a != AttrVirtualMemorySupported {
		return 0, nil
	}
	return 1, d.note("virtual")
}

func (d *paging) MemGetAllocationGranularity(p AllocationProp, o GranularityOption) (int, error) {
	return 64, d.note("granularity", p.Device)
}
func (d *paging) DeviceTotalMem(Device) (int, error) { return 1000, d.note("total") }
func (d *paging) MemAddressReserve(n, align int) (uintptr, error) {
	return 4096, d.note("reserve", n, align)
}
func (d *paging) MemAddressFree(p uintptr, n int) error { return d.note("free-addresses", p, n) }
func (d *paging) MemCreate(n int, p AllocationProp) (MemHandle, error) {
	if d.room > 0 && n > d.room {
		return 0, ErrOutOfMemory
	}
	return MemHandle(n), d.note("create", n, p.Device)
}
func (d *paging) MemRelease(h MemHandle) error               { return d.note("release", h) }
func (d *paging) MemMap(p uintptr, n int, h MemHandle) error { return d.note("map", p, n, h) }
func (d *paging) MemUnmap(p uintptr, n int) error            { return d.note("unmap", p, n) }
func (d *paging) MemSetAccess(p uintptr, n int, devices ...Device) error {
	return d.note("access", p, n, devices)
}
func (d *paging) MemAlloc(n int) (uintptr, error) {
	d.blocks++
	return uintptr(d.blocks), d.note("alloc", n)
}
func (d *paging) MemFree(p uintptr) error { return d.note("free", p) }

// The calls of the driver by which memory grows, in order.
func TestGrowing(t *testing.T) {
	d := &paging{}
	g := NewGrowing(d, 7, 3)
	require.NoError(t, g.Close())
	require.Empty(t, d.noted(), "there was nothing")
	atLeast := func(n int, p uintptr, size int, calls string) {
		t.Helper()
		got := must.Get(g.AtLeast(n))
		require.Equal(t, p, got)
		require.Equal(t, size, g.Size())
		require.Equal(t, size, g.Mapped())
		require.Equal(t, calls, d.noted())
	}
	atLeast(0, 4096, 64, "virtual; granularity 3; total; reserve 1024 64; create 64 3; map 4096 64 64; access 4096 64 "+
		"[3]; release 64")
	atLeast(64, 4096, 64, "")
	atLeast(65, 4096, 128, "create 64 3; map 4160 64 64; access 4160 64 [3]; release 64")
	atLeast(500, 4096, 512, "create 384 3; map 4224 384 384; access 4224 384 [3]; release 384")
	require.NoError(t, g.Suspend())
	require.Equal(t, "unmap 4096 64; unmap 4160 64; unmap 4224 384", d.noted())
	require.Equal(t, 512, g.Mapped())
	require.NoError(t, g.Suspend())
	require.Empty(t, d.noted(), "it is away")
	require.NoError(t, g.Resume())
	require.Equal(t, "create 64 3; map 4096 64 64; access 4096 64 [3]; release 64; "+
		"create 64 3; map 4160 64 64; access 4160 64 [3]; release 64; "+
		"create 384 3; map 4224 384 384; access 4224 384 [3]; release 384", d.noted())
	require.NoError(t, g.Resume())
	require.Empty(t, d.noted(), "it is there")

	d.room = 64 // not for twice as much, but for what is needed
	atLeast(513, 4096, 576, "create 64 3; map 4608 64 64; access 4608 64 [3]; release 64")
	require.ErrorIs(t, must.Err(g.AtLeast(700)), ErrOutOfMemory)
	require.Equal(t, 576, g.Size())
	d.noted()

	require.NoError(t, g.Close())
	require.Equal(t, "unmap 4096 64; unmap 4160 64; unmap 4224 384; unmap 4608 64; free-addresses 4096 1024", d.noted())
	require.Zero(t, g.Size())
	require.NoError(t, g.Close())
	require.Empty(t, d.noted(), "it is closed")
	atLeast(1, 4096, 64, "virtual; granularity 3; total; reserve 1024 64; create 64 3; map 4096 64 64; access 4096 64 "+
		"[3]; release 64")
	require.NoError(t, g.Suspend())
	d.noted()
	require.NoError(t, g.Close())
	require.Equal(t, "free-addresses 4096 1024", d.noted(), "its memory is away")
}

// A failure is returned, and the steps before it are undone.
func TestGrowingFails(t *testing.T) {
	for failing, calls := range map[string]string{
		"create":  "create 64 3",
		"map":     "create 64 3; map 4096 64 64; release 64",
		"access":  "create 64 3; map 4096 64 64; access 4096 64 [3]; release 64; unmap 4096 64",
		"release": "create 64 3; map 4096 64 64; access 4096 64 [3]; release 64; unmap 4096 64",
	} {
		d := &paging{failing: failing}
		g := NewGrowing(d, 7, 3)
		require.ErrorIs(t, must.Err(g.AtLeast(1)), errPaging, failing)
		require.Equal(t, "virtual; granularity 3; total; reserve 1024 64; "+calls, d.noted())
		require.Zero(t, g.Size())
		require.NoError(t, g.Suspend())
		require.Empty(t, d.noted())
		require.NoError(t, g.Close())
		require.Equal(t, "free-addresses 4096 1024", d.noted())
	}

	// A Growing that cannot resume stays suspended.
	d := &paging{}
	g := NewGrowing(d, 7, 3)
	for _, n := range []int{64, 128} {
		must.Get(g.AtLeast(n))
	}
	require.NoError(t, g.Suspend())
	d.noted()
	d.failing = "map 4160 64 64"
	require.ErrorIs(t, g.Resume(), errPaging)
	require.Equal(t, "create 64 3; map 4096 64 64; access 4096 64 [3]; release 64; create 64 3; map 4160 64 64; release "+
		"64; unmap 4096 64", d.noted())
	d.failing = ""
	require.NoError(t, g.Resume())
	d.noted()
	for _, failing := range []string{"unmap 4096 64", "unmap 4160 64", "free-addresses"} {
		d.failing = failing
		g := *g
		require.ErrorIs(t, g.Close(), errPaging)
		require.Equal(t, "unmap 4096 64; unmap 4160 64; free-addresses 4096 1024", d.noted(), "all the rest is given back")
	}
}

// Without virtual memory there are blocks, which all stay until the end.
func TestGrowingBlocks(t *testing.T) {
	for _, d := range []*paging{{without: true}, {failing: "virtual"}, {failing: "granularity"}, {failing: "total"},
		{failing: "reserve"}} {
		g := NewGrowing(d, 7, 3)
		p := must.Get(g.AtLeast(100))
		require.EqualValues(t, 1, p)
		d.noted()
		for range 2 {
			p = must.Get(g.AtLeast(101))
			require.EqualValues(t, 2, p)
		}
		require.Equal(t, "alloc 200", d.noted())
		require.Equal(t, 200, g.Size())
		require.Zero(t, g.Mapped())
		d.failing = "alloc"
		require.ErrorIs(t, must.Err(g.AtLeast(300)), errPaging)
		require.Equal(t, 200, g.Size())
		require.NoError(t, g.Suspend())
		require.Equal(t, "alloc 400", d.noted())
		require.NoError(t, g.Close())
		require.Equal(t, "free 1; free 2", d.noted())
	}

	// A block is twice the one before up to a bound.
	d := &paging{without: true}
	g := NewGrowing(d, 7, 3)
	for _, n := range []int{100 << 20, 100<<20 + 1} {
		must.Get(g.AtLeast(n))
	}
	require.Equal(t, fmt.Sprintf("alloc %d; alloc %d", 100<<20, 164<<20), d.noted())
}

// A Store ends its things in the opposite order of their making, whatever fails.
func TestStoreEnds(t *testing.T) {
	d := &paging{}
	s := OpenStore(d, 7)
	for _, key := range []string{"first", "second"} {
		_, err := Stored(s, key, func() (string, error) { return key, nil }, func(v string) error { return d.note("end", v) })
		require.NoError(t, err)
	}
	p := must.Get(s.Alloc(100))
	require.EqualValues(t, 1, p)
	d.noted()
	d.failing = "end second"
	require.ErrorIs(t, s.Close(), errPaging)
	require.Equal(t, "end second; end first; free 1", d.noted())

	s = OpenStore(d, 7)
	require.NoError(t, s.Close())
	d.failing = "alloc"
	s = OpenStore(d, 7)
	require.ErrorIs(t, must.Err(s.Alloc(100)), errPaging)
	d.noted()
	require.NoError(t, s.Close())
	require.Empty(t, d.noted(), "it holds nothing")
	one, other := OpenStore(d, 7), OpenStore(d, 8)
	require.NotSame(t, one, other, "another context")
	require.NoError(t, errors.Join(one.Close(), other.Close()))
}
