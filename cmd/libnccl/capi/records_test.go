package capi

import (
	"encoding/binary"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/mem"
)

// TestResources: a device communicator's memory is all ranks', is 0, and is freed whether the program ends it or not.
func TestResources(t *testing.T) {
	const ranks, n = 2, 4096
	l := onGPUs(t, ranks)
	comms := initAll(t, l, ranks)
	each := func(f func(rank int, comm uintptr)) {
		var wg sync.WaitGroup
		for rank, c := range comms {
			wg.Go(func() { f(rank, c) })
		}
		wg.Wait()
	}
	xs := make([][ranks]Resource, 3)
	errs := make([]error, ranks)
	for i := range xs {
		each(func(rank int, c uintptr) { errs[rank] = l.Resource(0, c, n, func(x Resource) { xs[i][rank] = x }) })
		require.Equal(t, make([]error, ranks), errs)
		for rank, x := range xs[i] {
			e := binary.LittleEndian
			base, stride := e.Uint64(x.Record[8:]), uint64(e.Uint32(x.Record[24:]))<<32
			require.Equal(t, []uint32{uint32(rank), uint32(rank)}, []uint32{e.Uint32(x.Record[16:]), e.Uint32(x.Record[20:])})
			d, err := l.device(rank)
			require.NoError(t, err)
			for peer := range uint64(ranks) {
				got := make([]byte, n)
				require.NoError(t, d.Read(got, mem.Device(rank, uintptr(base+peer*stride), n)))
				require.Equal(t, make([]byte, n), got)
			}
			if i == 0 {
				require.NoError(t, l.EndResource(comms[rank], x.Window))
				require.ErrorContains(t, l.EndResource(comms[rank], x.Window), "no window")
			}
		}
	}
	require.Equal(t, xs[0][0].Window, xs[2][0].Window,
		"the first was closed with the second, and its record is used again")

	g := l.GroupStart()
	var in [ranks]Resource
	for rank, c := range comms {
		require.NoError(t, l.Resource(g, c, n, func(x Resource) { in[rank] = x }))
		require.Zero(t, in[rank].Window)
	}
	_, err := l.GroupEnd(g)
	require.NoError(t, err)
	for rank, c := range comms {
		require.NoError(t, l.EndResource(c, in[rank].Window))
	}

	destroy(t, l, comms...)
	l.closing.Wait()
	require.Empty(t, l.memory)
	require.Empty(t, *l.numbers.Load())
	err = l.Resource(0, comms[0], n, nil)
	require.ErrorIs(t, err, ringo.ErrInvalid)
}

// TestListed: windows are in tables that name each other, and what is closed gives its place to another.
func TestListed(t *testing.T) {
	m, err := gpu.Open(gpu.Options{Emulate: 1})
	require.NoError(t, err)
	d, err := m.Device(0)
	require.NoError(t, err)
	c := &comm{device: d}
	word := func(at uintptr) uint64 {
		b := make([]byte, 8)
		require.NoError(t, d.Read(b, mem.Device(0, at, 8)))
		return binary.LittleEndian.Uint64(b)
	}
	first, err := c.records.table(d)
	require.NoError(t, err)
	var windows []*window
	for i := range listedWindows + 2 {
		w := &window{comm: c, at: uintptr(i+1) << 12, bytes: 100 + i, record: c.records.take(d)}
		windows = append(windows, w)
		require.NoError(t, c.records.list(w))
	}
	entry := func(i int) [3]uint64 {
		at := first
		if i >= listedWindows {
			at, i = uintptr(word(first+listedWindows*entryBytes)), i-listedWindows
		}
		at += uintptr(i * entryBytes)
		return [3]uint64{word(at), word(at + 8), word(at + 16)}
	}
	for i, w := range windows {
		require.Equal(t, entryOf(w), entry(i))
	}
	require.NoError(t, c.records.unlist(windows[3]))
	require.NoError(t, c.records.unlist(windows[3]), "it is there no more")
	require.Zero(t, entry(3))
	other := &window{comm: c, at: 1 << 30, bytes: 7, record: windows[3].record}
	require.NoError(t, c.records.list(other))
	require.Equal(t, entryOf(other), entry(3))
	require.Zero(t, word(uintptr(word(first+listedWindows*entryBytes))+listedWindows*entryBytes),
		"the last table names none")
	require.NoError(t, c.records.free())
}
