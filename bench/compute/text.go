package compute

import (
	"fmt"
	"strings"
)

const (
	threads = 256 // of a block
	side    = 4   // of the square of products that a thread adds up
	depth   = 8   // squares of a round
)

// text is the kernel in PTX. The block's tile is a number for each thread, from
// -0.875 to 0.875. In each round a thread reads depth times side numbers for its row and side for its column,
// adds the products of all pairs to its side × side sums, and waits for its block once. In the
// end it stores the sum of its sums.
func text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`.version 7.0
.target sm_70
.address_size 64
.extern .shared .align 16 .b8 tile[];
.visible .entry compute(.param .u64 sums, .param .u32 rounds)
.maxntid %d, 1, 1
{
	.reg .pred %%more;
	.reg .b32 %%r<8>;
	.reg .b64 %%at<4>;
	.reg .f32 %%x, %%row<%d>, %%col<%d>, %%sum<%d>;
	ld.param.u64 %%at0, [sums];
	ld.param.u32 %%r0, [rounds];
	mov.u32 %%r1, %%tid.x;
	mov.u32 %%r2, tile;
	and.b32 %%r3, %%r1, 7;
	cvt.rn.f32.u32 %%x, %%r3;
	fma.rn.f32 %%x, %%x, 0f3E800000, 0fBF600000;
	shl.b32 %%r3, %%r1, 2;
	add.u32 %%r3, %%r2, %%r3;
	st.shared.f32 [%%r3], %%x;`, threads, side, side, side*side)
	for i := range side * side {
		line("	mov.f32 %%sum%d, 0f00000000;", i)
	}
	line(`	shr.u32 %%r3, %%r1, 4;
	mul.lo.u32 %%r3, %%r3, %d;
	add.u32 %%r3, %%r2, %%r3; // the thread's row
	and.b32 %%r4, %%r1, 15;
	mul.lo.u32 %%r4, %%r4, %d;
	add.u32 %%r4, %%r2, %%r4; // its column
	bar.sync 0;
again:
	setp.eq.u32 %%more, %%r0, 0;
	@%%more bra done;`, 4*side, 4*side)
	for k := range depth {
		line("	ld.shared.v4.f32 {%%row0, %%row1, %%row2, %%row3}, [%%r3+%d];", k*rowStep*4)
		line("	ld.shared.v4.f32 {%%col0, %%col1, %%col2, %%col3}, [%%r4+%d];", k*colStep*4)
		for i := range side {
			for j := range side {
				line("	fma.rn.f32 %%sum%[1]d, %%row%[2]d, %%col%[3]d, %%sum%[1]d;", i*side+j, i, j)
			}
		}
	}
	line(`	bar.sync 0;
	sub.u32 %%r0, %%r0, 1;
	bra again;
done:`)
	for i := 1; i < side*side; i++ {
		line("	add.rn.f32 %%sum0, %%sum0, %%sum%d;", i)
	}
	line(`	mov.u32 %%r5, %%ctaid.x;
	mad.lo.u32 %%r5, %%r5, %d, %%r1;
	mul.wide.u32 %%at1, %%r5, 4;
	cvta.to.global.u64 %%at0, %%at0;
	add.u64 %%at0, %%at0, %%at1;
	st.global.f32 [%%at0], %%sum0;
	ret;
}`, threads)
	return b.String()
}

// From one square of a round to the next, in numbers of the tile. A thread's row begins at most
// 4·15, its column too, so all reads end within the tile.
const (
	rowStep = 24
	colStep = 20
)
