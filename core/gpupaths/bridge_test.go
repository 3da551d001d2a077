package gpupaths

import (
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/bridge"
)

// span is a part of memory.
type span struct {
	from, to uint64
	what     string
}

// All parts of a bridge's queues lie in its memory, apart from each other, and where kernels are told that they are.
func TestBridgeLayout(t *testing.T) {
	d := fakeDevice(t)
	defer d.Release()
	ctx, err := d.Context()
	require.NoError(t, err)
	n := netOf("abcd", transport.OverBridge, transport.OverBridge, transport.OverBridge)
	n.driver, n.ctx, n.dev = d.Driver(), ctx, d.Handle()
	shapes := map[int]grid.Geometry{1: {Lanes: 3, Slots: 4, SlotBytes: 256}, 2: {Lanes: 1, Slots: 2, SlotBytes: 128},
		3: {Lanes: 2, Slots: 8, SlotBytes: 512}}
	b := &bridgeNet{shape: func(peer int) grid.Geometry { return shapes[peer] }, heads: map[int]int{},
		ends: map[bridgeEnd]grid.End{}}
	b.slots.onHost = map[int]int{}
	require.NoError(t, b.allocate(n, nil))
	require.Nil(t, b.memory)
	require.NoError(t, b.allocate(n, []int{1, 2, 3}))
	defer func() { require.NoError(t, b.memory.Close()) }()
	base := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b.memory.Bytes()))))
	var spans []span
	for peer := 1; peer < 4; peer++ {
		g := shapes[peer]
		for _, sends := range []bool{false, true} {
			asked := 0
			var queues []bridge.Queue
			for range 2 { // it is made once
				e, err := b.once(bridgeEnd{peer, sends}, func(q []bridge.Queue) { asked++; queues = q })
				require.NoError(t, err)
				require.Equal(t, g, e.Geometry)
				if asked == 1 && queues != nil {
					for l, q := range queues {
						require.Equal(t, []int{g.Slots, g.SlotBytes}, []int{q.Slots, q.SlotBytes})
						at := func(p unsafe.Pointer) uint64 { return uint64(uintptr(p)) - base + b.addr }
						name := fmt.Sprint("peer ", peer, " sends ", sends, " lane ", l)
						heads, slots := at(unsafe.Pointer(unsafe.SliceData(q.Headers))), at(unsafe.Pointer(unsafe.SliceData(q.Memory)))
						require.Equal(t, e.Heads+uint64(l*g.HeadBytes()), heads, name)
						require.Equal(t, e.Queues+uint64(l*g.SlotsBytes()), slots, name)
						require.Equal(t, e.Post+uint64(l*grid.LaneStride), at(unsafe.Pointer(q.Posted)), name)
						require.Equal(t, e.Seen+uint64(l*grid.LaneStride), at(unsafe.Pointer(q.Seen)), name)
						require.Len(t, q.Headers, g.HeadBytes())
						require.Len(t, q.Memory, g.SlotsBytes())
						spans = append(spans, span{heads, heads + uint64(g.HeadBytes()), name + " heads"},
							span{slots, slots + uint64(g.SlotsBytes()), name + " slots"},
							span{at(unsafe.Pointer(q.Posted)), at(unsafe.Pointer(q.Posted)) + grid.LaneStride, name + " post"},
							span{at(unsafe.Pointer(q.Seen)), at(unsafe.Pointer(q.Seen)) + grid.LaneStride, name + " seen"})
					}
					queues = nil
				}
			}
			require.Equal(t, 1, asked)
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return int(int64(a.from) - int64(b.from)) })
	next := b.addr
	for _, s := range spans {
		require.Equal(t, next, s.from, "%s follows at once", s.what)
		next = s.to
	}
	require.EqualValues(t, b.bytes, next-b.addr)
	require.Len(t, b.memory.Bytes(), b.bytes)
	_, _, err = b.end(bridgeEnd{peer: 9})
	require.EqualError(t, err, "no bridge to rank 9")
	_, err = b.once(bridgeEnd{peer: 9}, func([]bridge.Queue) { t.Error("there are no queues") })
	require.EqualError(t, err, "no bridge to rank 9")

	// Slots of peers that are not placed after all get memory of their own.
	s := &bridgeSlots{candidates: map[int]bool{1: true, 2: true}, onGPU: map[int]int{1: 0, 2: 512}, onHost: map[int]int{},
		copies: map[int]string{}}
	require.NoError(t, s.settle(n, []string{"", "no room", "", ""}))
	require.Equal(t, map[int]bool{2: true}, s.placed)
	require.Equal(t, map[int]bool{1: true}, s.moved)
	require.Equal(t, map[int]int{2: 512}, s.onGPU)
	require.Equal(t, map[int]string{1: "rank 1: no room"}, s.copies)
	require.Len(t, s.late.Bytes(), 2*slotsBytes(n.bridgeGeometry(0, 1)))
	size := slotsBytes(n.bridgeGeometry(0, 1))
	for side := range 2 {
		addr, slots := s.at(b, 1, side*size, size)
		require.Equal(t, s.addr+uint64(side*size), addr)
		require.Equal(t, size, slots.Len())
		require.Equal(t, &s.late.Bytes()[side*size], &slots.Bytes()[0])
	}
	require.NoError(t, s.close())
	mine := &bridgeSlots{candidates: map[int]bool{1: true}, onGPU: map[int]int{}, onHost: map[int]int{},
		copies: map[int]string{}}
	require.NoError(t, mine.settle(n, []string{"not here", "no room", "", ""}))
	require.Equal(t, map[int]string{1: "rank 0: not here"}, mine.copies)
	require.Nil(t, mine.late)
	require.Empty(t, mine.placed)
}
