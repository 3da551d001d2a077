package gpu

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/mem"
)

// AllocMapped allocates n bytes of device memory as Alloc does, by the driver's functions for virtual memory: whole
// pages of 2 MiB as a rule, which other GPUs and processes can map. It is the memory to register with a communicator
// whose GPUs are in one process: copy engines reach this memory without waiting for another thread's calls on this GPU,
// so collectives and Window.Put may use copies. Allocating waits for no kernel; Free waits for this GPU's kernels, as
// for memory of Alloc. Where the driver has no such functions, AllocMapped is Alloc.
func (d *Device) AllocMapped(n int) (r mem.Region, err error) {
	if n <= 0 {
		return d.Alloc(n)
	}
	err = d.quietly(func() error {
		p, err := d.mapPages(n)
		r = mem.Device(d.number, p, n)
		return err
	})
	if err != nil {
		return d.Alloc(n)
	}
	return r, nil
}

// mapPages maps fresh pages for n bytes. Other processes can map them too, if the system can share them.
func (d *Device) mapPages(n int) (at uintptr, err error) {
	v, prop := d.driver, cuda.AllocationProp{Device: d.handle, Shareable: true}
	h, whole, err := createPages(v, prop, n)
	if err != nil && !errors.Is(err, cuda.ErrOutOfMemory) {
		prop.Shareable = false
		h, whole, err = createPages(v, prop, n)
	}
	if err != nil {
		return 0, err
	}
	if at, err = v.MemAddressReserve(whole, 0); err != nil {
		return 0, errors.Join(err, v.MemRelease(h))
	}
	err = v.MemMap(at, whole, h)
	err = errors.Join(err, v.MemRelease(h)) // the mapping holds the pages
	if err == nil {
		if err = v.MemSetAccess(at, whole, d.handle); err != nil {
			err = errors.Join(err, v.MemUnmap(at, whole))
		}
	}
	if err != nil {
		return 0, errors.Join(err, v.MemAddressFree(at, whole))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mapped == nil {
		d.mapped = map[uintptr]int{}
	}
	d.mapped[at] = whole
	return at, nil
}

// Grant lets kernels and copies of other GPUs of this process use memory of AllocMapped, on those GPUs that reach it.
// Cost: one call of the driver, on H200s 1 ms a GPU, 10 ms from 1 GiB on. Where AllocMapped could not map, Grant does
// nothing: see Reach.
func (d *Device) Grant(r mem.Region, others ...*Device) error {
	d.mu.Lock()
	whole, was := d.mapped[r.Ptr()]
	d.mu.Unlock()
	var able []cuda.Device
	for _, o := range others {
		if o == d {
			continue
		}
		can, err := d.driver.DeviceCanAccessPeer(o.handle, d.handle)
		if err != nil {
			return fmt.Errorf("gpu: whether device %d reaches device %d: %w", o.number, d.number, err)
		}
		if can {
			able = append(able, o.handle)
		}
	}
	if !was || len(able) == 0 {
		return nil
	}
	return d.driver.MemSetAccess(r.Ptr(), whole, able...)
}

// createPages makes physical memory of n bytes, rounded up to whole pages; whole is its length.
func createPages(v cuda.Driver, prop cuda.AllocationProp, n int) (h cuda.MemHandle, whole int, err error) {
	unit, err := v.MemGetAllocationGranularity(prop, cuda.GranularityMinimum)
	if err != nil {
		return 0, 0, err
	}
	whole = (n + unit - 1) / unit * unit
	h, err = v.MemCreate(whole, prop)
	return h, whole, err
}

// unmap gives back memory of mapPages. was is false if there is none at the address.
func (d *Device) unmap(at uintptr) (was bool, err error) {
	d.mu.Lock()
	n, was := d.mapped[at]
	delete(d.mapped, at)
	d.mu.Unlock()
	if !was {
		return false, nil
	}
	if err := d.driver.MemUnmap(at, n); err != nil {
		return true, err
	}
	return true, d.driver.MemAddressFree(at, n)
}
