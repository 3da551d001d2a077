package simt_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/gputest"
)

// A doubt is a program about which PTX's text leaves a doubt, and what the emulator has it
// give. REQUIRE=cuda go test ./internal/emu/simt -run TestDoubts asks a GPU of capability 9.0,
// where each that fails is a fault of the emulator. The other tests of asynchronous
// instructions ask it too.
type doubt struct {
	name    string
	body    string
	threads int
	blocks  int
	in      []uint32
	out     []uint32 // at the beginning
	want    []uint32
}

// reduced is a doubt about cp.reduce of elements of 4 bytes.
func reduced(name, op string, old, v, want uint32) doubt {
	fill := func(x uint32) []uint32 { return []uint32{x, x, x, x} }
	return doubt{name: op + " of " + name, threads: 4, body: fmt.Sprintf(`
mad.wide.u32 %%rd4, %%r0, 4, %%rd2;
ld.global.u32 %%r2, [%%rd4];
st.shared.u32 [%%r1], %%r2;
fence.proxy.async.shared::cta;
bar.sync 0;
@!%%p0 exit;
cp.reduce.async.bulk.global.shared::cta.bulk_group.%s [%%rd0], [tile], 16;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
`, op), in: fill(v), out: fill(old), want: fill(want)}
}

const nan, nanOther = 0x7fc00001, 0xffc00002

