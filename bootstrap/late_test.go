package bootstrap

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/trace/judge"
)

// stopped is a rank that was stopped in its last collective, and waited for another.
func stopped(calls string, peer int) *late {
	p := at(1, calls)
	p.Stop = Stopped{Last: uint64(len(calls)), At: uint64(len(calls)), Peer: peer, Waited: 5 * time.Second,
		Still: 5 * time.Second}
	return &late{p}
}

// moved is stopped, of a rank whose data have moved since; with 0 the rank has no clock.
func moved(since time.Duration, peer int) *late {
	m := stopped("b", peer)
	if m.Stop.Still = since; since == 0 {
		m.Stop.Waited = 0
	}
	return m
}

// outside is a rank that was in no call.
func outside(calls string) *late {
	p := at(1, calls)
	p.Stop = Stopped{Last: uint64(len(calls)), Peer: -1}
	return &late{p}
}

// A rank runs out of time: all stop and tell where they were, and all hear which ranks are to blame.
func TestTrial(t *testing.T) {
	for _, tt := range []struct {
		name     string
		words    []word
		after    time.Duration
		reason   judge.Reason
		culprits []int
		waiting  []int
	}{
		{"one never came", []word{{rank: 0, m: stopped("aab", 1)}, {rank: 2, m: outside("aa")},
			{rank: 1, m: stopped("aab", 2)}},
			0, judge.Absent, []int{2}, []int{0, 1}},
		{"one answers nothing", []word{{rank: 1, m: stopped("aab", 2)}, {rank: 0, m: stopped("aab", 1)}},
			TrialTime, judge.Silent, []int{2}, []int{0, 1}},
		{"one dies meanwhile, which explains it",
			[]word{{rank: 1, m: stopped("aab", 2)}, {rank: 0, m: stopped("aab", 1)}, {rank: 2, lost: "killed"}},
			0, 0, []int{2}, nil},
		{"one left before, after the call", []word{{rank: 2, m: &leave{known: known{true, at(1, "aab")}}},
			{rank: 1, m: stopped("aab", 0)}, {rank: 0, m: stopped("aab", 1)}},
			0, judge.Link, []int{0, 1}, []int{0, 1}},
		{"calls that differ", []word{{rank: 0, m: stopped("aab", 1)}, {rank: 2, m: stopped("aac", 0)},
			{rank: 1, m: stopped("aab", 2)}},
			settle, 0, []int{2}, nil},
		{"a link that has moved data", []word{{rank: 0, m: stopped("b", 1)}, {rank: 2, m: moved(2*time.Second, 0)},
			{rank: 1, m: moved(0, 2)}}, 0, judge.Slow, nil, []int{0, 1, 2}},
		{"a link that has not", []word{{rank: 0, m: stopped("b", 1)}, {rank: 2, m: moved(3*time.Second, 0)},
			{rank: 1, m: moved(0, 2)}}, 0, judge.Link, []int{0, 1}, []int{0, 1, 2}},
		{"a link", []word{{rank: 0, m: stopped("b", 2)}, {rank: 2, m: outside("b")}, {rank: 1, m: outside("b")}},
			0, judge.Link, []int{0, 2}, []int{0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var told []*Failure
				halts := 0
				r := newCoordinator(3, nil, func(to []int, m message) {
					mu.Lock()
					defer mu.Unlock()
					switch m := m.(type) {
					case *failed:
						told = append(told, &m.Failure)
					case *halt:
						halts += len(to)
					}
				})
				here := 3
				for _, w := range tt.words {
					if w.m == nil {
						r.lost(w.rank, w.lost)
						continue
					}
					if _, ok := w.m.(*leave); ok {
						here--
					}
					require.True(t, r.hear(w.rank, w.m))
				}
				count := func() int {
					synctest.Wait()
					mu.Lock()
					defer mu.Unlock()
					return len(told)
				}
				if tt.after > 0 {
					time.Sleep(tt.after - 1)
					require.Zero(t, count())
					time.Sleep(time.Nanosecond)
				}
				require.Equal(t, 1, count())
				require.Equal(t, here-1, halts, "once, all others")
				require.Equal(t, tt.culprits, told[0].Culprits)
				if tt.waiting != nil {
					l := told[0].Late
					require.Equal(t, tt.reason, l.Reason)
					require.Equal(t, tt.waiting, l.Waiting)
					require.Equal(t, 5*time.Second, l.Waited)
					require.Equal(t, byte('b'), l.Call.Call[0])
				}
				time.Sleep(2 * TrialTime)
				require.Equal(t, 1, count(), "one verdict")
			})
		})
	}
}

// The verdict is the same on all ranks, in every kind of group.
func TestLate(t *testing.T) {
	forKinds(t, 3, func(t *testing.T, groups []Group) {
		for r, g := range groups {
			g.OnHalt(func() {
				if r == 1 {
					g.Late(outside("a").Position)
				} else {
					g.Late(stopped("ab", 1).Position)
				}
			})
		}
		groups[0].Late(stopped("ab", 1).Position)
		want := awaitFailure(t, groups[0])
		require.Equal(t, []int{1}, want.Culprits)
		require.Equal(t, []int{0, 2}, want.Late.Waiting)
		require.EqualValues(t, 1, want.Late.Last.Number)
		for _, g := range groups[1:] {
			require.Equal(t, want, awaitFailure(t, g))
		}
	})
}

// A failed message without the culprits that its Lateness's text names, such as both ends of a link, is malformed.
func TestParseLateness(t *testing.T) {
	for _, bad := range []failed{
		{Failure{Rank: -1, Late: &Lateness{Reason: judge.Link}}},
		{Failure{Rank: -1, Culprits: []int{1}, Late: &Lateness{Reason: judge.Link}}},
		{Failure{Rank: -1, Late: &Lateness{Reason: judge.Absent}}},
		{Failure{Rank: -1, Late: &Lateness{Last: Called{Number: 1}}}},
		{Failure{Rank: -1, Culprits: []int{1}, Late: &Lateness{Reason: judge.Reasons}}},
	} {
		require.Error(t, new(failed).Parse(bad.Append(nil)), "%v", bad.Late.Reason)
	}
	good := failed{Failure{Rank: -1, Culprits: []int{1, 2}, Late: &Lateness{Reason: judge.Link}}}
	require.NoError(t, new(failed).Parse(good.Append(nil)))
}
