//go:build !ringo_portable

package socket

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/test/payload"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

// refuseLoans makes s behave as on a kernel that does not lend.
func refuseLoans(s *sendConn) {
	for _, l := range s.senders {
		l.loan.no = true
	}
}

// TestRefusedLoan: a socket that refuses a loan gets copies from that byte on.
func TestRefusedLoan(t *testing.T) {
	s, r := pair(t, large, onLoopback)
	b, err := s.Reserve(large.SlotBytes)
	require.NoError(t, err)
	payload.Fill(b.Bytes(), 1)
	l := s.senders[0]
	l.loan.open(large.SlotBytes)
	pipe := l.loan.pipe
	l.loan.pipe[0], l.loan.pipe[1] = pipe[1], pipe[0] // the ends are swapped, so no call on them works
	require.NoError(t, s.Publish(transport.Stamp{}))
	require.True(t, l.loan.no)
	got, _, err := r.Next()
	require.NoError(t, err)
	want := make([]byte, large.SlotBytes)
	payload.Fill(want, 1)
	require.Equal(t, want, got.Bytes())
}

// TestFlushOfTheDead: a wait for credits ends when the receiver has closed, or
// died.
func TestFlushOfTheDead(t *testing.T) {
	for _, died := range []bool{false, true} {
		s, r := pair(t, large, onLoopback)
		require.NoError(t, s.PublishFrom(mem.Host(make([]byte, large.SlotBytes)), transport.Stamp{}))
		if died {
			r.t.cfg.Guard.Abort(fmt.Errorf("enough")) // so that Close says no farewell
		}
		go r.Close()
		err := s.Flush()
		if died {
			require.EqualError(t, err, "the peer has gone: connection reset by peer")
		} else {
			require.ErrorIs(t, err, fifo.ErrClosed)
		}
	}
}

// TestTooManyCredits: more credits than slots were lent are an error.
func TestTooManyCredits(t *testing.T) {
	s, r := pair(t, large, onLoopback)
	require.NoError(t, s.PublishFrom(mem.Host(make([]byte, large.SlotBytes)), transport.Stamp{}))
	_, err := r.inlets[0].write([]byte{2})
	require.NoError(t, err)
	s.t.cfg.Guard.SetDeadline(fifo.Now() + int64(5*time.Second))
	err = s.until(s.senders[0], nil, 3) // more than come
	require.EqualError(t, err, "malformed frame: more credits than slots were lent")
}
