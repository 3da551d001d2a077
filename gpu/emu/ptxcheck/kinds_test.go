package ptxcheck

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// kernel is the text of a kernel k(x, n) with registers.
func kernel(body string) []byte {
	return fmt.Appendf(nil, `.version 7.0
.target sm_70
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.global .align 4 .u32 lock[2];
.visible .entry k(.param .u64 x, .param .u32 n)
{
	.reg .pred %%p<4>;
	.reg .b32 %%r<8>;
	.reg .b64 %%a<8>;
	ld.param.u64 %%a0, [x];
	ld.param.u32 %%r0, [n];
	mov.u32 %%r1, %%tid.x;
	mov.u32 %%r2, %%ctaid.x;
	mad.wide.u32 %%a1, %%r1, 4, %%a0;
%s
	ret;
}
`, body)
}

func TestKinds(t *testing.T) {
	for _, c := range []struct {
		name, body   string
		launch       Launch
		sms          int
		kind, across string
		detail       string // of the report
		turns        int    // at most
	}{
		{"warp", "st.global.u32 [%a0], %r1;", Launch{Block: [3]int{2}}, 0, Race, "threads of a warp",
			"store of 4 bytes to x\n", 1},
		{"warps", "st.global.u32 [%a0], %r0;", Launch{Block: [3]int{33}}, 0, Race, "warps", "thread (32,0,0)", 2},
		{"blocks", "st.global.u32 [%a0], %r0;", Launch{Grid: [3]int{2}, Block: [3]int{1}}, 0, Race, "blocks", "both are weak",
			2},
		{"shared", "mov.u32 %r3, dynamic; st.shared.u32 [%r3], %r1;", Launch{Block: [3]int{64}, Shared: 16}, 0, Race, "warps",
			"to shared memory\n", 2},
		{"beyond", "st.global.u32 [%a1], %r0;", Launch{Block: [3]int{65}}, 0, BadAddress, "", "just after the end of x", 1},
		{"misaligned", "st.global.u32 [%a0+2], %r0;", Launch{Block: [3]int{1}}, 0, BadAddress, "",
			"must be a multiple of the size", 1},
		{"unwritten", "mov.u32 %r3, dynamic; ld.shared.u32 %r4, [%r3]; st.global.u32 [%a0], %r4;",
			Launch{Block: [3]int{1}, Shared: 16}, 0, Unwritten, "", "nothing wrote it", 1},
		{"barrier", "setp.eq.u32 %p0, %r1, 0; @%p0 bra a; bar.sync 0, 64; a: bar.sync 1;", Launch{Block: [3]int{64}}, 0,
			Divergence, "threads of a warp", "have gone past", 1},
		{"different barriers", "setp.eq.u32 %p0, %r1, 0; @%p0 bra a; bar.sync 0; a: bar.sync 0;", Launch{Block: [3]int{32}},
			0, Divergence, "threads of a warp", "have gone past", 2},
		{"waits for blocks", `atom.global.add.u32 %r3, [%a0], 1;
w:	ld.relaxed.gpu.global.u32 %r3, [%a0]; setp.lt.u32 %p0, %r3, 3072; @%p0 bra w;`, Launch{Grid: [3]int{3}, Block: [3]int{1024}}, 1, Deadlock, "", "1 of 3 blocks are not resident", 0},
		{"trap", "trap;", Launch{Block: [3]int{1}}, 0, BadProgram, "", "line 16: trap", 1},
		{"endless", "w: st.global.u32 [%a0], %r0; add.u32 %r0, %r0, 1; bra w;", Launch{Block: [3]int{1}}, 0, Endless, "",
			"not ended after 50000 instructions", 0},
		// Two locks that two blocks take in different orders: it takes a certain schedule.
		{"locks", `mov.u64 %a2, lock; xor.b32 %r3, %r2, 1; mad.wide.u32 %a3, %r2, 4, %a2; mad.wide.u32 %a4, %r3, 4, %a2;
a:	atom.acquire.gpu.global.cas.b32 %r4, [%a3], 0, 1; setp.ne.u32 %p0, %r4, 0; @%p0 bra a;
b:	atom.acquire.gpu.global.cas.b32 %r4, [%a4], 0, 1; setp.ne.u32 %p0, %r4, 0; @%p0 bra b;
	mov.u32 %r5, 0;
	st.release.gpu.global.u32 [%a4], %r5; st.release.gpu.global.u32 [%a3], %r5;`, Launch{Grid: [3]int{2}, Block: [3]int{1}}, 0, Deadlock, "", "polls global lock", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := c.launch
			l.Args = []string{"x", "7"}
			r := check(t, Case{Name: "k.ptx", Text: kernel(c.body), Buffers: []string{"x=u32[64]:0"}, Launches: []Launch{l},
				SMs: c.sms, Seeds: 10, Instructions: limit(c.kind)})
			i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Kind == c.kind && f.Across == c.across })
			require.GreaterOrEqual(t, i, 0, "%+v", r.Findings)
			f := r.Findings[i]
			var s bytes.Buffer
			require.NoError(t, r.Print(&s))
			require.Contains(t, s.String(), c.detail)
			require.NotNil(t, f.Schedule)
			require.LessOrEqual(t, len(f.Schedule.Turns), c.turns, s.String())
		})
	}
}

// limit is Case.Instructions for a kind of finding: few for a kernel that has no end.
func limit(kind string) uint64 {
	if kind == Endless {
		return 50_000
	}
	return 0
}

// TestNoDeadlock: threads that poll until a later block has run are no deadlock.
func TestNoDeadlock(t *testing.T) {
	body := `atom.global.add.u32 %r3, [%a0], 1;
w:	ld.relaxed.gpu.global.u32 %r3, [%a0]; setp.lt.u32 %p0, %r3, 96; @%p0 bra w;`
	c := Case{Name: "k.ptx", Text: kernel(body), Buffers: []string{"x=u32[64]:0"}, Seeds: 20,
		Launches: []Launch{{Grid: [3]int{3}, Block: [3]int{32}, Args: []string{"x", "0"}}}}
	require.Empty(t, check(t, c).Findings)
	c.Launches[0].Cooperative, c.SMs = true, 1
	c.Launches[0].Block[0] = 1024
	_, err := Run(t.Context(), c)
	require.ErrorContains(t, err, "3 blocks have to be resident at once, the device has room for 2")
}
