package simt_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/simt"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/must"
)

// recursion has functions that call themselves, hand down the address of a local variable, and are called by address.
// The results of four threads are stored at the end of each kernel.
const recursion = `.version 7.5
.target sm_70
.address_size 64
.func (.param .b32 r) fib(.param .b32 n)
{
	.reg .b32 %n, %a, %b, %m;
	.reg .pred %p;
	ld.param.u32 %n, [n];
	setp.lt.u32 %p, %n, 2;
	@%p bra LEAF;
	{
	.param .b32 p0; .param .b32 r0;
	sub.u32 %m, %n, 1;
	st.param.b32 [p0], %m;
	call.uni (r0), fib, (p0);
	ld.param.b32 %a, [r0];
	}
	{
	.param .b32 p0; .param .b32 r0;
	sub.u32 %m, %n, 2;
	st.param.b32 [p0], %m;
	call.uni (r0), fib, (p0);
	ld.param.b32 %b, [r0];
	}
	add.u32 %a, %a, %b;
	st.param.b32 [r], %a;
	ret;
LEAF:
	st.param.b32 [r], 1;
	ret;
}
.func (.param .b32 r) down(.param .b32 n, .param .b64 above)
{
	.local .align 4 .b8 own[64];
	.reg .b32 %n, %v;
	.reg .b64 %a, %o;
	.reg .pred %p;
	ld.param.u32 %n, [n];
	ld.param.u64 %a, [above];
	ld.u32 %v, [%a];
	add.u32 %v, %v, 10;
	st.local.u32 [own+4], %v;
	setp.eq.u32 %p, %n, 0;
	@%p bra LEAF;
	mov.u64 %o, own;
	cvta.local.u64 %o, %o;
	add.u64 %o, %o, 4;
	{
	.param .b32 p0; .param .b64 p1; .param .b32 r0;
	sub.u32 %n, %n, 1;
	st.param.b32 [p0], %n;
	st.param.b64 [p1], %o;
	call.uni (r0), down, (p0, p1);
	ld.param.b32 %n, [r0];
	}
	ld.local.u32 %v, [own+4];
	add.u32 %v, %v, %n;
LEAF:
	st.param.b32 [r], %v;
	ret;
}
.func (.param .b32 r) twice(.param .b32 n)
{
	.reg .b32 %n;
	ld.param.u32 %n, [n];
	shl.b32 %n, %n, 1;
	st.param.b32 [r], %n;
	ret;
}
.global .align 8 .u64 table[3] = {twice, fib, 0};
.visible .entry fibs(.param .u64 out, .param .u32 more)
{
	.reg .b32 %t, %n, %m;
	.reg .b64 %o;
	mov.u32 %t, %tid.x;
	ld.param.u32 %m, [more];
	add.u32 %n, %t, %m;
	{
	.param .b32 p0; .param .b32 r0;
	st.param.b32 [p0], %n;
	call.uni (r0), fib, (p0);
	ld.param.b32 %n, [r0];
	}
	ld.param.u64 %o, [out];
	mad.wide.u32 %o, %t, 4, %o;
	st.global.u32 [%o], %n;
	ret;
}
.visible .entry downs(.param .u64 out, .param .u32 more)
{
	.local .align 4 .b8 first[4];
	.reg .b32 %t, %n, %m;
	.reg .b64 %o, %f;
	mov.u32 %t, %tid.x;
	ld.param.u32 %m, [more];
	add.u32 %n, %t, %m;
	st.local.u32 [first], 1;
	mov.u64 %f, first;
	cvta.local.u64 %f, %f;
	{
	.param .b32 p0; .param .b64 p1; .param .b32 r0;
	st.param.b32 [p0], %n;
	st.param.b64 [p1], %f;
	call.uni (r0), down, (p0, p1);
	ld.param.b32 %n, [r0];
	}
	ld.param.u64 %o, [out];
	mad.wide.u32 %o, %t, 4, %o;
	st.global.u32 [%o], %n;
	ret;
}
.visible .entry throughs(.param .u64 out, .param .u32 more)
{
	.reg .b32 %t, %n, %m;
	.reg .b64 %o, %f;
	.reg .pred %p;
	mov.u32 %t, %tid.x;
	ld.param.u32 %m, [more];
	and.b32 %n, %t, 1;
	add.u32 %n, %n, %m;
	mov.u64 %f, table;
	mad.wide.u32 %f, %n, 8, %f;
	ld.global.u64 %f, [%f];
	{
	.param .b32 p0; .param .b32 r0;
	st.param.b32 [p0], %t;
	proto: .callprototype (.param .b32 _) _ (.param .b32 _);
	call (r0), %f, (p0), proto;
	ld.param.b32 %n, [r0];
	}
	ld.param.u64 %o, [out];
	mad.wide.u32 %o, %t, 4, %o;
	st.global.u32 [%o], %n;
	ret;
}
`

