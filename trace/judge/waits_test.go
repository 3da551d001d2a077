package judge_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/trace/judge"
)

// idle, in and msg are States of ranks that have been heard.
func idle(last uint64) judge.State { return judge.State{Heard: true, Last: last, Peer: -1} }

func in(n uint64, peer, step int) judge.State {
	return judge.State{Heard: true, Last: n, At: n, Peer: peer, Step: step}
}

// unsure is the State of an idle rank that may have ended any number of collectives.
func unsure() judge.State { return judge.State{Heard: true, Unsure: true, Peer: -1} }

func msg(peer int, sending bool) judge.State {
	return judge.State{Heard: true, Last: 3, Peer: peer, Sending: sending}
}

func TestBlame(t *testing.T) {
	for _, tt := range []struct {
		name     string
		states   []judge.State
		reason   judge.Reason
		culprits []int
	}{
		{"nobody waits", []judge.State{idle(1), idle(1)}, judge.Unknown, nil},
		{"one is late", []judge.State{in(7, 3, 0), in(7, 0, 0), idle(6), in(7, 2, 0)}, judge.Absent, []int{2}},
		{"two are late", []judge.State{in(7, 3, 0), idle(2), idle(6), in(7, 2, 0)}, judge.Absent, []int{1, 2}},
		{"one is silent", []judge.State{in(7, 3, 0), in(7, 0, 0), {}, in(7, 2, 0)}, judge.Silent, []int{2}},
		{"one is late for an earlier one", []judge.State{in(7, 2, 0), in(8, 0, 0), idle(6)}, judge.Absent, []int{2}},
		{"a message that nobody sends", []judge.State{msg(2, false), idle(3), idle(3)}, judge.Absent, []int{2}},
		{"a chain of messages", []judge.State{msg(2, false), idle(3), msg(1, false)}, judge.Absent, []int{1}},
		{"late, for it waits for a message", []judge.State{in(7, 1, 0), msg(2, false), idle(7)}, judge.Absent, []int{2}},
		{"late, for it waits for a message of one that waits for it", []judge.State{in(7, 1, 0), msg(2, false), in(7,
			1, 0)},
			judge.Absent, []int{1}},
		{"one in a collective, one in a message", []judge.State{in(7, 1, 0), msg(0, false)}, judge.Circle, []int{0, 1}},
		{"both receive", []judge.State{msg(1, false), msg(0, false), idle(3)}, judge.Circle, []int{0, 1}},
		{"one sends what the other receives", []judge.State{msg(1, true), msg(0, false), idle(3)}, judge.Link,
			[]int{0, 1}},
		{"a slow link of a ring", []judge.State{in(7, 3, 4), in(7, 0, 5), in(7, 1, 6), in(7, 2, 3)}, judge.Link,
			[]int{2, 3}},
		{"its sender has passed", []judge.State{in(7, 3, 4), in(7, 0, 5), idle(7), in(7, 2, 3)}, judge.Link, []int{2, 3}},
		{"its sender has gone on", []judge.State{in(7, 3, 4), in(7, 0, 5), in(8, 1, 0), in(7, 2, 3)}, judge.Link,
			[]int{2, 3}},
		{"one may be late", []judge.State{in(7, 2, 0), in(7, 0, 0), unsure(), in(7, 2, 0)}, judge.Absent, []int{2}},
		{"one may be late, and one is", []judge.State{in(7, 2, 0), idle(6), unsure(), in(7, 2, 0)}, judge.Absent,
			[]int{1}},
		{"one may be late, and nobody says for whom", []judge.State{in(7, -1, 0), unsure(), in(7, -1, 0)},
			judge.Absent, []int{1}},
		{"a slow link, and one that has ended", []judge.State{in(7, 3, 4), in(7, 0, 5), unsure(), in(7, 0, 3)},
			judge.Link, []int{0, 3}},
		{"nobody says for whom", []judge.State{in(7, -1, 0), in(7, -1, 0)}, judge.Unknown, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for r := range tt.states {
				tt.states[r].Rank = r
			}
			v := judge.Waits(tt.states)
			require.Equal(t, tt.reason, v.Reason, "%+v", v)
			require.Equal(t, tt.culprits, v.Culprits)
		})
	}
}

// The way of follow may lead through all ranks: that takes a moment.
func TestBlameMany(t *testing.T) {
	states := make([]judge.State, 1<<16)
	for r := range states {
		states[r] = in(7, (r+1)%len(states), len(states)-r)
	}
	began := time.Now()
	v := judge.Waits(states)
	require.Less(t, time.Since(began), 5*time.Second, "real time: from each rank anew it would be 2 billion steps")
	require.Equal(t, judge.Link, v.Reason)
	require.Equal(t, []int{0, len(states) - 1}, v.Culprits)
}

// Whatever ranks say, the verdict names ranks that there are, each once.
func FuzzBlame(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, b []byte) {
		var states []judge.State
		for ; len(b) >= 4; b = b[4:] {
			s := judge.State{Rank: len(states), Heard: b[0]&1 == 0 ||
				b[0]&16 != 0, Last: uint64(b[1] % 8), Sending: b[0]&2 != 0, Step: int(b[0] >> 5), Peer: int(b[2]%16) - 1}
			if b[0]&4 != 0 {
				s.At = uint64(b[3] % 8)
			}
			states = append(states, s)
		}
		v := judge.Waits(states)
		for i, c := range v.Culprits {
			if c < 0 || c >= len(states) || i > 0 && v.Culprits[i-1] >= c {
				t.Errorf("%+v of %+v", v, states)
			}
		}
		if v.Reason == judge.Link && len(v.Culprits) != 2 {
			t.Errorf("%+v of %+v", v, states)
		}
	})
}
