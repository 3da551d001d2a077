package p2p_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/p2p"
)

// alloc is memory of MemAlloc until the test's end.
func (u *user) alloc(n int) (at uint64) {
	u.T.Helper()
	u.do(func() error {
		p, err := u.MemAlloc(n)
		at = uint64(p)
		return err
	})
	u.T.Cleanup(func() { u.do(func() error { return u.MemFree(uintptr(at)) }) })
	return at
}

const pieceBytes = 2 << 20

// mapped is virtual memory of pieces of 2, 4 … MiB, as expandable segments are, until the
// test's end.
func (u *user) mapped(pieces int, shareable bool) (at uint64) {
	u.T.Helper()
	total := pieceBytes * pieces * (pieces + 1) / 2
	base, err := u.MemAddressReserve(total, 0)
	require.NoError(u.T, err)
	end := base
	for i := range pieces {
		n := (i + 1) * pieceBytes
		h, err := u.MemCreate(n, cuda.AllocationProp{Device: u.dev, Shareable: shareable})
		require.NoError(u.T, err)
		require.NoError(u.T, u.MemMap(end, n, h))
		require.NoError(u.T, u.MemRelease(h))
		end += uintptr(n)
	}
	require.NoError(u.T, u.MemSetAccess(base, total, u.dev))
	u.T.Cleanup(func() {
		p := base
		for i := range pieces {
			require.NoError(u.T, u.MemUnmap(p, (i+1)*pieceBytes))
			p += uintptr((i + 1) * pieceBytes)
		}
		require.NoError(u.T, u.MemAddressFree(base, total))
	})
	return uint64(base)
}

// segment shares memory.
func (u *user) segment(at uint64, n int) (*p2p.Segment, *p2p.SegmentOffer) {
	u.T.Helper()
	s, err := u.try(at, n)
	require.NoError(u.T, err)
	u.T.Cleanup(func() { require.NoError(u.T, s.Close()) })
	o, err := p2p.ParseSegmentOffer(s.Offer())
	require.NoError(u.T, err)
	return s, &o
}

func (u *user) try(at uint64, n int) (*p2p.Segment, error) {
	return p2p.NewSegment(u.config(n), at)
}

// In one process memory is used where it is, of whichever kind.
func TestSegmentSameProcess(t *testing.T) {
	for _, kind := range []string{"allocated", "mapped"} {
		t.Run(kind, func(t *testing.T) {
			d := gputest.Driver(t, gputest.Devices(2))
			a, b := newUser(t, d, 0, 0, "p"), newUser(t, d, 1, 1, "p")
			const off, n = pieceBytes - 4, 64 // across two pieces
			at := map[string]func(*user) uint64{
				"allocated": func(u *user) uint64 { return u.alloc(2 * pieceBytes) },
				"mapped":    func(u *user) uint64 { return u.mapped(2, false) },
			}[kind]
			x, y := at(a)+off, at(b)+off
			_, ao := a.segment(x, n)
			s, bo := b.segment(y, n)
			require.NoError(t, p2p.ReachSegment(ao, bo))
			own, err := s.Open(bo)
			require.NoError(t, err)
			require.Equal(t, y, own)
			peer, err := s.Open(ao)
			require.NoError(t, err)
			require.Equal(t, x, peer)
			again, err := s.Open(ao)
			require.NoError(t, err)
			require.Equal(t, peer, again)
			a.write(x, "from rank 0")
			b.do(func() error { // by the copy engine of device 1
				if err := d.MemcpyAsync(uintptr(y), uintptr(peer), 11, 0); err != nil {
					return err
				}
				return d.StreamSynchronize(0)
			})
			require.Equal(t, "from rank 0", b.read(y, 11))
		})
	}
}

// An address that is no memory of the rank's GPU is an error that names it, with a remedy.
func TestSegmentBad(t *testing.T) {
	d := gputest.Driver(t, gputest.Devices(2))
	u, other := newUser(t, d, 3, 0, "p"), newUser(t, d, 1, 1, "p")
	x, y, m := u.alloc(4096), other.alloc(4096), u.mapped(2, false)
	var pinned, freed uintptr
	u.do(func() (err error) {
		if pinned, err = d.MemHostAlloc(4096, 0); err != nil {
			return err
		}
		if freed, err = d.MemAlloc(4096); err != nil {
			return err
		}
		return d.MemFree(freed)
	})
	defer u.do(func() error { return d.MemFreeHost(pinned) })
	for _, test := range []struct {
		name string
		at   uint64
		n    int
		want string
	}{
		{"null", 0, 8, "the address is null: register live memory"},
		{"nothing", x, 0, "0 bytes"},
		{"freed", uint64(freed), 8, "was freed, or is the program's own"},
		{"host", uint64(pinned), 8, "is host memory"},
		{"other device", y, 8, "is memory of device 1, but the rank's GPU is device 0"},
		{"too long", x + 4000, 128, "96 of 128 bytes"},
		{"beyond the mappings", m, 4 * pieceBytes, fmt.Sprintf(" of %d bytes at %#x are ", 4*pieceBytes, m)},
	} {
		t.Run(test.name, func(t *testing.T) {
			if gputest.OnGPU() && test.name == "too long" {
				t.Skip("hardware rounds allocations up")
			}
			_, err := u.try(test.at, test.n)
			var e *p2p.SegmentError
			require.ErrorAs(t, err, &e)
			require.Equal(t, 3, e.Rank)
			require.Equal(t, -1, e.Peer)
			require.NotEmpty(t, e.Remedy)
			require.ErrorContains(t, err, test.want)
		})
	}
}

