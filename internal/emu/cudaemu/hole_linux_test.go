package cudaemu

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/internal/test/must"
)

// Zeros that are copied to memory that nobody wrote take no pages of this machine; they are written all the same, and
// over other bytes they are copied.
func TestZerosTakeNoPages(t *testing.T) {
	for name, plain := range map[string]bool{"checked": false, "plain": true} {
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread() // has the current context
			defer runtime.UnlockOSThread()
			m := must.Get(New(Config{Plain: plain}))
			defer m.Close()
			ctx := must.Get(m.DevicePrimaryCtxRetain(0))
			require.NoError(t, m.CtxSetCurrent(ctx))
			const n = 8 << 20
			p := must.Get(m.MemAlloc(n))
			r := m.regions.find(uint64(p))
			pages := func() int64 {
				var st unix.Stat_t
				require.NoError(t, unix.Fstat(r.chunk.fd, &st))
				return st.Blocks * 512
			}
			before := pages()
			require.NoError(t, m.MemcpyHtoD(p, make([]byte, n)))
			bits := int64(n / 8) // which bytes are written
			require.LessOrEqual(t, pages()-before, bits+8192)

			require.NoError(t, m.MemsetD8(p+n/2, 7, 100))
			require.NoError(t, m.MemcpyHtoD(p, make([]byte, n)))
			got := make([]byte, 200)
			require.NoError(t, m.MemcpyDtoH(got, p+n/2-50))
			require.Equal(t, make([]byte, 200), got)
			require.NoError(t, m.MemFree(p))
			require.NoError(t, m.DevicePrimaryCtxRelease(0))
		})
	}
}
