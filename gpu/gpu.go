// Package gpu opens GPUs for Go programs: devices, their memory, streams, graphs and
// kernels, without cgo and without the CUDA toolkit. With Options.Emulate no GPU is
// needed: an emulated driver executes the same kernels, slowly and strictly. A program
// has it if it imports package gpu/emu:
//
//	import _ "github.com/ringo-go/ringo/gpu/emu"
//
// The trap: work on a stream is only queued, and Write, Read and Free do not wait for
// it; call Synchronize first.
//
// Memory and streams of another library need no conversion: pass mem.Device of the address,
// and the handle as a Stream.
package gpu

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
)

// Options choose the driver. The zero Options open the machine's own.
type Options struct {
	// Library is the file of the CUDA driver, "libcuda.so.1" if empty.
	Library string
	// Emulate, if positive, is a number of emulated devices instead. Without package gpu/emu in the program the error
	// of Open is ErrNoEmulator.
	Emulate int
	// Seed decides the order in which the emulator executes threads and copies.
	Seed uint64
	// Unchecked emulates several times faster: stores are visible at once, and races
	// are not looked for.
	Unchecked bool
}

// A Machine is the GPUs that a driver has. It is safe for use by any number of
// goroutines.
type Machine struct {
	driver  cuda.Driver
	devices []*Device
}

// Open loads the driver into the process and starts it. If there is no GPU to use,
// the error says why and what to do.
func Open(o Options) (*Machine, error) {
	var d cuda.Driver
	var err error
	if o.Emulate > 0 {
		d, err = emulate(o)
	} else {
		d, err = cuda.Open(o.Library)
	}
	if err != nil {
		return nil, err
	}
	m, err := Of(d)
	if err != nil && o.Emulate > 0 {
		err = errors.Join(err, d.(emulated).Close())
	}
	return m, err
}

// An emulated driver can be closed, and lists the faults of its kernels and callers.
type emulated interface {
	AwaitHostFuncs()
	Faults() []error
	Close() error
}

// Of is the Machine of a driver that is already open. The error is the driver's.
func Of(d cuda.Driver) (*Machine, error) {
	n, err := d.DeviceGetCount()
	if err != nil {
		return nil, err
	}
	m := &Machine{driver: d}
	for i := range n {
		handle, err := d.DeviceGet(i)
		if err != nil {
			return nil, err
		}
		m.devices = append(m.devices, &Device{driver: d, handle: handle, number: i})
	}
	return m, nil
}

// Emulated reports whether the devices are emulated.
func (m *Machine) Emulated() bool { return m.driver.Name() == "emu" }

// Count is the number of devices.
func (m *Machine) Count() int { return len(m.devices) }

// Device is the device of a number, from 0. The error is for a number that no device has.
func (m *Machine) Device(i int) (*Device, error) {
	if i < 0 || i >= len(m.devices) {
		return nil, fmt.Errorf("gpu: no device %d: there are %d", i, len(m.devices))
	}
	return m.devices[i], nil
}

// Close releases the devices' contexts. An emulated machine ends, and the error names
// the faults of its kernels and callers: races, leaks.
func (m *Machine) Close() error {
	var errs []error
	emu, ok := m.driver.(emulated)
	if ok { // a host function may be the one that gives up the last graph
		emu.AwaitHostFuncs()
	}
	for _, d := range m.devices {
		d.later.end()
		errs = append(errs, d.Release())
	}
	if ok {
		errs = append(errs, emu.Faults()...)
		errs = append(errs, emu.Close())
	}
	return errors.Join(errs...)
}
