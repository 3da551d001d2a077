package transporttest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/test/payload"
	"github.com/ringo-go/ringo/transport"
)

// rank is one member of a communicator under test.
type rank struct {
	transport.Transport
	cfg  transport.Config
	addr []byte
}

func config(r int, l transport.Limits) transport.Config {
	return transport.Config{
		Self:   transport.Info{Rank: r, Host: "host", Process: "process"},
		Key:    []byte("a secret of thirty-two bytes: ok"),
		Limits: l,
		Guard:  new(fifo.Guard),
		Log:    slog.New(slog.DiscardHandler),
	}
}

// ranks are n listening ranks of one process.
func (s suite) ranks(tb testing.TB, n int, l transport.Limits) []*rank {
	var all []*rank
	for i := range n {
		cfg := config(i, l)
		r := &rank{Transport: s.open(tb, cfg), cfg: cfg}
		tb.Cleanup(func() { require.NoError(tb, r.Close()) })
		var err error
		r.addr, err = r.Listen()
		require.NoError(tb, err)
		all = append(all, r)
	}
	return all
}

// connect makes a connection from a to b.
func connect(tb testing.TB, a, b *rank) (send transport.SendConn, recv transport.RecvConn) {
	tb.Helper()
	var g errgroup.Group
	g.Go(func() (err error) {
		send, err = a.Dial(b.cfg.Self, b.addr)
		return err
	})
	g.Go(func() (err error) {
		recv, err = b.Accept(a.cfg.Self)
		return err
	})
	require.NoError(tb, g.Wait())
	return send, recv
}

// pair is a connection between two new ranks.
func (s suite) pair(tb testing.TB, l transport.Limits) (transport.SendConn, transport.RecvConn) {
	tb.Helper()
	r := s.ranks(tb, 2, l)
	return connect(tb, r[0], r[1])
}

func stampOf(n int, seed uint64) transport.Stamp { return transport.Stamp{seed, ^uint64(n)} }

func tryPut(c transport.SendConn, n int, seed uint64) error {
	b, err := c.Reserve(n)
	if err != nil {
		return err
	}
	if b.Len() != n {
		return fmt.Errorf("reserve gave %d bytes, not %d", b.Len(), n)
	}
	payload.Fill(b.Bytes(), seed)
	return c.Publish(stampOf(n, seed))
}

func tryGet(c transport.RecvConn, n int, seed uint64) error {
	b, stamp, err := c.Next()
	if err != nil {
		return err
	}
	if err := verify(b.Bytes(), stamp, n, seed); err != nil {
		return err
	}
	return c.Release()
}

// verify is how a message differs from the one that Fill makes of n and seed, nil if it does not.
func verify(b []byte, stamp transport.Stamp, n int, seed uint64) error {
	if stamp != stampOf(n, seed) {
		return fmt.Errorf("stamp %x, not %x", stamp, stampOf(n, seed))
	}
	if len(b) != n {
		return fmt.Errorf("message %d has %d bytes, not %d", seed, len(b), n)
	}
	want := make([]byte, n)
	if payload.Fill(want, seed); bytes.Equal(want, b) {
		return nil
	}
	for i := range b {
		if b[i] != want[i] {
			return fmt.Errorf("byte %d of message %d of %d bytes is %#x, not %#x", i, seed, n, b[i], want[i])
		}
	}
	return errors.New("the message changes while it is read")
}

func put(t *testing.T, c transport.SendConn, n int, seed uint64) {
	t.Helper()
	require.NoError(t, tryPut(c, n, seed))
}

func get(t *testing.T, c transport.RecvConn, n int, seed uint64) {
	t.Helper()
	require.NoError(t, tryGet(c, n, seed))
}

// flood sends until it cannot.
func flood(c transport.SendConn) error { return new(flooder).flood(c) }

// A flooder sends until it cannot.
type flooder struct{ sent atomic.Uint64 }

func (f *flooder) flood(c transport.SendConn) error {
	for i := uint64(0); ; i++ {
		b, err := c.Reserve(small.SlotBytes)
		if err != nil {
			return err
		}
		binary.LittleEndian.PutUint64(b.Bytes(), i)
		if err := c.Publish(transport.Stamp{i}); err != nil {
			return err
		}
		f.sent.Add(1)
	}
}

// settle returns when the flooder has sent nothing for a while: it waits in Reserve.
func (f *flooder) settle() {
	const long = 100 * time.Millisecond
	for n, since := f.sent.Load(), time.Now(); time.Since(since) < long; time.Sleep(time.Millisecond) {
		if k := f.sent.Load(); k != n {
			n, since = k, time.Now()
		}
	}
}

// receive receives until it cannot.
func receive(c transport.RecvConn) error {
	for {
		if _, _, err := c.Next(); err != nil {
			return err
		}
		if err := c.Release(); err != nil {
			return err
		}
	}
}

// patience is how long a wait that ought to end soon may take, on a machine that is busy and stops now and then.
const patience = 20 * time.Second

// unblocks is the error that wait returns after end.
func unblocks(t *testing.T, wait func() error, end func()) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- wait() }()
	end()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		t.Fatal("the wait goes on")
		return nil
	}
}

// parallel runs all parties and reports the first error.
func parallel(t *testing.T, parties ...func() error) {
	t.Helper()
	var g errgroup.Group
	for _, p := range parties {
		g.Go(p)
	}
	require.NoError(t, g.Wait())
}

// leaks fails the test if goroutines or descriptors are left at its end.
func leaks(t *testing.T) {
	time.Sleep(time.Nanosecond) // the first timer of a process opens two descriptors for good
	before, others := descriptors(), goleak.IgnoreCurrent()
	t.Cleanup(func() {
		goleak.VerifyNone(t, others)
		require.Eventually(t, func() bool { return descriptors() <= before }, patience, time.Millisecond,
			"descriptors before: %d, now: %d", before, descriptors())
	})
}

// descriptors is how many files this process has open, 0 if the system does not say. (Wine, which
// runs Windows programs elsewhere, shows its own files there.)
func descriptors() int {
	if runtime.GOOS == "windows" {
		return 0
	}
	files, _ := os.ReadDir("/proc/self/fd")
	return len(files)
}
