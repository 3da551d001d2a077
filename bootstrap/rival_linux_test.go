package bootstrap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
	"github.com/ringo-go/ringo/internal/auth"
	"github.com/ringo-go/ringo/internal/test/freeport"
)

// Of two processes that serve one ID at one port the second finds the first, and its ranks hear so. The first goes on,
// and says so where ranks are missing.
func TestRivals(t *testing.T) {
	t.Parallel()
	id, err := randomID(freeport.Addr(t))
	require.NoError(t, err)
	require.NoError(t, Serve(id, ListenOptions{}))
	defer Stop(id)
	older := hubOf(id)
	o := ListenOptions{known: true}
	ln, err := o.listen(id)
	require.NoError(t, err)
	younger := newHub(id, ln, o, map[int]string{}) // as another process would
	defer younger.wg.Wait()
	defer younger.stop()
	require.Eventually(t, younger.begun, time.Minute, time.Millisecond)
	require.Regexp(t, `^process \d+ on \S+ has served the meeting point 127\.0\.0\.1:\d+ of this job since .*: is it left `+
		`over from an earlier try, or are these two jobs\? end it, or give each job its own address`, younger.verdict.Reason)
	require.Eventually(t, func() bool {
		older.mu.Lock()
		defer older.mu.Unlock()
		return older.rival != ""
	}, time.Minute, time.Millisecond)
	require.False(t, older.begun())
	j := <-join(within(t, 50*time.Millisecond), id, 0, 2)
	require.ErrorContains(t, j.err, "serves the same meeting point, and may have some of them; start them or raise")
}

// Only an older hub that waits for ranks is a rival.
func TestMet(t *testing.T) {
	for _, tt := range []struct {
		name  string
		hail  rendezvous.Hail
		rival bool
	}{
		{"older", rendezvous.Hail{Name: []byte{9}, Began: 4, Waits: true}, true},
		{"as old, of a lower name", rendezvous.Hail{Name: []byte{0}, Began: 5, Waits: true}, true},
		{"itself", rendezvous.Hail{Name: []byte{1}, Began: 5, Waits: true}, false},
		{"younger", rendezvous.Hail{Name: []byte{0}, Began: 6, Waits: true}, false},
		{"whose group has begun", rendezvous.Hail{Name: []byte{0}, Began: 4}, false},
	} {
		id, _ := hubAt(t)
		h := hubOf(id)
		h.self.name, h.self.born = auth.Nonce{1}, 5
		tt.hail.Name = append(tt.hail.Name, make([]byte, auth.NonceLen-1)...)
		var got rendezvous.Hail
		require.NoError(t, rendezvous.Parse(rendezvous.Append(nil, &tt.hail), &got))
		require.Equal(t, tt.hail, got)
		h.met(&got)
		require.Equal(t, tt.rival, h.begun(), tt.name)
	}
}
