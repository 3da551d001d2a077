package simt_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// plainCopy copies two words by each thread, in two groups, and adds them, the second one
// of the next thread.
const plainCopy = `
mad.wide.u32 %rd4, %r0, 4, %rd2;
cp.async.ca.shared.global [%r1], [%rd4], 4;
cp.async.commit_group;
cp.async.ca.shared.global [%r1+256], [%rd4+256], 4, 4;
cp.async.commit_group;
cp.async.wait_group 1;
ld.shared.u32 %r2, [%r1];
cp.async.wait_group 0;
bar.sync 0;
xor.b32 %r3, %r0, 33;
mov.u32 %r4, tile;
mad.lo.u32 %r4, %r3, 4, %r4;
ld.shared.u32 %r3, [%r4+256];
add.u32 %r2, %r2, %r3;
st.global.u32 [%rd1], %r2;
`

func TestPlainCopy(t *testing.T) {
	in := sequence(128, 5)
	want := make([]uint32, 64)
	for i := range want {
		want[i] = in[i] + in[64+i^33]
	}
	const copied = "the asynchronous copy's store of 4 bytes"
	r := run{threads: 64, words: [][]uint32{make([]uint32, 64), in, {0}}}
	find(t, plainCopy, r, want, []planted{
		{"first not waited for", []edit{{"cp.async.wait_group 1;", "cp.async.wait_group 2;"}}, kinds(raced), copied},
		{"second not waited for", []edit{{"cp.async.wait_group 0;", "cp.async.wait_group 1;"}}, kinds(raced), copied},
		{"second in no group", []edit{{"cp.async.commit_group;\ncp.async.wait_group 1;", "cp.async.wait_group 0;"}},
			kinds(raced), copied},
		{"no barrier", []edit{{"bar.sync 0;", ""}}, kinds(raced, unset), "store of 4 bytes"},
		{"misaligned", []edit{{"[%r1], [%rd4]", "[%r1], [%rd4+2]"}}, kinds(weakmem.Misaligned), ""},
		{"reads too much", []edit{{"[%rd4+256], 4, 4", "[%rd4+256], 4, 8"}}, kinds(bad), "fewer bytes than it is to read"},
		{"source overwritten", []edit{{"cp.async.wait_group 1;", "st.global.u32 [%rd4], 0; cp.async.wait_group 1;"}},
			kinds(raced), "the asynchronous copy's load of 4 bytes"},
		{"destination overwritten", []edit{{"cp.async.wait_group 1;", "st.shared.u32 [%r1], 0; cp.async.wait_group 1;"}},
			kinds(raced), copied},
	})
	all := edit{"cp.async.commit_group;\ncp.async.wait_group 1;", "cp.async.wait_all;"}
	find(t, all.of(t, plainCopy), r, want, nil)
	for i := range want {
		want[i] = in[i]
	}
	zeros := edit{"[%rd4+256], 4, 4", "[%rd4+1000000], 4, 0"}
	find(t, zeros.of(t, plainCopy), r, want, nil)
}

// copyArrives has a warp copy 16 bytes by each thread, and another wait for them at a barrier.
const copyArrives = `
@%p0 mbarrier.init.shared.b64 [bar], 32;
bar.sync 0;
setp.lt.u32 %p2, %r0, 32;
@!%p2 bra WAIT;
mad.lo.u32 %r2, %r0, 12, %r1;
mad.wide.u32 %rd4, %r0, 16, %rd2;
cp.async.cg.shared.global.L2::128B [%r2], [%rd4], 16;
cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
cp.async.wait_all;
exit;
WAIT:
mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
@!%p1 bra WAIT;
ld.shared.u32 %r2, [%r1];
st.global.u32 [%rd1+-128], %r2;
`

