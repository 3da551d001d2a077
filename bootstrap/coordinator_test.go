package bootstrap

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// recorded makes a coordinator of n ranks, and a function that returns, as lines, the messages
// since its last call.
func recorded(n int) (*coordinator, func() []string) {
	var lines []string
	r := newCoordinator(n, nil, func(to []int, m message) {
		if s, ok := m.(*silent); ok && len(s.Ranks) == 0 {
			return // an answer to each inquire
		}
		lines = append(lines, fmt.Sprintf("%v: %s", to, line(m)))
	})
	return r, func() []string {
		synctest.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		said := lines
		lines = nil
		return said
	}
}

func line(m message) string {
	switch m := m.(type) {
	case *failed:
		return m.Error()
	case *where:
		return "where?"
	case *silent:
		return fmt.Sprintf("silent: %v", m.Ranks)
	case *left:
		return fmt.Sprintf("rank %d left at %d", m.Rank, m.Seq)
	case *bye:
		return "bye"
	case *gathered:
		return fmt.Sprintf("gathered %d: %s", m.Seq, m.Data)
	case *withdrawn:
		return fmt.Sprintf("withdrawn %d: rank %d without %v: %s", m.Seq, m.Rank, m.Missing, m.Reason)
	}
	return fmt.Sprintf("%T", m)
}

// A word is a rank's message, or its loss, or a time that passes.
type word struct {
	rank int
	m    message
	lost string
	wait time.Duration
}

// A coordinator answers at once, except that complaints settle.
func TestRoom(t *testing.T) {
	say := func(seq uint64, s string) *part { return &part{Seq: seq, Data: []byte(s)} }
	tests := []struct {
		name  string
		words []word
		want  []string
	}{
		{"a gather", []word{{rank: 2, m: say(0, "c")}, {rank: 0, m: say(0, "a")}, {rank: 0, m: say(1, "d")},
			{rank: 1, m: say(0, "b")}},
			[]string{"[0 1 2]: gathered 0: [a b c]"}},
		{"a death", []word{{rank: 1, lost: "gone"}, {rank: 0, lost: "gone too"}},
			[]string{"[0 2]: rank 1 died: gone"}},
		{"a complaint settles", []word{{rank: 1, m: &fail{Reason: "no disk"}}, {wait: settle - 1}}, nil},
		{"and is told", []word{{rank: 1, m: &fail{Reason: "no disk"}}, {wait: settle}},
			[]string{"[0 2]: rank 1 failed: no disk"}},
		{"a goodbye waits for the complaint", []word{{rank: 1, m: &fail{Reason: "no disk"}}, {rank: 1, m: &leave{}},
			{wait: settle - 1}}, nil},
		{"and follows it", []word{{rank: 1, m: &fail{Reason: "no disk"}}, {rank: 1, m: &leave{}}, {wait: settle}},
			[]string{"[0 2]: rank 1 failed: no disk", "[0 2]: rank 1 left at 0", "[1]: bye"}},
		{"a death ends the settling at once", []word{{rank: 1, m: &fail{Reason: "reset"}}, {rank: 1, m: &leave{}},
			{rank: 2, lost: "gone"}},
			[]string{"[0 1]: rank 2 died: gone", "[0]: rank 1 left at 0", "[1]: bye"}},
		{"the complainer's own end is no death",
			[]word{{rank: 1, m: &fail{Reason: "no disk"}}, {rank: 1, lost: "gone"}, {wait: settle}},
			[]string{"[0 2]: rank 1 failed: no disk"}},
		{"after a goodbye nothing is lost", []word{{rank: 1, m: &leave{}}, {rank: 1, lost: "gone"}},
			[]string{"[0 2]: rank 1 left at 0", "[1]: bye"}},
		{"a gather is given up", []word{{rank: 0, m: say(0, "a")}, {rank: 0, m: &withdraw{0, "late"}},
			{rank: 0, m: &withdraw{0, "again"}}, {rank: 1, m: say(0, "b")}, {rank: 2, m: say(0, "c")}},
			[]string{"[0 1 2]: withdrawn 0: rank 0 without [1 2]: late"}},
		{"one that has completed is not", []word{{rank: 0, m: say(0, "a")}, {rank: 1, m: say(0, "b")},
			{rank: 2, m: say(0, "c")}, {rank: 0, m: &withdraw{0, "late"}}},
			[]string{"[0 1 2]: gathered 0: [a b c]"}},
		{"giving up in place of coming", []word{{rank: 0, m: &withdraw{0, "late"}}, {rank: 0, m: say(1, "a")},
			{rank: 1, m: say(0, "")}, {rank: 1, m: say(1, "b")}, {rank: 2, m: say(0, "")}, {rank: 2, m: say(1, "c")}},
			[]string{"[0 1 2]: withdrawn 0: rank 0 without [1 2]: late", "[0 1 2]: gathered 1: [a b c]"}},
		{"to leave is to give up", []word{{rank: 0, m: say(0, "a")}, {rank: 0, m: &leave{}}},
			[]string{"[0 1 2]: withdrawn 0: rank 0 without [1 2]: it left the group", "[1 2]: rank 0 left at 1", "[0]: bye"}},
		{"who has not come gives nothing up", []word{{rank: 1, m: say(0, "b")}, {rank: 0, m: &leave{}}},
			[]string{"[1 2]: rank 0 left at 0", "[0]: bye"}},
		{"a failure gives up all", []word{{rank: 0, m: say(0, "a")}, {rank: 0, m: &fail{Reason: "no disk"}}, {wait: settle},
			{rank: 0, m: say(1, "a")}},
			[]string{"[1 2]: rank 0 failed: no disk", "[0 1 2]: withdrawn 0: rank 0 without [1 2]: rank 0 failed: no disk",
				"[0 1 2]: withdrawn 1: rank 0 without [1 2]: rank 0 failed: no disk"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, said := recorded(3)
				for _, w := range tt.words {
					switch {
					case w.m != nil:
						require.True(t, r.hear(w.rank, w.m))
					case w.lost != "":
						r.lost(w.rank, w.lost)
					}
					time.Sleep(w.wait)
					synctest.Wait()
				}
				require.Equal(t, tt.want, said())
				r.waitSettled()
			})
		})
	}
}

// A message that a rank must not send ends its connection.
func TestRoomRefuses(t *testing.T) {
	r, _ := recorded(2)
	for _, m := range []message{&part{Seq: 1}, &withdraw{Seq: 1}, &gathered{}, &where{}, &bye{}, &start{}} {
		require.False(t, r.hear(0, m), "%T", m)
	}
	require.True(t, r.hear(0, &giveUp{}), "it may cross with the start")
	require.True(t, r.hear(0, &leave{}))
	require.False(t, r.hear(0, &part{}), "after its goodbye")
}
