package simt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// What nobody wrote may be moved, and a finding is what it decides. Of the second word of z, of which nothing else is
// written, %r1 has the bits. Results go to the third word, as those of padding would.
func TestUnwrittenBits(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"unused", "", ""},
		{"moved", "mov.b32 %r2, %r1; st.shared.u32 [z+8], %r2;", ""},
		{"added", "add.u32 %r2, %r1, 0; st.shared.u32 [z+8], %r2;", "a result of it is stored in line"},
		{"added and dropped", "add.u32 %r2, %r1, 7; selp.u32 %r2, %r2, 3, %p0; st.shared.u32 [z+8], %r2;", ""},
		{"branch", "setp.eq.u32 %p1, %r1, 0; @%p1 bra E; E:", "it decides a branch in line"},
		{"predicate", "setp.eq.u32 %p1, %r1, 0; @%p1 mov.u32 %r2, 1;", "it decides a branch in line"},
		{"predicate that does not matter", "setp.eq.u32 %p1, %r1, 0; and.pred %p1, %p1, %p0; @%p1 bra E; E:", ""},
		{"address", "and.b32 %r2, %r1, 4; ld.shared.u32 %r2, [%r2];", "it is an address in line"},
		{"masked", "and.b32 %r2, %r1, 0; add.u32 %r2, %r2, 1; st.shared.u32 [z+8], %r2;", ""},
		{"all ones", "or.b32 %r2, %r1, 0xffffffff; add.u32 %r2, %r2, 1; st.shared.u32 [z+8], %r2;", ""},
		{"lop3 that ignores it", "lop3.b32 %r2, 5, 6, %r1, 0x3c; add.u32 %r2, %r2, 1; st.shared.u32 [z+8], %r2;", ""},
		{"lop3", "lop3.b32 %r2, 5, 6, %r1, 0x96; add.u32 %r2, %r2, 1; st.shared.u32 [z+8], %r2;", "a result of it is stored"},
		{"shifted out", "shl.b32 %r2, %r1, 16; shl.b32 %r2, %r2, 16; add.u32 %r2, %r2, 1; st.shared.u32 [z+8], %r2;", ""},
		{"other bytes", "prmt.b32 %r2, %r1, 9, 0x7644; add.u32 %r2, %r2, 1; st.shared.u32 [z+8], %r2;", ""},
		{"its byte", "prmt.b32 %r2, %r1, 9, 0x7634; add.u32 %r2, %r2, 1; st.shared.u32 [z+8], %r2;", "a result of it is stored"},
		{"field of others", "bfi.b32 %r2, 3, %r1, 0, 32; add.u32 %r2, %r2, 1; st.shared.u32 [z+8], %r2;", ""},
		{"shifted by it", "shl.b32 %r2, 1, %r1; st.shared.u32 [z+8], %r2;", "a result of it is stored"},
		{"atomic operation", "atom.shared.add.u32 %r2, [z], %r1;", "it is an operand in line"},
		{"vote", "setp.eq.u32 %p1, %r1, 0; vote.sync.any.pred %p1, %p1, 1;", "it is an operand in line"},
		{"shuffled", "shfl.sync.idx.b32 %r2, %r1, 0, 31, 1; add.u32 %r2, %r2, 1; st.shared.u32 [z+8], %r2;",
			"a result of it is stored"},
		{"which thread", "shfl.sync.idx.b32 %r2, %r0, %r1, 31, 1;", "it decides which thread's value is taken"},
		{"through local memory", `.local .align 4 .b8 l[8]; st.local.u32 [l+4], %r1; ld.local.u32 %r2, [l+4];
			setp.eq.u32 %p1, %r2, 0; @%p1 bra E; E:`, "it decides a branch"},
		{"written in local memory", `.local .align 4 .b8 l[8]; st.local.u32 [l+4], %r1; st.local.u32 [l+4], 1;
			ld.local.u32 %r2, [l+4]; setp.eq.u32 %p1, %r2, 0; @%p1 bra E; E:`, ""},
		{"through shared memory", `st.shared.u32 [z+8], %r1; ld.shared.u32 %r2, [z+8]; setp.eq.u32 %p1, %r2, 0;
			@%p1 bra E; E:`, "it decides a branch"},
		{"the written half of a pair", "mov.b32 %r2, 5; st.shared.u16 [z+4], 5; ld.shared.u32 %r2, [z+4]; " +
			"add.f16x2 %r2, %r2, %r2; and.b32 %r2, %r2, 0xffff; add.u32 %r2, %r2, 1; st.shared.u32 [z+8], %r2;", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := ".shared .align 4 .b8 z[64]; st.shared.u32 [z], 1; setp.ne.u32 %p0, 0, 0; ld.shared.u32 %r1, [z+4]; " + c.body
			m := boot(t, hand(text), options{})
			g := m.grid("k", 1, 1, m.words(1), 5)
			m.start(g)
			if c.want == "" {
				require.Nil(t, g.Fault())
				return
			}
			require.NotNil(t, g.Fault())
			require.Equal(t, weakmem.Uninitialized, g.Fault().Kind)
			require.Contains(t, g.Fault().Detail, "nothing wrote it since it was allocated; "+c.want)
		})
	}
}

// To store in global memory what lies among 32 unwritten bytes is a finding, as no padding is so large.
func TestUnwrittenCopy(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		kind bool
	}{
		"padding": {"st.shared.u32 [z+8], 1; st.shared.u32 [z+40], 1; ld.shared.u32 %r1, [z+16]; st.global.u32 [%rd0], %r1;", false},
		"more":    {"st.shared.u32 [z+8], 1; st.shared.u32 [z+48], 1; ld.shared.u32 %r1, [z+16]; st.global.u32 [%rd0], %r1;", true},
		"all":     {".shared .align 4 .b8 y[4]; ld.shared.u32 %r1, [y]; st.global.u32 [%rd0], %r1;", true},
		"shared":  {"ld.shared.u32 %r1, [z+16]; st.shared.u32 [z], %r1;", false},
	} {
		t.Run(name, func(t *testing.T) {
			m := boot(t, hand(".shared .align 4 .b8 z[64]; "+c.body), options{})
			g := m.grid("k", 1, 1, m.words(1), 5)
			m.start(g)
			require.Equal(t, c.kind, g.Fault() != nil, "%v", g.Fault())
		})
	}
}
