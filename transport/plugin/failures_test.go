//go:build linux && (amd64 || arm64) && !ringo_nogpu

package plugin

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/transport"
)

// Each call that fails is an error that names the function, the device and the peer, also if its result is none of
// NCCL's. The other outputs of such a call are not used.
func TestFailures(t *testing.T) {
	limits := transport.Limits{SlotBytes: 300, Slots: 4}
	side := tier.Together(t)
	defer side.Wait()
	for i, c := range []struct {
		call  string
		later bool // than Listen, which makes a trial
		after int
		want  string // in the error, besides the file, the version and the remedy
	}{
		{"init", false, 0, "init: system error (2)"},
		{"devices", false, 0, "devices: system error (2)"},
		{"getProperties", false, 1, "getProperties: device 1 : system error (2)"},
		{"init", false, 1, "init: system error (2)"}, // of a communicator
		{"listen", false, 0, "listen: device 0 test0: rank 0: system error (2)"},
		{"accept", false, 0, "accept: device 0 test0: rank 0: system error (2)"},
		{"connect", false, 0, "connect: device 0 test0: rank 0: system error (2)"},
		{"regMr", false, 0, "regMr: device 0 test0: rank 0: system error (2)"},
		{"irecv", false, 0, "irecv: device 0 test0: rank 0: system error (2)"},
		{"isend", false, 0, "isend: device 0 test0: rank 0: system error (2)"},
		{"test", false, 0, "test: device 0 test0: rank 0: system error (2)"},
		{"init", true, 0, "init: system error (2)"},
		{"listen", true, 0, "listen: device 0 test0: rank 0: system error (2)"},
		{"accept", true, 0, "accept: device 0 test0: rank 0: system error (2)"},
		{"connect", true, 0, "connect: device 0 test0: rank 1: system error (2)"},
		{"regMr", true, 0, "regMr: device 0 test0: rank"},
		{"irecv", true, 0, "irecv: device 0 test0: rank 0: system error (2)"},
		{"isend", true, 3, "isend: device 0 test0: rank 1: system error (2)"},
		{"irecv", true, 9, "irecv: device 0 test0: rank 0: system error (2)"},
		{"test", true, 20, "test: device 0 test0: rank"},
	} {
		side.Run(fmt.Sprintf("%s after %d, later %v", c.call, c.after, c.later), func(t *testing.T) {
			f := newFake(t, version(11))
			code := []Result{2, 7, 1234, -9}[i%4]
			f.call(t, "code", uintptr(code))
			fail := func() { f.set(t, c.call, c.after, 0) }
			if !c.later {
				fail()
			}
			err := func() error {
				l, err := Load(f.file, nil)
				if err != nil {
					return err
				}
				listen := func() error {
					tr := New(transport.Config{Limits: limits}, l, Options{})
					defer tr.Close()
					_, err := tr.Listen()
					return err
				}
				if err := listen(); err != nil {
					return err
				}
				require.True(t, c.later, "nothing has failed")
				fail()
				if c.call == "init" {
					return listen()
				}
				send, recv, err := pair(t, l, limits)
				if err != nil {
					return err
				}
				err = exchange(send, recv, 100)
				send.Close()
				recv.Close()
				return err
			}()
			require.ErrorContains(t, err, strings.ReplaceAll(c.want, "system error (2)", code.String()))
			require.ErrorContains(t, err, "network plugin libnccl-net-test.so (v11): ")
			require.ErrorContains(t, err, "NCCL_NET_PLUGIN=none")
			require.ErrorContains(t, err, `it said "NET/Test : `+c.call+` of 11 passed 99% 0.5 on purpose"`)
			if known, own := errors.AsType[*Error](err); own && known.Call == c.call {
				require.Equal(t, code, known.Result)
			} else { // the peer's, by the control stream
				require.Regexp(t, "refused:|the peer has given up:", err.Error())
			}
			require.Zero(t, f.call(t, "faults"))
		})
	}
}

