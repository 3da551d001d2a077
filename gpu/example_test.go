package gpu_test

import (
	"fmt"
	"log"

	"github.com/ringo-go/ringo/gpu"
	_ "github.com/ringo-go/ringo/gpu/emu" // emulated GPUs, for Options.Emulate
)

// On the emulator no GPU is needed; without Emulate the same program runs on one.
func Example() {
	machine, err := gpu.Open(gpu.Options{Emulate: 1})
	if err != nil {
		log.Fatal(err)
	}
	device, err := machine.Device(0)
	if err != nil {
		log.Fatal(err)
	}
	memory, err := device.Alloc(4)
	if err != nil {
		log.Fatal(err)
	}
	if err := device.Write(memory, []byte{1, 2, 3, 4}); err != nil {
		log.Fatal(err)
	}
	// Work on a stream is queued; Synchronize waits for it.
	stream, err := device.NewStream()
	if err != nil {
		log.Fatal(err)
	}
	if err := device.Set(memory.Ptr(), 7, 2, stream); err != nil {
		log.Fatal(err)
	}
	if err := device.Synchronize(stream); err != nil {
		log.Fatal(err)
	}
	got := make([]byte, 4)
	if err := device.Read(got, memory); err != nil {
		log.Fatal(err)
	}
	fmt.Println(got)

	// When the emulator is closed, it names all memory and streams that were not given back.
	if err := device.DestroyStream(stream); err != nil {
		log.Fatal(err)
	}
	if err := device.Free(memory); err != nil {
		log.Fatal(err)
	}
	if err := machine.Close(); err != nil {
		log.Fatal(err)
	}
	// Output: [7 7 3 4]
}

// A graph records work once and repeats it at little cost.
func ExampleDevice_Capture() {
	machine, err := gpu.Open(gpu.Options{Emulate: 1})
	if err != nil {
		log.Fatal(err)
	}
	device, err := machine.Device(0)
	if err != nil {
		log.Fatal(err)
	}
	memory, err := device.Alloc(4)
	if err != nil {
		log.Fatal(err)
	}
	stream, err := device.NewStream()
	if err != nil {
		log.Fatal(err)
	}
	graph, err := device.Capture(stream, func() error {
		return device.Set(memory.Ptr(), 7, 4, stream)
	})
	if err != nil {
		log.Fatal(err)
	}
	got := make([]byte, 4)
	for range 2 {
		if err := device.Write(memory, []byte{1, 2, 3, 4}); err != nil {
			log.Fatal(err)
		}
		if err := graph.Launch(stream); err != nil {
			log.Fatal(err)
		}
		if err := device.Synchronize(stream); err != nil {
			log.Fatal(err)
		}
		if err := device.Read(got, memory); err != nil {
			log.Fatal(err)
		}
		fmt.Println(got)
	}
	// Output:
	// [7 7 7 7]
	// [7 7 7 7]
}

// A kernel in PTX, written by hand as here or by a compiler, is loaded and launched.
func ExampleKernel_Launch() {
	const text = `.version 7.0
.target sm_70
.address_size 64
.visible .entry scale(.param .u64 x, .param .f32 by, .param .u32 n)
{
	.reg .pred %beyond;
	.reg .b32 %r<4>;
	.reg .b64 %rd0;
	.reg .f32 %f<2>;
	ld.param.u64 %rd0, [x];
	ld.param.f32 %f0, [by];
	ld.param.u32 %r0, [n];
	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %ntid.x;
	mov.u32 %r3, %tid.x;
	mad.lo.u32 %r1, %r1, %r2, %r3;
	setp.ge.u32 %beyond, %r1, %r0;
	@%beyond exit;
	mad.wide.u32 %rd0, %r1, 4, %rd0;
	ld.global.f32 %f1, [%rd0];
	mul.rn.f32 %f1, %f1, %f0;
	st.global.f32 [%rd0], %f1;
	ret;
}
`
	machine, err := gpu.Open(gpu.Options{Emulate: 1})
	if err != nil {
		log.Fatal(err)
	}
	device, err := machine.Device(0)
	if err != nil {
		log.Fatal(err)
	}
	module, err := device.Load([]byte(text))
	if err != nil {
		log.Fatal(err)
	}
	scale, err := module.Kernel("scale")
	if err != nil {
		log.Fatal(err)
	}
	x, err := gpu.Alloc[float32](device, 5)
	if err != nil {
		log.Fatal(err)
	}
	if err := x.Upload(gpu.Legacy, []float32{1, 2, 3, 4, 5}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(scale.Launch(gpu.Legacy, gpu.Launch{Grid: [3]int{2}, Block: [3]int{4}}, x, 1.5, x.Len()))
	if err := scale.Launch(gpu.Legacy, gpu.Launch{Grid: [3]int{2}, Block: [3]int{4}}, x, float32(1.5),
		x.Len()); err != nil {
		log.Fatal(err)
	}
	got := make([]float32, 5)
	if err := x.Download(gpu.Legacy, got); err != nil {
		log.Fatal(err)
	}
	fmt.Println(got)
	for _, err := range []error{x.Free(), module.Close(), machine.Close()} {
		if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// gpu: kernel scale: argument 1 (.f32 by): a float64, and the parameter is .f32
	// [1.5 3 4.5 6 7.5]
}
