package cudatest

// kernels is a module in PTX, written by hand.
const kernels = `.version 7.0
.target sm_70
.address_size 64

.visible .global .align 4 .u32 answer = 42;
.visible .global .align 8 .b8 table[24] = {1, 2, 3, 4, 5, 6, 7, 8};
.extern .shared .align 16 .b8 dynamic[];

// out[i] = 1000 * block + thread
.visible .entry threads(.param .u64 out)
{
	.reg .b32 %r<6>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [out];
	cvta.to.global.u64 %rd1, %rd1;
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mad.lo.s32 %r4, %r2, %r3, %r1;
	mul.wide.u32 %rd2, %r4, 4;
	add.s64 %rd3, %rd1, %rd2;
	mad.lo.s32 %r5, %r2, 1000, %r1;
	st.global.u32 [%rd3], %r5;
	ret;
}

// out = a + b, n groups of four floats
.visible .entry add4(.param .u64 out, .param .u64 a, .param .u64 b, .param .u32 n)
{
	.reg .pred %p<2>;
	.reg .b32 %r<6>;
	.reg .f32 %f<13>;
	.reg .b64 %rd<8>;
	ld.param.u64 %rd1, [out];
	ld.param.u64 %rd2, [a];
	ld.param.u64 %rd3, [b];
	ld.param.u32 %r1, [n];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %tid.x;
	mad.lo.s32 %r5, %r2, %r3, %r4;
	setp.ge.u32 %p1, %r5, %r1;
	@%p1 bra done;
	mul.wide.u32 %rd4, %r5, 16;
	add.s64 %rd5, %rd2, %rd4;
	add.s64 %rd6, %rd3, %rd4;
	add.s64 %rd7, %rd1, %rd4;
	ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd5];
	ld.global.v4.f32 {%f5, %f6, %f7, %f8}, [%rd6];
	add.rn.f32 %f9, %f1, %f5;
	add.rn.f32 %f10, %f2, %f6;
	add.rn.f32 %f11, %f3, %f7;
	add.rn.f32 %f12, %f4, %f8;
	st.global.v4.f32 [%rd7], {%f9, %f10, %f11, %f12};
done:
	ret;
}

// out gets each parameter as a word of 64 bits
.visible .entry params(.param .u8 a, .param .u64 b, .param .u16 c, .param .u32 d,
	.param .align 4 .b8 e[12], .param .u8 f, .param .u64 out)
{
	.reg .b16 %h<2>;
	.reg .b32 %r<2>;
	.reg .b64 %rd<12>;
	ld.param.u64 %rd1, [out];
	cvta.to.global.u64 %rd1, %rd1;
	ld.param.u8 %rd2, [a];
	st.global.u64 [%rd1], %rd2;
	ld.param.u64 %rd3, [b];
	st.global.u64 [%rd1+8], %rd3;
	ld.param.u16 %rd4, [c];
	st.global.u64 [%rd1+16], %rd4;
	ld.param.u32 %rd5, [d];
	st.global.u64 [%rd1+24], %rd5;
	ld.param.u32 %rd6, [e];
	st.global.u64 [%rd1+32], %rd6;
	ld.param.u32 %rd7, [e+4];
	st.global.u64 [%rd1+40], %rd7;
	ld.param.u32 %rd8, [e+8];
	st.global.u64 [%rd1+48], %rd8;
	ld.param.u8 %rd9, [f];
	st.global.u64 [%rd1+56], %rd9;
	ret;
}

// counter = counter + 1
.visible .entry increment(.param .u64 counter)
{
	.reg .b32 %r<3>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [counter];
	ld.global.u32 %r1, [%rd1];
	add.s32 %r2, %r1, 1;
	st.global.u32 [%rd1], %r2;
	ret;
}

// out[i] = in[n-1-i] within a block, by way of dynamic shared memory
.visible .entry reverse(.param .u64 data)
{
	.reg .b32 %r<10>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [data];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, %ntid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd3, %rd1, %rd2;
	ld.global.u32 %r3, [%rd3];
	mov.u32 %r4, dynamic;
	shl.b32 %r5, %r1, 2;
	add.s32 %r6, %r4, %r5;
	st.shared.u32 [%r6], %r3;
	bar.sync 0;
	sub.s32 %r7, %r2, %r1;
	add.s32 %r7, %r7, -1;
	shl.b32 %r8, %r7, 2;
	add.s32 %r9, %r4, %r8;
	ld.shared.u32 %r3, [%r9];
	st.global.u32 [%rd3], %r3;
	ret;
}

// counts blocks in a word and waits until all are there
.visible .entry meet(.param .u64 counter)
{
	.reg .pred %p<2>;
	.reg .b32 %r<4>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [counter];
	mov.u32 %r1, %nctaid.x;
	atom.global.add.u32 %r2, [%rd1], 1;
wait:
	ld.volatile.global.u32 %r3, [%rd1];
	setp.lt.u32 %p1, %r3, %r1;
	@%p1 bra wait;
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

// *p = v, after all that this thread has seen
.visible .entry post(.param .u64 p, .param .u32 v)
{
	.reg .b32 %r<2>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [p];
	ld.param.u32 %r1, [v];
	st.release.sys.global.u32 [%rd1], %r1;
	ret;
}

.visible .entry stop()
{
	trap;
	ret;
}

// takes 12 bytes of parameters and looks at none
.visible .entry ignore(.param .u64 a, .param .u32 b)
{
	ret;
}

.visible .entry nothing()
{
	ret;
}
`
