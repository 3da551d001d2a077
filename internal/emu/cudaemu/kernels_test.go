package cudaemu_test

// ptxText is the kernels of the tests.
const ptxText = `.version 7.0
.target sm_70
.address_size 64

.visible .global .align 4 .b8 there[16];
.visible .global .align 8 .u64 here = there;

// Block 0 writes data and sets a flag, block 1 waits for it and reads; block 0
// stays until then.
.visible .entry message(.param .u64 data, .param .u64 flag, .param .u64 out)
{
	.reg .pred %p<2>;
	.reg .b32 %r<4>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [data];
	ld.param.u64 %rd2, [flag];
	ld.param.u64 %rd3, [out];
	mov.u32 %r1, %ctaid.x;
	setp.ne.u32 %p1, %r1, 0;
	@%p1 bra receive;
	st.global.u32 [%rd1], 42;
	fence.acq_rel.gpu; // of the sender
	st.relaxed.gpu.global.u32 [%rd2], 1;
stay:
	ld.relaxed.gpu.global.u32 %r2, [%rd2];
	setp.ne.u32 %p1, %r2, 2;
	@%p1 bra stay;
	ret;
receive:
	ld.relaxed.gpu.global.u32 %r2, [%rd2];
	setp.eq.u32 %p1, %r2, 0;
	@%p1 bra receive;
	fence.acq_rel.gpu; // of the receiver
	ld.global.u32 %r3, [%rd1];
	st.global.u32 [%rd3], %r3;
	st.relaxed.gpu.global.u32 [%rd2], 2;
	ret;
}

// Two of these, on two devices or in two processes, send each other numbers:
// data in slots 0 and 4, the round in a flag at 64.
.visible .entry exchange(.param .u64 theirs, .param .u64 mine, .param .u64 out, .param .u32 value, .param .u32 rounds)
{
	.reg .pred %p<2>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<7>;
	ld.param.u64 %rd1, [theirs];
	ld.param.u64 %rd2, [mine];
	ld.param.u64 %rd3, [out];
	ld.param.u32 %r1, [value];
	ld.param.u32 %r2, [rounds];
	mov.u32 %r3, 0;
	mov.u32 %r4, 0;
next:
	add.u32 %r3, %r3, 1;
	and.b32 %r5, %r3, 1;
	mul.wide.u32 %rd4, %r5, 4;
	add.s64 %rd5, %rd1, %rd4;
	mul.lo.u32 %r6, %r1, %r3;
	st.global.u32 [%rd5], %r6;
	fence.acq_rel.sys;
	st.relaxed.sys.global.u32 [%rd1+64], %r3;
wait:
	ld.relaxed.sys.global.u32 %r7, [%rd2+64];
	setp.lt.u32 %p1, %r7, %r3;
	@%p1 bra wait;
	fence.acq_rel.sys;
	add.s64 %rd6, %rd2, %rd4;
	ld.global.u32 %r8, [%rd6];
	add.u32 %r4, %r4, %r8;
	setp.lt.u32 %p1, %r3, %r2;
	@%p1 bra next;
	st.global.u32 [%rd3], %r4;
	ret;
}

.shared .align 4 .b8 box[256];

// out is in reversed, 64 words.
.visible .entry reverse(.param .u64 out, .param .u64 in)
{
	.reg .b32 %r<6>;
	.reg .b64 %rd<6>;
	ld.param.u64 %rd1, [out];
	ld.param.u64 %rd2, [in];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd3, %r1, 4;
	add.s64 %rd4, %rd2, %rd3;
	ld.global.u32 %r2, [%rd4];
	mov.u32 %r3, box;
	shl.b32 %r4, %r1, 2;
	add.u32 %r3, %r3, %r4;
	st.shared.u32 [%r3], %r2;
	bar.sync 0;
	mov.u32 %r3, box;
	sub.u32 %r4, 252, %r4;
	add.u32 %r3, %r3, %r4;
	ld.shared.u32 %r2, [%r3];
	add.s64 %rd5, %rd1, %rd3;
	st.global.u32 [%rd5], %r2;
	ret;
}

// *p = v
.visible .entry store(.param .u64 p, .param .u32 v)
{
	.reg .b32 %r<2>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [p];
	ld.param.u32 %r1, [v];
	st.global.u32 [%rd1], %r1;
	ret;
}

// *to = *from
.visible .entry move(.param .u64 to, .param .u64 from)
{
	.reg .b32 %r<2>;
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [to];
	ld.param.u64 %rd2, [from];
	ld.global.u32 %r1, [%rd2];
	st.global.u32 [%rd1], %r1;
	ret;
}

// Waits until *p is not 0.
.visible .entry await(.param .u64 p)
{
	.reg .pred %p<2>;
	.reg .b32 %r<2>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [p];
again:
	ld.relaxed.sys.global.u32 %r1, [%rd1];
	setp.eq.u32 %p1, %r1, 0;
	@%p1 bra again;
	ret;
}

// Waits until *flag is not 0, then *to = *from.
.visible .entry relay(.param .u64 to, .param .u64 from, .param .u64 flag)
{
	.reg .pred %p<2>;
	.reg .b32 %r<2>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [to];
	ld.param.u64 %rd2, [from];
	ld.param.u64 %rd3, [flag];
again:
	ld.acquire.sys.global.u32 %r1, [%rd3];
	setp.eq.u32 %p1, %r1, 0;
	@%p1 bra again;
	ld.global.u32 %r1, [%rd2];
	st.global.u32 [%rd1], %r1;
	ret;
}

// Counts n down.
.visible .entry count(.param .u32 n)
{
	.reg .pred %p<2>;
	.reg .b32 %r<2>;
	ld.param.u32 %r1, [n];
more:
	sub.u32 %r1, %r1, 1;
	setp.ne.u32 %p1, %r1, 0;
	@%p1 bra more;
	ret;
}

.visible .entry few() .maxntid 64, 1, 1
{
	ret;
}

.visible .entry nothing()
{
	ret;
}
`
