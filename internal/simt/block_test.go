package simt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/simt"
	"github.com/ringo-go/ringo/internal/weakmem"
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

func TestDynamicSharedMemory(t *testing.T) {
	each(t, func(t *testing.T, o options) {
		v := run{file: "block.ptx", kernel: "reverse", blocks: 2, threads: 96, shared: 4 * 96, words: [][]uint32{sequence(192, 1)}}.do(t, o)[0]
		for i := range 96 {
			require.EqualValues(t, 95-i, v[i])
			require.EqualValues(t, 96+95-i, v[96+i])
		}
	})
}

func TestMissingBarrierIsFound(t *testing.T) {
	each(t, func(t *testing.T, o options) {
		m := boot(t, "block.ptx", o)
		g := m.grid("reverseRacy", 1, 96, m.words(sequence(96, 1)...))
		g.Shared = 4 * 96
		m.start(g)
		require.NotNil(t, g.Fault())
		require.Contains(t, []weakmem.FaultKind{weakmem.Race, weakmem.Uninitialized}, g.Fault().Kind)
		require.True(t, g.Fault().Shared)
		require.Equal(t, "reverseRacy", g.Fault().Kernel)
	})
}

func TestGenericPointers(t *testing.T) {
	each(t, func(t *testing.T, o options) {
		got := run{file: "block.ptx", kernel: "pointers", threads: 64, shared: 4 * 64, words: [][]uint32{sequence(64, 7)}}.do(t, o)[0]
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

// hand is a kernel written by hand: registers are declared, the first parameter is
// a pointer in %rd0, its element for the thread is at %rd1 and %r0 is the thread.
func hand(body string) string {
	return `.version 8.0
.target sm_90
.address_size 64
.shared .align 16 .b8 unused[64];
.visible .entry k(.param .u64 out, .param .u32 n)
{
.reg .pred %p<9>;
.reg .b16 %h<9>;
.reg .b32 %r<20>;
.reg .b64 %rd<9>;
.reg .f32 %f<9>;
ld.param.u64 %rd0, [out];
ld.param.u32 %r9, [n];
mov.u32 %r0, %tid.x;
mad.wide.u32 %rd1, %r0, 4, %rd0;
` + body + `
ret;
}
`
}

// result runs a kernel by hand in one block and gives what each thread wrote.
func result(t *testing.T, o options, threads int, body string) []uint32 {
	return compute(t, o, hand(body), "k", threads, sequence(threads, 1), 5)
}

func TestWarp(t *testing.T) {
	all := func(v uint32) func(int) uint32 { return func(int) uint32 { return v } }
	for _, c := range []struct {
		name, body string
		threads    int
		want       func(i int) uint32
	}{
		{"ballot", "and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 0; vote.sync.ballot.b32 %r2, %p1, 0xffffffff;", 32, all(0x55555555)},
		{"all", "setp.lt.u32 %p1, %r0, 31; vote.sync.all.pred %p2, %p1, 0xffffffff; selp.u32 %r2, 1, 0, %p2;", 32, all(0)},
		{"not any", "setp.lt.u32 %p1, %r0, 99; vote.sync.any.pred %p2, !%p1, 0xffffffff; selp.u32 %r2, 1, 0, %p2;", 32, all(0)},
		{"uni", "setp.lt.u32 %p1, %r0, 99; vote.sync.uni.pred %p2, %p1, 0xffffffff; selp.u32 %r2, 1, 0, %p2;", 32, all(1)},
		{"bfly", "shfl.sync.bfly.b32 %r2, %r0, 5, 31, 0xffffffff;", 32, func(i int) uint32 { return uint32(i ^ 5) }},
		{"idx in segments of 8", "shfl.sync.idx.b32 %r2, %r0, 3, 0x181f, 0xffffffff;", 32, func(i int) uint32 { return uint32(i&^7 | 3) }},
		{"up", "shfl.sync.up.b32 %r2|%p1, %r0, 4, 0, 0xffffffff; @!%p1 mov.b32 %r2, 77;", 32, func(i int) uint32 {
			if i < 4 {
				return 77
			}
			return uint32(i - 4)
		}},
		{"down keeps its own at the end", "shfl.sync.down.b32 %r2, %r0, 30, 31, 0xffffffff;", 32, func(i int) uint32 {
			if i < 2 {
				return uint32(i + 30)
			}
			return uint32(i)
		}},
		{"match.any", "and.b32 %r1, %r0, 3; match.any.sync.b32 %r2, %r1, 0xffffffff;", 32, func(i int) uint32 { return 0x11111111 << (i & 3) }},
		{"match.all", "match.all.sync.b32 %r2|%p1, %r9, 0xffffffff;", 32, all(0xffffffff)},
		{"redux", "sub.s32 %r1, %r0, 40; redux.sync.max.s32 %r2, %r1, 0xffffffff; redux.sync.add.u32 %r3, %r0, 0xffffffff; add.s32 %r2, %r2, %r3;", 32, all(31*16 - 9)},
		{"elect", "mov.b32 %r2, 0; elect.sync %r1|%p1, 0xffffffff; @%p1 mov.b32 %r2, 9;", 32, func(i int) uint32 {
			if i == 0 {
				return 9
			}
			return 0
		}},
		{"threads that ended are not waited for", "setp.lt.u32 %p1, %r0, 7; @%p1 exit; setp.eq.u32 %p1, %r0, %r0; vote.sync.ballot.b32 %r2, %p1, 0xffffffff;", 20, func(i int) uint32 {
			if i < 7 {
				return uint32(i)
			}
			return 0xfff80
		}},
		{"both sides of a branch", `setp.lt.u32 %p1, %r0, 7; mov.b32 %r2, 0;
			@%p1 bra A;
			shfl.sync.idx.b32 %r2, %r0, 2, 31, 0xffffffff; bra.uni B;
		A:	add.u32 %r3, %r0, 100;
			shfl.sync.idx.b32 %r2, %r3, 30, 31, 0xffffffff;
		B:`, 32, func(i int) uint32 {
			if i < 7 {
				return 30
			}
			return 102
		}},
		{"masks that differ", `setp.lt.u32 %p1, %r0, 8; selp.b32 %r3, 0xff, 0xffffff00, %p1;
			shfl.sync.idx.b32 %r2, %r0, %r9, 31, %r3; @%p1 bra A; mov.b32 %r2, 1; A:`, 32, func(i int) uint32 {
			if i < 8 {
				return 5
			}
			return 1
		}},
		{"predicated, then waited for", `setp.lt.u32 %p1, %r0, 8; mov.b32 %r2, 0;
			@%p1 bar.warp.sync 0xff; @!%p1 bar.warp.sync 0xffffff00; bar.warp.sync 0xffffffff; mov.b32 %r2, 3;`, 32, all(3)},
		{"activemask", "activemask.b32 %r2;", 17, all(0x1ffff)},
		{"special registers", `mov.u32 %r1, %ntid.x; mov.u32 %r3, %laneid; mov.u32 %r4, %warpid; mov.u32 %r5, %lanemask_lt; mov.u32 %r6, %nctaid.y;
			mad.lo.u32 %r2, %r4, 1000, %r1; add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r5; add.u32 %r2, %r2, %r6; mov.u32 %r7, %clock; mov.u64 %rd2, %globaltimer;`, 64, func(i int) uint32 {
			return uint32(i/32*1000 + 64 + i%32 + 1<<(i%32) - 1 + 1)
		}},
		{"fences, hints and sleep", `membar.cta; membar.gl; membar.sys; fence.acq_rel.sys; fence.sc.cta; fence.proxy.async;
			prefetch.global.L2 [%rd1]; nanosleep.u32 20; mov.b32 %r2, 6;`, 32, all(6)},
		{"generic addresses", `.shared .align 4 .b8 s[4]; .local .align 4 .b8 l[4];
			mov.u64 %rd2, s; cvta.shared.u64 %rd2, %rd2; mov.u64 %rd3, l; cvta.local.u64 %rd3, %rd3; cvta.to.local.u64 %rd4, %rd3;
			st.local.u32 [%rd4], 11; ld.u32 %r3, [%rd3];
			setp.eq.u32 %p1, %r0, 0; @%p1 st.u32 [%rd2], 100; bar.warp.sync 0xffffffff; ld.shared.u32 %r4, [s]; add.u32 %r2, %r3, %r4;
			isspacep.shared %p1, %rd2; selp.u32 %r3, 1000, 0, %p1; add.u32 %r2, %r2, %r3;
			isspacep.local %p1, %rd3; selp.u32 %r3, 2000, 0, %p1; add.u32 %r2, %r2, %r3;
			isspacep.global %p1, %rd0; selp.u32 %r3, 4000, 0, %p1; add.u32 %r2, %r2, %r3;
			isspacep.global %p1, %rd2; selp.u32 %r3, 8000, 0, %p1; add.u32 %r2, %r2, %r3;`, 32, all(7111)},
		{"immediates of floats", `mov.f32 %f1, 0f3FC00000; add.rn.f32 %f1, %f1, 0d3FE0000000000000; mov.b32 %r2, %f1;`, 32, all(0x40000000)},
		{"a guard on a load", `mov.b32 %r2, 1; setp.gt.u32 %p1, %r0, 15; @!%p1 ld.global.u32 %r2, [%rd1+64]; bar.sync 0;`, 32, func(i int) uint32 {
			if i < 16 {
				return uint32(i + 16)
			}
			return 1
		}},
		{"table of branches", `L: .branchtargets A, B, C; and.b32 %r1, %r0, 3; min.u32 %r1, %r1, 2; brx.idx %r1, L;
		A:	mov.b32 %r2, 10; bra D;
		B:	mov.b32 %r2, 20; bra D;
		C:	mov.b32 %r2, 30;
		D:`, 32, func(i int) uint32 { return []uint32{10, 20, 30, 30}[i&3] }},
		{"vectors and signs", `and.b32 %r1, %r0, 28; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd2, %rd0;
			ld.global.v4.u32 {%r3, %r4, _, %r6}, [%rd2]; ld.global.s8 %r7, [%rd1]; ld.global.u16 %r8, [%rd1+2]; bar.sync 0;
			add.u32 %r2, %r3, %r4; add.u32 %r2, %r2, %r6; add.u32 %r2, %r2, %r7; add.u32 %r2, %r2, %r8;`, 32, func(i int) uint32 { return uint32(i&^3*3 + 4 + i) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(4) {
				var want []uint32
				for i := range c.threads {
					want = append(want, c.want(i))
				}
				require.Equal(t, want, result(t, options{seed: seed}, c.threads, c.body+"st.global.u32 [%rd1], %r2;"))
			}
		})
	}
}

func TestBarriers(t *testing.T) {
	all := func(v uint32) func(int) uint32 { return func(int) uint32 { return v } }
	for _, c := range []struct {
		name, body string
		want       func(i int) uint32
	}{
		{"threads that ended are not waited for", "setp.lt.u32 %p1, %r0, 40; @%p1 exit; bar.sync 0; mov.b32 %r2, 8;", func(i int) uint32 {
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

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name, body string
		kind       weakmem.FaultKind
		detail     string
	}{
		{"two barriers", "setp.lt.u32 %p1, %r0, 32; @%p1 bra A; bar.sync 0; bra B; A: bar.sync 1; B:", weakmem.Deadlock, "wait at barrier 1, where 32 of all 96 that live have arrived"},
		{"too few for a count", "setp.lt.u32 %p1, %r0, 32; @%p1 exit; bar.sync 0, 96;", weakmem.Deadlock, "wait at barrier 0, where 64 of 96 have arrived"},
		{"barrier parted within a warp", "setp.lt.u32 %p1, %r0, 3; @%p1 bra A; bar.sync 0; bra B; A: bar.sync 0; B:", weakmem.BadInstruction, "same instruction"},
		{"odd thread count", "mov.b32 %r1, 33; bar.sync 0, %r1;", weakmem.BadInstruction, "multiple of 32"},
		{"counts that differ", "setp.lt.u32 %p1, %r0, 32; @%p1 bra A; bar.sync 0; bra B; A: bar.sync 0, 64; B:", weakmem.BadInstruction, "others wait for"},
		{"barrier 16", "mov.b32 %r1, 16; bar.sync %r1;", weakmem.BadInstruction, "there are 16"},
		{"vote that some never reach", "setp.lt.u32 %p1, %r0, 3; @%p1 bra A; bar.warp.sync 0xffffffff; A: bar.sync 0;", weakmem.Deadlock, "wait for threads 0x7 of their warp at bar.warp.sync"},
		{"not in its mask", "bar.warp.sync 0xfffffffe;", weakmem.BadInstruction, "not in its member mask"},
		{"trap", "setp.eq.u32 %p1, %r0, 50; @%p1 trap;", weakmem.BadInstruction, "trap"},
		{"out of bounds", "st.global.u32 [%rd0+4000000], %r0;", weakmem.OutOfBounds, "st.global.u32 [%rd0+4000000], %r0"},
		{"misaligned", "st.global.u32 [%rd1+2], %r0;", weakmem.Misaligned, ""},
		{"branch table", "L: .branchtargets A, B; brx.idx %r0, L; A: B:", weakmem.BadInstruction, "table of 2"},
		{"parameter", "mov.b64 %rd2, out; ld.param.u32 %r2, [%rd2+16];", weakmem.OutOfBounds, "parameters"},
		{"spins in vain", "L: ld.relaxed.gpu.global.u32 %r1, [%rd0]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;", weakmem.Deadlock, "polls global 0x100000000, which is 0x0"},
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
			}
		})
	}
}

func TestPrivateMemoryFaults(t *testing.T) {
	for _, c := range []struct {
		kernel string
		n      int
		right  bool
		kind   weakmem.FaultKind
	}{
		{"unset", 16, true, 0},
		{"unset", 8, false, weakmem.Uninitialized},
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

func TestStartRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(g *simt.Grid)
		want   string
	}{
		{"device", func(g *simt.Grid) { g.Device = 3 }, "no device 3"},
		{"extents", func(g *simt.Grid) { g.Dim[1] = 0 }, "at least 1"},
		{"threads", func(g *simt.Grid) { g.Block = [3]int{64, 32, 1} }, "2048 threads"},
		{"shared memory", func(g *simt.Grid) { g.Shared = 1 << 20 }, "shared memory"},
		{"arguments", func(g *simt.Grid) { g.Args = g.Args[:4] }, "4 bytes of arguments"},
		{"cooperative", func(g *simt.Grid) { g.Dim[0], g.Cooperative = 9, true }, "has room for 8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := boot(t, "block.ptx", options{})
			g := m.grid("reverse", 1, 32, m.words(1))
			c.change(g)
			require.ErrorContains(t, m.world.Start(g), c.want)
		})
	}
}

// Cooperative grids become resident whole, when all of their blocks fit.
func TestCooperativeGridWaits(t *testing.T) {
	each(t, func(t *testing.T, o options) {
		m := boot(t, "order.ptx", o)
		arrived, data, out := m.words(0), m.unwritten(8), m.unwritten(8)
		first := m.grid("count", 5, 32, m.words(0), m.unwritten(5*32))
		g := m.grid("meet", 8, 64, arrived, data, out)
		g.Cooperative = true
		m.run(first, g)
		require.EqualValues(t, 36, m.read(out, 8)[7])
	})
}

func TestAtomics(t *testing.T) {
	for _, c := range []struct {
		op        string // without atom and space
		old, b, c uint64
		want      uint64
	}{
		{"add.u32", 0xffffffff, 3, 0, 2},
		{"add.u64", 1 << 40, 1 << 41, 0, 3 << 40},
		{"and.b32", 0xff, 0xf0f, 0, 0xf},
		{"or.b32", 0xf0, 0xf, 0, 0xff},
		{"xor.b64", 0xff, 0xf << 60, 0, 0xf0000000000000ff},
		{"exch.b32", 1, 2, 0, 2},
		{"exch.b64", 1, 2 << 50, 0, 2 << 50},
		{"cas.b32", 5, 5, 9, 9},
		{"cas.b64", 5, 6, 9, 5},
		{"cas.b16", 5, 5, 9, 9},
		{"inc.u32", 5, 5, 0, 0},
		{"inc.u32", 4, 5, 0, 5},
		{"dec.u32", 0, 5, 0, 5},
		{"dec.u32", 7, 5, 0, 5},
		{"dec.u32", 3, 5, 0, 2},
		{"min.u32", 0xffffffff, 3, 0, 3},
		{"min.s32", 0xffffffff, 3, 0, 0xffffffff},
		{"max.s32", 0xffffffff, 3, 0, 3},
		{"max.u64", 1 << 63, 3, 0, 1 << 63},
		{"max.s64", 1 << 63, 3, 0, 3},
		{"add.f32", 0x3f800000, 0x40000000, 0, 0x40400000},
		{"add.f64", 0x3ff0000000000000, 0x4000000000000000, 0, 0x4008000000000000},
		{"add.f32", 1, 1, 0, 0}, // of subnormals, in global memory
		{"add.noftz.f16", 0x3c00, 0x4000, 0, 0x4200},
		{"add.noftz.f16x2", 0x3c003c00, 0x40000001, 0, 0x42003c00},
		{"add.noftz.bf16x2", 0x3f803f80, 0x40004000, 0, 0x40404040},
	} {
		size, reg := 4, "%r"
		switch {
		case strings.HasSuffix(c.op, "64"):
			size, reg = 8, "%rd"
		case strings.HasSuffix(c.op, "16"):
			size, reg = 2, "%h"
		}
		for _, space := range []string{"", ".global", ".shared"} {
			for _, red := range []bool{false, true} {
				name := "atom" + space + "." + c.op
				third := ""
				if strings.HasPrefix(c.op, "cas") {
					third = fmt.Sprintf(", %s3", reg)
				}
				if red {
					name = "red" + space + "." + c.op
					if third != "" || strings.HasPrefix(c.op, "exch") {
						continue
					}
				}
				t.Run(name, func(t *testing.T) {
					dst := fmt.Sprintf("%s4, ", reg)
					if red {
						dst = ""
					}
					at, prepare := "%rd0", ""
					bits := 8 * size
					if space == ".shared" {
						at = "s"
						prepare = fmt.Sprintf(".shared .align 8 .b8 s[8]; ld.global.b%d %s5, [%%rd0]; st.shared.b%d [s], %s5;", bits, reg, bits, reg)
					}
					body := prepare + fmt.Sprintf("mov.b%d %s2, %d; mov.b%d %s3, %d; %s %s[%s], %s2%s;", bits, reg, c.b, bits, reg, c.c, name, dst, at, reg, third)
					if space == ".shared" {
						body += fmt.Sprintf("ld.shared.b%d %s5, [s]; st.global.b%d [%%rd0], %s5;", bits, reg, bits, reg)
					}
					if !red {
						body += fmt.Sprintf("st.global.b%d [%%rd0+8], %s4;", bits, reg)
					}
					v := compute(t, options{}, hand(body), "k", 1, []uint32{uint32(c.old), uint32(c.old >> 32), 0, 0}, 5)
					want := c.want
					if c.op == "add.f32" && c.old == 1 && space == ".shared" {
						want = 2
					}
					require.Equal(t, want, (uint64(v[1])<<32|uint64(v[0]))&(1<<bits-1))
					if !red {
						require.Equal(t, c.old, uint64(v[3])<<32|uint64(v[2]))
					}
				})
			}
		}
	}
}