// Close goes on when the plugin fails to close, and reports the failure.
func TestFailuresOfClose(t *testing.T) {
	require.Equal(t, []string{"in progress (7)", "result 8", "result -1"},
		[]string{Result(7).String(), Result(8).String(), Result(-1).String()})
	for _, call := range []string{"deregMr", "closeSend", "closeRecv", "closeListen", "finalize"} {
		f := newFake(t, version(11))
		l := f.load(t)
		ranks := two(t, l, transport.Limits{SlotBytes: 300, Slots: 4})
		f.set(t, call, 0, 0)
		send, err := ranks[0].Dial(ranks[1])
		require.NoError(t, err)
		recv, err := ranks[1].Accept(ranks[0])
		require.NoError(t, err)
		require.NoError(t, exchange(send, recv, 10))
		require.NoError(t, send.Close())
		require.NoError(t, recv.Close())
		err = errors.Join(ranks[0].Transport.Close(), ranks[1].Transport.Close())
		require.Equal(t, call == "finalize", err != nil, "%s: %v", call, err)
	}
}

// A plugin may still write to memory that it has not given back: the memory is kept, and the log says so once.
func TestKept(t *testing.T) {
	for _, call := range []string{"none", "deregMr", "closeSend", "closeRecv"} {
		f := newFake(t, version(11))
		l := f.load(t)
		var out strings.Builder
		ranks := two(t, l, transport.Limits{SlotBytes: 300, Slots: 4})
		log := slog.New(slog.NewTextHandler(&out, nil))
		ranks[0].Transport.log, ranks[1].Transport.log = log, log
		var rings []*ring
		for range 2 {
			send, err := ranks[0].Dial(ranks[1])
			require.NoError(t, err)
			recv, err := ranks[1].Accept(ranks[0])
			require.NoError(t, err)
			require.NoError(t, exchange(send, recv, 5))
			if call != "closeRecv" {
				rings = append(rings, send.(*sendConn).ring)
			}
			if call != "closeSend" {
				rings = append(rings, recv.(*recvConn).ring)
			}
		}
		f.set(t, call, 0, 0)
		require.NoError(t, errors.Join(ranks[0].Transport.Close(), ranks[1].Transport.Close()))
		times := 1
		if call == "none" {
			require.Empty(t, l.kept)
			times = 0
		} else {
			for _, r := range rings {
				require.Contains(t, l.kept, r)
			}
		}
		require.Equal(t, times, strings.Count(out.String(), "has not closed is kept"), "%s: %s", call, out.String())
	}
}

// A trial that ends because its communicator is closed proves nothing about the plugin: the next
// communicator can use it.
func TestClosedTrial(t *testing.T) {
	f := newFake(t, version(11))
	l := f.load(t)
	f.set(t, "none", 0, 1<<30) // "not yet", for ever
	limits := transport.Limits{SlotBytes: 300, Slots: 4}
	first := New(transport.Config{Limits: limits}, l, Options{})
	closed := make(chan error)
	time.AfterFunc(20*time.Millisecond, func() { closed <- first.Close() })
	_, err := first.Listen()
	require.ErrorIs(t, err, fifo.ErrClosed)
	f.set(t, "none", 0, 0)
	require.NoError(t, <-closed)
	second := New(transport.Config{Limits: limits}, l, Options{})
	_, err = second.Listen()
	require.NoError(t, err)
	require.NoError(t, second.Close())
}

// A dial that loses against Close gives its memory back: a Pinner that is forgotten ends the
// process at a garbage collection.
func TestDialAfterClose(t *testing.T) {
	l := newFake(t, version(11)).load(t)
	tr := New(transport.Config{Limits: transport.Limits{SlotBytes: 300, Slots: 4}}, l, Options{})
	_, err := tr.Listen()
	require.NoError(t, err)
	require.NoError(t, tr.Close())
	a, b := net.Pipe()
	defer b.Close()
	_, err = tr.connect(t.Context(), a, 1, make([]byte, 4+handleBytes), nil)
	require.ErrorIs(t, err, fifo.ErrClosed)
	for range 3 {
		runtime.GC()
		time.Sleep(time.Millisecond) // for finalizers
	}
}

