package bootstrap

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// at is a position: one letter a collective, the first of them number from.
func at(from uint64, calls string) (p Position) {
	for i, c := range calls {
		p.Calls = append(p.Calls, Called{from + uint64(i), [16]byte{byte(c)}})
	}
	return p
}

// waits is at for a rank that waits in the last collective.
func waits(from uint64, calls string) Position {
	p := at(from, calls)
	p.Waiting = true
	return p
}

// inside is waits for a rank that needs others, and has begun to send so many messages to rank 0.
func inside(from uint64, calls string, needs Need, sent uint64) Position {
	p := waits(from, calls)
	p.Needs, p.Messages = needs, []Messages{{Peer: 3, Count: 9}, {Peer: 0, Count: sent}}
	return p
}

// wants is at for a rank that waits for message n of rank 1.
func wants(n uint64, from uint64, calls string) Position {
	p := at(from, calls)
	p.Messages = []Messages{{Peer: 2, Count: 0}, {Peer: 1, Count: n, Call: [16]byte{'r'}}}
	return p
}

func TestRollCall(t *testing.T) {
	const first3 = "ranks 0 and 2 make different calls as collective #3"
	gone := func(p Position) *leave { return &leave{known: known{true, p}} }
	tests := []struct {
		name  string
		words []word
		want  []string // after the settle time
	}{
		{"the hub asks those it has not heard of", []word{{rank: 1, m: &inquire{waits(1, "ab")}}},
			[]string{"[0 2 3]: where?"}},
		{"not twice in a second", []word{{rank: 1, m: &inquire{waits(1, "ab")}}, {rank: 2, m: &inquire{waits(1, "ab")}}},
			[]string{"[0 2 3]: where?"}},
		{"calls that differ", []word{{rank: 0, m: &inquire{waits(1, "aab")}},
			{rank: 2, m: &position{known{true, at(1, "aac")}}}},
			[]string{"[1 2 3]: where?", "[0 1 2 3]: " + first3}},
		{"a message that is not sent, and a collective",
			[]word{{rank: 0, m: &inquire{wants(2, 1, "aa")}}, {rank: 1, m: &inquire{inside(1, "aab", Everyone, 1)}}},
			[]string{"[1 2 3]: where?", "[0 1 2 3]: ranks 0 and 1 make different calls as collective #3"}},
		{"a collective, and a message that is not sent",
			[]word{{rank: 1, m: &inquire{inside(1, "aab", NeedOf(0), 0)}}, {rank: 2, m: &inquire{waits(1, "aab")}},
				{rank: 0, m: &inquire{wants(1, 1, "")}}},
			[]string{"[0 2 3]: where?", "[0 1 2 3]: ranks 0 and 1 make different calls as collective #3"}},
		{"a message under way", []word{{rank: 0, m: &inquire{wants(2, 1, "aa")}},
			{rank: 1, m: &inquire{inside(1, "aab", Everyone, 2)}}}, []string{"[1 2 3]: where?"}},
		{"a message behind a collective that does without the rank",
			[]word{{rank: 0, m: &inquire{wants(2, 1, "aa")}}, {rank: 1, m: &inquire{inside(1, "aab", NeedOf(2), 1)}}},
			[]string{"[1 2 3]: where?"}},
		{"a message behind a collective that the rank is past",
			[]word{{rank: 0, m: &inquire{wants(2, 1, "aab")}}, {rank: 1, m: &inquire{inside(1, "aab", Everyone, 1)}}},
			[]string{"[1 2 3]: where?"}},
		{"a message of another peer", []word{{rank: 0, m: &inquire{wants(2, 1, "aa")}},
			{rank: 3, m: &inquire{inside(1, "aab", Everyone, 1)}}}, []string{"[1 2 3]: where?"}},
		{"a rank that does not wait", []word{{rank: 2, m: &position{known{true, at(2, "acaa")}}},
			{rank: 0, m: &inquire{waits(1, "aab")}}}, []string{"[1 3]: where?", "[0 1 2 3]: " + first3}},
		{"one has passed", []word{{rank: 0, m: &inquire{waits(1, "aab")}},
			{rank: 2, m: &position{known{true, at(3, "cccc")}}}},
			[]string{"[1 2 3]: where?", "[0 1 2 3]: " + first3}},
		{"number 0 is not compared", []word{{rank: 0, m: &inquire{waits(0, "a")}},
			{rank: 2, m: &position{known{true, at(0, "b")}}}}, []string{"[1 2 3]: where?"}},
		{"skew is no fault", []word{{rank: 0, m: &inquire{waits(1, "aaaa")}},
			{rank: 1, m: &position{known{true, at(1, "a")}}}, {rank: 2, m: &position{known{true, Position{}}}}},
			[]string{"[1 2 3]: where?"}},
		{"the lowest number, then the lowest ranks",
			[]word{{rank: 3, m: &inquire{waits(2, "xyz")}}, {rank: 1, m: &position{known{true, at(3, "aaa")}}},
				{rank: 0, m: &position{known{true, at(2, "aa")}}}, {rank: 2, m: &position{known{true, at(1, "xxxx")}}}},
			[]string{"[0 1 2]: where?", "[0 1 2 3]: ranks 0 and 2 make different calls as collective #2"}},
		{"one has left", []word{{rank: 2, m: gone(at(1, "aa"))}, {rank: 0, m: &inquire{waits(1, "aaa")}}},
			[]string{"[0 1 3]: rank 2 has left after collective #2, and others wait for it in a later one"}},
		{"one leaves while others wait", []word{{rank: 0, m: &inquire{waits(1, "aaa")}}, {rank: 2, m: gone(at(1, "aa"))}},
			[]string{"[1 2 3]: where?", "[0 1 3]: rank 2 has left after collective #2, and others wait for it in a later one"}},
		{"one has left before it began", []word{{rank: 2, m: gone(Position{})}, {rank: 0, m: &inquire{waits(1, "a")}}},
			[]string{"[0 1 3]: rank 2 has left before its first collective, and others wait for it"}},
		{"one has left after the same call", []word{{rank: 2, m: gone(at(1, "aaa"))},
			{rank: 0, m: &inquire{waits(1, "aaa")}}}, []string{"[1 3]: where?"}},
		{"two have left", []word{{rank: 2, m: gone(at(1, "aa"))}, {rank: 3, m: gone(at(1, "a"))},
			{rank: 1, m: gone(at(1, "aa"))}, {rank: 0, m: &inquire{waits(1, "aaa")}}},
			[]string{"[0]: rank 3 has left after collective #1, and others wait for it in a later one"}},
		{"one has left after another call, and others have gone on",
			[]word{{rank: 2, m: gone(at(1, "aac"))}, {rank: 0, m: &inquire{waits(1, "aabb")}}},
			[]string{"[1 3]: where?", "[0 1 3]: " + first3}},
		{"not those it has heard of", []word{{rank: 1, m: &position{known{true, at(1, "a")}}},
			{rank: 0, m: &inquire{waits(1, "ab")}}}, []string{"[2 3]: where?"}},
		{"one has left and cannot say where it was", []word{{rank: 2, m: &leave{}}, {rank: 0, m: &inquire{waits(1, "aaa")}}},
			[]string{"[1 3]: where?"}},
		{"one has left after another call", []word{{rank: 2, m: gone(at(1, "aac"))}, {rank: 0, m: &inquire{waits(1, "aab")}}},
			[]string{"[1 3]: where?", "[0 1 3]: " + first3}},
		{"who does not wait long misses nobody",
			[]word{{rank: 2, m: gone(at(1, "a"))}, {rank: 0, m: &position{known{true, at(1, "aa")}}}}, []string{}},
		{"leaving comes before what follows from it",
			[]word{{rank: 2, m: gone(at(1, "a"))}, {rank: 0, m: &inquire{waits(1, "aab")}},
				{rank: 1, m: &inquire{waits(1, "aac")}}},
			[]string{"[3]: where?", "[0 1 3]: rank 2 has left after collective #1, and others wait for it in a later one"}},
		{"all hear what one meets of a departure",
			[]word{{rank: 2, m: gone(at(1, "a"))}, {rank: 0, m: &fail{Reason: "connection closed", Culprits: []int{2}}}},
			[]string{"[0 1 3]: rank 2 has left after collective #1, and others wait for it in a later one"}},
		{"a complaint gives way", []word{{rank: 0, m: &inquire{waits(1, "b")}}, {rank: 2, m: &fail{Reason: "i/o timeout"}},
			{rank: 2, m: gone(at(1, "c"))}},
			[]string{"[1 2 3]: where?", "[0 1 2 3]: ranks 0 and 2 make different calls as collective #1"}},
		{"who has heard a failure hears no second",
			[]word{{rank: 0, m: &inquire{waits(1, "b")}}, {rank: 1, m: &position{known{true, at(1, "c")}}},
				{rank: 3, lost: "gone"}, {rank: 2, m: &position{known{true, at(1, "c")}}}},
			[]string{"[1 2 3]: where?", "[0 1 2]: rank 3 died: gone"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Minute) // older than any position
				r, said := recorded(4)
				for _, w := range tt.words {
					if w.lost != "" {
						r.lost(w.rank, w.lost)
						continue
					}
					require.True(t, r.hear(w.rank, w.m))
				}
				time.Sleep((1 + maxPolls) * settle)
				asked := false
				require.Equal(t, tt.want, slices.DeleteFunc(said(), func(line string) bool {
					again := asked && strings.HasSuffix(line, "where?") // for a majority
					asked = asked || strings.HasSuffix(line, "where?")
					return again || strings.HasSuffix(line, "bye") || strings.Contains(line, "left at")
				}))
				r.waitSettled()
			})
		})
	}
}

