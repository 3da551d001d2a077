package life

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/test/transcript"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/trace/judge"
)

var rewrite = flag.Bool("rewrite", false, "write the transcripts anew")

// causes are the errors with which operations in transcripts may fail. This rank is 1; the other end of its operations
// is rank 0, from which it receives over shm.
var causes = map[string]error{
	"reset":    errors.New("connection reset"),
	"closed":   fifo.ErrClosed,
	"timeout":  call.ErrTimeout,
	"mismatch": mismatch(7, 7),
	"ahead":    mismatch(7, 8),
	"behind":   mismatch(7, 6),
}

// mismatch is a peer in another call: of number theirs, where this rank is at mine.
func mismatch(mine, theirs uint32) error {
	want := call.Sign{Seq: mine, Kind: call.AllReduce, Type: kernels.Float32, Count: 4, Root: -1}
	got := call.Sign{Seq: theirs, Kind: call.Broadcast, Type: kernels.Float32, Count: 4, Root: 2}
	return &Mismatch{rank: 1, peer: 0, cause: &engine.MismatchError{Want: want.Stamp(), Got: got.Stamp()}}
}

// event reads a line of a transcript:
//
//	fail OP CAUSE       an operation failed, see causes
//	died RANK           the group says so
//	complains RANK WHY  likewise
//	disagree RANK RANK  likewise: one calls AllReduce, the other Broadcast
//	left RANK NUMBER    likewise: RANK has closed after collective NUMBER
//	absent RANK         likewise: RANK did not enter a collective in time
//	path RANK RANK      likewise: nothing passes between the two
//	cut RANK RANK       likewise: one of the two may be cut off
//	halt                an operation of another rank has run out of time
//	refuse              an operation of this rank did not begin
//	patience, abort, close
func event(line string) (e Event, err error) {
	verb, rest, _ := strings.Cut(line, " ")
	f := &bootstrap.Failure{}
	switch verb {
	case "fail":
		op, name, _ := strings.Cut(rest, " ")
		cause, ok := causes[name]
		if !ok {
			return nil, fmt.Errorf("no cause %q", name)
		}
		e := &call.Error{Op: op, Seq: 7, Rank: 1, Transport: "shm", Phase: "recv", Err: cause}
		return OperationFailed{e, doubtOf(e)}, nil
	case "died":
		f.Died, f.Reason = true, "killed"
		_, err = fmt.Sscanf(rest, "%d", &f.Rank)
		f.Culprits = []int{f.Rank}
	case "complains":
		_, err = fmt.Sscanf(rest, "%d %s", &f.Rank, &f.Reason)
		f.Culprits = []int{f.Rank}
	case "disagree":
		f.Rank = -1
		f.Disagree = &bootstrap.Disagreement{
			CallA: bytesOf(call.Sign{Seq: 5, Kind: call.AllReduce, Type: kernels.Float32, Count: 4, Root: -1}.Stamp()),
			CallB: bytesOf(call.Sign{Seq: 5, Kind: call.Broadcast, Type: kernels.Float32, Count: 4, Root: 2}.Stamp()),
		}
		_, err = fmt.Sscanf(rest, "%d %d", &f.Disagree.RankA, &f.Disagree.RankB)
		f.Culprits = []int{f.Disagree.RankA, f.Disagree.RankB}
	case "left":
		f.Left = true
		_, err = fmt.Sscanf(rest, "%d %d", &f.Rank, &f.Number)
		f.Culprits = []int{f.Rank}
	case "absent":
		allReduce := call.Sign{Seq: 7, Kind: call.AllReduce, Type: kernels.Float32, Count: 4, Root: -1}
		f.Rank = -1
		f.Late = &bootstrap.Lateness{Reason: judge.Absent,
			Call: bootstrap.Called{Number: 7, Call: bytesOf(allReduce.Stamp())}, Waiting: []int{0, 1},
			Waited: 4910 * time.Millisecond}
		f.Culprits = []int{-1}
		_, err = fmt.Sscanf(rest, "%d", &f.Culprits[0])
	case "path", "cut":
		f.Rank, f.Reason, f.Path = -1, "cut", verb == "path"
		ranks := make([]int, 2)
		if _, err = fmt.Sscanf(rest, "%d %d", &ranks[0], &ranks[1]); f.Path {
			f.Culprits = ranks
		} else {
			f.Candidates = ranks
		}
	case "halt":
		return HaltAsked{place(OpComm, errHalted)}, nil
	case "patience":
		return PatienceEnded{}, nil
	case "refuse":
		return OperationRefused{}, nil
	case "abort":
		return AbortCalled{place("Abort", fmt.Errorf("%w: %s", call.ErrAborted, "by the test"))}, nil
	case "close":
		return CloseCalled{place("Close", call.ErrClosed)}, nil
	default:
		err = fmt.Errorf("no event %q", line)
	}
	return GroupSaid{f}, err
}

