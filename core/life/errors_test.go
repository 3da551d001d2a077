// The words of errors, and the calls in a rank's history.

package life

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/trace/judge"
)

// A fakePath is "shm" and the peer, and knows one window.
type fakePath struct{}

func (fakePath) Via(peer int) string { return fmt.Sprintf("shm %d", peer) }

func (fakePath) Memory(where uint16) string {
	if where == 5 {
		return "In at 0 of window #1"
	}
	return ""
}

// reduce is the sign of AllReduce #7, changed.
func reduce(change func(s *call.Sign)) call.Sign {
	s := call.Sign{Seq: 7, Kind: call.AllReduce, Type: kernels.Float32, Count: 4, Algo: call.Ring, Root: -1}
	change(&s)
	return s
}

// Two calls that differ are named, and the error says what to change.
func TestMismatchWords(t *testing.T) {
	const mine = "AllReduce #7 (count 4, float32, sum)"
	const order = "; all ranks must make the same calls in the same order"
	const memory = "; give all ranks the same offset in the same window, also for an Out that Reduce leaves alone, or " +
		"memory in none"
	same := reduce(func(*call.Sign) {})
	barrier := call.Sign{Seq: 7, Kind: call.Barrier, Count: 1, Root: -1}
	message := func(kind, whole call.Kind, count int) call.Sign {
		return call.Sign{Kind: kind, Whole: whole, Type: kernels.Int8, Count: count, Root: -1}
	}
	at := func(where uint16) call.Sign { return reduce(func(s *call.Sign) { s.Where = where }) }
	for _, test := range []struct {
		name         string
		mine, theirs call.Sign
		bytes        int // that the peer sent, of 16
		want         string
		apart, known bool
	}{
		{"unknown", same, call.Sign{Root: -1}, 16, call.ErrMismatch.Error() + ": rank 1 calls " + mine +
			", rank 2 another call" + order, true, true},
		{"a window here", at(5), at(0), 16, "ranks disagree on the memory: rank 1 calls " + mine +
			" with In at 0 of window #1, rank 2 calls " + mine + " in no window" + memory, false, false},
		{"an unknown window", at(6), at(5), 16, "ranks disagree on the memory: rank 1 calls " + mine +
			" in windows, rank 2 calls " + mine + " in windows, elsewhere" + memory, false, false},
		{"a window there", at(0), at(5), 16, "ranks disagree on the memory: rank 1 calls " + mine +
			" in no window, rank 2 calls " + mine + " in windows, elsewhere" + memory, false, false},
		{"groups", same, same, 16,
			"ranks disagree on the group of AllReduce(count 4, float32, sum): rank 1 has other calls beside it than rank 2; " +
				"give all ranks the same groups", false, false},
		{"bytes", same, same, 12,
			"ranks disagree on AllReduce(count 4, float32, sum): rank 1 expects 16 bytes, rank 2 sent 12; give both the same " +
				"counts", false, false},
		{"algorithm", same, reduce(func(s *call.Sign) { s.Algo = call.Tree }), 16, call.ErrMismatch.Error() +
			" on the algorithm of AllReduce(count 4, float32, sum): rank 1 uses ring, rank 2 uses tree; give all ranks the " +
			"same RINGO_ALGO", false, true},
		{"count", same, reduce(func(s *call.Sign) { s.Count, s.Algo = 5, call.Tree }), 16, call.ErrMismatch.Error() +
			": rank 1 calls " + mine + ", rank 2 calls AllReduce #7 (count 5, float32, sum)" + order, false, true},
		{"number", same, reduce(func(s *call.Sign) { s.Seq = 8 }), 16, call.ErrMismatch.Error() + ": rank 1 calls " + mine +
			", rank 2 calls AllReduce #8 (count 4, float32, sum)" + order, true, true},
		{"barrier there", same, barrier, 16, call.ErrMismatch.Error() + ": rank 1 calls " + mine +
			", rank 2 calls Barrier #7" + order, false, true},
		{"calls before a barrier", barrier, func() call.Sign { b := barrier; b.Count = 2; return b }(), 0,
			call.ErrMismatch.Error() + ": ranks 1 and 2 have made different calls before Barrier #7" + order, true, true},
		{"two barriers", barrier, func() call.Sign { b := barrier; b.Seq = 8; return b }(), 0, call.ErrMismatch.Error() +
			": rank 1 calls Barrier #7, rank 2 calls Barrier #8" + order, true, true},
		{"a message", call.Sign{Kind: call.Send, Type: kernels.Int8, Count: 4, Root: -1}, same, 16, call.ErrMismatch.Error() +
			": rank 1 calls Send/Recv(count 4, int8), rank 2 calls " + mine + order, false, false},
		{"two messages", message(call.Send, 0, 4), message(call.Send, 0, 5), 16, call.ErrMismatch.Error() +
			" on a message: rank 1 receives 4 elements of int8, rank 2 sends 5 of int8; give a Recv the count and the type " +
			"of its Send", false, false},
		{"lengths of a message", message(call.AlltoAllv, 0, 4), message(call.AlltoAllv, 0, 5), 16, call.ErrMismatch.Error() +
			" on the counts of AlltoAllv(int8): rank 1 expects 4 elements of rank 2, which sends 5; give both the same counts",
			false, false},
		{"counts of all", message(call.AlltoAllv, call.Gatherv, 4), message(call.AlltoAllv, call.Gatherv, 5), 16,
			call.ErrMismatch.Error() + " on the counts of Gatherv(int8, root -1): ranks 1 and 2 have different ones; give " +
				"all ranks the same counts", false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			cause := &engine.MismatchError{Want: test.mine.Stamp(), Got: test.theirs.Stamp(), WantBytes: 16,
				GotBytes: test.bytes}
			e := &Mismatch{rank: 1, peer: 2, cause: cause, path: fakePath{}}
			require.EqualError(t, e, test.want)
			require.Equal(t, test.apart, e.apart())
			require.Equal(t, test.known, e.known())
			require.ErrorIs(t, e, call.ErrMismatch)
			require.NotErrorIs(t, e, call.ErrTimeout)
			require.Same(t, cause, errors.Unwrap(e))
		})
	}
}

