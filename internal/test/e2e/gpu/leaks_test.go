package ringo

import (
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/gpu"
)

// lifetimes is how many graphs and communicators a test makes: RINGO_TEST_LIFETIMES, for a
// long run.
func lifetimes(t *testing.T) int {
	s := os.Getenv("RINGO_TEST_LIFETIMES")
	if s == "" {
		return 10
	}
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}

// same checks that after many times f the process has in use what it had after ten times.
func same(t *testing.T, list []*gpu.Device, f func(i int)) {
	if runtime.GOOS != "linux" {
		t.Skip("descriptors are counted in /proc")
	}
	for i := range 10 {
		f(i)
	}
	var before footprint
	for last := (footprint{}); ; last = before { // until it has settled
		before = settled(t, list, func(f footprint) bool { return f.String() == last.String() })
		if before.String() == last.String() {
			break
		}
	}
	for i := range lifetimes(t) {
		f(10 + i)
	}
	after := settled(t, list, func(f footprint) bool { return f.String() == before.String() })
	require.Equal(t, before, after)
}

// Nothing is left of graphs.
func TestGraphsLeaveNothing(t *testing.T) {
	for _, w := range []way{{name: "direct"}, {name: "ring", cfg: Config{Algo: "ring"}}, {name: "copies", cfg: Config{Algo: "copies"}, registered: true}} {
		t.Run(w.name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			all := w.doublers(t)
			list, streams := []*gpu.Device{all[0].d, all[1].d}, []gpu.Stream{all[0].stream(), all[1].stream()}
			counts := []int{laneCount / 2, laneCount / 2}
			same(t, list, func(i int) {
				for i, l := range all {
					s := streams[i]
					x := l.graph(s, func() {
						l.double(s)
						require.NoError(t, l.c.Do(&Call{Kind: KindAlltoAllv, In: l.x, Out: l.x, InCounts: counts, OutCounts: counts, Type: Uint8, Stream: s}))
					})
					l.launch(x, s)
					l.destroy(x)
				}
				for i, l := range all {
					require.NoError(t, l.c.Synchronize(streams[i]))
				}
			})
			require.Eventually(t, func() bool { return all[0].c.gpu.Held()+all[1].c.gpu.Held() == 0 }, 10*time.Second, time.Millisecond)
		})
	}
}

// Nothing is left of communicators, whether their graphs are destroyed before Close or after.
func TestCommunicatorsLeaveNothing(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	list := devices(t, 2)
	same(t, list, func(i int) {
		t.Run("", func(t *testing.T) {
			all := way{cfg: Config{Algo: []string{"", "ring"}[i%2]}}.on(t, list)
			_, graphs := held(t, all)
			require.Equal(t, 1, all[0].c.gpu.Held())
			for r, l := range all {
				if i%3 == 0 {
					l.destroy(graphs[r])
				}
			}
			closeAll(t, all)
			for r, l := range all {
				if i%3 > 0 {
					l.destroy(graphs[r])
				}
			}
		})
	})
}
