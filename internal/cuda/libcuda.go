package cuda

import (
	"fmt"
	"sync/atomic"

	"github.com/ringo-go/ringo/internal/dl"
)

// libcuda is the Driver of an NVIDIA driver.
type libcuda struct {
	lib     dl.Library
	version int

	// addresses of cuGetProcAddress and its newer version; 0 if the driver has none
	getProcAddress, getProcAddress2 uintptr

	addrs [mostSymbols]atomic.Uintptr // 0: not asked for yet

	params paramSizes
	moves  func() uint64 // see Moves
}

// Moves is a number that changes while anything moves on the GPUs of a driver, in any process of a program: of the
// emulated ones that ringo emulate gives to it. Others have none.
func Moves(d Driver) (n uint64, ok bool) {
	if d, is := d.(*libcuda); is && d.moves != nil {
		return d.moves(), true
	}
	return 0, false
}

// Name is "cuda".
func (d *libcuda) Name() string { return "cuda" }

func (d *libcuda) DriverGetVersion() (int, error) { return d.version, nil }

// start initializes the driver and finds out its version.
func (d *libcuda) start() error {
	cuInit, err := d.export("cuInit")
	if err != nil {
		return err
	}
	cuDriverGetVersion, err := d.export("cuDriverGetVersion")
	if err != nil {
		return err
	}
	if _, _, r := invoke(cuInit, 0, 0, []uintptr{0}); r != 0 {
		return &Error{Call: "cuInit", Result: r, Device: -1}
	}
	version, _, r := invoke(cuDriverGetVersion, 0, 1, nil)
	if r != 0 {
		return &Error{Call: "cuDriverGetVersion", Result: r, Device: -1}
	}
	d.version = int(int32(version))
	if moves, err := d.export("ringo_cuda_moves"); err == nil {
		d.moves = func() uint64 {
			_, _, n := invoke(moves, 0, 0, nil)
			return uint64(n)
		}
	}
	d.getProcAddress2, _ = d.export("cuGetProcAddress_v2")
	d.getProcAddress, _ = d.export("cuGetProcAddress")
	return nil
}

// export is the address of a symbol that the library exports.
func (d *libcuda) export(name string) (uintptr, error) {
	p, err := d.lib.Sym(name)
	if err != nil {
		return 0, &Error{Call: name, Result: ErrSharedObjectSymbolNotFound, Device: -1, Detail: err.Error()}
	}
	return p, nil
}

// addr is the address of a function, found at its first use.
func (d *libcuda) addr(s symbol) (uintptr, error) {
	if p := d.addrs[s].Load(); p != 0 {
		return p, nil
	}
	return d.resolve(s)
}

// resolve asks cuGetProcAddress, and the linker where the driver has none or
// does not know the function.
func (d *libcuda) resolve(s symbol) (uintptr, error) {
	sym := symbols[s]
	p := d.procAddress(sym.name, sym.since)
	if p == 0 {
		p, _ = d.lib.Sym(sym.export)
	}
	if p == 0 {
		r := ErrNotFound
		if d.getProcAddress == 0 && d.getProcAddress2 == 0 {
			r = ErrSharedObjectSymbolNotFound
		}
		return 0, &Error{
			Call: sym.name, Result: r, Device: -1,
			Detail: fmt.Sprintf("the driver is of CUDA %s, the function is there since %s", versionString(d.version),
				versionString(sym.since)),
			Remedy: "install a newer NVIDIA driver",
		}
	}
	d.addrs[s].Store(p)
	return p, nil
}

// failed is the error of a call with result r, with device and remedy.
func (d *libcuda) failed(s symbol, r Result) *Error {
	e := &Error{Call: symbols[s].name, Result: r, Device: -1}
	if p, err := d.addr(cuCtxGetDevice); err == nil {
		if dev, _, r := invoke(p, 0, 1, nil); r == 0 {
			e.Device = int(int32(dev))
		}
	}
	if r == ErrOutOfMemory {
		if p, err := d.addr(cuMemGetInfo); err == nil {
			if free, total, r := invoke(p, 0, 2, nil); r == 0 {
				e.Detail = fmt.Sprintf("%s of %s are free", bytesString(free), bytesString(total))
			}
		}
	}
	return e
}

// detail adds the request to a failed call's error.
func detail(err error, format string, args ...any) error {
	if e, ok := err.(*Error); ok {
		asked := fmt.Sprintf(format, args...)
		if e.Detail != "" {
			asked += "; "
		}
		e.Detail = asked + e.Detail
	}
	return err
}

// bytesString is a size for people.
func bytesString(n uintptr) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", n)
}
