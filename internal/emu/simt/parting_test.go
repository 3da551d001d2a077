package simt_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// TestParting: an aligned barrier that a part of a warp goes past is a fault, under any order of the threads. Threads
// that have ended, and warps that go another way as a whole, do not count.
func TestParting(t *testing.T) {
	const (
		part  = "setp.lt.u32 %p1, %r0, 40; " // of 96 threads
		whole = "setp.lt.u32 %p1, %r0, 64; "
		use   = "ld.global.u32 %r3, [%rd1]; st.global.u32 [%rd1], %r3; "
		store = "st.global.u32 [%rd1], %r0; "
		past  = "a barrier that a part of the warp has not reached"
		apart = "st.relaxed.gpu.global.u32 [%rd1], %r0; st.relaxed.gpu.global.u32 [%rd1], %r0; " +
			"st.relaxed.gpu.global.u32 [%rd1], %r0; "
		loop = "add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 9; @%p2 bra L; "
	)
	for _, c := range []struct{ name, body, fault string }{
		{"one way", part + "@!%p1 bra A; bar.sync 0; A: " + use, past},
		{"one way of whole warps", whole + "@!%p1 bra A; bar.sync 0; A: " + use, ""},
		{"predicate", part + "@%p1 bar.sync 0; " + use, past},
		{"predicate of whole warps", whole + "@%p1 bar.sync 0; " + use, ""},
		{"reduction", part + "@!%p1 bra A; bar.red.popc.u32 %r1, 0, %p1; A: " + use, past},
		{"arrival", part + "@!%p1 bra A; bar.arrive 1, 96; A: " + use, past},
		{"arrival of threads that go ahead", whole + "@!%p1 bra A; " + apart + "bar.arrive 1, 96; bar.sync 2, 64; bra B; " +
			"A: bar.sync 1, 96; B: " + use, ""},
		{"not aligned", part + "@!%p1 bra A; barrier.sync 0; A: " + use, ""},
		{"aligned by word", part + "@!%p1 bra A; barrier.sync.aligned 0; A: " + use, past},
		{"ended", part + "@!%p1 exit; bar.sync 0; " + use, ""},
		{"ended by a branch", part + "@!%p1 bra A; bar.sync 0; " + use + "A: ret;", ""},
		{"ended after a store that is merged", part + "@!%p1 bra A; bar.sync 0; A: " + store, ""},
		{"ended after another place's store", part + "@!%p1 bra A; bar.sync 0; A:\n.loc 1 7 3\n" + store, past},
		{"ended after a store", part + "@%p1 bra A; " + use + "exit; A: bar.sync 0;", ""},
		{"another barrier behind", part + "@!%p1 bra A; bar.sync 0; A: bar.sync 0;", past},
		{"another barrier of another number", part + "@%p1 bra A; bar.sync 1, 32; A: bar.sync 0;", past},
		{"behind the branch", part + "@!%p1 bra A; " + use + "A: bar.sync 0; " + use, ""},
		{"as often as the thread's number", "mov.u32 %r1, %r0; L: bar.sync 0; add.u32 %r1, %r1, 4; " +
			"setp.lt.u32 %p1, %r1, 96; @%p1 bra L; " + use, past},
		{"behind a branch in a loop", "mov.u32 %r1, 0; L: and.b32 %r2, %r0, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra A; " + use +
			"A: bar.sync 0; " + loop + use, ""},
		{"in a branch in a loop", part + "mov.u32 %r1, 0; L: @!%p1 bra A; bar.sync 0; A: " + loop + use, past},
		{"in a branch of a branch in a loop", part + "mov.u32 %r1, 0; L: and.b32 %r2, %r1, 1; setp.eq.u32 %p3, %r2, 0; " +
			"@%p3 bra B; @!%p1 bra A; bar.sync 0; A: B: " + loop + use, past},
		{"in a branch of a branch in a loop, whole warps", whole + "mov.u32 %r1, 0; L: and.b32 %r2, %r1, 1; " +
			"setp.eq.u32 %p3, %r2, 0; @%p3 bra B; @!%p1 bra A; bar.sync 0; A: B: " + loop + use, ""},
		{"in a function", part + "@!%p1 bra A; call f; A: " + use, past},
		{"in a function, of whole warps", whole + "@!%p1 bra A; call f; A: " + use, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(hand(c.body), ".visible", ".func f() { bar.sync 0; ret; }\n.visible", 1)
			for seed := range uint64(8) {
				m := boot(t, text, options{seed: seed})
				g := m.grid("k", 1, 96, m.words(make([]uint32, 96)...), 5)
				m.start(g)
				f := g.Fault()
				if c.fault == "" {
					require.Nil(t, f)
					continue
				}
				require.NotNil(t, f)
				require.Equal(t, weakmem.BadInstruction, f.Kind, "%v", f)
				require.Contains(t, f.Detail, c.fault)
				if c.fault == past {
					require.Positive(t, f.Other.Line)
				}
			}
		})
	}
}