// A verdict settles, since a death may explain it, and is announced once.
func TestVerdictSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, said := recorded(3)
		r.hear(0, &inquire{waits(1, "a")})
		r.hear(1, &inquire{waits(1, "b")})
		require.Equal(t, []string{"[1 2]: where?"}, said())
		r.hear(2, &position{known{true, at(1, "a")}})
		time.Sleep(settle - 1)
		require.Empty(t, said())
		time.Sleep(time.Nanosecond)
		require.Len(t, said(), 1)
		r.hear(2, &inquire{waits(1, "c")})
		r.mu.Lock()
		require.Nil(t, r.pending, "nobody is left to tell")
		r.mu.Unlock()
		time.Sleep(2 * settle)
		require.Empty(t, said())
	})
}

// If equally many ranks are known to make each of two calls, the ranks that have not come so far
// are asked again: then all hear which rank is in the minority.
func TestMajority(t *testing.T) {
	for name, second := range map[string]string{"the first is alone": "b", "the second is alone": "a"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var told []*Failure
				asked := 0
				r := newCoordinator(3, nil, func(to []int, m message) {
					mu.Lock()
					defer mu.Unlock()
					switch m := m.(type) {
					case *failed:
						told = append(told, &m.Failure)
					case *where:
						asked++
					}
				})
				r.hear(0, &inquire{waits(1, "xa")})
				r.hear(1, &inquire{waits(1, "xb")})
				r.hear(2, &position{known{true, at(1, "x")}})
				time.Sleep(settle)
				synctest.Wait()
				mu.Lock()
				require.Equal(t, 2, asked)
				require.Empty(t, told)
				mu.Unlock()
				r.hear(2, &position{known{true, at(1, "x"+second)}})
				time.Sleep(settle)
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				require.Len(t, told, 1)
				require.Equal(t, map[string][]int{"a": {1}, "b": {0}}[second], told[0].Culprits)
			})
		})
	}
}

