// Command walked carries out an AllReduce of 4 ranks a few times and then once more, and writes
// which lines that last one has executed: it is built with -cover by "go run ./internal/house -walk".
//
//	walked host FOLDER    1 MiB of host memory, over shm
//	walked gpu FOLDER     4 KiB of emulated GPUs' memory
package main

import (
	"errors"
	"log"
	"os"
	"runtime/coverage"
	"sync"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	_ "github.com/ringo-go/ringo/gpu/emu"
)

const ranks = 4

func main() {
	log.SetFlags(0)
	log.SetPrefix("walked: ")
	if len(os.Args) != 3 {
		log.Fatal("usage: walked host|gpu FOLDER")
	}
	walk := onHost
	if os.Args[1] == "gpu" {
		walk = onGPU
	}
	if err := walk(os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

// onHost walks over shared memory.
func onHost(folder string) error {
	comms, err := ringo.OpenLocal(ranks, ringo.Config{Transport: "shm"})
	if err != nil {
		return err
	}
	x := make([][]float32, ranks)
	for r := range x {
		x[r] = make([]float32, 1<<18)
	}
	return count(comms, folder, func(c *ringo.Comm) error { return ringo.AllReduce(c, x[c.Rank()], ringo.Sum) })
}

// onGPU walks over emulated GPUs.
func onGPU(folder string) error {
	m, err := gpu.Open(gpu.Options{Emulate: ranks})
	if err != nil {
		return err
	}
	var cfg ringo.Config
	calls := make([]*ringo.Call, ranks)
	for r := range calls {
		dev, err := m.Device(r)
		if err != nil {
			return err
		}
		x, err := dev.Alloc(4096)
		if err != nil {
			return err
		}
		if err := dev.Write(x, make([]byte, 4096)); err != nil {
			return err
		}
		cfg.Devices = append(cfg.Devices, dev)
		calls[r] = &ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 1024, Type: ringo.Float32, Op: ringo.Sum}
	}
	comms, err := ringo.OpenLocal(ranks, cfg)
	if err != nil {
		return err
	}
	return count(comms, folder, func(c *ringo.Comm) error {
		if err := c.Do(calls[c.Rank()]); err != nil {
			return err
		}
		return c.Synchronize(0)
	})
}

// count has all ranks do the same until they are warm, and counts the last time.
func count(comms []*ringo.Comm, folder string, do func(*ringo.Comm) error) error {
	for range 3 {
		if err := each(comms, do); err != nil {
			return err
		}
	}
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	err := each(comms, do)
	return errors.Join(err, coverage.WriteMetaDir(folder), coverage.WriteCountersDir(folder))
}

// each has a goroutine for each rank, and waits for all.
func each(comms []*ringo.Comm, do func(*ringo.Comm) error) error {
	errs := make([]error, len(comms))
	var wg sync.WaitGroup
	for r, c := range comms {
		wg.Go(func() { errs[r] = do(c) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
