package bootstrap

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// One rank of each host but the hub's is a witness, for all others there.
func TestWhoIsAWitness(t *testing.T) {
	l := lobby{size: 6, seats: map[int]*seat{}}
	for r, host := range []int{0, 1, 1, 2, 0, 3} {
		s := &seat{claim: claim{Rank: r, Machine: fmt.Sprint("host ", host), Witness: 7, Hosts: r == 4},
			from: fmt.Sprintf("10.0.0.%d:1", host)}
		if host == 3 {
			s.Witness = 0 // it has no port
		}
		l.seats[r] = s
	}
	g := l.geography("another")
	require.Equal(t, []int{0, 1, 1, 2, 0, 3}, g.places)
	require.Equal(t, 0, g.hub, "in rank 4's process")
	require.Equal(t, "10.0.0.2:7", g.address(3))
	require.Empty(t, g.address(5))
	starts := make([]start, l.size)
	g.witnesses(l.seats, starts)
	first, third := heir{1, "10.0.0.1:7"}, heir{3, "10.0.0.2:7"}
	for r, want := range [][]heir{nil, {third}, {first, third}, {first}, nil, {first, third}} {
		require.Equal(t, want, starts[r].Witnesses, "rank %d", r)
		require.Equal(t, r == 1 || r == 3, starts[r].Witness)
		require.Equal(t, []int{0, 4}, starts[r].There)
	}
	require.Equal(t, []int{1, 2}, starts[2].Here)
}

// A witness says over the network whether it hears the hub, and who has told it that it does not. Who has not the
// group's key hears nothing.
func TestWitness(t *testing.T) {
	port, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer port.Close()
	j := &joiner{port: port}
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(j.claimWitness()))
	require.Equal(t, at, j.eye.Addr().String(), "one port a rank")
	key := make([]byte, keyLen)
	w := newMember(3, 4, key, []int{0})
	w.feel = func(context.Context) error { return nil }
	j.observe(w, &start{Here: []int{3}, There: []int{0}, Witness: true})
	defer w.witness.close()
	require.Equal(t, 3, w.home())

	m := newMember(2, 4, key, []int{0})
	(&joiner{}).observe(m, &start{Here: []int{1, 2}, There: []int{0}, Witnesses: []heir{{1, "no"}, {3, at}}})
	require.Equal(t, 1, m.home(), "its host is named by its witness")
	ctx := within(t, 20*time.Second)
	s, lives := m.ask(ctx, at, 1, false)
	require.True(t, lives)
	require.Equal(t, statement{seen: hears}, s)
	s, _ = m.ask(ctx, at, 1, true)
	require.Equal(t, []int{1}, s.told)
	w.silence.Store(true)
	require.Equal(t, missing, w.sees(), "its connection has ended in silence")

	stranger := newMember(2, 4, []byte("another"), nil)
	(&joiner{}).observe(stranger, &start{})
	s, lives = stranger.ask(ctx, at, 1, true)
	require.True(t, lives, "its host answers")
	require.Equal(t, statement{}, s)

	require.True(t, m.knock(ctx, at))
	w.witness.close()
	require.True(t, m.knock(ctx, at), "a host that refuses is there")
	over, cancel := context.WithCancel(ctx)
	cancel()
	require.False(t, m.knock(over, at))
}
