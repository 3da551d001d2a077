package capi

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
)

// pairWithWindows is two ranks of this process, each with a window of its memory.
func pairWithWindows(t *testing.T, l *Library) (comms []uintptr, memory [][]int32, wins []uintptr) {
	return withWindows(t, l, 2)
}

func withWindows(t *testing.T, l *Library, n int) (comms []uintptr, memory [][]int32, wins []uintptr) {
	memory, wins = make([][]int32, n), make([]uintptr, n)
	comms = initAll(t, l, n)
	g := l.GroupStart()
	for r, c := range comms {
		require.ErrorContains(t, l.PutSignal(0, c, &Put{Peer: (r + 1) % n}), "signals need a window")
		at, err := l.MemAlloc(4096)
		require.NoError(t, err)
		memory[r] = int32s(at, 1024)
		clear(memory[r])
		wins[r], err = l.WindowRegister(g, c, at, 4096)
		require.NoError(t, err)
	}
	_, err := l.GroupEnd(g)
	require.NoError(t, err)
	return comms, memory, wins
}

func put(data []int32, peer int, win uintptr, offset uint64) *Put {
	return &Put{Puts: true, Local: address(data), Count: uint64(len(data)), Type: int32Type, Peer: peer, Window: win,
		Offset: offset}
}

// TestSignalsOnHost: the peer's program takes no part in a put, signals are counted, and one may be the rank's own.
func TestSignalsOnHost(t *testing.T) {
	t.Parallel()
	l := onHost()
	comms, memory, wins := pairWithWindows(t, l)
	for i := range int32(5) {
		require.NoError(t, l.PutSignal(0, comms[0], put([]int32{i, 10 * i}, 1, wins[0], 8*uint64(i))))
	}
	require.NoError(t, l.PutSignal(0, comms[1], put([]int32{7}, 1, wins[1], 4092)))
	require.NoError(t, l.WaitSignal(0, comms[1], []Arrival{{Count: 3, Peer: 0}, {Count: 1, Peer: 1}}, 0))
	require.NoError(t, l.WaitSignal(0, comms[1], []Arrival{{Count: 2, Peer: 0}}, 0))
	require.Equal(t, []int32{0, 0, 1, 10, 2, 20, 3, 30, 4, 40, 0}, memory[1][:11])
	require.Equal(t, int32(7), memory[1][1023])

	require.NoError(t, l.Deregister(comms[1], wins[1]))
	require.NoError(t, l.PutSignal(0, comms[0], put([]int32{99}, 1, wins[0], 0)))
	require.NoError(t, l.WaitSignal(0, comms[1], []Arrival{{Count: 1, Peer: 0}}, 0))
	require.Zero(t, memory[1][0], "the window was deregistered: its memory may be something else's")
	require.ErrorContains(t, l.PutSignal(0, comms[1], put([]int32{1}, 0, wins[1], 0)), "is no window")
	require.ErrorContains(t, l.PutSignal(0, comms[0], put([]int32{1}, 2, wins[0], 0)), "peer 2 of 2 ranks")
	require.ErrorContains(t, l.PutSignal(0, comms[0], put([]int32{1}, 1, wins[0], 4093)),
		"at 4093 of a window of 4096 bytes")
	require.ErrorContains(t, l.WaitSignal(0, comms[0], []Arrival{{Count: 1, Context: 1}}, 0), "have to be 0")
	destroy(t, l, comms...)
}

// TestSignalThatNeverComes: a wait ends with the peer and with its own communicator.
func TestSignalThatNeverComes(t *testing.T) {
	for name, end := range map[string]func(l *Library, comms []uintptr) error{
		"peer destroys": func(l *Library, comms []uintptr) error { return l.Destroy(comms[1]) },
		"peer aborts":   func(l *Library, comms []uintptr) error { return l.Abort(comms[1]) },
		"abort":         func(l *Library, comms []uintptr) error { return l.Abort(comms[0]) },
		"revoke":        func(l *Library, comms []uintptr) error { return l.Revoke(comms[0], 0) },
		"peer revokes":  func(l *Library, comms []uintptr) error { return l.Revoke(comms[1], 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := onHost()
			comms, _, _ := pairWithWindows(t, l)
			ended := make(chan error)
			go func() { ended <- l.WaitSignal(0, comms[0], []Arrival{{Count: 1, Peer: 1}}, 0) }()
			require.NoError(t, end(l, comms))
			require.Error(t, <-ended)
			l.Destroy(comms[0])
			l.Destroy(comms[1])
		})
	}
}

// TestSignalThatIsLate: a wait ends with its time, which begins with the wait.
func TestSignalThatIsLate(t *testing.T) {
	t.Parallel()
	l := with(map[string]string{"RINGO_HOST": "1", "RINGO_TIMEOUT": "300ms"})
	comms, _, _ := pairWithWindows(t, l)
	time.Sleep(350 * time.Millisecond) // peers may be silent for longer than an operation may take
	require.NoError(t, l.PutSignal(0, comms[1], &Put{}))
	require.NoError(t, l.WaitSignal(0, comms[0], []Arrival{{Count: 1, Peer: 1}}, 0))
	err := l.WaitSignal(0, comms[0], []Arrival{{Count: 1, Peer: 1}}, 0)
	require.ErrorIs(t, err, ringo.ErrTimeout)
	require.ErrorContains(t, err, "signals of rank 1: 0 of 1 have come")
	destroy(t, l, comms...)
}

// TestSignalsEndWithTheCommunicator: a wait for one peer ends when another rank ends the communicator.
func TestSignalsEndWithTheCommunicator(t *testing.T) {
	t.Parallel()
	l := onHost()
	comms, _, _ := withWindows(t, l, 3)
	ended := make(chan error)
	go func() { ended <- l.WaitSignal(0, comms[0], []Arrival{{Count: 1, Peer: 1}}, 0) }()
	_, third, err := l.known(comms[2])
	require.NoError(t, err)
	third.Abort(errors.New("out of seats"))
	require.ErrorContains(t, <-ended, "out of seats")
	for _, c := range comms {
		require.NoError(t, l.Abort(c))
	}
}

// TestSignalsByAnyWindow: signals go by a window that has an effect, whichever was registered first.
func TestSignalsByAnyWindow(t *testing.T) {
	l := onGPUs(t, 2)
	registered := func(n int) (comms []uintptr, w *window) {
		comms = initAll(t, l, n)
		g := l.GroupStart()
		wins := make([]uintptr, n)
		for i, c := range comms {
			d, err := l.device(i)
			require.NoError(t, err)
			var at uintptr
			require.NoError(t, d.With(func() (err error) {
				at, err = l.MemAlloc(4096)
				return err
			}))
			wins[i], err = l.WindowRegister(g, c, at, 4096)
			require.NoError(t, err)
		}
		_, err := l.GroupEnd(g)
		require.NoError(t, err)
		w, err = l.window(wins[0])
		require.NoError(t, err)
		return comms, w
	}
	lone, none := registered(1)
	pair, good := registered(2)
	require.NotEmpty(t, none.ring.Reason())
	for _, windows := range [][]*window{{nil, none, good}, {good, none}} {
		any, err := (&comm{windows: windows}).anyWindow()
		require.NoError(t, err)
		require.Same(t, good.ring, any)
	}
	any, err := (&comm{windows: []*window{none}}).anyWindow()
	require.NoError(t, err)
	require.Same(t, none.ring, any, "its error says why")
	_, err = new(comm).anyWindow()
	require.ErrorIs(t, err, errNoWindow)
	destroy(t, l, append(lone, pair...)...)
}
