package simt_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/must"
)

// Each fault is found under any order of threads; what is said of the first is in testdata.
func TestFaults(t *testing.T) {
	var said strings.Builder
	for _, c := range []struct {
		name, body string
		kind       weakmem.FaultKind
		detail     string
	}{
		{"two barriers", "setp.lt.u32 %p1, %r0, 32; @%p1 bra A; bar.sync 0; bra B; A: bar.sync 1; B:", weakmem.Deadlock,
			"wait at barrier 1, where 32 of all 96 that live have arrived"},
		{"too few for a count", "setp.lt.u32 %p1, %r0, 32; @%p1 exit; bar.sync 0, 96;", weakmem.Deadlock,
			"wait at barrier 0, where 64 of 96 have arrived"},
		{"barrier parted within a warp", "setp.lt.u32 %p1, %r0, 3; @%p1 bra A; bar.sync 0; bra B; A: bar.sync 0; B:",
			weakmem.BadInstruction, "same instruction"},
		{"odd thread count", "mov.b32 %r1, 33; bar.sync 0, %r1;", weakmem.BadInstruction, "multiple of 32"},
		{"counts that differ", "setp.lt.u32 %p1, %r0, 32; @%p1 bra A; bar.sync 0; bra B; A: bar.sync 0, 64; B:",
			weakmem.BadInstruction, "others wait for"},
		{"barrier 16", "mov.b32 %r1, 16; bar.sync %r1;", weakmem.BadInstruction, "there are 16"},
		{"barriers that differ within a warp", "and.b32 %r1, %r0, 1; bar.sync %r1;", weakmem.BadInstruction,
			"threads of a warp name different barriers or thread counts"},
		{"counts that differ within a warp",
			"and.b32 %r1, %r0, 32; add.u32 %r1, %r1, 32; and.b32 %r3, %r0, 1; mad.lo.u32 %r1, %r3, 32, %r1; bar.sync 0, %r1;",
			weakmem.BadInstruction, "threads of a warp name different barriers or thread counts"},
		{"arrives twice", "bar.arrive 1, 96; bar.arrive 1, 96;", weakmem.BadInstruction, "arrives twice at barrier 1"},
		{"atomic on local memory",
			".local .align 4 .b8 l[4]; mov.u64 %rd2, l; cvta.local.u64 %rd2, %rd2; atom.add.u32 %r1, [%rd2], 1;",
			weakmem.BadInstruction, "atomic operations are on global and shared memory"},
		{"local memory misaligned", ".local .align 4 .b8 l[8]; mov.u64 %rd2, l; st.local.u32 [%rd2+2], %r0;",
			weakmem.Misaligned, "local address has to be a multiple of 4"},
		{"parameter misaligned", "mov.b64 %rd2, out; ld.param.u64 %rd3, [%rd2+4];", weakmem.Misaligned,
			"in the kernel's parameters"},
		{"vote that some never reach", "setp.lt.u32 %p1, %r0, 3; @%p1 bra A; bar.warp.sync 0xffffffff; A: bar.sync 0;",
			weakmem.Deadlock, "wait for threads 0x7 of their warp at bar.warp.sync"},
		{"not in its mask", "bar.warp.sync 0xfffffffe;", weakmem.BadInstruction, "not in its member mask"},
		{"trap", "setp.eq.u32 %p1, %r0, 50; @%p1 trap;", weakmem.BadInstruction, "trap"},
		{"out of bounds", "st.global.u32 [%rd0+4000000], %r0;", weakmem.OutOfBounds, "st.global.u32 [%rd0+4000000], %r0"},
		{"misaligned", "st.global.u32 [%rd1+2], %r0;", weakmem.Misaligned, ""},
		{"branch table", "L: .branchtargets A, B; brx.idx %r0, L; A: B:", weakmem.BadInstruction, "table of 2"},
		{"parameter", "mov.b64 %rd2, out; ld.param.u32 %r2, [%rd2+16];", weakmem.OutOfBounds, "parameters"},
		{"spins in vain", "L: ld.relaxed.gpu.global.u32 %r1, [%rd0]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;", weakmem.Deadlock,
			"polls global 0x100000000, which is 0x0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(4) {
				m := boot(t, hand(c.body), options{seed: seed})
				g := m.grid("k", 1, 96, m.words(sequence(96, 1)...), 5)
				m.start(g)
				f := g.Fault()
				require.NotNil(t, f)
				require.Equal(t, c.kind, f.Kind, "%v", f)
				require.Contains(t, f.Detail, c.detail)
				require.Equal(t, "k", f.Kernel)
				require.GreaterOrEqual(t, f.Line, 15)
				if seed == 0 {
					fmt.Fprintf(&said, "# %s\n%v\nblock %v, thread %v, address %#x, shared %v, %d bytes, write %v, at %q, %d times\n",
						c.name, f, f.Block, f.Thread, f.Addr, f.Shared, f.Size, f.Write, f.Where, f.Count)
				}
			}
		})
	}
	const file = "testdata/faults.txt"
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(said.String()), 0o644))
	}
	want := must.Get(os.ReadFile(file))
	require.Equal(t, string(want), said.String())
}

func TestUnwrittenPrivateMemoryIsUndefined(t *testing.T) {
	m := boot(t, "flow.ptx", options{})
	out := m.words(sequence(32, 1)...)
	g := m.grid("unset", 1, 32, out, 8)
	m.start(g)
	require.Nil(t, g.Fault())
	for i, v := range m.read(out, 32) {
		want := uint32(i * 7 % 16)
		if want >= 8 {
			want = 0xdeadbeef
		}
		require.Equal(t, want, v)
	}
}

func TestPrivateMemoryFaults(t *testing.T) {
	for _, c := range []struct {
		kernel string
		n      int
		right  bool
		kind   weakmem.FaultKind
	}{
		{"overrun", 16, true, 0},
		{"overrun", 17, false, weakmem.OutOfBounds},
	} {
		t.Run(fmt.Sprint(c.kernel, " ", c.n), func(t *testing.T) {
			m := boot(t, "flow.ptx", options{})
			g := m.grid(c.kernel, 1, 32, m.words(sequence(32, 1)...), c.n)
			m.start(g)
			if c.right {
				require.Nil(t, g.Fault())
				return
			}
			require.NotNil(t, g.Fault())
			require.Equal(t, c.kind, g.Fault().Kind)
		})
	}
}
