package gpu

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/mem"
)

// A Device is one GPU. Its primary context, the one that CUDA's runtime and so
// every framework uses, is retained when it is first needed. No method changes
// the calling thread's current device.
type Device struct {
	driver cuda.Driver
	handle cuda.Device
	number int
	frees  atomic.Uint64

	mu     sync.Mutex
	ctx    cuda.Context    // guarded by mu; 0 until it is needed
	mapped map[uintptr]int // guarded by mu; lengths in bytes of AllocMapped's memory, by address

	later later
}

// Number is the device's number in its machine.
func (d *Device) Number() int { return d.number }

// Name is the device's name: "NVIDIA H200".
func (d *Device) Name() (string, error) { return d.driver.DeviceGetName(d.handle) }

// DriverVersion is the version of the driver: "CUDA 13.0", "emulated CUDA 13.0".
func (d *Device) DriverVersion() string {
	v, err := d.driver.DriverGetVersion()
	if err != nil {
		return "unknown"
	}
	name := fmt.Sprintf("CUDA %d.%d", v/1000, v%1000/10)
	if d.driver.Name() == "emu" {
		return "emulated " + name
	}
	return name
}

// Handle is the driver's handle of the device.
func (d *Device) Handle() cuda.Device { return d.handle }

// Driver, Handle and Context are for the packages of this module.
func (d *Device) Driver() cuda.Driver { return d.driver }

// Context is the primary context, as it is now.
func (d *Device) Context() (c cuda.Context, err error) {
	err = d.With(func() error {
		c, err = d.held()
		return err
	})
	return c, err
}

// held is the primary context, retained by the first call. The program may have reset the device since.
func (d *Device) held() (cuda.Context, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx == 0 {
		c, err := d.driver.DevicePrimaryCtxRetain(d.handle)
		if err != nil {
			return 0, fmt.Errorf("gpu: device %d: %w", d.number, err)
		}
		d.ctx = c
	}
	return d.ctx, nil
}

// Release releases the context. The context ends if nobody else in the process holds it,
// so free memory and destroy streams first. The device may be used again.
func (d *Device) Release() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx == 0 {
		return nil
	}
	d.ctx = 0
	return d.driver.DevicePrimaryCtxRelease(d.handle)
}

// With calls f on this OS thread with the device's context current.
func (d *Device) With(f func() error) error { return d.within(cuda.With, f) }

// quietly is With for work that must not become part of a capture, whichever stream
// of the process is being captured.
func (d *Device) quietly(f func() error) error { return d.within(cuda.Quietly, f) }

// within calls f in the primary context. If the program has reset the device, by cudaDeviceReset for one, within
// retains the context anew.
func (d *Device) within(with func(cuda.Driver, cuda.Context, func() error) error, f func() error) error {
	for again := false; ; again = true {
		c, err := d.held()
		if err != nil {
			return err
		}
		begun := false
		err = with(d.driver, c, func() error {
			begun = true
			return f()
		})
		if gone := errors.Is(err, cuda.ErrContextIsDestroyed) || errors.Is(err, cuda.ErrInvalidContext); begun || again ||
			!gone {
			return err
		}
		d.mu.Lock()
		if d.ctx == c {
			d.ctx = 0
		}
		d.mu.Unlock()
	}
}

// Alloc allocates n bytes of device memory, until Free. The content is undefined.
// Alloc, Free and Write may be called while a stream is captured, and are no part of the
// capture. ringo.Comm.Register gives other GPUs and processes access to the memory. The
// driver cuts allocations of less than 2 MiB from a larger block, and another process
// sees the whole block. Errors wrap the driver's.
func (d *Device) Alloc(n int) (r mem.Region, err error) {
	if n <= 0 { // drivers differ in what they say of it
		return mem.Region{}, fmt.Errorf("device %d: alloc of %d bytes: %w", d.number, n, cuda.ErrInvalidValue)
	}
	err = d.quietly(func() error {
		p, err := d.driver.MemAlloc(n)
		r = mem.Device(d.number, p, n)
		return err
	})
	if err != nil {
		return mem.Region{}, err
	}
	return r, nil
}

// Memory is how many bytes of device memory are free, and how many there are.
func (d *Device) Memory() (free, total int, err error) {
	err = d.With(func() error {
		free, total, err = d.driver.MemGetInfo()
		return err
	})
	return free, total, err
}

// Free frees memory of Alloc or AllocMapped. Work that uses it has to be done.
func (d *Device) Free(r mem.Region) error {
	d.frees.Add(1)
	return d.quietly(func() error {
		if was, err := d.unmap(r.Ptr()); was {
			return err
		}
		return d.driver.MemFree(r.Ptr())
	})
}

// Write copies src to device memory. When it returns, kernels on any stream see the
// data. It does not wait for streams: earlier work on the same memory has to be done.
func (d *Device) Write(dst mem.Region, src []byte) error {
	if len(src) > dst.Len() {
		return fmt.Errorf("gpu: write %d bytes into %d", len(src), dst.Len())
	}
	return d.quietly(func() error { return cuda.Write(d.driver, dst.Ptr(), src) })
}

// Read copies device memory to dst. It does not wait for streams that do not wait
// for the legacy default stream: work that writes the memory has to be done.
func (d *Device) Read(dst []byte, src mem.Region) error {
	if len(dst) > src.Len() {
		return fmt.Errorf("gpu: read %d bytes of %d", len(dst), src.Len())
	}
	return d.With(func() error { return d.driver.MemcpyDtoH(dst, src.Ptr()) })
}