func TestCopyArrives(t *testing.T) {
	in := sequence(128, 5)
	r := run{threads: 64, words: [][]uint32{make([]uint32, 32), in, {0}}}
	find(t, copyArrives, r, in[32:64], []planted{
		{"arrives before", []edit{
			{"cp.async.cg.shared.global.L2::128B [%r2], [%rd4], 16;\ncp.async.mbarrier.arrive.noinc.shared.b64 [bar];",
				"cp.async.mbarrier.arrive.noinc.shared.b64 [bar]; cp.async.cg.shared.global [%r2], [%rd4], 16;"},
		}, kinds(raced, unset), "the asynchronous copy's store of 16 bytes"},
		{"counted apart", []edit{{".noinc", ""}}, kinds(stuck), "phase 0 lacks 32 of 32 arrivals"},
	})
	apart := edit{"arrive.noinc.shared.b64 [bar];", "arrive.shared.b64 [bar]; mbarrier.arrive.shared.b64 _, [bar];"}
	find(t, apart.of(t, copyArrives), r, in[32:64], nil)
}

// Each type and operator, on elements that two blocks reduce into.
func TestBulkReductions(t *testing.T) {
	half := func(a, b uint32) uint32 { return a | b<<16 }
	f32 := math.Float32bits
	f64 := func(x float64) [2]uint32 { b := math.Float64bits(x); return [2]uint32{uint32(b), uint32(b >> 32)} }
	minus := ^uint32(0)
	for _, c := range []struct {
		op        string
		old, v, w [2]uint32 // 8 bytes; w is v into old, twice
	}{
		{"add.u32", [2]uint32{1, minus}, [2]uint32{5, 2}, [2]uint32{11, 3}},
		{"add.s32", [2]uint32{1, minus}, [2]uint32{minus, 2}, [2]uint32{minus, 3}},
		{"add.u64", [2]uint32{minus, 7}, [2]uint32{1, 1}, [2]uint32{1, 10}},
		{"min.u32", [2]uint32{3, minus}, [2]uint32{minus, 2}, [2]uint32{3, 2}},
		{"max.u32", [2]uint32{3, minus}, [2]uint32{minus, 2}, [2]uint32{minus, minus}},
		{"min.s32", [2]uint32{3, minus}, [2]uint32{minus, 2}, [2]uint32{minus, minus}},
		{"max.s32", [2]uint32{3, minus}, [2]uint32{minus, 2}, [2]uint32{3, 2}},
		{"min.u64", [2]uint32{0, minus}, [2]uint32{5, 2}, [2]uint32{5, 2}},
		{"max.u64", [2]uint32{0, minus}, [2]uint32{5, 2}, [2]uint32{0, minus}},
		{"min.s64", [2]uint32{0, minus}, [2]uint32{5, 2}, [2]uint32{0, minus}},
		{"max.s64", [2]uint32{0, minus}, [2]uint32{5, 2}, [2]uint32{5, 2}},
		{"inc.u32", [2]uint32{3, 7}, [2]uint32{10, 7}, [2]uint32{5, 1}},
		{"dec.u32", [2]uint32{3, 0}, [2]uint32{10, 7}, [2]uint32{1, 6}},
		{"and.b32", [2]uint32{0xff, 0xf0}, [2]uint32{0x3c, 0xff}, [2]uint32{0x3c, 0xf0}},
		{"or.b64", [2]uint32{0xff, 0xf0}, [2]uint32{0x300, 1}, [2]uint32{0x3ff, 0xf1}},
		{"xor.b32", [2]uint32{0xff, 0xf0}, [2]uint32{0x300, 1}, [2]uint32{0xff, 0xf0}},
		{"add.f32", [2]uint32{f32(1), f32(-2)}, [2]uint32{f32(0.5), f32(0.25)}, [2]uint32{f32(2), f32(-1.5)}},
		{"add.f64", f64(1), f64(0.5), f64(2)},
		{"add.noftz.f16", [2]uint32{half(0x3c00, 0x4000), half(0, 1)}, [2]uint32{half(0x3c00, 0xc000), half(1, 1)},
			[2]uint32{half(0x4200, 0xc000), half(2, 3)}},
		{"add.noftz.bf16", [2]uint32{half(0x3f80, 0x4000), half(0, 1)}, [2]uint32{half(0x3f80, 0xc000), half(1, 1)},
			[2]uint32{half(0x4040, 0xc000), half(2, 3)}},
		{"min.f16", [2]uint32{half(0x3c00, 0xc000), 0}, [2]uint32{half(0x4000, 0x3c00), half(0x8001, 1)},
			[2]uint32{half(0x3c00, 0xc000), half(0x8001, 0)}},
		{"max.f16", [2]uint32{half(0x3c00, 0xc000), 0}, [2]uint32{half(0x4000, 0x3c00), half(0x8001, 1)},
			[2]uint32{half(0x4000, 0x3c00), half(0, 1)}},
		{"min.bf16", [2]uint32{half(0x3f80, 0xc000), 0}, [2]uint32{half(0x4000, 0x3f80), half(0x8001, 1)},
			[2]uint32{half(0x3f80, 0xc000), half(0x8001, 0)}},
		{"max.bf16", [2]uint32{half(0x3f80, 0xc000), 0}, [2]uint32{half(0x4000, 0x3f80), half(0x8001, 1)},
			[2]uint32{half(0x4000, 0x3f80), half(0, 1)}},
	} {
		for _, hint := range []string{"", ".L2::cache_hint"} {
			policy := ""
			if hint != "" {
				policy = ", %rd8"
			}
			text := asynchronous(fmt.Sprintf(`
mad.wide.u32 %%rd4, %%r0, 4, %%rd2;
ld.global.u32 %%r2, [%%rd4];
st.shared.u32 [%%r1], %%r2;
fence.proxy.async;
bar.sync 0;
@!%%p0 exit;
createpolicy.fractional.L2::evict_first.b64 %%rd8, 1.0;
cp.reduce.async.bulk.global.shared::cta.bulk_group%s.%s [%%rd0], [tile], 1024%s;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
`, hint, c.op, policy))
			var old, v, want []uint32
			for range 128 {
				old, v, want = append(old, c.old[:]...), append(v, c.v[:]...), append(want, c.w[:]...)
			}
			for seed := range uint64(tries(4)) {
				got := run{file: text, kernel: "k", threads: 256, blocks: 2, words: [][]uint32{old, v, {0}}}.do(t,
					options{seed: seed})[0]
				require.Equal(t, want, got, c.op)
			}
		}
	}
}