var doubts = []doubt{
	reduced("float32 subnormals", "add.f32", 1, 1, 2),
	reduced("a float32 subnormal and one", "add.f32", 1, math.Float32bits(1), math.Float32bits(1)),
	reduced("a result that is subnormal", "add.f32", 0x00800001, 0x80800000, 1),
	reduced("zeros of both signs", "add.f32", 0x80000000, 0, 0),
	reduced("negative zeros", "add.f32", 0x80000000, 0x80000000, 0x80000000),
	reduced("a NaN in memory", "add.f32", nan, math.Float32bits(1), 0x7fffffff),
	reduced("a NaN that is added", "add.f32", math.Float32bits(1), nanOther, 0x7fffffff),
	reduced("infinities", "add.f32", 0x7f800000, 0xff800000, 0x7fffffff),
	reduced("float16 subnormals", "add.noftz.f16", 0x00010001, 0x00010002, 0x00020003),
	reduced("a float16 NaN", "add.noftz.f16", 0x7e013c00, 0x3c00fe02, 0x7fff7fff),
	reduced("a tie", "add.noftz.f16", 0x68016800, 0x3c003c00, 0x68026800),
	reduced("bfloat16 subnormals", "add.noftz.bf16", 0x00010001, 0x00010002, 0x00020003),
	reduced("a bfloat16 NaN", "add.noftz.bf16", 0x7fc13f80, 0x3f80ffc2, 0x7fff7fff),
	reduced("a tie", "add.noftz.bf16", 0x43814380, 0x3f803f80, 0x43824380),
	reduced("zeros of both signs", "min.f16", 0x80000000, 0x00008000, 0x80008000),
	reduced("zeros of both signs", "max.f16", 0x80000000, 0x00008000, 0),
	reduced("a NaN and a number", "min.f16", 0x7e013c00, 0x3c00fe02, 0x3c003c00),
	reduced("a NaN and a number", "max.bf16", 0x7fc13f80, 0x3f80ffc2, 0x3f803f80),
	reduced("two NaNs", "min.bf16", 0x7fc17fc1, 0xffc2ffc2, 0x7fff7fff),
	reduced("above the limit", "inc.u32", 9, 4, 0),
	reduced("above the limit", "dec.u32", 9, 4, 4),

	{name: "before its first phase, the one of parity 1 has ended", threads: 1, body: `
mbarrier.init.shared.b64 [bar], 1;
mbarrier.test_wait.parity.shared.b64 %p1, [bar], 1;
mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;
selp.u32 %r2, 1, 0, %p1;
selp.u32 %r3, 1, 0, %p2;
st.global.v2.u32 [%rd0], {%r2, %r3};
`, out: []uint32{7, 7}, want: []uint32{1, 0}},
	{name: "bytes may come before they are expected", threads: 1, body: `
mbarrier.init.shared.b64 [bar], 2;
mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 64;
mbarrier.arrive.shared.b64 %rd5, [bar];
mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0;
mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;
mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;
selp.u32 %r2, 1, 0, %p1;
selp.u32 %r3, 1, 0, %p2;
st.global.v2.u32 [%rd0], {%r2, %r3};
`, out: []uint32{7, 7}, want: []uint32{0, 1}},
	{name: "as many bytes as can be counted", threads: 1, body: `
mbarrier.init.shared.b64 [bar], 1;
mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 1048575;
mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 1048575;
mbarrier.arrive.shared.b64 %rd5, [bar];
mbarrier.test_wait.shared.b64 %p1, [bar], %rd5;
selp.u32 %r2, 1, 0, %p1;
st.global.u32 [%rd0], %r2;
`, out: []uint32{7}, want: []uint32{1}},
	{name: "a phase that has ended counts as going on for a parity two phases later", threads: 1, body: `
mbarrier.init.shared.b64 [bar], 1;
mbarrier.arrive.shared.b64 %rd5, [bar];
mbarrier.arrive.shared.b64 %rd6, [bar];
mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0;
mbarrier.test_wait.shared.b64 %p2, [bar], %rd6;
selp.u32 %r2, 1, 0, %p1;
selp.u32 %r3, 1, 0, %p2;
st.global.v2.u32 [%rd0], {%r2, %r3};
`, out: []uint32{7, 7}, want: []uint32{0, 1}},
	{name: "a copy of no bytes is not read from its address", threads: 1, body: `
cp.async.ca.shared.global [tile], [%rd0+4], 4, 0;
cp.async.ca.shared.global [tile+8], [%rd0], 8, 4;
cp.async.wait_all;
ld.shared.v2.u32 {%r2, %r3}, [tile+8];
ld.shared.u32 %r4, [tile];
st.global.v2.u32 [%rd0], {%r2, %r3};
st.global.u32 [%rd0+8], %r4;
`, out: []uint32{9, 8, 7, 6}, want: []uint32{9, 0, 0, 6}},
	{name: "loads after a bulk store do not find what the thread loaded before", threads: 32, body: `
ld.global.u32 %r2, [%rd1];
st.shared.u32 [%r1], 5;
fence.proxy.async.shared::cta;
bar.warp.sync 0xffffffff;
@!%p0 bra DONE;
cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 128;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
DONE:
bar.warp.sync 0xffffffff;
ld.global.u32 %r3, [%rd1];
add.u32 %r3, %r3, %r2;
st.global.u32 [%rd1+128], %r3;
`, out: sequence(64, 1), want: func() []uint32 {
		v := make([]uint32, 64)
		for i := range uint32(32) {
			v[i], v[32+i] = 5, 5+i
		}
		return v
	}()},
	{name: "a bulk copy reads what another block's bulk copy stored, without a proxy fence", threads: 1, blocks: 2, body: `
mov.u32 %r5, %ctaid.x;
mbarrier.init.shared.b64 [bar], 1;
fence.proxy.async.shared::cta;
mov.u32 %r6, 0;
setp.ne.u32 %p3, %r5, 0;
@%p3 bra READER;
WRITER:
add.u32 %r6, %r6, 1;
st.shared.v4.u32 [tile], {%r6, %r6, %r6, %r6};
fence.proxy.async.shared::cta;
cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 16;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
st.release.gpu.global.u32 [%rd3], %r6;
BACK:
ld.acquire.gpu.global.u32 %r2, [%rd3+128];
setp.ne.u32 %p1, %r2, %r6;
@%p1 bra BACK;
setp.lt.u32 %p1, %r6, ROUNDS;
@%p1 bra WRITER;
exit;
READER:
mov.u32 %r8, 0;
TURN:
and.b32 %r7, %r6, 1;
add.u32 %r6, %r6, 1;
FLAG:
ld.acquire.gpu.global.u32 %r2, [%rd3];
setp.ne.u32 %p1, %r2, %r6;
@%p1 bra FLAG;
mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd2], 16, [bar];
LOADED:
mbarrier.try_wait.parity.shared.b64 %p1, [bar], %r7;
@!%p1 bra LOADED;
ld.shared.u32 %r2, [tile+12];
setp.ne.u32 %p1, %r2, %r6;
@%p1 add.u32 %r8, %r8, 1;
st.release.gpu.global.u32 [%rd3+128], %r6;
setp.lt.u32 %p1, %r6, ROUNDS;
@%p1 bra TURN;
st.global.u32 [%rd0], %r8;
`, in: make([]uint32, 4), out: []uint32{7}, want: []uint32{0}},
}

func TestDoubts(t *testing.T) {
	rounds := 20
	if gputest.OnGPU() {
		rounds = 100_000
	}
	for _, d := range doubts {
		t.Run(d.name, func(t *testing.T) {
			text := asynchronous(fmt.Sprintf(".reg .u32 ROUNDS;\nmov.u32 ROUNDS, %d;\n", rounds) + d.body)
			in := append(d.in, make([]uint32, 1)...)
			got := run{file: text, kernel: "k", threads: d.threads, blocks: d.blocks,
				words: [][]uint32{d.out, in, make([]uint32, 64)}}.do(t, options{})[0]
			require.Equal(t, d.want, got)
		})
	}
}