// Memory that cannot be handed over is no error, but both ends know.
func TestReachSegment(t *testing.T) {
	offer := func(rank int) *p2p.SegmentOffer {
		return &p2p.SegmentOffer{Info: transport.Info{Rank: rank, Host: "h", Process: "p"}, Bytes: 8}
	}
	bothReach(t, offer, p2p.ReachSegment, []reachTest[p2p.SegmentOffer]{
		{"well", nil, ""},
		{"same process without handle", func(o *p2p.SegmentOffer) { o.NoIPC = "no IPC here" }, ""},
		{"other process", func(o *p2p.SegmentOffer) { o.Process = "q" }, ""},
		{"other process without handle", func(o *p2p.SegmentOffer) { o.Process, o.NoIPC = "q", "no IPC here" },
			"rank 1 cannot hand its memory to another process: no IPC here"},
		{"other driver without handle", func(o *p2p.SegmentOffer) { o.Driver, o.NoIPC = "emu", "no IPC here" },
			"no IPC here"},
		{"refused", func(o *p2p.SegmentOffer) { o.NoPeer = "managed memory" }, "rank 1: managed memory"},
		{"other size", func(o *p2p.SegmentOffer) { o.Bytes = 9 }, "share 8 and 9 bytes"},
	})
	d := gputest.Driver(t)
	u := newUser(t, d, 0, 0, "p")
	_, o := u.segment(u.mapped(1, false), 8)
	require.Contains(t, o.NoIPC, "not made to be shared")
}

func FuzzParseSegmentOffer(f *testing.F) {
	f.Add([]byte(`{"Rank":1,"Addr":5,"Bytes":2,"Pieces":[{"Addr":4,"Bytes":8,"Mapped":true},{"Addr":12,"Bytes":8,"Mapped":true}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := p2p.ParseSegmentOffer(b)
		if err != nil || o.NoPeer != "" {
			return
		}
		total := 0
		for _, p := range o.Pieces {
			total += p.Bytes
		}
		off := o.Addr - o.Pieces[0].Addr
		require.LessOrEqual(t, off+uint64(o.Bytes), uint64(total))
	})
}

// TestSegmentTwoProcesses has a child on the last device open segments of each kind, two
// of them in one allocation, write into them and close them in some order.
func TestSegmentTwoProcesses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory is shared between processes on Linux alone")
	}
	d := gputest.Driver(t, gputest.Devices(2))
	if isChild() {
		spanChild(t, newUser(t, d, 1, 1, "child"))
		return
	}
	u := newUser(t, d, 0, 0, "parent")
	x := u.alloc(8192)
	m := u.mapped(3, true)
	y := u.alloc(512) // hardware cuts it from the same block as x
	places := []uint64{x + 256, x + 4096, m + pieceBytes - 4, m + 3*pieceBytes, y}
	c := newChild(t)
	var segments []*p2p.Segment
	for i, at := range places {
		s, _ := u.segment(at, 16)
		segments = append(segments, s)
		u.write(at, fmt.Sprint("parent's ", i))
		c.say(s.Offer())
	}
	c.end()
	for i, at := range places {
		require.Equal(t, fmt.Sprint("child was ", i), u.read(at, 11))
		require.NoError(t, segments[i].Settle())
	}
}

func spanChild(t *testing.T, u *user) {
	p := newParent(t)
	own, _ := u.segment(u.alloc(16), 16)
	var segments []*p2p.Segment
	var offers []*p2p.SegmentOffer
	for i, b := 0, p.hear(); b != nil; i, b = i+1, p.hear() {
		o, err := p2p.ParseSegmentOffer(b)
		require.NoError(t, err)
		s, own := u.segment(u.alloc(16), 16)
		require.NoError(t, p2p.ReachSegment(&o, own))
		at, err := s.Open(&o)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint("parent's ", i), u.read(at, 10))
		u.write(at, fmt.Sprint("child was ", i))
		segments, offers = append(segments, s), append(offers, &o)
	}
	// The allocation stays open until both have closed it, and can be opened again.
	require.NoError(t, segments[0].Close())
	at, err := segments[1].Open(offers[1])
	require.NoError(t, err)
	require.Equal(t, "child was 1", u.read(at, 11))
	require.NoError(t, segments[1].Close())
	at, err = own.Open(offers[0])
	require.NoError(t, err)
	require.Equal(t, "child was 0", u.read(at, 11))

	stale := *offers[2]
	stale.Export = &p2p.Export{Socket: stale.Export.Socket, Secret: make([]byte, 16)}
	s, _ := u.segment(u.alloc(16), 16)
	_, err = s.Open(&stale)
	var e *p2p.SegmentError
	require.ErrorAs(t, err, &e)
	require.Equal(t, 0, e.Peer)
	stale.Export.Socket = "@ringo-nobody"
	_, err = s.Open(&stale)
	require.ErrorContains(t, err, "rank 1 opens memory of rank 0: cannot: ")
}
