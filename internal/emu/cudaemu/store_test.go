package cudaemu_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/must"
)

// The next user of a cuda.Store gets the memory that one gives back, and the last user gives all to
// the driver, but for retired memory, which neither the driver nor a program gets again.
func TestStore(t *testing.T) {
	m := must.Get(cudaemu.New(cudaemu.Config{}))
	ctx := must.Get(m.DevicePrimaryCtxRetain(0))
	first, second := cuda.OpenStore(m, ctx), cuda.OpenStore(m, ctx)
	require.Same(t, first, second)
	ended, retired := 0, uintptr(0)
	with := func(f func()) {
		require.NoError(t, cuda.With(m, ctx, func() error { f(); return nil }))
	}
	with(func() {
		get := func(f func(int) (uintptr, error), n int) uintptr {
			p := must.Get(f(n))
			return p
		}
		a, h := get(first.Alloc, 1000), get(first.HostAlloc, 1000)
		require.NotEqual(t, a, get(first.Alloc, 1000))
		first.Free(a)
		first.FreeHost(h)
		require.Equal(t, a, get(second.Alloc, 1000))
		require.Equal(t, h, get(second.HostAlloc, 1000))
		require.NotEqual(t, a, get(second.Alloc, 1000), "one user at a time")
		require.NoError(t, second.Retire(a))
		retired = a
		require.NotEqual(t, a, get(first.Alloc, 1000))
		require.ErrorIs(t, must.Err(first.Alloc(1<<50)), cuda.ErrOutOfMemory)

		type key struct{}
		value := func(v int, err error) (int, error) {
			return cuda.Stored(first, key{}, func() (int, error) { return v, err }, func(v int) error { ended = v; return nil })
		}
		require.ErrorContains(t, must.Err(value(1, errors.New("not yet"))), "not yet")
		for v := 2; v < 4; v++ {
			got := must.Get(value(v, nil))
			require.Equal(t, 2, got)
		}
	})
	require.NoError(t, first.Close())
	require.Zero(t, ended)
	require.NoError(t, second.Close())
	require.Equal(t, 2, ended)
	third := cuda.OpenStore(m, ctx)
	require.NotSame(t, first, third)
	require.NoError(t, cuda.With(m, ctx, func() error {
		for range 8 {
			p := must.Get(m.MemAlloc(1000))
			require.NotEqual(t, retired, p)
			defer m.MemFree(p)
		}
		return nil
	}))
	require.NoError(t, third.Close())
	require.NoError(t, m.DevicePrimaryCtxRelease(0))
	_, active, err := m.DevicePrimaryCtxGetState(0)
	require.NoError(t, err)
	require.True(t, active, "retired memory went with its context")
	require.NoError(t, cuda.With(m, ctx, func() error { return cuda.Write(m, retired, []byte{1}) }))
	require.NoError(t, m.Close(), "something is left")
}
