package life

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/kernels"
)

// Who is to blame for an error, as far as one rank can say.
func TestCulprits(t *testing.T) {
	cut := errors.New("cut")
	peers := []int{0, 3}
	said := &PeerError{&bootstrap.Failure{Culprits: peers}}
	for _, test := range []struct {
		name  string
		err   error
		peer  int
		doubt Doubt
		hosts []int
		want  []int
		may   []int // Candidates
	}{
		{"the group says who", said, 2, Late, []int{0}, peers, nil},
		{"the group cannot know", &PeerError{&bootstrap.Failure{Candidates: peers, Reason: "cut"}}, 2, Late, []int{0}, nil,
			peers},
		{"nobody answers", call.ErrTimeout, 2, Late, []int{0}, nil, []int{0, 1}},
		{"late, hosts here", call.ErrTimeout, 2, Late, nil, nil, []int{1, 2}},
		{"closed", call.ErrClosed, 2, Certain, []int{0}, nil, nil},
		{"left", call.ErrLeft, 2, Certain, nil, []int{2}, nil},
		{"left, unknown who", call.ErrLeft, -1, Certain, nil, []int{1}, nil},
		{"rank 0 left", call.ErrLeft, 0, Certain, nil, []int{0}, nil},
		{"aborted", call.ErrAborted, 2, Certain, nil, []int{1}, nil},
		{"no peer", cut, -1, Certain, []int{0}, []int{1}, nil},
		{"itself", cut, 1, Certain, nil, []int{1}, nil},
		{"calls differ", mismatch(7, 7), 0, Between, nil, []int{0, 1}, nil},
		{"peer before", cut, 0, Broken, []int{3}, nil, []int{0, 1}},
		{"peer behind", cut, 3, Broken, nil, nil, []int{1, 3}},
	} {
		m := &Machine{Hosts: test.hosts}
		e := &call.Error{Rank: 1, Peer: test.peer, Err: test.err}
		got := m.blaming(e, test.doubt)
		require.Equal(t, test.want, got.Culprits, test.name)
		require.Equal(t, test.may, got.Candidates, test.name)
		require.Nil(t, e.Culprits, "its owner may read it")
		if len(test.may) > 0 {
			require.ErrorContains(t, got, "cannot")
		}
		if len(got.Culprits) > 0 || len(got.Candidates) > 0 {
			require.Same(t, got, m.blaming(got, test.doubt), "blame is laid once")
		}
	}
	m := &Machine{}
	own, _ := m.culprits(&call.Error{Err: said}, Certain)
	own[0] = 9
	require.Equal(t, []int{0, 3}, peers, "ranks of one process share the list")
}

// What an operation's error says of its cause, after the group has been heard or not.
func TestExplain(t *testing.T) {
	cut := errors.New("cut")
	died := &bootstrap.Failure{Rank: 2, Died: true, Reason: "killed"}
	late := &bootstrap.Failure{Culprits: []int{2}, Late: &bootstrap.Lateness{Waiting: []int{1}}}
	differ := &bootstrap.Failure{Disagree: &bootstrap.Disagreement{
		Number: 7, RankB: 1,
		CallA: bytesOf(call.Sign{Seq: 7, Kind: call.Barrier, Root: -1}.Stamp()),
		CallB: bytesOf(call.Sign{Seq: 7, Kind: call.AllReduce, Type: kernels.Int8, Count: 4, Root: -1}.Stamp()),
	}}
	const dead, slow = "rank 2 died: killed", "timed out in a Send or Recv: rank 1 waited in it"
	const apart = "ranks disagree: rank 0 calls Barrier #7, rank 1 calls AllReduce #7 (count 4, int8, sum); all ranks " +
		"must make the same calls in the same order"
	left := call.ErrLeft.Error() + ": it has closed the communicator (" + fifo.ErrClosed.Error() +
		"); all ranks must make the same calls before Close"
	for _, test := range []struct {
		name  string
		cause error
		doubt Doubt
		word  *bootstrap.Failure
		hosts []int
		want  string
		is    error
	}{
		{"nothing said", cut, Broken, nil, []int{0}, "cut", cut},
		{"the peer has left", fifo.ErrClosed, Broken, nil, nil, left, call.ErrLeft},
		{"closed, and certain", fifo.ErrClosed, Certain, nil, nil, fifo.ErrClosed.Error(), fifo.ErrClosed},
		{"nobody answers", call.ErrTimeout, Late, nil, []int{0, 3},
			"i/o timeout; the rendezvous does not answer either: is the process of ranks 0 and 3, which serves it, stopped?",
			call.ErrTimeout},
		{"late, hosts here", call.ErrTimeout, Late, nil, nil, "i/o timeout", call.ErrTimeout},
		{"certain", cut, Certain, died, nil, "cut", cut},
		{"broken by a death", cut, Broken, died, nil, dead + " (cut)", call.ErrPeer},
		{"apart, by a death", cut, Apart, died, nil, dead + " (cut)", cut},
		{"late, by a death", cut, Late, died, nil, dead + " (cut)", cut},
		{"differs, whoever died", cut, Differs, died, nil, "cut", cut},
		{"differs, as the group says", cut, Differs, differ, nil, apart, call.ErrMismatch},
		{"apart, as the group says", cut, Apart, differ, nil, apart, call.ErrMismatch},
		{"late, as calls differ", cut, Late, differ, nil, apart, call.ErrMismatch},
		{"broken, as calls differ", cut, Broken, differ, nil, apart + " (cut)", call.ErrMismatch},
		{"late", call.ErrTimeout, Late, late, nil, slow, call.ErrTimeout},
		{"halted", errHalted, Late, late, nil, slow, call.ErrTimeout},
		{"late in a step", cut, Late, late, nil, slow + " (cut)", call.ErrTimeout},
	} {
		m := &Machine{word: test.word, Hosts: test.hosts}
		err := m.Explain(test.cause, test.doubt)
		require.EqualError(t, err, test.want, test.name)
		require.ErrorIs(t, err, test.is, test.name)
	}
}

