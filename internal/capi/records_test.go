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
	l := with(nil)
	var err error
	l.machine, err = gpu.Open(gpu.Options{Emulate: ranks})
	require.NoError(t, err)
	comms, err := l.InitAll(ranks, nil)
	require.NoError(t, err)
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
		each(func(rank int, c uintptr) { xs[i][rank], errs[rank] = l.Resource(0, c, n) })
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
	require.Equal(t, xs[0][0].Window, xs[2][0].Window, "the first was closed with the second, and its record is used again")

	g, err := l.GroupStart(0)
	require.NoError(t, err)
	_, err = l.Resource(g, comms[0], n)
	require.ErrorContains(t, err, "after ncclGroupEnd")
	_, err = l.GroupEnd(g)
	require.Error(t, err)

	for _, c := range comms {
		require.NoError(t, l.Destroy(c))
	}
	l.closing.Wait()
	require.Empty(t, l.memory)
	require.Empty(t, *l.numbers.Load())
	_, err = l.Resource(0, comms[0], n)
	require.ErrorIs(t, err, ringo.ErrInvalid)
}
