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

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
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

// whyLost names the culprits after the connection to the hub has ended, or who may be one.
func TestMourn(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	feels := func(errs ...error) func(context.Context) error { // the last for good
		return func(context.Context) error {
			err := errs[0]
			errs = errs[min(1, len(errs)-1):]
			return err
		}
	}
	for name, tt := range map[string]struct {
		feel      func(context.Context) error
		hosts     []int
		silent    bool
		witnesses string // h: it hears the hub; m: it does not; u: it does not know; t: 3 has told it so; -: no answer
		culprits  []int
		may       []int // Candidates
		says      string
	}{
		"it lives": {feels(nil), []int{0}, false, "", []int{2}, nil,
			"rank 2 failed: its connection to the rendezvous is lost (why)"},
		"it has ended": {feels(refused), []int{0}, false, "", []int{0}, nil,
			"rank 0 died: its process ended without goodbye"},
		"it is stopped": {feels(errStalled), []int{0}, false, "", []int{0}, nil,
			"its process answers nothing, and its host does"},
		"no answer": {feels(syscall.ETIMEDOUT), []int{0, 3}, true, "", nil, []int{0, 2, 3},
			"answers nothing: why; who is to blame cannot be known: ranks 0, 2 and 3, or the network between them"},
		"no answer of a launcher": {feels(syscall.ETIMEDOUT), nil, true, "", nil, []int{2},
			"cannot be known: rank 2, or the"},
		"not known":              {nil, []int{0}, false, "", []int{0}, nil, "rank 0 died: why (connection to the rendezvous)"},
		"silence, and not known": {nil, []int{0}, true, "", nil, []int{0, 2}, "cannot be known"},
		"others have lost it too": {feels(syscall.ETIMEDOUT), []int{0}, true, "mu", []int{0}, nil,
			"rank 0 died: why, and it answers no other host"},
		"others hear it": {feels(syscall.ETIMEDOUT), []int{0}, true, "hu", []int{0, 2}, nil,
			"nothing passes between the hosts of ranks 0 and 2, and both are well"},
		"others hear it, and now this rank does": {feels(syscall.ETIMEDOUT, nil), []int{0}, true, "h", nil, []int{0, 2},
			"cannot be known"},
		"it is back, and others had lost it":      {feels(nil), []int{0}, true, "m", []int{0}, nil, "answers no other host"},
		"it is back, and others have kept it":     {feels(nil), []int{0}, true, "h", nil, []int{0, 2}, "cannot be known"},
		"others that are gone had told a witness": {feels(nil), []int{0}, true, "t", []int{0}, nil, "answers no other host"},
		"others do not know":                      {feels(syscall.ETIMEDOUT), []int{0}, true, "uu", nil, []int{0, 2}, "cannot be known"},
		"nobody answers": {feels(syscall.ETIMEDOUT), []int{0}, true, "--", nil, []int{0, 2, 4, 5},
			"cannot be known: ranks 0, 2, 4 and 5"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMember(2, 6, nil, tt.hosts)
			m.lookout.feel = tt.feel
			m.uplink.up = func(message) {}
			m.lookout.silence.Store(tt.silent)
			for i, w := range tt.witnesses {
				m.lookout.witnesses = append(m.lookout.witnesses, rendezvous.RankAddr{Rank: 4 + i, Addr: string(w)})
			}
			m.lookout.ask = func(_ context.Context, address string, _ rendezvous.Ask) (rendezvous.Statement, bool) {
				seen := map[string]rendezvous.Sight{"h": rendezvous.Hears, "m": rendezvous.Missing}
				s := rendezvous.Statement{Seen: seen[address]}
				if address == "t" {
					s.Told = []int{3}
				}
				return s, address != "-"
			}
			m.lost("why")
			f := m.Failure()
			require.Equal(t, [][]int{tt.culprits, tt.may}, [][]int{f.Culprits, f.Candidates})
			require.ErrorContains(t, f, tt.says)
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
func TestCloseWhileAskingWhy(t *testing.T) {
	m := newMember(2, 4, nil, []int{0})
	m.uplink.up = func(message) {}
	asked := make(chan struct{})
	m.lookout.feel = func(ctx context.Context) error {
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
	groups := enter(t, id, 2, func(int) JoinOptions { return JoinOptions{apart: true} })
	Gone(id, 1, "killed by signal 9")
	Drop(groups[1])
	require.Equal(t, &Failure{Rank: 1, Culprits: []int{1}, Died: true,
		Reason: "its process ended without goodbye: killed by signal 9"}, awaitFailure(t, groups[0]))
	closeAll(t, groups)
}
