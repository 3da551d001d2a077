package simt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// handOver passes a word of shared memory from one warp to the other and back, many times: two barriers,
// each of 32 arrivals.
const handOver = `
@!%p0 bra READY;
mbarrier.init.shared.b64 [bar], 32;
mbarrier.init.shared.b64 [bar+8], 32;
READY:
bar.sync 0;
mov.u32 %r3, 0;
mov.u32 %r5, 0;
and.b32 %r4, %r0, 31;
mov.u32 %r8, tile;
mad.lo.u32 %r4, %r4, 4, %r8;
setp.lt.u32 %p2, %r0, 32;
@!%p2 bra CONSUME;
PRODUCE:
and.b32 %r6, %r3, 1;
xor.b32 %r6, %r6, 1;
EMPTY:
mbarrier.try_wait.parity.shared.b64 %p1, [bar+8], %r6;
@!%p1 bra EMPTY;
add.u32 %r7, %r3, %r0;
st.shared.u32 [%r4], %r7;
mbarrier.arrive.shared.b64 _, [bar];
add.u32 %r3, %r3, 1;
setp.lt.u32 %p3, %r3, 6;
@%p3 bra PRODUCE;
exit;
CONSUME:
and.b32 %r6, %r3, 1;
FULL:
mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 %p1, [bar], %r6;
@!%p1 bra FULL;
ld.shared.u32 %r7, [%r4];
mad.lo.u32 %r5, %r5, 3, %r7;
mbarrier.arrive.release.cta.shared::cta.b64 %rd4, [bar+8], 1;
add.u32 %r3, %r3, 1;
setp.lt.u32 %p3, %r3, 6;
@%p3 bra CONSUME;
sub.u32 %r6, %r0, 32;
mad.wide.u32 %rd1, %r6, 4, %rd0;
st.global.u32 [%rd1], %r5;
`

func TestMbarrierPhases(t *testing.T) {
	want := make([]uint32, 32)
	for i := range want {
		for k := range uint32(6) {
			want[i] = want[i]*3 + k + uint32(i)
		}
	}
	find(t, handOver, run{threads: 64, words: [][]uint32{make([]uint32, 32), {0}, {0}}}, want, []planted{
		{"full not waited for", []edit{{"@!%p1 bra FULL;", ""}}, kinds(raced, unset, stuck), "4 bytes"},
		{"empty not waited for", []edit{{"@!%p1 bra EMPTY;", ""}}, kinds(raced, bad, stuck), "4 bytes"},
		{"phase of full mistaken", []edit{{"[bar], %r6;", "[bar], 0;"}}, kinds(raced, stuck, bad), "4 bytes"},
		{"phase of empty mistaken", []edit{{"xor.b32 %r6, %r6, 1;", ""}}, kinds(stuck), "phase 0 lacks 32 of 32 arrivals"},
		{"arrival that releases nothing",
			[]edit{{"mbarrier.arrive.shared.b64 _, [bar]", "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bar]"}},
			kinds(raced), "4 bytes"},
		{"wait that acquires nothing", []edit{{"parity.acquire.cta.shared::cta.b64", "parity.relaxed.cta.shared::cta.b64"}},
			kinds(raced), "4 bytes"},
		{"not initialised in time", []edit{{"bar.sync 0;", ""}}, kinds(raced, unset, bad), "8 bytes"},
		{"initialised twice", []edit{{"init.shared.b64 [bar+8]", "init.shared.b64 [bar]"}}, kinds(bad),
			"holds a barrier already"},
		{"invalid", []edit{{"bar.sync 0;", "@%p0 mbarrier.inval.shared.b64 [bar]; bar.sync 0;"}}, kinds(bad),
			"or it was invalidated"},
		{"overwritten", []edit{{"bar.sync 0;", "@%p0 st.shared.u32 [bar], 7; bar.sync 0;"}}, kinds(bad),
			"something was stored over the mbarrier"},
		{"initialised for nobody", []edit{{"[bar], 32", "[bar], 0"}}, kinds(bad), "1 to 1048575 arrivals"},
		{"misaligned", []edit{{"[bar], 32", "[bar+4], 32"}}, kinds(weakmem.Misaligned), ""},
		{"too many arrivals", []edit{{"arrive.shared.b64 _, [bar]", "arrive.shared.b64 _, [bar], 3"}}, kinds(bad),
			"3 arrivals at the mbarrier"},
	})
}

