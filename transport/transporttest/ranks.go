package transporttest

import (
	"encoding/binary"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringo-go/ringo/internal/test/conntest"
	"github.com/ringo-go/ringo/transport"
)

// A rank is one member of a communicator under test.
type rank = conntest.Rank[transport.Transport]

// ranks are n listening ranks of one process.
func (s suite) ranks(tb testing.TB, n int, l transport.Limits) []*rank {
	return conntest.Ranks(tb, n, l, func(cfg transport.Config) transport.Transport { return s.open(tb, cfg) })
}

// pair is a connection between two new ranks.
func (s suite) pair(tb testing.TB, l transport.Limits) (transport.SendConn, transport.RecvConn) {
	r := s.ranks(tb, 2, l)
	return conntest.Connect(tb, r[0], r[1])
}

func put(t *testing.T, c transport.SendConn, n int, seed uint64) {
	t.Helper()
	require.NoError(t, conntest.Put(c, n, seed))
}

func get(t *testing.T, c transport.RecvConn, n int, seed uint64) {
	t.Helper()
	require.NoError(t, conntest.Get(c, n, seed))
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
