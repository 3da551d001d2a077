package ptxcheck_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/ringo-go/ringo/gpu/emu/ptxcheck"
)

// Each thread of two warps adds its neighbour's element to its own, without a barrier between
// loads and stores.
func Example() {
	const text = `.version 7.0
.target sm_70
.address_size 64
.visible .entry shift(.param .u64 x)
{
	.reg .b32 %r<3>;
	.reg .b64 %rd0;
	ld.param.u64 %rd0, [x];
	mov.u32 %r0, %tid.x;
	mad.wide.u32 %rd0, %r0, 4, %rd0;
	ld.global.u32 %r1, [%rd0];
	ld.global.u32 %r2, [%rd0+4];
	add.u32 %r1, %r1, %r2;
	st.global.u32 [%rd0], %r1;
	ret;
}
`
	report, err := ptxcheck.Run(context.Background(), ptxcheck.Case{
		Name: "shift.ptx", Text: []byte(text),
		Buffers:  []string{"x=u32[65]:i"},
		Launches: []ptxcheck.Launch{{Block: [3]int{64}, Args: []string{"x"}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range report.Findings {
		fmt.Println(f.Kind, "between", f.Across)
		fmt.Println("  ", f.Access.Instruction, "of thread", f.Access.Thread)
		fmt.Println("  ", f.Other.Instruction, "of thread", f.Other.Thread)
	}
	// Output:
	// race between threads of a warp
	//    st.global.u32 [%rd0], %r1 of thread [1 0 0]
	//    ld.global.u32 %r2, [%rd0+4] of thread [0 0 0]
	// race between warps
	//    ld.global.u32 %r2, [%rd0+4] of thread [31 0 0]
	//    st.global.u32 [%rd0], %r1 of thread [32 0 0]
}

// A report in words, of a kernel that reads one element too many.
func ExampleReport_Print() {
	const text = `.version 7.0
.target sm_70
.address_size 64
.visible .entry last(.param .u64 x, .param .u32 n)
{
	.reg .b32 %r<2>;
	.reg .b64 %rd0;
	ld.param.u64 %rd0, [x];
	ld.param.u32 %r0, [n];
	mad.wide.u32 %rd0, %r0, 4, %rd0;
	ld.global.u32 %r1, [%rd0];
	ret;
}
`
	report, err := ptxcheck.Run(context.Background(), ptxcheck.Case{
		Name: "last.ptx", Text: []byte(text), GPUs: 2,
		Buffers:  []string{"x=f32[8]:1.5"},
		Launches: []ptxcheck.Launch{{Args: []string{"x@(1-rank)", "7+rank"}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := report.Print(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 1. bad address, found under 100 of 100 seeds
	//    load of 4 bytes from x@0+0x20
	//      GPU 1, kernel last, block (0,0,0), thread (0,0,0), line 11: ld.global.u32 %r1, [%rd0]
	//    just after the end of x@0 (32 bytes at x@0)
	//    shortest schedule: seed 2, 1 turn of 4 instructions
	//      GPU 1, last, block (0,0,0), warp 0: 4 instructions, to line 11
}
