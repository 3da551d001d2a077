package gpu

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// held is a graph of one operation on a stream of each rank.
func held(t *testing.T, all []*doubler) (streams []gpu.Stream, graphs []cuda.GraphExec) {
	for _, l := range all {
		s := l.stream()
		l.double(0) // loads the kernels
		streams, graphs = append(streams, s), append(graphs, l.graph(s, func() { l.double(s) }))
	}
	for _, l := range all {
		require.NoError(t, l.c.Synchronize(0))
	}
	return streams, graphs
}

// A rank that waits for nothing when another one aborts has no error, until it launches a graph, whose operations then
// do nothing.
func TestDeviceIdleRank(t *testing.T) {
	for _, w := range tier.Some(3, everyWay()) {
		t.Run(w.name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			all := w.doublers(t)
			streams, graphs := held(t, all)
			for i, l := range all { // all have connected
				l.launch(graphs[i], streams[i])
			}
			for i, l := range all {
				require.NoError(t, l.c.Synchronize(streams[i]))
			}
			all[1].c.Abort(errors.New("for a reason"))
			idle := all[0]
			require.Eventually(t, func() bool { return idle.c.Failure() != nil }, tier.Patience, time.Millisecond)
			require.NoError(t, idle.c.Err())
			require.NoError(t, idle.c.Synchronize(streams[0]))
			idle.launch(graphs[0], streams[0])
			require.ErrorContains(t, idle.c.Synchronize(streams[0]), "for a reason")
			require.ErrorIs(t, idle.c.Err(), ringo.ErrPeer)
			for i, l := range all {
				l.destroy(graphs[i])
			}
			closeAll(t, all)
		})
	}
}

func closeAll(t *testing.T, all []*doubler) {
	t.Helper()
	comms := make([]*ringo.Comm, len(all))
	for i, l := range all {
		comms[i] = l.c
	}
	commtest.NoErrors(t, commtest.Each(comms, (*ringo.Comm).Close))
}

// A graph that is launched after Close does no harm, and the next call, or Synchronize, tells of
// the launch. The graph's memory goes with it.
func TestGraphAfterClose(t *testing.T) {
	for _, w := range tier.Some(3, everyWay()) {
		t.Run(w.name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			all := w.doublers(t)
			streams, graphs := held(t, all)
			for i, l := range all { // one rank alone first
				l.launch(graphs[i], streams[i])
			}
			closeAll(t, all)
			for i, l := range all {
				require.EqualError(t, l.c.Synchronize(streams[i]), l.c.Err().Error(), "nothing was launched")
				l.launch(graphs[i], streams[i])
				err := l.c.Synchronize(streams[i])
				require.ErrorIs(t, err, ringo.ErrClosed)
				require.ErrorContains(t, err, "graphs that were launched later did nothing")
				require.ErrorContains(t, l.c.Do(l.call(0)), "graphs that were launched later did nothing")
				l.destroy(graphs[i])
			}
		})
	}
}

// A graph that is launched after Abort ends, and the communicator says why.
func TestGraphAfterAbort(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	all := way{}.doublers(t)
	streams, graphs := held(t, all)
	all[1].c.Abort(nil)
	for i, l := range all {
		l.launch(graphs[i], streams[i])
		require.NoError(t, l.d.Synchronize(streams[i]))
	}
	require.ErrorIs(t, all[1].c.Synchronize(streams[1]), ringo.ErrAborted)
	for i, l := range all {
		l.c.Close()
		l.launch(graphs[i], streams[i])
		require.NoError(t, l.d.Synchronize(streams[i]))
		l.destroy(graphs[i])
	}
}

// A window is not closed while graphs hold operations in it; all ranks hear of it, and the
// graphs go on.
func TestWindowHeld(t *testing.T) {
	for _, name := range []string{"window", "copies"} {
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			all := way{cfg: ringo.Config{Algo: name}}.doublers(t)
			comms := []*ringo.Comm{all[0].c, all[1].c}
			windows := make([]*ringo.Window, 2)
			commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) (err error) {
				windows[c.Rank()], err = c.Register(all[c.Rank()].x)
				return err
			}))
			streams, graphs := held(t, all)
			for range 2 {
				for _, err := range commtest.Each(comms, func(c *ringo.Comm) error { return windows[c.Rank()].Close() }) {
					require.ErrorIs(t, err, ringo.ErrInvalid)
					require.ErrorContains(t, err, "1 graphs of rank 0 hold operations in window #1: destroy them first")
				}
			}
			for i, l := range all {
				l.set(1)
				l.launch(graphs[i], streams[i])
			}
			for i, l := range all {
				l.has(2, streams[i])
				l.destroy(graphs[i])
			}
			commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error { return windows[c.Rank()].Close() }))
			for _, l := range all {
				l.set(1)
				l.double(0)
			}
			for _, l := range all {
				l.has(2, 0)
			}
		})
	}
}
