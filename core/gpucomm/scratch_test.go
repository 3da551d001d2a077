package gpucomm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/gputest"
)

// Scratch grows where it is: graphs keep a good address, and little more is held than the
// largest operation has needed. All is given back at Close.
func TestScratchGrows(t *testing.T) {
	list := gputest.GPUs(t, 1)
	free := func() int {
		n, _, err := list[0].Memory()
		require.NoError(t, err)
		return n
	}
	start := free()
	t.Run("", func(t *testing.T) {
		g := open(t, list, nil)[0]
		before := free()
		first, err := g.scratch(1 << 10)
		require.NoError(t, err)
		for n := 1 << 20; n <= 48<<20; n += 1 << 20 {
			r, err := g.scratch(n)
			require.NoError(t, err)
			require.Equal(t, first.Ptr(), r.Ptr())
			require.Equal(t, n, r.Len())
		}
		require.LessOrEqual(t, before-free(), 2*48<<20, "the sum of all sizes is 1176 MiB")
	})
	slack := 0.
	if gputest.OnGPU() {
		slack = 8 << 20 // a driver may keep a little
	}
	require.InDelta(t, start, free(), slack, "after Close")
}
