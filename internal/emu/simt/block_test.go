package simt_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// sequence is 0, 1, 2 and so on, times k.
func sequence(n int, k uint32) []uint32 {
	v := make([]uint32, n)
	for i := range v {
		v[i] = uint32(i) * k
	}
	return v
}

// each runs a test under several seeds.
func each(t *testing.T, f func(t *testing.T, o options)) {
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { f(t, options{seed: seed}) })
	}
}

func TestReductions(t *testing.T) {
	for _, kernel := range []string{"sum", "tree"} {
		t.Run(kernel, func(t *testing.T) {
			each(t, func(t *testing.T, o options) {
				const blocks, threads = 11, 256
				r := run{file: "block.ptx", kernel: kernel, blocks: blocks, threads: threads, shared: 4 * threads,
					words: [][]uint32{sequence(blocks*threads, 3)}, unset: []int{blocks}}
				var want []uint32
				for b := range uint32(blocks) {
					want = append(want, 3*(b*threads*threads+threads*(threads-1)/2))
				}
				require.Equal(t, want, r.do(t, o)[1])
			})
		})
	}
}

func TestGenericPointers(t *testing.T) {
	each(t, func(t *testing.T, o options) {
		got := run{file: "block.ptx", kernel: "pointers", threads: 64, shared: 4 * 64,
			words: [][]uint32{sequence(64, 7)}}.do(t, o)[0]
		for i, v := range got {
			mine := []int{1, 2, 3, i}
			var want int
			switch i % 3 {
			case 0:
				mine[i%4] += 10
				want = mine[i%4]
			case 1:
				want = 110 + i
			case 2:
				want = 7*i + 10
			}
			require.EqualValues(t, want+mine[3], v, i)
		}
	})
}

func TestVariablesOfTheModule(t *testing.T) {
	m := boot(t, "block.ptx", options{})
	g := m.grid("variables", 3, 64)
	m.run(g)
	// The first variables of the module are mapped first; total is one of the two.
	sum := uint32(3 * 16 * 1111)
	var got []uint32
	for a := uint64(1 << 32); a < m.next; a++ {
		if s, ok := m.mem.Find(a); ok && s.Addr == a {
			got = append(got, m.read(a, 1)[0])
		}
	}
	require.Contains(t, got, sum)
}

func TestBarriers(t *testing.T) {
	all := func(v uint32) func(int) uint32 { return func(int) uint32 { return v } }
	for _, c := range []struct {
		name, body string
		want       func(i int) uint32
	}{
		{"threads that ended are not waited for", "setp.lt.u32 %p1, %r0, 40; @%p1 exit; bar.sync 0; mov.b32 %r2, 8;",
			func(i int) uint32 {
				if i < 40 {
					return uint32(i)
				}
				return 8
			}},
		{"popc", "setp.lt.u32 %p1, %r0, 40; bar.red.popc.u32 %r2, 1, %p1;", all(40)},
		{"and of a part", `setp.lt.u32 %p1, %r0, 64; mov.b32 %r2, 7; @!%p1 bra A; bar.red.and.pred %p2, 3, 64, %p1; selp.b32 %r2, 1, 0, %p2; A:`, func(i int) uint32 {
			if i < 64 {
				return 1
			}
			return 7
		}},
		{"or of some", "setp.eq.u32 %p1, %r0, 40; bar.red.or.pred %p2, 1, %p1; selp.b32 %r2, 1, 0, %p2;", all(1)},
		{"or of none", "setp.gt.u32 %p1, %r0, 999; bar.red.or.pred %p2, 1, %p1; selp.b32 %r2, 1, 0, %p2;", all(0)},
		{"arrive and sync", `setp.lt.u32 %p1, %r0, 32; mov.b32 %r2, 1; @%p1 bra A; bar.arrive 2, 96; bra B; A: bar.sync 2, 96; B:`, all(1)},
		{"not aligned", `and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 0; mov.b32 %r2, 1; @%p1 bra A; barrier.sync 0; bra B; A: barrier.sync 0; B:`, all(1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(4) {
				var want []uint32
				for i := range 96 {
					want = append(want, c.want(i))
				}
				require.Equal(t, want, result(t, options{seed: seed}, 96, c.body+"st.global.u32 [%rd1], %r2;"))
			}
		})
	}
}
