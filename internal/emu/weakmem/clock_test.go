package weakmem

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// vectors draws a vector of a few agents, made as the package makes them.
func vectors(t *rapid.T, name string) *vector {
	ended := rapid.SliceOfNDistinct(rapid.Uint32Range(1, 12), 0, 5, rapid.ID).Draw(t, name+" ended")
	v := endedVector(ended)
	for range rapid.IntRange(0, 6).Draw(t, name+" entries") {
		part := rapid.SampledFrom([]int{wholeBlock, firstWarp, firstWarp + 1, firstLane, firstLane + 1, firstLane +
			33}).Draw(t, "part")
		e := entry{key(rapid.Uint32Range(1, 12).Draw(t, "agent"), part), rapid.Uint32Range(1, 3).Draw(t, "until")}
		v = join(v, &vector{live: []entry{e}})
	}
	return v
}

// accesses are all that the vectors can tell apart.
func accesses(f func(r *record, lane int)) {
	for agent := uint32(0); agent <= 13; agent++ {
		for _, at := range []struct{ warp, lane int }{{0, 0}, {0, 1}, {0, 2}, {1, 1}, {0, -1}, {1, -1}} {
			for epoch := range uint32(4) {
				for time := range uint32(4) {
					f(&record{by: &origin{agent: agent}, warp: uint8(at.warp), epoch: epoch, time: time}, at.lane)
				}
			}
		}
	}
}

// A join covers what either covers, and no more.
func TestJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := vectors(t, "a"), vectors(t, "b")
		ab, ba := join(a, b), join(b, a)
		accesses(func(r *record, lane int) {
			want := a.covers(r, lane) || b.covers(r, lane)
			require.Equal(t, want, ab.covers(r, lane), "%+v %d", r, lane)
			require.Equal(t, want, ba.covers(r, lane), "%+v %d", r, lane)
		})
		require.Same(t, ab, join(ab, a))
		require.Same(t, ab, join(a, ab))
		require.Same(t, ab, join(ab, nil))
		require.Same(t, ab, join(nil, ab))
		agent := rapid.Uint32Range(1, 12).Draw(t, "less")
		less := ab.without(agent)
		accesses(func(r *record, lane int) {
			if r.by.agent != agent {
				require.Equal(t, ab.covers(r, lane), less.covers(r, lane))
			} else {
				require.Equal(t, ab.hasEnded(agent), less.covers(r, lane))
			}
		})
	})
}

func TestEndedAgentsAreRanges(t *testing.T) {
	var c Clock
	for i := uint32(1); i <= 1000; i++ {
		c = Join(c, Clock{endedVector([]uint32{i})})
	}
	require.Equal(t, []agents{{1, 1001}}, c.v.ended)
}
