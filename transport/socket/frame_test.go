package socket

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/transport"
)

func frame(h header) []byte {
	b := make([]byte, headerLen)
	h.put(b)
	return b
}

func TestHeader(t *testing.T) {
	good := header{kind: kindSlot, flags: flagLent, length: 300, slot: 7, stamp: transport.Stamp{1, 1 << 63}}
	got, err := parseHeader(frame(good), 7, 300)
	require.NoError(t, err)
	require.Equal(t, good, got)

	with := func(change func(*header)) []byte {
		h := good
		change(&h)
		return frame(h)
	}
	for name, b := range map[string][]byte{
		"empty":            nil,
		"cut":              frame(good)[:headerLen-1],
		"zeros":            make([]byte, headerLen),
		"text":             []byte("GET / HTTP/1.1\r\nHost: 192.0.2.1\r\n"),
		"kind":             with(func(h *header) { h.kind = 9 }),
		"flags":            with(func(h *header) { h.flags = 0x80 }),
		"too long":         with(func(h *header) { h.length = 301 }),
		"far too long":     with(func(h *header) { h.length = 1<<32 - 1 }),
		"wrong slot":       with(func(h *header) { h.slot = 6 }),
		"goodbye and more": with(func(h *header) { h.kind = kindGoodbye }),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseHeader(b, 7, 300)
			var fe *FrameError
			require.ErrorAs(t, err, &fe)
		})
	}
}

func FuzzHeader(f *testing.F) {
	f.Add(frame(header{kind: kindSlot, length: 3, slot: 7}), uint64(7), 300)
	f.Add(frame(header{kind: kindGoodbye}), uint64(7), 300)
	f.Fuzz(func(t *testing.T, b []byte, slot uint64, max int) {
		h, err := parseHeader(b, slot, max)
		if err != nil {
			require.ErrorContains(t, err, "malformed frame")
			return
		}
		require.LessOrEqual(t, h.length, max)
		require.Equal(t, b[:headerLen], frame(h))
	})
}
