package socket

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/transport"
)

// refuseLoans makes s do as on a kernel that does not lend.
func refuseLoans(s *sendConn) {
	for _, l := range s.lanes {
		l.loan.no = true
	}
}

// TestRefusedLoan: a socket that takes no loans gets copies, from the byte on
// where it refused.
func TestRefusedLoan(t *testing.T) {
	s, r := pair(t, large, onLoopback)
	b, err := s.Reserve(large.SlotBytes)
	require.NoError(t, err)
	pattern(b.Bytes(), 1)
	l := s.lanes[0]
	l.loan.open(large.SlotBytes)
	pipe := l.loan.pipe
	l.loan.pipe[0], l.loan.pipe[1] = pipe[1], pipe[0] // neither end does what is asked of it
	require.NoError(t, s.Publish(transport.Stamp{}))
	require.True(t, l.loan.no)
	got, _, err := r.Next()
	require.NoError(t, err)
	want := make([]byte, large.SlotBytes)
	pattern(want, 1)
	require.Equal(t, want, got.Bytes())
}
