//go:build linux && (amd64 || arm64) && !ringo_nogpu

package plugin

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/transport"
)

// block has a function of the plugin never return, after so many calls. await waits until a call hangs; release lets
// all of them return.
func (f *fake) block(t *testing.T, call string, after int) (await, release func()) {
	f.set(t, call, after, 0)
	f.call(t, "block", 1)
	release = func() { f.call(t, "block", 0) }
	t.Cleanup(release)
	return func() {
		require.Eventually(t, func() bool { return f.call(t, "blocked") > 0 }, tier.Patience, time.Millisecond,
			"%s was not called", call)
	}, release
}

// returns is what f returns while a plugin blocks for ever.
func returns(t *testing.T, what string, f func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	return returned(t, what, done)
}

func returned(t *testing.T, what string, done <-chan error) error {
	t.Helper()
	begun := time.Now()
	select {
	case err := <-done:
		require.Less(t, time.Since(begun), closeTime, "%s: as if nobody had aborted", what) // by hand: below 0.3 s
		return err
	case <-time.After(tier.Patience):
		require.FailNow(t, what+" has not returned")
		return nil
	}
}

// A plugin that never returns from a function holds up neither an abort, nor a time-out, nor Close. All functions of
// the table that Ringo calls are tried.
func TestBlocked(t *testing.T) {
	type blocked struct {
		call  string
		after int
		kind  string
	}
	type test struct {
		blocked
		abort bool
	}
	var tests []test
	for i, c := range []blocked{
		{"listen", 0, ofHost},
		{"listen", 1, ofHost},
		{"connect", 0, ofHost},
		{"connect", 1, ofHost},
		{"accept", 0, ofHost},
		{"accept", 1, ofHost},
		{"closeListen", 0, ofHost},
		{"regMr", 0, ofHost},
		{"regMr", 2, ofHost},
		{"regMrDmaBuf", 0, ofDMABuf},
		{"isend", 0, ofHost},
		{"isend", 9, ofHost},
		{"irecv", 0, ofHost},
		{"irecv", 12, ofHost},
		{"iflush", 0, ofDMABuf},
		{"test", 0, ofHost},
		{"test", 20, ofHost},
		{"deregMr", 0, ofHost},
		{"closeSend", 0, ofHost},
		{"closeRecv", 0, ofHost},
		{"finalize", 0, ofHost},
	} {
		tests = append(tests, test{c, i%2 == 0}, test{c, i%2 != 0})
	}
	side := tier.Together(t)
	defer side.Wait()
	for _, c := range tier.Some(9, tests) {
		name := c.call
		if !c.abort {
			name += " timed out"
		}
		side.Run(name, func(t *testing.T) {
			f := newFake(t, version(11))
			f.call(t, "device", 1, 100, hostMemory|deviceMemory|dmaBuf, 0, 0)
			l := f.load(t)
			p := newPlacedPair(t, l, c.kind, transport.Limits{SlotBytes: 300, Slots: 4})
			await, release := f.block(t, c.call, c.after)
			used, closed := make(chan error, 1), make(chan error, 1)
			go func() {
				err := p.connect()
				if err == nil {
					err = p.exchange(50)
				}
				used <- err
				if err == nil {
					closed <- errors.Join(p.ranks[0].Transport.Close(), p.ranks[1].Transport.Close())
				}
			}()
			await()
			enough := errors.New("it was enough")
			if !c.abort {
				enough = fifo.ErrDeadline
			}
			for _, r := range p.ranks {
				if c.abort {
					r.Config.Guard.Abort(enough)
				} else {
					r.Config.Guard.SetDeadline(fifo.Now())
				}
			}
			err := returned(t, "use", used)
			if err != nil {
				require.ErrorIs(t, err, enough)
			}
			if !c.abort { // as users of transports do then
				for _, r := range p.ranks {
					r.Config.Guard.Abort(enough)
				}
			}
			if err != nil {
				closed <- returns(t, "close", func() error {
					return errors.Join(p.ranks[0].Transport.Close(), p.ranks[1].Transport.Close())
				})
			}
			err = returned(t, "all", closed)
			for _, r := range p.ranks {
				if n := r.Transport.open.Load(); n > 0 {
					require.ErrorContains(t, err, "finalize: not called: it has not closed ")
				}
			}
			release()
			for _, r := range p.ranks { // late is not never
				require.Eventually(t, func() bool { return r.Transport.open.Load() == 0 }, tier.Patience, time.Millisecond)
			}
			require.Zero(t, f.call(t, "faults"))
		})
	}
}

// A plugin that never returns when it is started is given up, and holds up no communicator.
func TestBlockedStart(t *testing.T) {
	for _, call := range []string{"init", "devices", "getProperties"} {
		f := newFake(t, version(11))
		_, release := f.block(t, call, 0)
		_, err := loadFirst(f.file, nil, 20*time.Millisecond)
		require.ErrorContains(t, err,
			"network plugin libnccl-net-test.so (v11): init: the plugin has not returned from its function: not done in 20ms; "+
				"NCCL_NET_PLUGIN=none")
		release()
	}
	f := newFake(t, version(11))
	l := f.load(t)
	await, release := f.block(t, "init", 0)
	enough := errors.New("it was enough")
	tr := New(transport.Config{Limits: transport.Limits{SlotBytes: 300, Slots: 4}, Guard: new(fifo.Guard)}, l, Options{})
	done := make(chan error, 1)
	go func() {
		_, err := tr.Listen()
		done <- err
	}()
	await()
	tr.cfg.Guard.Abort(enough)
	require.ErrorIs(t, returned(t, "listen", done), enough)
	require.NoError(t, returns(t, "close", tr.Close))
	release()
	require.Eventually(t, func() bool { return f.call(t, "objects") == contexts(11) }, tier.Patience, time.Millisecond,
		"what came late is given back")
	require.Zero(t, f.call(t, "faults"))
}

// When nobody waits any more the proxy and the actor rest.
func TestRest(t *testing.T) {
	ranks := two(t, newFake(t, version(11)).load(t), transport.Limits{SlotBytes: 300, Slots: 4})
	_, err := ranks[0].Dial(ranks[1])
	require.NoError(t, err)
	recv, err := ranks[1].Accept(ranks[0])
	require.NoError(t, err)
	ranks[1].Transport.cfg.Guard.Begin(5 * time.Millisecond)
	_, _, err = recv.Next()
	require.ErrorIs(t, err, fifo.ErrDeadline)
	c := recv.(*recvConn)
	rests := func() bool {
		return !ranks[1].Transport.drowsy.Load() && !c.watched.Load() && ranks[1].Transport.data.state.Load() == resting
	}
	require.Eventually(t, rests, tier.Patience, time.Millisecond)
	require.Zero(t, c.Arrived())
	require.Eventually(t, rests, tier.Patience, time.Millisecond)
}
