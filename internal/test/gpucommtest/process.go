// Package gpucommtest has processes of tests be ranks with a GPU each: commtest, for packages that link the emulator.
package gpucommtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// Main is commtest.Main, and a rank may have a GPU: with one of the Works given, or with "gpucheck", which all packages
// have.
func Main(m *testing.M, onHost, onGPU map[string]commtest.Work) {
	ranks := map[string]func() int{"gpucheck": func() int { return rank(check) }}
	for name, work := range onGPU {
		ranks[name] = func() int { return rank(work) }
	}
	commtest.Main(m, onHost, ranks)
}

// rank is a rank with a GPU.
func rank(work commtest.Work) int {
	number, err := strconv.Atoi(os.Getenv("RINGO_RANK"))
	if err != nil {
		fmt.Println("error:", err)
		return 2
	}
	m, err := openGPUs(number)
	if err != nil {
		fmt.Println("error:", err)
		return 2
	}
	d, _ := m.Device(number % m.Count())
	fmt.Println("opening")
	c, err := ringo.OpenEnv(context.Background(), ringo.Config{Device: d})
	if err != nil {
		fmt.Println("error:", err)
		return 2
	}
	fmt.Println("open")
	code := work(c)
	if err := errors.Join(commtest.Usable(d), c.Close(), commtest.Usable(d), m.Close()); err != nil {
		fmt.Println("afterwards:", err)
		code = 5
	}
	if faults.Load() > 0 && code == 0 {
		code = 6
	}
	return code
}

// faults are what the emulator has found in this process, races with others too.
var faults atomic.Int32

func openGPUs(rank int) (*gpu.Machine, error) {
	if gputest.OnGPU() {
		return gpu.Open(gpu.Options{Library: os.Getenv("RINGO_CUDA_LIBRARY")})
	}
	rdma := os.Getenv("RINGO_TEST_NET_DMABUF")
	cfg := cudaemu.Config{Devices: 4, RDMA: rdma != "", Flushes: rdma != "ordered",
		Report: func(f *weakmem.Fault) bool { fmt.Println("fault:", f); faults.Add(1); return true }}
	if need.Required("pcie") {
		cfg.Link = gputest.PCIe
	}
	if os.Getenv("RINGO_TEST_GPUS") == "alone" {
		cfg.Visible = []int{rank}
	}
	d, err := cudaemu.New(cfg)
	if err != nil {
		return nil, err
	}
	return gpu.Of(d)
}

// check makes every call.
func check(c *ringo.Comm) int {
	for _, count := range tier.Some(3, []int{1001, 0, 3}) {
		if err := commtest.CheckCalls(c, commtest.EveryCall(c.Size(), count, ringo.Int32, ringo.Sum)); err != nil {
			fmt.Println("error:", err)
			return 3
		}
		f := c.Footprint()
		if err := errors.Join(f.Suspend(), f.Resume()); err != nil {
			fmt.Println("error:", err)
			return 3
		}
	}
	fmt.Println("fine:", strings.Join(c.Paths(), ", "))
	return 0
}
