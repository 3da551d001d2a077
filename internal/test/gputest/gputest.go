// Package gputest gives tests a CUDA driver. By default it is the emulated one,
// which is everywhere and reports races and leaks as failures of the test. The
// variable REQUIRE makes the same tests run elsewhere:
//
//	REQUIRE=cuda go test ./...        on the real driver; a missing GPU fails
//	REQUIRE="gcc clang" go test ./... on the emulator; a missing tool fails
//	REQUIRE=pcie go test ./...        on the emulator, whose devices are joined by PCIe
//
// Under REQUIRE=pcie a test that sets the links of its devices itself is skipped: it would be the same.
//
// Tests that need more devices than the machine has are skipped on it.
package gputest

import (
	"os"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/need"
)

// init has the garbage collector run less often: the emulator makes much garbage beside a few MB of compiled programs
// and records, which each collection looks through again.
func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// OnGPU reports whether Driver gives the real driver.
func OnGPU() bool { return need.Required("cuda") }

// An Option is about the driver that Driver gives.
type Option func(*options)

type options struct {
	devices int
	emu     cudaemu.Config
	faults  bool
	warm    bool
}

// Devices has the driver have at least n devices.
func Devices(n int) Option { return func(o *options) { o.devices = n } }

// Emu configures the emulator.
func Emu(c cudaemu.Config) Option {
	return func(o *options) {
		if c.Link == nil {
			c.Link = o.emu.Link
		}
		o.emu = c
	}
}

// NVLink joins the emulator's devices by NVLink, for tests that need it.
func NVLink() Option {
	return func(o *options) { o.emu.Link = func(a, b int) cuda.Link { return cuda.NVLink } }
}

// PCIe is a cudaemu.Config.Link: all devices are joined by PCIe.
func PCIe(a, b int) cuda.Link { return cuda.PCIe }

// Faults lets the test look at the emulator's reports itself.
func Faults() Option { return func(o *options) { o.faults = true } }

// Warm keeps the primary contexts of real devices until the process ends. Making
// one takes 0.1 s and more, and every test would make its own.
func Warm() Option { return func(o *options) { o.warm = true } }

// warm are the devices whose contexts are kept.
var warm = struct {
	sync.Mutex
	devices map[int]bool
}{devices: map[int]bool{}}

func keep(d cuda.Driver, n int) error {
	warm.Lock()
	defer warm.Unlock()
	for i := range n {
		if warm.devices[i] {
			continue
		}
		dev, err := d.DeviceGet(i)
		if err == nil {
			_, err = d.DevicePrimaryCtxRetain(dev)
		}
		if err != nil {
			return err
		}
		warm.devices[i] = true
	}
	return nil
}

var real = sync.OnceValues(func() (cuda.Driver, error) { return cuda.Open(os.Getenv("RINGO_CUDA_LIBRARY")) })

// Driver is the emulated driver, or the real one under REQUIRE=cuda. The
// emulator is the test's own; when the test ends, what it reported and what was
// not released fail the test.
func Driver(t testing.TB, opts ...Option) cuda.Driver {
	t.Helper()
	o := options{devices: 1}
	for _, f := range opts {
		f(&o)
	}
	if !OnGPU() {
		return emulator(t, o)
	}
	d, err := real()
	if err != nil {
		t.Fatalf("REQUIRE=cuda: %v", err)
	}
	n, err := d.DeviceGetCount()
	if err != nil {
		t.Fatalf("REQUIRE=cuda: %v", err)
	}
	if n < o.devices {
		t.Skipf("needs %d GPUs: this machine has %d", o.devices, n)
	}
	if o.warm {
		if err := keep(d, o.devices); err != nil {
			t.Fatalf("REQUIRE=cuda: %v", err)
		}
	}
	return d
}

func emulator(t testing.TB, o options) cuda.Driver {
	t.Helper()
	if o.emu.Devices == 0 && o.emu.Shapes == nil {
		o.emu.Devices = o.devices
	}
	if need.Required("pcie") {
		if o.emu.Link != nil {
			t.Skip("its links are its own: it runs without REQUIRE=pcie")
		}
		o.emu.Link = PCIe
	}
	o.emu.LoadsWait = true
	m, err := cudaemu.New(o.emu)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Objects of graphs are released some time after the graphs are destroyed.
		for end := time.Now().Add(2 * time.Second); len(m.Unreleased()) > 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if o.faults {
			return
		}
		for _, f := range m.Reports() {
			t.Error(f)
		}
	})
	return m
}
