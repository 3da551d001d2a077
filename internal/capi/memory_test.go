package capi

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/gpu"
)

// TestFreedWindows has a program register memory, and give it up, again and again: it is freed while the
// communicators live, and no handle outlives them.
func TestFreedWindows(t *testing.T) {
	l := with(nil)
	var err error
	l.machine, err = gpu.Open(gpu.Options{Emulate: 2})
	require.NoError(t, err)
	comms, err := l.InitAll(2, nil)
	require.NoError(t, err)
	none, err := l.MemAlloc(0)
	require.NoError(t, err, "as cudaMalloc has it")
	require.Zero(t, none)
	require.NoError(t, l.MemFree(none))
	var at, windows [2]uintptr
	for range 3 {
		for i := range comms {
			d, err := l.device(i)
			require.NoError(t, err)
			require.NoError(t, d.With(func() (err error) {
				at[i], err = l.MemAlloc(100)
				return err
			}))
		}
		g, err := l.GroupStart(0)
		require.NoError(t, err)
		for i, c := range comms {
			windows[i], err = l.WindowRegister(g, c, at[i], 2<<20)
			require.NoError(t, err)
		}
		_, err = l.GroupEnd(g)
		require.NoError(t, err)
		for i, c := range comms {
			require.NoError(t, l.Deregister(c, windows[i]))
			require.NoError(t, l.MemFree(at[i]))
		}
		require.Len(t, l.late, len(comms), "only the last windows' memory is left")
	}
	for i, c := range comms {
		_, err = l.Register(c, at[i], 1)
		require.NoError(t, err)
	}
	require.Len(t, l.windows.all(), len(comms))
	for i, c := range comms {
		require.NoError(t, l.Destroy(c))
		require.Len(t, l.windows.all(), len(comms)-1-i)
	}
	require.Empty(t, l.late)
	require.NoError(t, l.machine.Close(), "no race, no leak")
}