// TestUnserved: after the goodbye of those who serve the rendezvous nobody but the peer sees a death, and nobody knows
// why a message does not come.
func TestUnserved(t *testing.T) {
	cut := errors.New("cut")
	m := Machine{Hosts: []int{0}, Left: func(rank int) bool { return rank == 0 }}
	died := m.explained(&call.Error{Rank: 2, Peer: 1, Err: cut}, Broken)
	require.ErrorIs(t, died, call.ErrPeer)
	require.ErrorContains(t, died, "rank 1 died: its connection ended without goodbye (cut)")
	require.Equal(t, []int{1}, died.Culprits)
	late := m.explained(&call.Error{Rank: 2, Peer: 1, Err: call.ErrTimeout}, Late)
	require.ErrorContains(t, late, "nobody knows more, for rank 0, which served the rendezvous, has closed")
	require.Equal(t, []int{1, 2}, late.Candidates)
	silent := m.explained(&call.Error{Rank: 2, Peer: 1, Err: syscall.ETIMEDOUT}, Broken)
	require.Empty(t, silent.Culprits, "either of the two may be cut off")
	require.Equal(t, []int{1, 2}, silent.Candidates)
}

// A connection that broke under what was sent to a rank which has said goodbye is one that it has closed.
func TestExplainsGoodbye(t *testing.T) {
	cut := errors.New("cut")
	e := &call.Error{Rank: 1, Peer: 2, Err: cut}
	gone := func(rank int) bool { return rank == 2 }
	for _, test := range []struct {
		m     Machine
		peer  int
		doubt Doubt
		left  bool
	}{
		{Machine{Left: gone}, 2, Broken, true},
		{Machine{Left: gone}, 3, Broken, false},
		{Machine{Left: gone}, -1, Broken, false},
		{Machine{Left: gone}, 2, Certain, false},
		{Machine{}, 2, Broken, false},
		{Machine{Left: gone, word: &bootstrap.Failure{Rank: 3, Died: true}}, 2, Broken, false},
	} {
		e.Peer = test.peer
		got := test.m.explained(e, test.doubt)
		require.Equal(t, test.left, errors.Is(got, call.ErrLeft), "%+v", test)
		require.Equal(t, cut, e.Err, "its owner may read it")
		if test.left {
			require.Equal(t, []int{2}, got.Culprits)
			require.ErrorIs(t, got, cut)
		}
	}
}

// How long a rank waits for the group's word depends on what the group has to find out.
func TestPatience(t *testing.T) {
	for d, want := range map[Doubt]time.Duration{Broken: RootCauseWait, Apart: RollCallWait, Differs: RollCallWait,
		Late: TrialWait} {
		require.Equal(t, want, d.patience(), d)
	}
}

