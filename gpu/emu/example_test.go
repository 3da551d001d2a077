package emu_test

import (
	"errors"
	"fmt"
	"log"
	"sync"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/examples/ongpu"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/gpu/emu"
)

// addText is a kernel that adds a number to elements, a thread each.
const addText = `.version 7.0
.target sm_70
.address_size 64
.file 1 "add.cu"
.visible .entry add(.param .u64 x, .param .f32 v)
{
	.reg .b32 %r0;
	.reg .b64 %rd0;
	.reg .f32 %f<2>;
	.loc 1 3 0
	ld.param.u64 %rd0, [x];
	ld.param.f32 %f0, [v];
	mov.u32 %r0, %tid.x;
	mad.wide.u32 %rd0, %r0, 4, %rd0;
	ld.global.f32 %f1, [%rd0];
	add.rn.f32 %f1, %f1, %f0;
	st.global.f32 [%rd0], %f1;
	ret;
}
`

// A kernel is launched with a thread too many.
func Example() {
	machine, err := emu.Open(emu.Config{GPUs: []emu.GPU{{Name: "old", Major: 7, SMs: 1}}, Repeatable: true})
	if err != nil {
		log.Fatal(err)
	}
	defer machine.Close()
	device := machine.Devices()[0]
	module, err := device.Load([]byte(addText))
	if err != nil {
		log.Fatal(err)
	}
	add, err := module.Kernel("add")
	if err != nil {
		log.Fatal(err)
	}
	x, err := gpu.Alloc[float32](device, 4)
	if err != nil {
		log.Fatal(err)
	}
	if err := x.Upload(gpu.Legacy, []float32{1, 2, 3, 4}); err != nil {
		log.Fatal(err)
	}
	if err := add.Launch(gpu.Legacy, gpu.Launch{Block: [3]int{5}}, x, float32(10)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(device.Synchronize(gpu.Legacy) != nil)
	for _, r := range machine.Reports() {
		fmt.Println(r.Kind, "by thread", r.Access.Thread, "at", r.Access.Source)
	}
	// Output:
	// true
	// out of bounds by thread [4 0 0] at add.cu:3
}

// The second allocation on GPU 1 fails.
func ExampleMachine_Inject() {
	machine, err := emu.Open(emu.Config{GPUs: make([]emu.GPU, 2)})
	if err != nil {
		log.Fatal(err)
	}
	defer machine.Close()
	machine.Inject(emu.Fault{Call: "cuMemAlloc", Nth: 2, GPU: 2, Result: emu.OutOfMemory})
	device := machine.Devices()[1]
	for range 2 {
		_, err = device.Alloc(64)
		fmt.Println(errors.Is(err, emu.OutOfMemory))
	}
	// Output:
	// false
	// true
}

// GPUs 0 and 1 have a link, GPU 2 has none.
func ExampleConfig_link() {
	machine, err := emu.Open(emu.Config{GPUs: make([]emu.GPU, 3), Link: func(a, b int) emu.Link {
		if a < 2 && b < 2 {
			return emu.PCIe
		}
		return emu.NoLink
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer machine.Close()
	d := machine.Devices()
	fmt.Println(d[0].Reach(d[1]))
	fmt.Println(d[0].Reach(d[2]))
	// Output:
	// <nil>
	// gpu: device 0 does not reach the memory of device 2: they are not linked, or the system forbids it
}

// An all-reduce on two GPUs that do not reach each other's memory: an old one and a new one.
func ExampleOpen() {
	machine, err := emu.Open(emu.Config{
		GPUs: []emu.GPU{{Major: 7}, {Major: 9}},
		Link: func(a, b int) emu.Link { return emu.NoLink },
	})
	if err != nil {
		log.Fatal(err)
	}
	comms, err := ringo.OpenLocal(2, ringo.Config{Devices: machine.Devices()})
	if err != nil {
		log.Fatal(err)
	}
	var ranks sync.WaitGroup
	for _, c := range comms {
		ranks.Go(func() {
			defer c.Close()
			x, err := gpu.Alloc[float32](c.Device(), 2)
			if err != nil {
				log.Fatal(err)
			}
			rank := float32(c.Rank())
			if err := x.Upload(gpu.Legacy, []float32{rank, 10 + rank}); err != nil {
				log.Fatal(err)
			}
			if err := ongpu.AllReduce(c, gpu.Legacy, x, ringo.Sum); err != nil {
				log.Fatal(err)
			}
			if err := c.Synchronize(gpu.Legacy); err != nil {
				log.Fatal(err)
			}
			got := make([]float32, 2)
			if err := x.Download(gpu.Legacy, got); err != nil {
				log.Fatal(err)
			}
			if c.Rank() == 0 {
				fmt.Println(got)
			}
			if err := x.Free(); err != nil {
				log.Fatal(err)
			}
		})
	}
	ranks.Wait()
	fmt.Println(machine.Close())
	// Output:
	// [1 21]
	// <nil>
}
