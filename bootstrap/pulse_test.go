package bootstrap

import (
	"context"
	"net"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/relay"
)

// A rank whose connection breaks while the hub lives is itself the culprit, on this rank and on the others.
func TestCutOff(t *testing.T) {
	id, _ := hubAt(t)
	var cut relay.Relay
	near, err := cut.Start(id.Addr())
	require.NoError(t, err)
	defer cut.Close()
	var groups []Group
	var others []<-chan joined
	for rank := range 2 {
		others = append(others, join(within(t, 20*time.Second), id, rank, 3))
	}
	g, err := Join(within(t, 20*time.Second), id, 2, 3,
		JoinOptions{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == id.Addr() {
				address = near
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		}})
	require.NoError(t, err)
	for _, c := range others {
		j := <-c
		require.NoError(t, j.err)
		groups = append(groups, j.g)
	}
	cut.Cut()
	for _, g := range append(groups, g) {
		require.Equal(t, []int{2}, awaitFailure(t, g).Culprits, "rank %d", g.Rank())
	}
	require.Equal(t, 2, g.Failure().Rank)
	require.ErrorContains(t, g.Failure(), "rank 2 failed: its connection to the rendezvous is lost (")
	closeAll(t, append(groups, g))
}

// The pulse may live longer than the hub that opened it, so it has a name of its own and not the labels of that hub's
// goroutine.
func TestPulseIsNobodys(t *testing.T) {
	pprof.Do(t.Context(), pprof.Labels("whose", "the first hub's"), func(context.Context) { hubAt(t) })
	require.Eventually(t, func() bool {
		var b strings.Builder
		require.NoError(t, pprof.Lookup("goroutine").WriteTo(&b, 1))
		return slices.ContainsFunc(strings.Split(b.String(), "\n\n"), func(g string) bool {
			return strings.Contains(g, "(*pulse).beat") && strings.Contains(g, `# labels: {"ringo":"pulse"}`)
		})
	}, 10*time.Second, time.Millisecond)
}

// mourn names the culprits after the connection to the hub has ended.
func TestMourn(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for name, tt := range map[string]struct {
		feel  func(context.Context) error
		hosts []int
		want  Failure
	}{
		"it lives": {func(context.Context) error { return nil }, []int{0},
			Failure{Rank: 2, Culprits: []int{2}, Reason: "its connection to the rendezvous is lost (why)"}},
		"it has ended": {func(context.Context) error { return refused }, []int{0},
			Failure{Rank: 0, Culprits: []int{0}, Died: true, Reason: "its process ended without goodbye"}},
		"no answer": {func(context.Context) error { return syscall.ETIMEDOUT }, []int{0, 3},
			Failure{Rank: 0, Culprits: []int{0, 2, 3}, Died: true, Reason: "why: its host or this rank's is cut off"}},
		"no answer of a launcher": {func(context.Context) error { return syscall.ETIMEDOUT }, nil,
			Failure{Rank: -1, Culprits: []int{2}, Died: true, Reason: "why: its host or this rank's is cut off"}},
		"not known": {nil, []int{0}, Failure{Rank: 0, Culprits: []int{0}, Died: true,
			Reason: "why (connection to the rendezvous)"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMember(2, 4, nil, tt.hosts)
			m.feel = tt.feel
			m.lost("why")
			require.Equal(t, &tt.want, m.Failure())
		})
	}
}

// A connection may be lost without a word while the hub's process is killed. The next one is refused.
func TestFeelAgain(t *testing.T) { synctest.Test(t, testFeelAgain) }

func testFeelAgain(t *testing.T) {
	id, err := randomID("127.0.0.1:1")
	require.NoError(t, err)
	near, far := net.Pipe()
	defer far.Close()
	knocks := 0
	j := &joiner{id: id, opt: JoinOptions{Dial: func(context.Context, string, string) (net.Conn, error) {
		if knocks++; knocks == 1 {
			return near, nil
		}
		return nil, syscall.ECONNREFUSED
	}}}
	feel := j.feel(newLink(far), 1)
	began := time.Now()
	require.ErrorIs(t, feel(within(t, pulseTime)), syscall.ECONNREFUSED)
	require.Equal(t, 2, knocks)
	require.Less(t, time.Since(began), pulseTime)

	knocks = 0
	near, far = net.Pipe()
	defer far.Close()
	require.ErrorIs(t, feel(within(t, 50*time.Millisecond)), context.DeadlineExceeded)
	require.Equal(t, 1, knocks)
}

// Close does not wait for an answer about the hub.
func TestCloseWhileMourning(t *testing.T) {
	m := newMember(2, 4, nil, []int{0})
	m.up = func(message) {}
	asked := make(chan struct{})
	m.feel = func(ctx context.Context) error {
		close(asked)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.lost("why")
	}()
	<-asked
	require.NoError(t, m.Close())
	<-done
	require.Nil(t, m.Failure())
}

// A launcher knows how a process has ended; the other ranks get that as the reason.
func TestLauncherKnows(t *testing.T) {
	id, err := NewID(ListenOptions{Addr: "127.0.0.1:0", Launched: true})
	require.NoError(t, err)
	defer Stop(id)
	var groups []Group
	for _, c := range []<-chan joined{joinApart(t, id, 0), joinApart(t, id, 1)} {
		j := <-c
		require.NoError(t, j.err)
		groups = append(groups, j.g)
	}
	Gone(id, 1, "killed by signal 9")
	Drop(groups[1])
	require.Equal(t, &Failure{Rank: 1, Culprits: []int{1}, Died: true,
		Reason: "its process ended without goodbye: killed by signal 9"}, awaitFailure(t, groups[0]))
	closeAll(t, groups)
}

func joinApart(t *testing.T, id ID, rank int) <-chan joined {
	c := make(chan joined, 1)
	go func() {
		g, err := Join(within(t, 20*time.Second), id, rank, 2, JoinOptions{apart: true})
		c <- joined{g, err}
	}()
	return c
}
