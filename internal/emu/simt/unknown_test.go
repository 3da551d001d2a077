package simt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// TestUnknown: what a shuffle gives for a thread that does not take part must not be stored, nor be an address; threads
// that nobody asks may compute with it.
func TestUnknown(t *testing.T) {
	const (
		few  = "setp.lt.u32 %p1, %r0, 20; @!%p1 exit; "
		half = "setp.lt.u32 %p1, %r0, 16; @!%p1 exit; "
		down = "shfl.sync.down.b32 %r1, %r0, 1, 31, 0xfffff; "
		use  = "st.global.u32 [%rd1], %r1; "
	)
	sum := ""
	for _, o := range []string{"8", "4", "2", "1"} {
		sum += "shfl.sync.down.b32 %r2, %r1, " + o + ", 31, 0xffff; setp.gt.u32 %p2, %r2, %r1; " +
			"selp.b32 %r3, %r2, %r1, %p2; add.u32 %r1, %r1, %r2; "
	}
	for _, c := range []struct {
		name, body string
		fault      bool
	}{
		{"all", "shfl.sync.down.b32 %r1, %r0, 1, 31, 0xffffffff; " + use, false},
		{"ended", few + down + use, true},
		{"not in the mask", "setp.lt.u32 %p1, %r0, 16; @!%p1 bra A; shfl.sync.idx.b32 %r1, %r0, 20, 31, 0xffff; " +
			use + "A: ", true},
		{"never was", few + "shfl.sync.down.b32 %r1, %r0, 1, 31, 0xffffffff; " + use, true},
		{"with a predicate", few + "shfl.sync.down.b32 %r1|%p2, %r0, 1, 31, 0xfffff; " + use, true},
		{"only of those that know", few + down + "setp.lt.u32 %p2, %r0, 19; @%p2 " + use, false},
		{"computed with", few + down + "add.u32 %r1, %r1, 1; mov.b32 %r1, %r1; " + use, false},
		{"moved", few + down + "mov.b32 %r1, %r1; " + use, true},
		{"overwritten", few + down + "mov.u32 %r1, 1; " + use, false},
		{"chosen", few + down + "setp.lt.u32 %p2, %r0, 19; selp.b32 %r1, %r1, 7, %p2; " + use, false},
		{"address", few + down + "cvt.u64.u32 %rd1, %r1; st.global.u32 [%rd1], %r0;", true},
		{"address of a load", few + down + "cvt.u64.u32 %rd1, %r1; ld.global.u32 %r1, [%rd1];", true},
		{"added to memory", few + down + "red.global.add.u32 [%rd0], %r1;", true},
		{"a predicate", few + down + "setp.eq.u32 %p2, %r1, 3; @%p2 st.global.u32 [%rd1], %r0;", false}, // it is 0
		{"shuffled on", few + down + "shfl.sync.up.b32 %r1, %r1, 1, 0, 0xfffff; " + use, false},
		{"shuffled on to others", few + down + "shfl.sync.idx.b32 %r1, %r1, 19, 31, 0xfffff; " + use, true},
		{"voted about", few + down + "setp.eq.u32 %p2, %r1, 3; vote.sync.ballot.b32 %r1, %p2, 0xfffff; " + use, false},
		{"sum of half a warp", half + "mov.u32 %r1, %r0; " + sum + "setp.eq.u32 %p2, %r0, 0; @%p2 " + use, false},
		{"sum of half a warp, stored by all", half + "mov.u32 %r1, %r0; " + sum + use, false},
		{"sum by exchange", half + "shfl.sync.bfly.b32 %r1, %r0, 8, 31, 0xffff; " + use, false},
		{"at two instructions", few + "and.b32 %r2, %r0, 1; setp.eq.u32 %p2, %r2, 0; @%p2 bra A; " + down +
			"bra B; A: " + down + "B: " + use, true},
		{"at two instructions, known", few + "and.b32 %r2, %r0, 1; setp.eq.u32 %p2, %r2, 0; @%p2 bra A; " + down +
			"bra B; A: " + down + "B: setp.lt.u32 %p2, %r0, 19; @%p2 " + use, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(4) {
				m := boot(t, hand(c.body), options{seed: seed})
				g := m.grid("k", 1, 32, m.words(make([]uint32, 32)...), 5)
				m.start(g)
				f := g.Fault()
				if !c.fault {
					require.Nil(t, f)
					continue
				}
				require.NotNil(t, f)
				require.Equal(t, weakmem.BadInstruction, f.Kind, "%v", f)
				require.Contains(t, f.Detail, "uses a value that PTX leaves open")
				require.Positive(t, f.Other.Line)
			}
		})
	}
}