// An error says where it happened, unless its cause is elsewhere.
func TestLocate(t *testing.T) {
	l := New(newFakeGroup(), "h", "pairs", time.Minute)
	defer l.Close()
	collective, message := &call.Call{Kind: call.AllReduce}, &call.Call{Kind: call.Send, Peer: 2}
	composite := &call.Call{Kind: call.AlltoAllv}
	call.PartOf(composite, &call.Call{Kind: call.Gatherv, Root: 1})
	step := func(err error) error { return &engine.StepError{Peer: 2, Phase: "recv", Err: err} }
	cut := errors.New("cut")
	died := &PeerError{&bootstrap.Failure{Rank: 3, Died: true}}
	here := func(op string, seq uint32, err error) *call.Error {
		return &call.Error{Op: op, Seq: seq, Rank: 1, Host: "h", Comm: l.ID(), Name: "pairs", Peer: 2, Phase: "recv",
			Transport: "shm 2", Err: err}
	}
	nowhere := func(err error) *call.Error {
		return &call.Error{Op: "AllReduce", Seq: 9, Rank: 1, Host: "h", Comm: l.ID(), Name: "pairs", Peer: -1, Err: err}
	}
	aborted := &call.Error{Op: "Abort", Err: call.ErrAborted}
	require.Equal(t, here("AllReduce", 9, cut), l.Locate(collective, 9, step(cut), fakePath{}))
	require.Equal(t, here("Send", 0, cut), l.Locate(message, 9, step(cut), fakePath{}))
	require.Equal(t, here("Gatherv", 9, cut), l.Locate(composite, 9, step(cut), fakePath{}))
	require.Equal(t, nowhere(cut), l.Locate(collective, 9, cut, fakePath{}))
	require.Equal(t, here("AllReduce", 9, died), l.Locate(collective, 9, step(fmt.Errorf("wait: %w", died)), fakePath{}))
	require.Equal(t, nowhere(aborted), l.Locate(collective, 9, step(aborted), fakePath{}))
	for _, f := range []*bootstrap.Failure{{Left: true}, {Late: &bootstrap.Lateness{}},
		{Disagree: &bootstrap.Disagreement{}}} {
		require.Equal(t, nowhere(&PeerError{f}), l.Locate(collective, 9, step(&PeerError{f}), fakePath{}))
	}
	m := &engine.MismatchError{}
	require.Equal(t, here("AllReduce", 9, &Mismatch{rank: 1, peer: 2, cause: m, path: fakePath{}}),
		l.Locate(collective, 9, step(m), fakePath{}))
	require.Empty(t, l.Locate(collective, 9, step(cut), nil).Transport)
}

