package p2p_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/transport/p2p"
)

const page = 2 << 20

// addresses makes a Range until the test's end.
func (u *user) addresses(shared bool, pieces ...int) (*p2p.Range, *p2p.RangeOffer) {
	u.T.Helper()
	r := p2p.NewRange(u.config(0), pieces, shared)
	u.T.Cleanup(func() { require.NoError(u.T, r.Close(true)) })
	o, err := p2p.ParseRangeOffer(r.Offer())
	require.NoError(u.T, err)
	return r, &o
}

// holds checks that this many bytes of the GPU are in use beside others. A driver may take a
// few pages for itself meanwhile.
func (u *user) holds(t *testing.T, others, n int) {
	t.Helper()
	slack := 0
	if gputest.OnGPU() {
		slack = 2 * page
	}
	require.InDelta(t, n, u.used()-others, float64(slack))
}

func (u *user) used() (n int) {
	u.do(func() error {
		free, total, err := u.MemGetInfo()
		n = total - free
		return err
	})
	return n
}

// Memory comes for the piece that a rank needs, zero, with access for that rank.
func TestRange(t *testing.T) {
	d := gputest.Driver(t, gputest.Devices(2))
	first, second := newUser(t, d, 0, 0, "p"), newUser(t, d, 1, 1, "p")
	before := first.used()
	_, ao := first.addresses(false, page, 3*page, 0)
	b, _ := second.addresses(false, page, page)
	require.Empty(t, ao.Refused)
	at, err := b.Open(ao)
	require.NoError(t, err)
	require.Equal(t, ao.Addr, at)
	first.holds(t, before, 0) // addresses only
	for range 2 {
		require.NoError(t, b.Bring(ao, 1))
		require.NoError(t, b.Bring(ao, 2))
		first.holds(t, before, 3*page)
	}
	require.Equal(t, string(make([]byte, 3*page)), first.read(at+page, 3*page))
	second.write(at+page, "from rank 1")
	require.Equal(t, "from rank 1", first.read(at+page, 11))
}

func TestRangeRefused(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("this driver refuses nothing")
	}
	for call, want := range map[string]string{"cuMemCreate": "CUDA_ERROR_NOT_SUPPORTED",
		"cuMemAddressReserve": "CUDA_ERROR_NOT_SUPPORTED"} {
		d := gputest.Driver(t,
			gputest.Emu(cudaemu.Config{Devices: 1,
				Faults: []cudaemu.Injection{{Call: call, Chance: 1, Result: cuda.Result(801)}}}))
		u := newUser(t, d, 0, 0, "p")
		r, o := u.addresses(false, page)
		require.Contains(t, r.Refused(), want)
		_, err := r.Open(o)
		require.ErrorContains(t, err, "p2p: rank 0: ")
	}
	u := newUser(t, gputest.Driver(t), 0, 0, "p")
	_, o := u.addresses(false, 4096)
	require.Contains(t, o.Refused, "memory is mapped in units of")
	_, err := p2p.ParseRangeOffer([]byte(`{"Rank":1,"Pieces":[-1]}`))
	require.ErrorContains(t, err, "a piece of -1 bytes")
}

// A piece for which there was no memory may be brought later.
func TestRangeOutOfMemory(t *testing.T) {
	m, err := cudaemu.New(cudaemu.Config{Devices: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	u := newUser(t, m, 0, 0, "p")
	r, o := u.addresses(false, page)
	for _, call := range []string{"cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemcpyAsync"} {
		m.Inject(cudaemu.Injection{Call: call, Nth: 1, Result: cuda.ErrOutOfMemory})
		require.ErrorIs(t, r.Bring(o, 0), cuda.ErrOutOfMemory, call)
	}
	require.NoError(t, r.Bring(o, 0))
}

// After Suspend and Resume the same pieces have memory as before, zero, at the same addresses and for the same ranks.
func TestSuspend(t *testing.T) {
	d := gputest.Driver(t, gputest.Devices(2))
	first, second := newUser(t, d, 0, 0, "p"), newUser(t, d, 1, 1, "p")
	before := first.used()
	a, ao := first.addresses(false, page, 2*page, 4*page)
	b, _ := second.addresses(false, page)
	at, err := b.Open(ao)
	require.NoError(t, err)
	require.Zero(t, a.Mapped())
	require.NoError(t, a.Bring(ao, 0))
	require.NoError(t, b.Bring(ao, 1))
	require.Equal(t, 3*page, a.Mapped())
	second.write(at+page, "from rank 1")
	for range 2 {
		require.NoError(t, a.Suspend())
		require.NoError(t, b.Suspend())
		first.holds(t, before, 0)
		require.Equal(t, 3*page, a.Mapped(), "what it has given back")
		require.Zero(t, b.Mapped())
		require.NoError(t, a.Resume())
		require.NoError(t, b.Resume())
		first.holds(t, before, 3*page)
		require.Equal(t, 3*page, a.Mapped())
		require.Equal(t, string(make([]byte, 3*page)), first.read(at, 3*page))
		second.write(at+page, "rank 1 still has access")
	}
	require.NoError(t, a.Bring(ao, 2))
	require.Equal(t, 7*page, a.Mapped())
}

// A lack of memory when a rank resumes is an error, and Resume may be tried again.
func TestResumeOutOfMemory(t *testing.T) {
	m, err := cudaemu.New(cudaemu.Config{Devices: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	u := newUser(t, m, 0, 0, "p")
	r, o := u.addresses(false, page, page)
	require.NoError(t, r.Bring(o, 0))
	require.NoError(t, r.Bring(o, 1))
	require.NoError(t, r.Suspend())
	m.Inject(cudaemu.Injection{Call: "cuMemCreate", Nth: 2, Result: cuda.ErrOutOfMemory})
	require.ErrorIs(t, r.Resume(), cuda.ErrOutOfMemory)
	require.Equal(t, 2*page, r.Mapped())
	require.NoError(t, r.Resume())
	require.Equal(t, 2*page, r.Mapped())
}
