package fifo

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/mem"
)

// A Region of the host's or of a device's memory is sliced inside its bounds only.
func TestRegion(t *testing.T) {
	b := make([]byte, 16)
	h := mem.Host(b)
	require.Equal(t, 16, h.Len())
	require.True(t, h.IsHost())
	require.Equal(t, -1, h.Dev())
	h.Slice(4, 2).Bytes()[1] = 7
	require.Equal(t, byte(7), b[5])
	require.Equal(t, h.Ptr()+4, h.Slice(4, 0).Ptr())
	require.True(t, h.Overlaps(h.Slice(15, 1)))
	require.False(t, h.Slice(0, 4).Overlaps(h.Slice(4, 4)))
	require.False(t, h.Slice(0, 0).Overlaps(h))
	require.Panics(t, func() { h.Slice(10, 7) })
	require.Panics(t, func() { h.Slice(-1, 1) })
	require.Panics(t, func() { h.Slice(1, -1) })

	d := mem.Device(2, 4096, 100)
	require.False(t, d.IsHost())
	require.Equal(t, 2, d.Dev())
	require.Equal(t, uintptr(4106), d.Slice(10, 5).Ptr())
	require.False(t, d.Overlaps(h))
	require.Panics(t, func() { d.Bytes() })
	require.True(t, mem.Region{}.IsNil())
	require.Empty(t, mem.Region{}.Bytes())
	require.Equal(t, 12, mem.Of([]float32{1, 2, 3}).Len())
}

func TestStream(t *testing.T) {
	for range 200 {
		n := rand.IntN(40000)
		src := make([]byte, n+70)
		for i := range src {
			src[i] = byte(rand.Uint32())
		}
		a, b := rand.IntN(70), rand.IntN(70)
		src = src[a:]
		n = min(n, len(src))
		dst := bytes.Repeat([]byte{0xee}, n+b+3)
		mem.Stream(dst[b:b+n], src[:n])
		require.True(t, bytes.Equal(dst[b:b+n], src[:n]))
		require.Equal(t, bytes.Repeat([]byte{0xee}, b), dst[:b])
		require.Equal(t, []byte{0xee, 0xee, 0xee}, dst[b+n:])
	}
}
