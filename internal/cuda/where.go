package cuda

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of calls on memory tell the addresses, and what the driver knows of each
// when it calls one of them wrong.

func (d *libcuda) at(p uintptr, err error) error {
	if err == nil {
		return nil
	}
	return d.whereabouts(detail(err, "address %#x", p), p)
}

func (d *libcuda) set(p uintptr, n int, err error) error {
	if err == nil {
		return nil
	}
	return d.whereabouts(detail(err, "address %#x, %d bytes", p, n), p)
}

func (d *libcuda) copied(dst, src uintptr, n int, err error) error {
	if err == nil {
		return nil
	}
	return d.whereabouts(detail(err, "%d bytes from %#x to %#x", n, src, dst), src, dst)
}

// whereabouts puts the driver's knowledge of the addresses into the remedy of ErrInvalidValue.
func (d *libcuda) whereabouts(err error, ps ...uintptr) error {
	var e *Error
	if !errors.As(err, &e) || e.Result != ErrInvalidValue {
		return err
	}
	var known []string
	for _, p := range ps {
		known = append(known, d.whereabout(p))
	}
	e.Remedy = strings.Join(known, ", ") +
		": pass live memory of the kind that the call is for, and no more bytes than it has"
	return err
}

func (d *libcuda) whereabout(p uintptr) string {
	if p == 0 {
		return "the address is null"
	}
	ask := func(a PointerAttribute) (uintptr, bool) {
		fn, err := d.addr(cuPointerGetAttribute)
		if err != nil {
			return 0, false
		}
		v, _, r := invoke(fn, 0, 1, []uintptr{uintptr(a), p})
		return v, r == 0
	}
	kind, ok := ask(PointerMemoryType)
	if !ok {
		return fmt.Sprintf("%#x is no memory of the driver, so it was freed, or is the program's own", p)
	}
	what := map[uintptr]string{MemoryTypeHost: "memory of the host", MemoryTypeDevice: "memory of a device"}[kind]
	if dev, ok := ask(PointerDeviceOrdinal); ok && kind == MemoryTypeDevice {
		what = fmt.Sprintf("memory of device %d", int32(dev))
	}
	start, ok1 := ask(PointerRangeStart)
	size, ok2 := ask(PointerRangeSize)
	if ok1 && ok2 && size > 0 {
		what += fmt.Sprintf(" with %d bytes left", start+size-p)
	}
	return fmt.Sprintf("%#x is %s", p, what)
}