// Reductions are atomic element by element at GPU scope: two devices need order.
func TestBulkReductionScope(t *testing.T) {
	text := asynchronous(`
st.shared.u32 [%r1], 1;
fence.proxy.async.shared::cta;
bar.sync 0;
@!%p0 exit;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd0], [tile], 128;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
`)
	each(t, func(t *testing.T, o options) {
		o.devices = append(o.devices, small, small)
		m := boot(t, text, o)
		out := m.words(make([]uint32, 32)...)
		a, b := m.grid("k", 1, 32, out, out, out), m.grid("k", 1, 32, out, out, out)
		b.Device = 1
		m.start(a, b)
		f := a.Fault()
		if f == nil {
			f = b.Fault()
		}
		require.NotNil(t, f)
		require.Equal(t, raced, f.Kind)
		require.Contains(t, f.Detail, "of a scope that lacks the other thread")
	})
}

// A plain asynchronous copy writes as threads do, so a bulk copy needs a fence after it.
const plainThenBulk = `
mad.wide.u32 %rd4, %r0, 4, %rd2;
cp.async.ca.shared.global [%r1], [%rd4], 4;
cp.async.wait_all;
fence.proxy.async.shared::cta;
bar.sync 0;
@!%p0 exit;
cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 256;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
`

func TestPlainThenBulk(t *testing.T) {
	in := sequence(64, 5)
	const wait = "cp.async.wait_all;\n"
	find(t, plainThenBulk, run{threads: 64, words: [][]uint32{make([]uint32, 64), in, {0}}}, in, []planted{
		{"no fence", []edit{{"fence.proxy.async.shared::cta;", ""}}, kinds(noFence), "the store of 4 bytes"},
		{"fence too early", []edit{{wait + "fence.proxy.async.shared::cta;", "fence.proxy.async.shared::cta;\n" + wait}},
			kinds(noFence), "the store of 4 bytes"},
		{"not waited for", []edit{{wait, ""}}, kinds(raced), "the asynchronous copy's store of 4 bytes"},
	})
	later := edit{"fence.proxy.async.shared::cta;\nbar.sync 0;", "bar.sync 0;\nfence.proxy.async.shared::cta;"}
	find(t, later.of(t, plainThenBulk), run{threads: 64, words: [][]uint32{make([]uint32, 64), in, {0}}}, in, nil)
}