// One thread of a warp arrives for all, after they met.
func TestMbarrierByWarps(t *testing.T) {
	text := handOver
	for _, e := range []edit{
		{"[bar], 32;", "[bar], 1;"}, {"[bar+8], 32;", "[bar+8], 1;"},
		{"mbarrier.arrive.shared.b64 _, [bar];", "bar.warp.sync 0xffffffff; @%p4 mbarrier.arrive.shared.b64 _, [bar];"},
		{"mbarrier.arrive.release.cta.shared::cta.b64 %rd4, [bar+8], 1;",
			"bar.warp.sync -1; @%p4 mbarrier.arrive.release.cta.shared::cta.b64 %rd4, [bar+8], 1;"},
		{"and.b32 %r4, %r0, 31;", "and.b32 %r4, %r0, 31; setp.eq.u32 %p4, %r4, 0;"},
	} {
		text = e.of(t, text)
	}
	text = edit{"sub.u32 %r6, %r0, 32;", "ret;"}.of(t, text)
	find(t, text, run{threads: 64, words: [][]uint32{{0}, {0}, {0}}}, []uint32{0}, []planted{
		{"full not met", []edit{{"bar.warp.sync 0xffffffff;", ""}}, kinds(raced, unset), "4 bytes"},
		{"empty not met", []edit{{"bar.warp.sync -1;", ""}}, kinds(raced), "4 bytes"},
	})
}

// States, counts, bytes without copies, drops, and addresses of other kinds.
func TestMbarrierStates(t *testing.T) {
	out := make([]uint32, 8)
	got := run{file: asynchronous(`
mov.u64 %rd9, bar;
cvta.shared.u64 %rd9, %rd9;
mbarrier.init.b64 [%rd9], 4;
mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %rd4, [bar], 2;
mbarrier.pending_count.b64 %r2, %rd4;
st.global.u32 [%rd0], %r2;
mbarrier.arrive.shared.b64 %rd5, [bar];
mbarrier.pending_count.b64 %r2, %rd5;
st.global.u32 [%rd0+4], %r2;
mbarrier.test_wait.shared.b64 %p1, [bar], %rd5;
selp.u32 %r2, 1, 0, %p1;
st.global.u32 [%rd0+8], %r2;
mbarrier.arrive_drop.shared.b64 %rd6, [bar];
mbarrier.test_wait.b64 %p1, [%rd9], %rd5;
selp.u32 %r2, 1, 0, %p1;
st.global.u32 [%rd0+12], %r2;
mbarrier.arrive.expect_tx.shared.b64 %rd6, [bar], 48;
mbarrier.pending_count.b64 %r2, %rd6;
st.global.u32 [%rd0+16], %r2;
mbarrier.arrive.shared.b64 %rd6, [bar], 2;
mbarrier.test_wait.parity.shared.b64 %p1, [bar], 1;
selp.u32 %r2, 1, 0, %p1;
st.global.u32 [%rd0+20], %r2;
mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 48;
mbarrier.try_wait.parity.shared.b64 %p1, [bar], 1, 1000;
selp.u32 %r2, 1, 0, %p1;
st.global.u32 [%rd0+24], %r2;
mbarrier.inval.shared.b64 [bar];
mbarrier.init.shared.b64 [bar], 1;
mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0;
selp.u32 %r2, 1, 0, %p1;
st.global.u32 [%rd0+28], %r2;
`), kernel: "k", threads: 1, words: [][]uint32{out, {0}, {0}}}.do(t, options{})[0]
	require.Equal(t, []uint32{4, 2, 0, 1, 3, 0, 1, 0}, got)
}