// runRecursion runs a kernel with four threads, and gives their results.
func runRecursion(t *testing.T, kernel string, more byte, stack int) (v [4]uint32, fault *weakmem.Fault) {
	t.Helper()
	m := must.Get(ptx.Parse("recursion", []byte(recursion)))
	p := must.Get(simt.Compile(m))
	mem := weakmem.New(weakmem.Config{})
	const out, table = 0x10000, 0x20000
	results, functions := make([]byte, 16), make([]byte, 24)
	for _, r := range m.Vars[0].Relocs {
		binary.LittleEndian.PutUint64(functions[r.Offset:], p.Functions()[r.Name])
	}
	require.NoError(t, mem.Map(weakmem.Allocation{Addr: out, Data: results, Name: "out"}))
	require.NoError(t, mem.Map(weakmem.Allocation{Addr: table, Data: functions, Name: "table"}))
	w := simt.NewWorld(simt.Config{Devices: []simt.Shape{small}, Memory: mem})
	k, ok := p.Kernel(kernel)
	require.True(t, ok)
	g := &simt.Grid{Image: p.Load(map[string]uint64{"table": table}), Kernel: k, Dim: [3]int{1, 1, 1},
		Block: [3]int{4, 1, 1},
		Args:  []byte{0, 0, 1, 0, 0, 0, 0, 0, more, 0, 0, 0}, Stack: stack}
	require.NoError(t, w.Start(g))
	for !g.Done() {
		require.NotZero(t, w.Step(1000))
	}
	for i := range v {
		v[i] = binary.LittleEndian.Uint32(results[4*i:])
	}
	return v, g.Fault()
}

// TestRecursion: each activation has registers, parameters and local variables of its own, in each thread.
func TestRecursion(t *testing.T) {
	v, fault := runRecursion(t, "fibs", 9, 0)
	require.Nil(t, fault)
	require.Equal(t, [4]uint32{55, 89, 144, 233}, v)
	v, fault = runRecursion(t, "downs", 0, 0) // 11; 11 and 21; …
	require.Nil(t, fault)
	require.Equal(t, [4]uint32{11, 32, 63, 104}, v)
}

// TestStackIsFull: the stack is as large as the grid says, and the fault names the remedy.
func TestStackIsFull(t *testing.T) {
	_, fault := runRecursion(t, "downs", 30, 0)
	require.ErrorContains(t, fault, "the stack of 1024 bytes is full: down would be call ")
	require.ErrorContains(t, fault, "cudaLimitStackSize")
	require.Equal(t, weakmem.OutOfBounds, fault.Kind)
	_, fault = runRecursion(t, "downs", 30, 1<<16)
	require.Nil(t, fault)
}

// TestCallThroughRegister: threads of a warp call what their registers say; an address of no function is a fault.
func TestCallThroughRegister(t *testing.T) {
	v, fault := runRecursion(t, "throughs", 0, 0)
	require.Nil(t, fault)
	require.Equal(t, [4]uint32{0, 1, 4, 3}, v)
	_, fault = runRecursion(t, "throughs", 1, 0)
	require.ErrorContains(t, fault, "no function of this prototype has the address 0x0")
	require.Equal(t, weakmem.BadCall, fault.Kind)
}
