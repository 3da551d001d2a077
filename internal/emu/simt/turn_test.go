package simt_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/simt"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// The turns that a run took make the same run again.
func TestFollow(t *testing.T) {
	for seed := range uint64(5) {
		run := func(follow []simt.Turn) (turns []simt.Turn, trace []string, words []uint32) {
			m := boot(t, "order.ptx", options{seed: seed})
			c := m.config
			c.Follow = follow
			c.Took = func(t simt.Turn) { turns = append(turns, t) }
			c.Trace = func(e simt.Event) {
				trace = append(trace, fmt.Sprint(e.Block, e.Warp, e.Mask, e.In.Line))
			}
			m.world = simt.NewWorld(c)
			lock, count := m.words(0), m.words(0)
			m.run(m.grid("locked", 2, 34, lock, count))
			require.Equal(t, follow != nil, follow != nil && m.world.Followed())
			return turns, trace, m.read(count, 1)
		}
		turns, trace, words := run(nil)
		require.Equal(t, []uint32{68}, words)
		again, sameTrace, _ := run(turns)
		require.Equal(t, turns, again)
		require.Equal(t, trace, sameTrace)

		// After some of them, and after none, warps run in rotation, and all end.
		for _, n := range []int{0, 1, len(turns) / 2} {
			_, _, words := run(turns[:n:n])
			require.Equal(t, []uint32{68}, words)
		}
		// Turns of warps that there are not are passed over.
		_, _, words = run([]simt.Turn{{Device: 3}, {Launch: 1, Instructions: 1}, {Block: [3]int{9}, Instructions: 1},
			{Warp: 9, Instructions: 1}})
		require.Equal(t, []uint32{68}, words)
	}
}

func TestHalt(t *testing.T) {
	m := boot(t, "order.ptx", options{})
	lock, count := m.words(1), m.words(0) // it is taken
	g := m.grid("locked", 2, 34, lock, count)
	require.NoError(t, m.world.Start(g))
	m.world.Step(10_000)
	require.False(t, g.Done())
	m.world.Halt("enough")
	require.True(t, g.Done())
	require.Equal(t, weakmem.Deadlock, g.Fault().Kind)
	require.Contains(t, g.Fault().Detail, "enough\n\tblock (0,0,0), thread ")
}
