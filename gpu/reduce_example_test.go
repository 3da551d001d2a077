package gpu_test

import (
	"errors"
	"fmt"
	"log"
	"sync"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	_ "github.com/ringo-go/ringo/gpu/emu" // emulated GPUs, for Options.Emulate
	"github.com/ringo-go/ringo/mem"
)

// An all-reduce of GPU memory, here of two emulated GPUs; gpu.Options{} takes the real ones.
func Example_allReduce() {
	m, err := gpu.Open(gpu.Options{Emulate: 2})
	if err != nil {
		log.Fatal(err)
	}
	var devices []*gpu.Device
	for i := range m.Count() {
		d, err := m.Device(i)
		if err != nil {
			log.Fatal(err)
		}
		devices = append(devices, d)
	}
	comms, err := ringo.OpenLocal(2, ringo.Config{Devices: devices})
	if err != nil {
		log.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, c := range comms {
		wg.Go(func() {
			defer c.Close()
			if err := reduceOn(c); err != nil {
				log.Fatal(err)
			}
		})
	}
	wg.Wait()
	if err := m.Close(); err != nil { // which names what was not freed
		log.Fatal(err)
	}
	// Output: [11 22 33]
}

// reduceOn reduces three floats of each rank on a stream of the rank's GPU.
func reduceOn(c *ringo.Comm) error {
	d := c.Device()
	s, err := d.NewStream()
	if err != nil {
		return err
	}
	x, err := d.Alloc(3 * 4)
	if err != nil {
		return err
	}
	host := [][]float32{{1, 2, 3}, {10, 20, 30}}[c.Rank()]
	if err := d.Write(x, mem.Of(host).Bytes()); err != nil {
		return err
	}
	err = c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 3, Type: ringo.Float32, Op: ringo.Sum,
		Stream: s})
	if err != nil {
		return err
	}
	if err := c.Synchronize(s); err != nil { // waits for the stream, and says what went wrong on the GPU
		return err
	}
	if err := d.Read(mem.Of(host).Bytes(), x); err != nil {
		return err
	}
	if c.Rank() == 0 {
		fmt.Println(host)
	}
	return errors.Join(d.Free(x), d.DestroyStream(s))
}