// A rank that goes on waiting inquires again, and hears of a call that came meanwhile.
func TestRollCallAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, said := recorded(3)
		for range 3 {
			r.hear(0, &inquire{waits(1, "aa")})
			r.hear(2, &inquire{waits(1, "aa")})
			require.Equal(t, []string{"[1 2]: where?"}, said(), "2 was not heard of when 0 asked")
			r.hear(1, &position{known{true, at(1, "a")}})
			time.Sleep(rollTime)
		}
		r.hear(1, &position{known{true, at(1, "ab")}})
		time.Sleep(settle)
		require.Equal(t, []string{"[0 1 2]: ranks 0 and 1 make different calls as collective #2"}, said())
	})
}

// A rank that inquires gets the ranks that have not answered the roll call.
func TestSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, said := recorded(4)
		ask := func() []string {
			time.Sleep(rollTime)
			r.hear(0, &inquire{waits(1, "aa")})
			return said()
		}
		require.Equal(t, []string{"[1 2 3]: where?"}, ask())
		r.hear(1, &position{}) // it cannot tell its position, but it answers
		require.Equal(t, []string{"[1 2 3]: where?", "[0]: silent: [2 3]"}, ask())
		require.Equal(t, []string{"[1 2 3]: where?", "[0]: silent: [1 2 3]"}, ask())
		r.hear(1, &position{known{true, at(1, "a")}})
		r.hear(2, &part{})
		require.Equal(t, []string{"[1 2 3]: where?", "[0]: silent: [3]"}, ask())
		r.hear(3, &leave{})
		said()
		require.Equal(t, []string{"[1 2]: where?", "[0]: silent: [1 2]"}, ask())
	})
}

func TestSilentMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groups := Local(3)
		groups[1].(*member).up = func(message) {} // like a process that is stopped
		for _, want := range [][]int{nil, {1}} {
			time.Sleep(rollTime)
			groups[0].Inquire(waits(1, "a"))
			synctest.Wait()
			require.Equal(t, want, groups[0].Silent())
		}
		require.Nil(t, groups[0].Failure(), "to be silent is not to fail")
		closeAll(t, []Group{groups[0], groups[2]})
	})
}

func TestLedgerForgets(t *testing.T) {
	l := newLedger(2)
	for n := range uint64(100 * ledgerDepth) {
		l.note(0, at(n+1, "a"), time.Time{})
	}
	require.LessOrEqual(t, len(l.first), 2*ledgerDepth)
	l.note(1, at(1, "b"), time.Time{})
	require.Nil(t, l.verdict(), "too long ago")
	l.note(1, at(99*ledgerDepth+10, "b"), time.Time{})
	require.NotNil(t, l.verdict())
	l.note(1, Position{Calls: []Called{{Number: ^uint64(0)}}}, time.Time{})
	l.note(1, at(1, "b"), time.Time{})
}

// One rank waits in a call, the others are elsewhere.
func TestInquire(t *testing.T) {
	t.Parallel()
	atOnce(t, 3, func(t *testing.T, groups []Group) {
		require.Empty(t, groups[2].Silent())
		groups[0].Locate(func() (Position, bool) { return Position{}, false })
		groups[1].Locate(func() (Position, bool) { return at(1, "aab"), true })
		many := at(1, "aac")
		for n := range uint64(100) {
			many.Calls = append([]Called{{Number: 0, Call: [16]byte{byte(n)}}}, many.Calls...)
		}
		many.Waiting = true
		groups[2].Inquire(many)
		want := &Failure{Rank: -1, Culprits: []int{1, 2},
			Disagree: &Disagreement{Number: 3, RankA: 1, CallA: [16]byte{'b'}, RankB: 2, CallB: [16]byte{'c'}}}
		for _, g := range groups {
			require.Equal(t, want, awaitFailure(t, g))
		}
		_, err := groups[0].AllGather(t.Context(), nil)
		require.ErrorContains(t, err, "ranks 1 and 2 make different calls as collective #3")
	})
}

// A rank closes while another waits for it.
func TestInquireAfterClose(t *testing.T) {
	atOnce(t, 3, func(t *testing.T, groups []Group) {
		groups[1].Locate(func() (Position, bool) { return at(1, "aa"), true })
		require.NoError(t, groups[1].Close())
		groups[0].Inquire(waits(1, "aaa"))
		for _, r := range []int{0, 2} {
			require.Equal(t, &Failure{Rank: 1, Culprits: []int{1}, Left: true, Number: 2}, awaitFailure(t, groups[r]))
		}
	})
}

// Where the counts of the last call differ, the disagreement has the first entry that does, by ascending rank,
// whichever of the two ranks was heard first; lists that are too long are not sent.
func TestCountsOfRollCall(t *testing.T) {
	position := func(call string, counts ...int) Position {
		p := at(1, call)
		p.Counts = counts
		return p
	}
	for _, test := range []struct {
		zero, two Position
		want      *Differ
	}{
		{position("ab", 1, 5, 3), position("ac", 1, 6, 4), &Differ{1, 5, 6}},
		{position("ab", 1, 5, 3), position("ac"), nil},
		{position("ab", 1, 5), position("acd", 1, 6), nil}, // those of another call
	} {
		for _, first := range []int{0, 2} {
			l := newLedger(3)
			for _, r := range []int{first, 2 - first} {
				l.note(r, map[int]Position{0: test.zero, 2: test.two}[r], time.Time{})
			}
			require.Equal(t, test.want, l.verdict().Disagree.Counts)
			require.Equal(t, []int{0, 2}, []int{l.disagree.RankA, l.disagree.RankB})
		}
	}
	require.Len(t, position("a", make([]int, maxCounts)...).recent().Counts, maxCounts)
	require.Nil(t, position("a", make([]int, maxCounts+1)...).recent().Counts)
}