// A method that all ranks call together blames whom its error names.
func TestErrorOfBlames(t *testing.T) {
	l := New(newFakeGroup(), "h", "", time.Minute)
	defer l.Close()
	for _, test := range []struct {
		err  error
		want []int
	}{
		{errors.New("x"), nil},
		{&call.Error{Culprits: []int{2}, Err: call.ErrPeer}, []int{2}},
		{&PeerError{&bootstrap.Failure{Culprits: []int{0, 3}}}, []int{0, 3}},
		{&bootstrap.LeftError{Rank: 3}, []int{3}},
		{&bootstrap.WithdrawnError{Rank: 0, Missing: []int{2, 3}}, []int{2, 3}},
		{&engine.StepError{Peer: 2, Err: call.ErrLeft}, []int{2}},
		{&engine.StepError{Peer: 2, Err: errors.New("x")}, nil},
	} {
		e := l.ErrorOf("Split", fmt.Errorf("meet: %w", test.err))
		require.Equal(t, test.want, e.Culprits, test.err)
		require.Equal(t, call.Error{Op: "Split", Rank: 1, Host: "h", Comm: l.ID(), Peer: -1, Err: e.Err,
			Culprits: test.want}, *e)
	}
}

// What the group says of a failure becomes a sentence, and one kind of error.
func TestPeerErrorWords(t *testing.T) {
	called := bootstrap.Called{Number: 7, Call: bytesOf(reduce(func(*call.Sign) {}).Stamp())}
	other := bytesOf(call.Sign{Seq: 7, Kind: call.Barrier, Root: -1}.Stamp())
	counts := func(hash int) [16]byte {
		return bytesOf(call.Sign{Seq: 7, Kind: call.AllGatherv, Type: kernels.Int8, Count: hash, Root: -1}.Stamp())
	}
	last := bootstrap.Called{Number: 6, Call: bytesOf(reduce(func(s *call.Sign) { s.Seq = 6 }).Stamp())}
	late := func(l bootstrap.Lateness, culprits ...int) bootstrap.Failure {
		return bootstrap.Failure{Rank: -1, Culprits: culprits, Late: &l}
	}
	const mine = "AllReduce #7 (count 4, float32, sum)"
	for _, test := range []struct {
		failure bootstrap.Failure
		is      error
		want    string
	}{
		{bootstrap.Failure{Disagree: &bootstrap.Disagreement{Number: 7, RankA: 0, RankB: 3, CallA: called.Call,
			CallB: other}}, call.ErrMismatch,
			call.ErrMismatch.Error() + ": rank 0 calls " + mine +
				", rank 3 calls Barrier #7; all ranks must make the same calls in the same order"},
		{bootstrap.Failure{Disagree: &bootstrap.Disagreement{Number: 7, RankA: 0, RankB: 3, CallA: counts(1),
			CallB: counts(2), Counts: &bootstrap.Differ{Entry: 2, A: 5, B: 6}}}, call.ErrMismatch, call.ErrMismatch.Error() +
			" on the counts of AllGatherv #7 (int8): that of rank 2 is 5 on rank 0 and 6 on rank 3; give all ranks the same " +
			"counts"},
		{bootstrap.Failure{Rank: 2, Left: true}, call.ErrLeft, call.ErrLeft.Error() +
			": rank 2 has closed the communicator before its first collective"},
		{bootstrap.Failure{Rank: 2, Left: true, Number: 6}, call.ErrLeft,
			call.ErrLeft.Error() +
				": rank 2 has closed the communicator after collective #6; all ranks must make the same calls before Close"},
		{late(bootstrap.Lateness{Reason: judge.Silent, Call: called, Waiting: []int{0, 1}, Waited: 1234567890}, 2),
			call.ErrTimeout,
			"timed out in " + mine +
				": rank 2 answered nothing: is a process stopped, or a host cut off? ranks 0 and 1 waited in it for 1.2s"},
		{late(bootstrap.Lateness{Reason: judge.Absent, Call: called, Waiting: []int{0}, Last: last}, 2, 3), call.ErrTimeout,
			"timed out in " + mine +
				": ranks 2 and 3 never entered it; rank 0 waited in it; rank 2's last collective is AllReduce #6 (count 4, " +
				"float32, sum)"},
		{late(bootstrap.Lateness{Reason: judge.Absent, Call: bootstrap.Called{Number: 9}, Waiting: []int{0}}, 3),
			call.ErrTimeout,
			"timed out in collective #9: rank 3 never entered it; rank 0 waited in it; it has begun no collective before"},
		{late(bootstrap.Lateness{Reason: judge.Link, Waiting: []int{0, 2}}, 0, 2), call.ErrTimeout,
			"timed out in a Send or Recv: nothing moves between ranks 0 and 2; ranks 0 and 2 waited in it"},
		{late(bootstrap.Lateness{Reason: judge.Slow, Call: called, Waiting: []int{0, 2}, Waited: time.Second,
			Still: 120 * time.Millisecond}), call.ErrTimeout,
			"timed out in " + mine + ": the time-out is too short, or the network has failed just now: data moved until 120ms " +
				"before; ranks 0 and 2 waited in it for 1s"},
		{late(bootstrap.Lateness{Reason: judge.Circle, Waiting: []int{0, 2}}, 0, 2), call.ErrTimeout,
			"timed out in a Send or Recv: ranks 0 and 2 wait for each other; ranks 0 and 2 waited in it"},
		{late(bootstrap.Lateness{Call: called, Waiting: []int{0}}, 0), call.ErrTimeout, "timed out in " + mine +
			": rank 0 waited in it"},
	} {
		e := &PeerError{&test.failure}
		require.EqualError(t, e, test.want)
		for _, kind := range []error{call.ErrMismatch, call.ErrLeft, call.ErrTimeout, call.ErrPeer} {
			require.Equal(t, kind == test.is, errors.Is(e, kind), "%v: %v", e, kind)
		}
	}
	died := &PeerError{&bootstrap.Failure{Rank: 2, Died: true, Reason: "x"}}
	require.EqualError(t, died, died.Failure.Error())
	require.ErrorIs(t, died, call.ErrPeer)
}

