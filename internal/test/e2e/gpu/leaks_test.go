package gpu

import (
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// lifetimes is how many graphs and communicators a test makes: RINGO_TEST_LIFETIMES, for a
// long run.
func lifetimes(t *testing.T) int {
	s := os.Getenv("RINGO_TEST_LIFETIMES")
	if s == "" {
		return tier.Count(5, 10)
	}
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}

// same checks that after many times f the process has in use what it had after a few times.
func same(t *testing.T, list []*gpu.Device, f func(i int)) {
	if runtime.GOOS != "linux" {
		t.Skip("descriptors are counted in /proc")
	}
	few := tier.Count(6, 10)
	for i := range few {
		f(i)
	}
	last, since := "", time.Now()
	before := settled(t, list, func(f footprint) bool { // the same for a while
		if f.String() != last {
			last, since = f.String(), time.Now()
		}
		return time.Since(since) > time.Duration(tier.Count(500, 2000))*time.Millisecond
	})
	for i := range lifetimes(t) {
		f(few + i)
	}
	after := settled(t, list, func(f footprint) bool { return f.String() == before.String() })
	require.Equal(t, before, after)
}

// Nothing is left of graphs.
func TestGraphsLeaveNothing(t *testing.T) {
	tier.Long(t)
	for _, w := range tier.Some(2, []way{{name: "direct"}, {name: "ring", cfg: ringo.Config{Algo: "ring"}},
		{name: "copies", cfg: ringo.Config{Algo: "copies"}, registered: true}}) {
		t.Run(w.name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			all := w.on(t, gputest.GPUs(t, 2, gputest.Unchecked(2)))
			list, streams := []*gpu.Device{all[0].d, all[1].d}, []gpu.Stream{all[0].stream(), all[1].stream()}
			counts := []int{laneCount / 2, laneCount / 2}
			same(t, list, func(i int) {
				for i, l := range all {
					s := streams[i]
					x := l.graph(s, func() {
						l.double(s)
						require.NoError(t, l.c.Do(&ringo.Call{Kind: ringo.KindAlltoAllv, In: l.x, Out: l.x, InCounts: counts,
							OutCounts: counts, Type: ringo.Uint8, Stream: s}))
					})
					l.launch(x, s)
					l.destroy(x)
				}
				for i, l := range all {
					require.NoError(t, l.c.Synchronize(streams[i]))
				}
			})
		})
	}
}

// Nothing is left of communicators, whether their graphs are destroyed before Close or after.
func TestCommunicatorsLeaveNothing(t *testing.T) {
	tier.Long(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	list := gputest.GPUs(t, 2, gputest.Unchecked(2))
	same(t, list, func(i int) {
		t.Run("", func(t *testing.T) {
			all := way{cfg: ringo.Config{Algo: []string{"", "ring"}[i%2]}}.on(t, list)
			_, graphs := held(t, all)
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
