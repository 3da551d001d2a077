package p2p

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
)

// Memory is cleared to its last byte, however long, and the failure of each call is told.
func TestClearNow(t *testing.T) {
	for _, call := range []string{"", "cuMemHostAlloc", "cuStreamCreateWithPriority", "cuMemcpyAsync",
		"cuStreamSynchronize", "cuStreamDestroy", "cuMemFreeHost"} {
		m, err := cudaemu.New(cudaemu.Config{Devices: 1, Plain: true})
		require.NoError(t, err)
		dev, err := m.DeviceGet(0)
		require.NoError(t, err)
		ctx, err := m.DevicePrimaryCtxRetain(dev)
		require.NoError(t, err)
		require.NoError(t, cuda.With(m, ctx, func() error {
			const room = 3 * blankBytes
			p, err := m.MemAlloc(room)
			require.NoError(t, err)
			for _, n := range []int{1, blankBytes, 2*blankBytes + 5} {
				require.NoError(t, cuda.Write(m, p, bytes.Repeat([]byte{7}, room)))
				if call != "" {
					m.Inject(cudaemu.Injection{Call: call, Nth: 1, Result: cuda.ErrOperatingSystem})
				}
				if err := clearNow(m, ctx, p, n); call != "" {
					require.ErrorIs(t, err, cuda.ErrOperatingSystem, call)
					break
				} else {
					require.NoError(t, err)
				}
				got := make([]byte, room)
				require.NoError(t, m.MemcpyDtoH(got, p))
				require.Equal(t, n, bytes.Count(got, []byte{0}))
				require.Equal(t, bytes.Repeat([]byte{0}, n), got[:n])
			}
			return m.MemFree(p)
		}))
		require.NoError(t, m.DevicePrimaryCtxRelease(dev))
		err = m.Close()
		require.True(t, err == nil || call == "cuStreamDestroy" || call == "cuMemFreeHost", "%s: %v", call, err)
	}
}
