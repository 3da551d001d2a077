package capi

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
)

// TestFreedWindows has a program register memory, and give it up, again and again: it is freed while the
// communicators live, and no handle outlives them.
func TestFreedWindows(t *testing.T) {
	l := onGPUs(t, 2)
	comms := initAll(t, l, 2)
	none, err := l.MemAlloc(0)
	require.NoError(t, err, "as cudaMalloc has it")
	require.Zero(t, none)
	require.NoError(t, l.MemFree(none))
	none, err = l.MemAlloc(1 << 46)
	require.Error(t, err, "more than there is")
	require.Zero(t, none)
	none, err = l.MemAlloc(1<<46 + 1)
	require.ErrorIs(t, err, ringo.ErrInvalid)
	require.Zero(t, none)
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
		g := l.GroupStart()
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
		_, err = l.Register(c, at[i])
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

// TestFreedWhileClosing: a communicator whose handle has ended may still have windows open, in which peers write.
// Memory that is freed meanwhile is freed when they are closed.
func TestFreedWhileClosing(t *testing.T) {
	l := onGPUs(t, 2)
	comms := initAll(t, l, 2)
	var at [2]uintptr
	g := l.GroupStart()
	for i, c := range comms {
		d, err := l.device(i)
		require.NoError(t, err)
		require.NoError(t, d.With(func() (err error) {
			at[i], err = l.MemAlloc(100)
			return err
		}))
		_, err = l.WindowRegister(g, c, at[i], 2<<20)
		require.NoError(t, err)
	}
	_, err := l.GroupEnd(g)
	require.NoError(t, err)
	first, err := l.comms.Get(comms[0])
	require.NoError(t, err)
	require.NoError(t, first.begin()) // something of it goes on
	ended := make(chan error)
	go func() { ended <- l.Destroy(comms[0]) }()
	require.Eventually(t, func() bool { _, err := l.comms.Get(comms[0]); return err != nil }, time.Minute,
		time.Millisecond)
	require.Eventually(t, func() bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.ending) == 1 }, time.Minute,
		time.Millisecond)
	require.NoError(t, l.MemFree(at[0]))
	require.Len(t, l.late, 1)
	first.finish(nil)
	require.NoError(t, <-ended)
	require.NoError(t, l.Destroy(comms[1]))
	require.NoError(t, l.MemFree(at[1]))
	require.Empty(t, l.late)
	require.Empty(t, l.ending)
	require.NoError(t, l.machine.Close(), "no race, no leak")
}

// TestWindowNamesItself: if a window cannot be made, the error names the program's call, and not a step within it.
func TestWindowNamesItself(t *testing.T) {
	for name, l := range map[string]*Library{"host": onHost(), "GPUs": onGPUs(t, 2)} {
		t.Run(name, func(t *testing.T) {
			comms := initAll(t, l, 2)
			require.NoError(t, l.Destroy(comms[1]))
			var at uintptr
			alloc := func() (err error) {
				at, err = l.MemAlloc(windowAlign)
				return err
			}
			if name == "host" {
				require.NoError(t, alloc())
			} else {
				d, err := l.device(0)
				require.NoError(t, err)
				require.NoError(t, d.With(alloc))
			}
			_, err := l.WindowRegister(0, comms[0], at, windowAlign)
			require.ErrorIs(t, err, ringo.ErrLeft)
			require.Regexp(t, "^ncclCommWindowRegister: rank 0 on .*rank 1 has ", err.Error())
			var e *ringo.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, []int{1}, e.Culprits)
			require.NoError(t, l.Destroy(comms[0]))
			require.NoError(t, l.MemFree(at))
		})
	}
}
