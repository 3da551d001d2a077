//go:build !race

package cudaemu_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// TestIdle burns no time when there is nothing to do, and little when everything
// waits. The race detector makes a kernel's looks ten times slower.
func TestIdle(t *testing.T) {
	e := start(t, cudaemu.Config{})
	share := func(d time.Duration) float64 { // of a core that this process burns
		burnt, began := processTime(t), time.Now()
		time.Sleep(d)
		return float64(processTime(t)-burnt) / float64(time.Since(began))
	}
	g := e.gate()
	launch(e, "await", 0, &waitArgs{address(g)})
	require.Eventually(t, e.Idle, tier.Patience, time.Millisecond)
	require.Less(t, share(200*time.Millisecond), 0.75, "a kernel polls")
	rounds, idle, moved := e.Activity()
	time.Sleep(200 * time.Millisecond)
	more, still, now := e.Activity()
	require.GreaterOrEqual(t, 2*(still-idle), more-rounds, "a kernel that polls is no activity")
	require.Equal(t, moved, now)
	g.Store(1)
	e.ok(e.CtxSynchronize())
	require.Less(t, share(100*time.Millisecond), 0.2, "nothing to do")
}

// While everything waits a round does more the more threads there are, so that each looks at host memory soon.
func TestIdleShares(t *testing.T) {
	e := start(t, cudaemu.Config{})
	g := e.gate()
	launchOf(e, ptxText, "await", 8, 512, 0, &waitArgs{address(g)})
	require.Eventually(t, e.Idle, tier.Patience, time.Millisecond)
	var rounds []uint64 // instructions; a caller sees whole rounds
	for last := e.Instructions(); len(rounds) < 150; time.Sleep(100 * time.Microsecond) {
		if now := e.Instructions(); now != last {
			rounds, last = append(rounds, now-last), now
		}
	}
	rounds = rounds[130:] // the first ones are short: a change may come soon
	slices.Sort(rounds)
	require.Greater(t, rounds[10], uint64(8*4096))
	g.Store(1)
	e.ok(e.CtxSynchronize())
}
