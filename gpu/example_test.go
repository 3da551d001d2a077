package gpu_test

import (
	"fmt"
	"log"

	"github.com/ringo-go/ringo/gpu"
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

	// What is not given back, the emulator names when it is closed.
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
