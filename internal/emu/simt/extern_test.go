package simt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/simt"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/must"
)

// externs calls what the device library has, by what the first parameter says: 0 prints, 1 asserts, 2 calls an unknown
// function.
const externs = `.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.extern .func unheard(.param .b64 a);
.global .align 1 .b8 layout[64] = {37, 100, 124, 37, 48, 53, 117, 124, 37, 120, 124, 37, 108, 108, 100, 124, 37, 46, 50, 102, 124, 37, 99, 124, 37, 45, 52, 115, 124, 37, 104, 104, 100, 124, 37, 37, 124, 37, 42, 100, 124, 37, 104, 100, 10, 0};
.global .align 1 .b8 name[8] = {104, 105, 0};
.visible .entry calls(.param .u32 what)
{
	.local .align 8 .b8 values[64];
	.reg .b64 %a, %v, %f;
	.reg .b32 %w, %r;
	.reg .pred %p;
	ld.param.u32 %w, [what];
	setp.eq.u32 %p, %w, 1;
	@%p bra ASSERT;
	setp.eq.u32 %p, %w, 2;
	@%p bra UNHEARD;
	mov.u64 %v, values;
	cvta.local.u64 %a, %v;
	st.local.u32 [%v], -7;
	st.local.u32 [%v+4], 42;
	st.local.u32 [%v+8], 255;
	st.local.u64 [%v+16], -5000000000;
	mov.b64 %f, 0d400A000000000000;
	st.local.u64 [%v+24], %f;
	st.local.u32 [%v+32], 88;
	mov.u64 %f, name;
	cvta.global.u64 %f, %f;
	st.local.u64 [%v+40], %f;
	st.local.u32 [%v+48], 257;
	st.local.u32 [%v+52], 3;
	st.local.u32 [%v+56], 9;
	st.local.u32 [%v+60], 0x1ffff;
	mov.u64 %f, layout;
	cvta.global.u64 %f, %f;
	{
	.param .b64 p0; .param .b64 p1; .param .b32 r0;
	st.param.b64 [p0], %f;
	st.param.b64 [p1], %a;
	call.uni (r0), vprintf, (p0, p1);
	ld.param.b32 %r, [r0];
	}
	setp.ne.u32 %p, %r, 11;
	@%p trap;
	ret;
ASSERT:
	mov.u64 %f, name;
	cvta.global.u64 %f, %f;
	{
	.param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;
	st.param.b64 [p0], %f;
	st.param.b64 [p1], %f;
	st.param.b32 [p2], 17;
	st.param.b64 [p3], %f;
	st.param.b64 [p4], 1;
	call.uni __assertfail, (p0, p1, p2, p3, p4);
	}
	ret;
UNHEARD:
	{
	.param .b64 p0;
	st.param.b64 [p0], 1;
	call.uni unheard, (p0);
	}
	ret;
}
`

// runExterns runs the kernel with one thread, and gives what it prints and how it fails.
func runExterns(t *testing.T, what byte) (printed string, fault *weakmem.Fault) {
	t.Helper()
	m := must.Get(ptx.Parse("externs", []byte(externs)))
	p := must.Get(simt.Compile(m))
	mem := weakmem.New(weakmem.Config{})
	globals := map[string]uint64{}
	for i, v := range m.Vars {
		at := uint64(0x10000 * (i + 1))
		data := make([]byte, v.Size())
		copy(data, v.Init)
		require.NoError(t, mem.Map(weakmem.Allocation{Addr: at, Data: data, Name: v.Name}))
		globals[v.Name] = at
	}
	w := simt.NewWorld(simt.Config{Devices: []simt.Shape{{SMs: 1, ThreadsPerSM: 2048, BlocksPerSM: 32,
		SharedPerSM: 1 << 16, SharedPerBlock: 1 << 16, ThreadsPerBlock: 1024}},
		Memory: mem, Print: func(device int, text string) { printed += text }})
	k, ok := p.Kernel("calls")
	require.True(t, ok)
	g := &simt.Grid{Image: p.Load(globals), Kernel: k, Dim: [3]int{1, 1, 1}, Block: [3]int{1, 1, 1},
		Args: []byte{what, 0, 0, 0}}
	require.NoError(t, w.Start(g))
	for !g.Done() {
		require.NotZero(t, w.Step(1000))
	}
	return printed, g.Fault()
}

// A thread prints as C's printf does, and gets the number of values.
func TestPrint(t *testing.T) {
	text, fault := runExterns(t, 0)
	require.Nil(t, fault)
	require.Equal(t, "-7|00042|ff|-5000000000|3.25|X|hi  |1|%|  9|-1\n", text)
}

// A module that calls what nobody knows can be loaded, and its other kernels run: a thread that comes to the call
// fails.
func TestExternsThatFail(t *testing.T) {
	_, fault := runExterns(t, 1)
	require.ErrorContains(t, fault, `assertion "hi" failed at hi:17 in hi`)
	_, fault = runExterns(t, 2)
	require.ErrorContains(t, fault, "unheard has no body in this module")
}