func place(op string, cause error) *call.Error {
	return &call.Error{Op: op, Rank: 1, Peer: -1, Err: cause}
}

// show is what an event has done to a machine.
func show(m *Machine, before *call.Error, a Actions) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %v\n", m.State())
	if v := m.Verdict(); v != before {
		fmt.Fprintf(&b, "  verdict  %v\n           culprits %v\n", v, v.Culprits)
		if len(v.Candidates) > 0 {
			fmt.Fprintf(&b, "           candidates %v\n", v.Candidates)
		}
		for _, s := range []struct {
			name string
			err  error
		}{{"ErrPeer", call.ErrPeer}, {"ErrLeft", call.ErrLeft}, {"ErrMismatch", call.ErrMismatch},
			{"ErrTimeout", call.ErrTimeout},
			{"ErrAborted", call.ErrAborted}, {"ErrClosed", call.ErrClosed}} {
			if errors.Is(v, s.err) {
				fmt.Fprintf(&b, "           is %s\n", s.name)
			}
		}
	}
	if m.Verdict() != nil && !m.Met() {
		b.WriteString("  unmet\n")
	}
	if a.Stop != nil {
		fmt.Fprintf(&b, "  stop     %v\n", a.Stop)
	}
	if a.Tell != nil {
		fmt.Fprintf(&b, "  tell     %v\n", a.Tell)
	}
	if a.Lost {
		b.WriteString("           of a connection that broke\n")
	}
	if a.Await != 0 {
		fmt.Fprintf(&b, "  await    %v\n", a.Await)
	}
	if a.Seek {
		b.WriteString("  seek\n")
	}
	return b.String()
}

// TestTranscripts plays the events of testdata to a Machine and compares what it does. A line "== title" begins another
// life. "go test ./core/life -rewrite" writes them anew.
func TestTranscripts(t *testing.T) {
	transcript.Play(t, *rewrite, func(t *testing.T) func(string) string {
		var m *Machine
		return func(line string) string {
			if strings.HasPrefix(line, "==") {
				m = &Machine{Wrap: place}
				return ""
			}
			require.NotNil(t, m, `no "==" before %q`, line)
			e, err := event(line)
			require.NoError(t, err)
			before := m.Verdict()
			return show(m, before, m.Step(e))
		}
	})
}

// TestMachineLaws: whatever happens in whatever order, waits end at most once, the group is told at most once, a
// verdict that has a place stays, and Close is final.
func TestMachineLaws(t *testing.T) {
	lines := []string{"absent 3", "halt", "died 2", "complains 2 x", "disagree 0 2", "path 2 3", "cut 0 2",
		"left 2 0", "left 2 3", "patience",
		"abort", "close"}
	for name := range causes {
		lines = append(lines, "fail AllReduce "+name, "fail Broadcast "+name)
	}
	rapid.Check(t, func(t *rapid.T) {
		m := &Machine{Wrap: place}
		stops, tells, awaits := 0, 0, 0
		for _, line := range rapid.SliceOf(rapid.SampledFrom(lines)).Draw(t, "events") {
			e, err := event(line)
			require.NoError(t, err)
			before, verdict := m.State(), m.Verdict()
			a := m.Step(e)
			if a.Stop != nil {
				stops++
				require.True(t, m.Verdict() != nil || line == "halt" || a.Tell != nil)
			}
			if a.Tell != nil {
				tells++
				require.Equal(t, 1, stops, "whoever tells the others has ended its own waits")
			}
			if a.Await != 0 {
				awaits++
				require.Equal(t, Doubtful, m.State())
			}
			require.GreaterOrEqual(t, m.State(), before, "%v: %v after %v", line, m.State(), before)
			switch m.State() {
			case Open, Doubtful:
				require.Nil(t, m.Verdict())
				require.True(t, stops == 0 || m.State() == Doubtful)
			case Failed:
				require.NotNil(t, m.Verdict())
				v := m.Verdict()
				require.False(t, v.Culprits != nil && v.Candidates != nil)
				require.True(t, v.Err == call.ErrClosed || v.Op == OpComm || v.Culprits != nil || v.Candidates != nil)
				require.Equal(t, 1, stops)
			case Closed:
				require.NotNil(t, m.Verdict())
			}
			if verdict != nil && verdict.Op != OpComm || before == Closed {
				require.Same(t, verdict, m.Verdict(), "a verdict that has a place stays")
			}
			if line == "close" {
				require.Equal(t, Closed, m.State())
			}
		}
		require.LessOrEqual(t, stops, 1)
		require.LessOrEqual(t, tells, 1)
		require.LessOrEqual(t, awaits, 2)
	})
}
