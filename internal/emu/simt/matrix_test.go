package simt_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// product multiplies matrices of half in shared memory: fragments come by ldmatrix, and go back by stmatrix. Data are A
// (16 × 16), B (16 × 8), C (16 × 8 of float), then D, then A again as stmatrix has stored it.
const product = `.version 8.0
.target sm_90
.address_size 64
.shared .align 16 .b8 a[512];
.shared .align 16 .b8 b[256];
.shared .align 16 .b8 back[512];
.visible .entry k(.param .u64 p)
{
.reg .pred %p<3>;
.reg .b32 %r<40>;
.reg .b64 %rd<12>;
.reg .f32 %f<9>;
ld.param.u64 %rd0, [p];
mov.u32 %r0, %tid.x;
mad.wide.u32 %rd1, %r0, 16, %rd0;
ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];
mov.u32 %r5, a;
shl.b32 %r6, %r0, 4;
add.u32 %r7, %r5, %r6;
st.shared.v4.u32 [%r7], {%r1, %r2, %r3, %r4};
setp.lt.u32 %p0, %r0, 16;
@!%p0 bra L;
ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+512];
mov.u32 %r8, b;
add.u32 %r9, %r8, %r6;
st.shared.v4.u32 [%r9], {%r1, %r2, %r3, %r4};
L:
bar.warp.sync -1;
and.b32 %r10, %r0, 7;
shr.u32 %r11, %r0, 3;
and.b32 %r12, %r11, 1;
shr.u32 %r13, %r11, 1;
mad.lo.u32 %r14, %r12, 8, %r10;
mul.lo.u32 %r15, %r14, 32;
mad.lo.u32 %r16, %r13, 16, %r15;
add.u32 %r17, %r5, %r16;
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, [%r17];
and.b32 %r18, %r0, 15;
mov.u32 %r8, b;
mad.lo.u32 %r19, %r18, 16, %r8;
ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r24, %r25}, [%r19];
shr.u32 %r26, %r0, 2;
and.b32 %r27, %r0, 3;
mul.lo.u32 %r28, %r26, 32;
mad.lo.u32 %r29, %r27, 8, %r28;
cvt.u64.u32 %rd2, %r29;
add.u64 %rd3, %rd0, %rd2;
ld.global.v2.f32 {%f0, %f1}, [%rd3+768];
ld.global.v2.f32 {%f2, %f3}, [%rd3+1024];
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f4, %f5, %f6, %f7}, {%r20, %r21, %r22, %r23}, {%r24, %r25}, {%f0, %f1, %f2, %f3};
st.global.v2.f32 [%rd3+1280], {%f4, %f5};
st.global.v2.f32 [%rd3+1536], {%f6, %f7};
mov.u32 %r30, back;
add.u32 %r31, %r30, %r16;
stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r31], {%r20, %r21, %r22, %r23};
bar.warp.sync -1;
add.u32 %r32, %r30, %r6;
ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%r32];
st.global.v4.u32 [%rd1+1792], {%r1, %r2, %r3, %r4};
ret;
}
`

func TestMatrices(t *testing.T) {
	data := make([]uint32, 576)
	half := func(v int) uint32 { // a small whole number
		if v == 0 {
			return 0
		}
		sign := uint32(0)
		if v < 0 {
			sign, v = 0x8000, -v
		}
		e := 0
		for v>>(e+1) != 0 {
			e++
		}
		return sign | uint32(e+15)<<10 | uint32(v-1<<e)<<(10-e)
	}
	var a [16][16]int
	var b [16][8]int
	var c [16][8]int
	for i := range 16 {
		for k := range 16 {
			a[i][k] = rand.IntN(15) - 7
			data[(i*16+k)/2] |= half(a[i][k]) << (16 * (k % 2))
		}
		for n := range 8 {
			b[i][n], c[i][n] = rand.IntN(15)-7, rand.IntN(99)
			data[128+(i*8+n)/2] |= half(b[i][n]) << (16 * (n % 2))
			data[192+i*8+n] = math.Float32bits(float32(c[i][n]))
		}
	}
	got := compute(t, options{}, product, "k", 32, data)
	for i := range 16 {
		for n := range 8 {
			want := c[i][n]
			for k := range 16 {
				want += a[i][k] * b[k][n]
			}
			require.Equal(t, float32(want), math.Float32frombits(got[320+i*8+n]), "row %d, column %d", i, n)
		}
	}
	require.Equal(t, data[:128], got[448:576], "stmatrix")
}

// TestMatrixRaces: rows that other threads have stored are loaded with no order between, and rows must begin at a
// multiple of 16 bytes.
func TestMatrixRaces(t *testing.T) {
	emulated(t)
	for _, c := range []struct {
		old, new string
		want     weakmem.FaultKind
	}{
		{"L:\nbar.warp.sync -1;", "L:", weakmem.Race},
		{"{%r20, %r21, %r22, %r23};\nbar.warp.sync -1;", "{%r20, %r21, %r22, %r23};", weakmem.Race},
		{"mad.lo.u32 %r16, %r13, 16, %r15;", "mad.lo.u32 %r16, %r13, 8, %r15;", weakmem.Misaligned},
	} {
		text := strings.Replace(product, c.old, c.new, 1)
		require.NotEqual(t, product, text)
		m := boot(t, text, options{})
		g := m.grid("k", 1, 32, m.words(make([]uint32, 576)...))
		m.start(g)
		require.NotNil(t, g.Fault(), c.new)
		require.Equal(t, c.want, g.Fault().Kind, c.new)
	}
}
