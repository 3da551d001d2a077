package gpu

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/mem"
)

// A Module is kernels and variables on a device, until Close.
type Module struct {
	device  *Device
	handle  cuda.Module
	kernels map[string]*ptx.Func // nil if the text cannot be read here
	names   []string
	closed  atomic.Bool

	mu    sync.Mutex
	found map[string]*Kernel // guarded by mu
}

// ErrNoKernel is the cause of Module.Kernel's error for a name that no kernel of the module has.
var ErrNoKernel = errors.New("no such kernel")

// ErrClosed is the cause of the errors of a module, and of its kernels, after Close.
var ErrClosed = errors.New("the module is closed")

// Load has the driver compile a PTX text, or take a cubin. Load takes tens of milliseconds the
// first time, and waits for the kernels that run on the device. The error wraps the driver's
// and has its compiler's messages.
func (d *Device) Load(text []byte) (*Module, error) { return d.load("ptx", text) }

// LoadFile is Load for a file.
func (d *Device) LoadFile(name string) (*Module, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return d.load(filepath.Base(name), text)
}

func (d *Device) load(name string, text []byte) (*Module, error) {
	m := &Module{device: d, found: map[string]*Kernel{}}
	err := d.quietly(func() (err error) {
		m.handle, err = d.driver.ModuleLoadData(text)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("gpu: device %d: load %s: %w", d.number, name, err)
	}
	if tree, err := ptx.ParseOutside(name, text); err == nil {
		m.kernels = map[string]*ptx.Func{}
		for _, f := range tree.Funcs {
			if f.Entry && !f.Declare {
				m.kernels[f.Name] = f
				m.names = append(m.names, f.Name)
			}
		}
	}
	return m, nil
}

// Kernels are the names of the module's kernels, in the order of the text; nil for a cubin.
func (m *Module) Kernels() []string { return append([]string(nil), m.names...) }

// Kernel finds a kernel by its name in the PTX: for CUDA C++ the mangled name, unless the source
// declares it extern "C". The error is ErrNoKernel, ErrClosed or the driver's.
func (m *Module) Kernel(name string) (*Kernel, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed.Load() {
		return nil, fmt.Errorf("gpu: kernel %s: %w", name, ErrClosed)
	}
	if k := m.found[name]; k != nil {
		return k, nil
	}
	if m.kernels != nil && m.kernels[name] == nil {
		return nil, fmt.Errorf("gpu: %w: %q; the module has %s", ErrNoKernel, name, strings.Join(m.names, ", "))
	}
	k := &Kernel{device: m.device, module: m, name: name, signature: m.kernels[name]}
	err := m.device.With(func() (err error) {
		k.f, err = m.device.driver.ModuleGetFunction(m.handle, name)
		return err
	})
	switch {
	case errors.Is(err, cuda.ErrNotFound):
		return nil, fmt.Errorf("gpu: %w: %q: %w", ErrNoKernel, name, err)
	case err != nil:
		return nil, err
	}
	m.found[name] = k
	return k, nil
}

// Variable is the memory of a .global or .const variable, which running kernels may be using. The error is ErrClosed or
// the driver's.
func (m *Module) Variable(name string) (r mem.Region, err error) {
	if m.closed.Load() {
		return mem.Region{}, fmt.Errorf("gpu: variable %q: %w", name, ErrClosed)
	}
	err = m.device.With(func() error {
		p, n, err := m.device.driver.ModuleGetGlobal(m.handle, name)
		r = mem.Device(m.device.number, p, n)
		return err
	})
	if err != nil {
		return mem.Region{}, fmt.Errorf("gpu: variable %q: %w", name, err)
	}
	return r, nil
}

// Close unloads the module, after all kernels of the device. No Launch may be under way; later ones are refused
// with ErrClosed. A second Close does nothing.
func (m *Module) Close() error {
	if m.closed.Swap(true) {
		return nil
	}
	return m.device.quietly(func() error { return m.device.driver.ModuleUnload(m.handle) })
}

// Reach lets kernels of this device use memory that other has allocated. It is an error if the two are not linked.
func (d *Device) Reach(other *Device) error {
	if d == other {
		return nil
	}
	if ok, err := d.driver.DeviceCanAccessPeer(d.handle, other.handle); err != nil || !ok {
		return errors.Join(err,
			fmt.Errorf("gpu: device %d does not reach the memory of device %d: they are not linked, or the system forbids it",
				d.number, other.number))
	}
	theirs, err := other.Context()
	if err != nil {
		return err
	}
	err = d.With(func() error { return d.driver.CtxEnablePeerAccess(theirs) })
	if errors.Is(err, cuda.ErrPeerAccessAlreadyEnabled) {
		return nil
	}
	return err
}