// Where an operation was stopped, as its rank tells the group.
func TestStoppedIn(t *testing.T) {
	l := New(newFakeGroup(), "h", "", time.Minute)
	defer l.Close()
	next := call.Sign{Kind: call.AllReduce, Type: kernels.Int8, Count: 4, Root: -1}.Stamp()
	l.Turn.Next(next, Collective, false)
	l.Turn.Next(next, Collective, false)
	for _, test := range []struct {
		seq     uint32
		at      engine.StepError
		peer    int
		sending bool
	}{
		{2, engine.StepError{Peer: 3, Phase: "send", Round: 4, Step: 5}, 3, true},
		{2, engine.StepError{Peer: 0, Phase: "connect"}, 0, true},
		{2, engine.StepError{Peer: 3, Phase: "recv"}, 3, false},
		{0, engine.StepError{Peer: -1}, -1, false},
		{0, engine.StepError{Peer: 4}, -1, false},
		{0, engine.StepError{Peer: -2}, -1, false},
	} {
		p := l.stoppedIn(&call.Error{Seq: test.seq, Err: call.ErrTimeout}, &test.at)
		require.Equal(t, bootstrap.Stopped{
			Last: 2, At: uint64(test.seq), Peer: test.peer, Sending: test.sending, Round: test.at.Round, Step: test.at.Step,
			Waited: time.Minute, Still: time.Minute,
		}, p.Stop)
		require.Equal(t, test.seq > 0, p.Waiting)
		require.Len(t, p.Calls, 2)
	}
	require.Zero(t, l.stoppedIn(&call.Error{Err: errHalted}, &engine.StepError{Peer: -1}).Stop.Waited,
		"it did not run out of time itself")
	l.Busy(func() bool { return false })
	require.Zero(t, l.stoppedIn(&call.Error{Seq: 2, Err: call.ErrTimeout}, &engine.StepError{Peer: -1}).Stop.Last,
		"GPUs number what they carry out")
}

// What a rank writes down of itself.
func TestRecord(t *testing.T) {
	g := newFakeGroup()
	l := New(g, "h", "", time.Minute)
	defer l.Close()
	r := l.Record()
	require.Regexp(t, "^[0-9a-f]{8}$", l.ID())
	require.Equal(t, []any{l.ID(), 1, 4, "h", "", uint64(0)}, []any{r.Comm, r.Rank, r.Size, r.Host, r.Cause, r.Total})
	require.Equal(t, []any{1, true, -1, uint64(0), false},
		[]any{r.State.Rank, r.State.Heard, r.State.Peer, r.State.At, r.State.Unsure})
	next := call.Sign{Kind: call.AllReduce, Type: kernels.Int8, Count: 4, Root: -1}.Stamp()
	l.Turn.Lock(context.Background())
	l.Turn.Next(next, Collective, false)
	require.EqualValues(t, 1, l.Record().State.At, "it is in the collective")
	l.Turn.Next(call.Sign{Kind: call.Send, Type: kernels.Int8, Count: 4, Root: -1}.Stamp(), 3, false)
	s := l.Record().State
	require.Equal(t, []any{uint64(0), 3, true, uint64(1)}, []any{s.At, s.Peer, s.Sending, s.Last})
	l.Turn.Next(call.Sign{Kind: call.Send, Type: kernels.Int8, Count: 4, Root: -1}.Stamp(), 2, true)
	s = l.Record().State
	require.Equal(t, []any{uint64(0), 2, false}, []any{s.At, s.Peer, s.Sending})
	l.Turn.Unlock()
	require.Equal(t, -1, l.Record().State.Peer, "it is in none")
	l.Busy(func() bool { return false })
	require.True(t, l.Record().State.Unsure)
	l.say(bootstrap.Position{Stop: bootstrap.Stopped{At: 9, Peer: 3, Sending: true, Round: 4, Step: 5,
		Waited: time.Second}})
	r = l.Record()
	require.Equal(t, []any{uint64(9), 3, true, 4, 5},
		[]any{r.State.At, r.State.Peer, r.State.Sending, r.State.Round, r.State.Step})
	require.Equal(t, time.Second, r.Waited)
	g.say(bootstrap.Failure{Rank: 2, Died: true, Reason: "killed", Culprits: []int{2}})
	<-l.Stopped()
	r = l.Record()
	require.Equal(t, []int{2}, r.Culprits)
	require.Contains(t, r.Cause, "rank 2 died: killed")
	require.EqualValues(t, 3, r.Total)
}

func (g *fakeGroup) Key() []byte { return []byte("secret") }

// A peer closes its end in order, or since it has failed: which of the two the group says.
func TestClosedIsNotLeft(t *testing.T) {
	for left, want := range map[bool]error{true: call.ErrLeft, false: fifo.ErrClosed} {
		m := Machine{Left: func(int) bool { return left }}
		m.Step(OperationFailed{&call.Error{Rank: 1, Peer: 2, Err: fifo.ErrClosed}, Broken})
		a := m.Step(PatienceEnded{})
		require.ErrorIs(t, a.Tell, want)
		require.Equal(t, left, m.State() == Failed)
		require.Equal(t, !left, a.Lost)
	}
}
