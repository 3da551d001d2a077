package bootstrap

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An heir goes on only with more than half of the ranks that may live: the others may have gone on without this heir.
func TestHeirAlone(t *testing.T) {
	for size, want := range map[int]string{
		2: "",
		3: "regroup: the process that serves the rendezvous has died, and only ranks 1 have come, not more than half of " +
			"the 2 that may live",
	} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		m := newMember(1, size, make([]byte, keyLen), []int{0})
		m.up = func(message) {}
		m.estate = estate{heirs: []heir{{1, ln.Addr().String()}}, port: ln}
		m.hubDied = true
		close(m.mourned)
		close(m.ended)
		got, err := m.Regroup(t.Context(), 300*time.Millisecond)
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