// A rank's history has its messages between its collectives, and the last calls of either.
func TestHistory(t *testing.T) {
	var turn Turn
	send := call.Sign{Kind: call.Send, Type: kernels.Int8, Count: 4, Root: -1}.Stamp()
	next := reduce(func(s *call.Sign) { s.Seq = 0 }).Stamp()
	words := func() (list []string) {
		calls, _ := turn.history()
		for _, c := range calls {
			list = append(list, fmt.Sprint(c.Number, " ", c.What))
		}
		return list
	}
	require.Empty(t, words())
	turn.Next(send, 2, false)
	turn.Next(next, Collective, false)
	turn.Next(send, 3, true)
	turn.Next(next, Collective, false)
	turn.Next(send, 0, false)
	const sum = "AllReduce(count 4, float32, sum)"
	require.Equal(t, []string{"0 Send(count 4, int8) to rank 2", "1 " + sum, "0 Recv(count 4, int8) from rank 3", "2 " +
		sum, "0 Send(count 4, int8) to rank 0"}, words())
	_, total := turn.history()
	require.EqualValues(t, 5, total)

	turn = Turn{}
	for range 3*depth + 5 {
		turn.Next(next, Collective, false)
	}
	calls, total := turn.history()
	require.EqualValues(t, 3*depth+5, total)
	require.Len(t, calls, depth)
	for i, c := range calls {
		require.EqualValues(t, 2*depth+6+i, c.Number)
		require.Equal(t, c.Number%depth != 0, c.Time.IsZero())
	}
	p := turn.position(true)
	require.Len(t, p.Calls, depth)
	require.Equal(t, bootstrap.Position{Waiting: true, Calls: p.Calls}, p)
	require.EqualValues(t, 2*depth+6, p.Calls[0].Number)
	require.EqualValues(t, 2*depth+6, sign(p.Calls[0].Call).Seq)
}