// A plugin that carries no message to itself in time is used all the same: it may not be made for that.
func TestLongTrial(t *testing.T) {
	f := newFake(t, version(11))
	l := f.load(t)
	l.trialTime = 20 * time.Millisecond
	f.set(t, "none", 0, 1<<30) // "not yet", for ever
	tr := New(transport.Config{Limits: transport.Limits{SlotBytes: 300, Slots: 4}}, l, Options{})
	_, err := tr.Listen()
	require.NoError(t, err)
	require.Equal(t, map[trial]error{{dev: -1}: nil}, l.tried)
	f.set(t, "none", 0, 0)
	require.NoError(t, tr.Close())
}

// What a peer had sent before it died arrives.
func TestSentBeforeDeath(t *testing.T) {
	f := newFake(t, version(11))
	f.call(t, "device", 1, 100, hostMemory|deviceMemory, 0, 0)
	p := newPlacedPair(t, f.load(t), ofHost, transport.Limits{SlotBytes: 100, Slots: 4})
	require.NoError(t, p.connect())
	for i := range 3 {
		require.NoError(t, p.from.Put(i, 50))
	}
	c := p.from.Send.(*sendConn)
	require.Eventually(t, func() bool { c.ask(); return c.sent.Load() == 3 }, tier.Patience, time.Millisecond)
	c.ctl.c.Close() // without a goodbye
	recv := p.to.Recv.(*recvConn)
	<-recv.ctl.parted
	require.Eventually(t, recv.ctl.ended.Load, tier.Patience, time.Millisecond)
	p.ranks[1].Transport.data.post(func() { time.Sleep(10 * time.Millisecond) }) // the actor is busy
	require.Equal(t, 3, recv.Arrived())
	require.NoError(t, p.get(0, 50))

	send, q, err := pair(t, f.load(t), transport.Limits{SlotBytes: 300, Slots: 4})
	require.NoError(t, err)
	require.NoError(t, publish(send))
	require.NoError(t, publish(send))
	c, recv = send.(*sendConn), q.(*recvConn)
	require.Eventually(t, func() bool { c.ask(); return c.sent.Load() == 2 }, tier.Patience, time.Millisecond)
	c.ctl.c.Close()
	<-recv.ctl.parted
	for range 2 {
		_, _, err := q.Next()
		require.NoError(t, err)
		require.NoError(t, q.Release())
	}
	_, _, err = q.Next()
	require.ErrorContains(t, err, "the peer has gone")
}

// A wait does not sleep when its condition holds already.
func TestPark(t *testing.T) {
	_, recv, err := pair(t, newFake(t, version(11)).load(t), transport.Limits{SlotBytes: 300, Slots: 4})
	require.NoError(t, err)
	c := recv.(*recvConn)
	require.True(t, c.park(func() bool { return true }))
	require.False(t, c.park(func() bool { return false }), "it is time to look at the Guard")
	c.fail(fnTest, 2)
	require.True(t, c.park(func() bool { return false }))
}

// A plugin's warning belongs to one call.
func TestSaid(t *testing.T) {
	var out strings.Builder
	v := new(voice)
	v.use(slog.New(slog.NewTextHandler(&out, nil)))
	for _, level := range []int32{levelWarn, levelAbort} {
		v.speak(levelInfo, "by the way", "net.c", 1)
		require.Empty(t, v.said())
		v.speak(level, "it is broken", "net.c", 1)
		require.Equal(t, "it is broken", v.said())
		require.Empty(t, v.said())
	}
	require.Equal(t, 2, strings.Count(out.String(), "level=WARN"))
}
