package weakmem

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An old value may be seen after many strong stores to other memory, until the past has forgotten it, and a thread
// does not go back to a value that is older than what it has seen.
func TestOldValueAfterManyStores(t *testing.T) {
	for _, c := range []struct {
		stores int
		shows  bool
	}{{10, true}, {2000, true}, {pastKept, false}} {
		seen := 0
		for seed := range uint64(20) {
			m := litmusMemory(seed, true, new(int))
			require.NoError(t, m.Map(Allocation{Addr: 0x100000, Data: make([]byte, 1<<16), Name: "others"}))
			g := m.Begin(0, "k", Clock{})
			w, r := &thread{on: g.Block([3]int{}, [3]int{32, 1, 1}, 0)}, &thread{on: g.Block([3]int{1}, [3]int{32, 1, 1}, 0)}
			st(x, 1, Release, GPU)(w)
			for i := range c.stores {
				st(0x100000+uint64(i)*8%(1<<16), uint64(i), Release, GPU)(w)
			}
			last := uint64(0)
			for range 4 {
				ld(0, x, Relaxed, GPU)(r)
				require.GreaterOrEqual(t, r.r[0], last)
				last = r.r[0]
				seen += b2i(last == 0)
			}
		}
		require.Equal(t, c.shows, seen > 0, "after %d stores", c.stores)
	}
}

// The value of bytes at a time is the same whether one looks at the words' overwrites or at all.
func TestRollBack(t *testing.T) {
	m := litmusMemory(1, true, new(int))
	s, _ := m.Find(x)
	by := &origin{grid: m.Begin(0, "k", Clock{})}
	var states [][]byte
	for range 3 * pastFirst {
		states = append(states, append([]byte{}, s.Data...))
		off, n := m.rand()%31*8, uint64(1)<<(m.rand()>>8%4)
		off += m.rand() >> 16 % (8 / n) * n
		m.remember(s, off, n, by, seenBy{})
		for i := range n {
			s.Data[off+i] = byte(m.rand())
		}
	}
	for at, want := range states {
		from, n := m.rand()%200, 1+m.rand()%56
		p := append([]byte{}, s.Data[from:from+n]...)
		m.rollBack(p, x+from, uint64(at))
		require.Equal(t, want[from:from+n], p)
	}
}
