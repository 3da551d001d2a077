package bootstrap

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
	"github.com/stretchr/testify/require"
)

// One rank of each host but the hub's is a witness, for all others there.
func TestWhoIsAWitness(t *testing.T) {
	l := joinSet{size: 6, slots: map[int]*slot{}}
	for r, host := range []int{0, 1, 1, 2, 0, 3} {
		s := &slot{Claim: rendezvous.Claim{Rank: r, Machine: fmt.Sprint("host ", host), Witness: 7, Hosts: r == 4},
			from: fmt.Sprintf("10.0.0.%d:1", host)}
		if host == 3 {
			s.Witness = 0 // it has no port
		}
		l.slots[r] = s
	}
	g := l.land("another")
	require.Equal(t, []int{0, 1, 1, 2, 0, 3}, g.Places)
	require.Equal(t, 0, g.Hub, "in rank 4's process")
	require.Equal(t, "10.0.0.2:7", g.Addresses[3])
	require.Empty(t, g.Addresses[5])
	starts := make([]rendezvous.Start, l.size)
	l.appointWitnesses(&g, starts)
	first, third := rendezvous.RankAddr{Rank: 1, Addr: "10.0.0.1:7"}, rendezvous.RankAddr{Rank: 3, Addr: "10.0.0.2:7"}
	for r, want := range [][]rendezvous.RankAddr{nil, {third}, {first, third}, {first}, nil, {first, third}} {
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
	require.Equal(t, at, j.witness.Addr().String(), "one port a rank")
	key := make([]byte, keyLen)
	w := newMember(3, 4, key, []int{0})
	w.lookout.feel = func(context.Context) error { return nil }
	j.observe(w, &rendezvous.Start{Here: []int{3}, There: []int{0}, Witness: true})
	defer w.lookout.witness.close()
	require.Equal(t, 3, w.lookout.home())

	m := newMember(2, 4, key, []int{0})
	(&joiner{}).observe(m, &rendezvous.Start{Here: []int{1, 2}, There: []int{0},
		Witnesses: []rendezvous.RankAddr{{Rank: 1, Addr: "no"}, {Rank: 3, Addr: at}}})
	require.Equal(t, 1, m.lookout.home(), "its host is named by its witness")
	ctx := within(t, 20*time.Second)
	s, lives := m.lookout.ask(ctx, at, rendezvous.Ask{Home: 1})
	require.True(t, lives)
	require.Equal(t, rendezvous.Statement{Seen: rendezvous.Hears}, s)
	s, _ = m.lookout.ask(ctx, at, rendezvous.Ask{Home: 1, Lost: true})
	require.Equal(t, []int{1}, s.Told)
	w.lookout.silence.Store(true)
	require.Equal(t, rendezvous.Missing, w.lookout.sees(ctx), "its connection has ended in silence")

	stranger := newMember(2, 4, []byte("another"), nil)
	(&joiner{}).observe(stranger, &rendezvous.Start{})
	s, lives = stranger.lookout.ask(ctx, at, rendezvous.Ask{Home: 1, Lost: true})
	require.True(t, lives, "its host answers")
	require.Equal(t, rendezvous.Statement{}, s)

	require.True(t, m.lookout.knock(ctx, at))
	w.lookout.witness.close()
	require.True(t, m.lookout.knock(ctx, at), "a host that refuses is there")
	over, cancel := context.WithCancel(ctx)
	cancel()
	require.False(t, m.lookout.knock(over, at))
}
