package bootstrap

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/stretchr/testify/require"
)

// A successor goes on only with more than half of the ranks that may live: the others may have gone on without it.
func TestSuccessorAlone(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]string{
		2: "",
		3: "regroup: the process that serves the rendezvous has died, and only ranks 1 have come, not more than half of " +
			"the 2 that may live",
	} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		m := newMember(1, size, make([]byte, keyLen), []int{0})
		m.uplink.up = func(message) {}
		m.succession.successors, m.succession.port = []rendezvous.RankAddr{{Rank: 1, Addr: ln.Addr().String()}}, ln
		m.succession.hubDied = true
		m.succession.tell()
		m.uplink.end()
		got, err := m.Regroup(t.Context(), tier.Soon(2*time.Second))
		if want == "" {
			require.NoError(t, err)
			require.Equal(t, []int{1}, got.Members)
			require.NoError(t, got.Group.Close())
		} else {
			require.EqualError(t, err, want)
		}
		require.NoError(t, m.Close())
	}
}

// A rank that goes on opens no port at which others may still look for a process of the group before.
func TestClaimPort(t *testing.T) {
	var taken []string
	for port := range 1 << 16 {
		if port%10 > 2 {
			taken = append(taken, strconv.Itoa(port))
		}
	}
	j := &joiner{opt: JoinOptions{ports: taken}}
	port := j.claimPort(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NotZero(t, port)
	require.LessOrEqual(t, port%10, 2)
	require.Equal(t, port, j.claimPort(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}), "one port a rank")
	j.closePorts()
}
