package gpucomm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport/p2p"
)

// register has all ranks register a part of memory of their own.
func register(t testing.TB, comms []*Comm, memory []mem.Region, off, n int) []*Window {
	t.Helper()
	ws := make([]*Window, len(comms))
	each(t, comms, func(g *Comm) (err error) {
		ws[g.Life.Rank], err = g.Register(memory[g.Life.Rank].Slice(off, n))
		return err
	})
	return ws
}

func closeAll(t testing.TB, comms []*Comm, ws []*Window) {
	t.Helper()
	each(t, comms, func(g *Comm) error { return ws[g.Life.Rank].Close() })
}

// Windows come and go, in any order, and find their memory.
func TestWindows(t *testing.T) {
	list := gputest.GPUs(t, 3)
	comms := open(t, list, nil)
	memory := memories(t, list, 4096)
	a := register(t, comms, memory, 0, 1024)
	b := register(t, comms, memory, 2048, 1024)
	c := register(t, comms, memory, 1024, 1024)
	for r, comm := range comms {
		find := func(off, n int) string {
			s, ok := comm.windows.open.find(memory[r].Ptr()+uintptr(off), n)
			if !ok {
				return ""
			}
			return fmt.Sprint(s.window.number, " ", s.offset)
		}
		require.Empty(t, a[r].Reason())
		require.Equal(t, "1 0", find(0, 1024))
		require.Equal(t, "1 1000", find(1000, 24))
		require.Equal(t, "", find(1000, 25), "not across windows")
		require.Equal(t, "3 0", find(1024, 1024))
		require.Equal(t, "2 1", find(2049, 7))
		require.Equal(t, "", find(3072, 1))
		require.Equal(t, memory[r].Slice(2048, 1024), b[r].Region())
		require.Equal(t, uint64(b[r].region.Ptr()), b[r].memory.At[r])
	}
	closeAll(t, comms, b)
	closeAll(t, comms, a)
	require.NoError(t, a[0].Close(), "a second Close does nothing")
	d := register(t, comms, memory, 0, 1000) // the same memory again
	require.Equal(t, 4, d[2].number)
	require.Len(t, comms[1].windows.open, 2)
	closeAll(t, comms, c)
	closeAll(t, comms, d)
	require.Empty(t, comms[1].windows.open)
}

// If the ranks' memories do not fit together, no rank gets a window.
func TestRegisterRefused(t *testing.T) {
	list := gputest.GPUs(t, 2)
	comms := open(t, list, nil)
	memory := memories(t, list, 64)
	each(t, comms, func(g *Comm) error {
		w, err := g.Register(memory[g.Life.Rank].Slice(0, 64-g.Life.Rank))
		require.Nil(t, w)
		require.ErrorIs(t, err, call.ErrInvalid)
		require.ErrorContains(t, err, "rank 0 registers 64 bytes, rank 1 registers 63")
		return g.Life.Err()
	})
	for _, g := range comms {
		require.Empty(t, g.windows.open)
	}
}

// Ranks that close different windows are told which.
func TestWindowsClosedOutOfOrder(t *testing.T) {
	list := gputest.GPUs(t, 2)
	comms := open(t, list, nil)
	memory := memories(t, list, 128)
	both := [][]*Window{register(t, comms, memory, 0, 64), register(t, comms, memory, 64, 64)}
	each(t, comms, func(g *Comm) error {
		r := g.Life.Rank
		err := both[r][r].Close()
		require.ErrorIs(t, err, call.ErrMismatch)
		require.ErrorContains(t, err, fmt.Sprintf("rank %d calls Window.Close of window #%d, rank %d of window #%d", r, r+1,
			1-r, 2-r))
		return nil
	})
	require.Error(t, comms[0].Life.Err())
}

// Places that differ are told apart, and named.
func TestPlacement(t *testing.T) {
	a, b := &Window{number: 1}, &Window{number: 2}
	seen := map[uint16]string{}
	for want, p := range map[string]placement{
		"":                                               {},
		"In at 5 of window #1":                           {in: spot{a, 5}},
		"Out at 5 of window #1":                          {out: spot{a, 5}},
		"Out at 5 of window #2":                          {out: spot{b, 5}},
		"Out at 0 of window #2":                          {out: spot{b, 0}},
		"In and Out at 7 of window #2":                   {in: spot{b, 7}, out: spot{b, 7}},
		"In at 7 and Out at 9 of window #2":              {in: spot{b, 7}, out: spot{b, 9}},
		"In at 9 and Out at 7 of window #2":              {in: spot{b, 9}, out: spot{b, 7}},
		"In at 7 of window #1 and Out at 7 of window #2": {in: spot{a, 7}, out: spot{b, 7}},
		"In at 7 of window #2 and Out at 7 of window #1": {in: spot{b, 7}, out: spot{a, 7}},
		"In at 1073741824 of window #1":                  {in: spot{a, 1 << 30}},
		"In and Out at 1099511627776 of window #1":       {in: spot{a, 1 << 40}, out: spot{a, 1 << 40}},
	} {
		require.Equal(t, want, p.String())
		h := p.hash()
		require.NotZero(t, h)
		require.LessOrEqual(t, h, uint16(call.MaxWhere))
		require.Empty(t, seen[h])
		seen[h] = want
	}
	var l placements
	for i := range 40 {
		p := placement{in: spot{a, i}}
		p.where = p.hash()
		l.add(&p)
		require.Equal(t, p, l.find(p.where))
		require.Zero(t, l.find(p.where^16).where)
	}
}

// Answer, which every call needs, finds memory in windows without allocating.
func TestAnswerAllocatesNothing(t *testing.T) {
	list := gputest.GPUs(t, 2)
	comms := open(t, list, func(o *Options) { o.Chooser.Forced = call.Window })
	memory := memories(t, list, 4096)
	defer closeAll(t, comms, register(t, comms, memory, 0, 4096))
	c := &call.Call{Kind: call.AllReduce, In: memory[0], Out: memory[0], Count: 8, Type: kernels.Float32}
	require.Equal(t, call.Window, comms[0].Answer(c).Algo)
	require.Zero(t, testing.AllocsPerRun(100, func() { comms[0].Answer(c) }))
}

func BenchmarkWindowFind(b *testing.B) {
	var ws byAddress
	for i := range 16 {
		ws.insert(&Window{region: mem.Device(0, uintptr(i+1)<<20, 1<<19), span: &p2p.Segment{}})
	}
	for i := range b.N {
		if _, ok := ws.find(uintptr(i%16+1)<<20+64, 1000); !ok {
			b.Fatal("not found")
		}
	}
}
