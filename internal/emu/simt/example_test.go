package simt_test

import (
	"encoding/binary"
	"fmt"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/simt"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A kernel is stepped through, and thread 2 watched.
func Example() {
	const text = `.version 7.0
.target sm_70
.address_size 64
.visible .entry square(.param .u64 data)
{
	.reg .pred %p<1>;
	.reg .b32 %r<3>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd0, [data];
	mov.u32 %r0, %tid.x;
	mad.wide.u32 %rd1, %r0, 4, %rd0;
	ld.global.u32 %r1, [%rd1];
	mul.lo.u32 %r2, %r1, %r1;
	setp.gt.u32 %p0, %r2, 50;
	@%p0 exit;
	st.global.u32 [%rd1], %r2;
	ret;
}
`
	module, err := ptx.Parse("square.ptx", []byte(text))
	if err != nil {
		panic(err)
	}
	program, err := simt.Compile(module)
	if err != nil {
		panic(err)
	}
	memory := weakmem.New(weakmem.Config{})
	data := []byte{5, 0, 0, 0, 6, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0}
	if err := memory.Map(weakmem.Allocation{Addr: 0x1000, Data: data}); err != nil {
		panic(err)
	}
	world := simt.NewWorld(simt.Config{
		Memory: memory,
		Devices: []simt.Shape{{SMs: 1, ThreadsPerSM: 2048, BlocksPerSM: 32, SharedPerSM: 64 << 10, SharedPerBlock: 48 << 10,
			ThreadsPerBlock: 1024}},
		Trace: func(e simt.Event) { fmt.Printf("%04b %-30s %v\n", e.Mask, e.In.Text, e.Sources(2)) },
	})
	kernel, _ := program.Kernel("square")
	grid := &simt.Grid{Image: program.Load(nil), Kernel: kernel, Dim: [3]int{1, 1, 1}, Block: [3]int{4, 1, 1},
		Args: binary.LittleEndian.AppendUint64(nil, 0x1000)}
	if err := world.Start(grid); err != nil {
		panic(err)
	}
	for world.Step(1) > 0 {
	}
	fmt.Println(data, grid.Fault())
	// Output:
	// 1111 ld.param.u64 %rd0, [data]      [0]
	// 1111 mov.u32 %r0, %tid.x            [2]
	// 1111 mad.wide.u32 %rd1, %r0, 4, %rd0 [2 4 4096]
	// 1111 ld.global.u32 %r1, [%rd1]      [4104]
	// 1111 mul.lo.u32 %r2, %r1, %r1       [7 7]
	// 1111 setp.gt.u32 %p0, %r2, 50       [49 50]
	// 1000 exit                           []
	// 0111 st.global.u32 [%rd1], %r2      [4104 49]
	// 0111 ret                            []
	// [25 0 0 0 36 0 0 0 49 0 0 0 8 0 0 0] <nil>
}
