package cuda

import (
	"bytes"
	"runtime"
	"strings"
	"unsafe"
)

// Options of cuModuleLoadDataEx.
const (
	jitErrorLogBuffer = 5
	jitErrorLogBytes  = 6
)

// jitLogBytes is the room for the compiler's log of a module that it refuses.
const jitLogBytes = 8192

func (d *libcuda) ModuleLoadData(image []byte) (Module, error) {
	image = append(bytes.Clone(image), 0) // PTX is text that ends in a zero; a cubin knows its length
	log := make([]byte, jitLogBytes)
	options := []uint32{jitErrorLogBuffer, jitErrorLogBytes}
	var pin runtime.Pinner // values holds the log's address as a number, so the log must be on the heap and stay alive
	pin.Pin(&log[0])
	defer pin.Unpin()
	values := []uintptr{uintptr(unsafe.Pointer(&log[0])), jitLogBytes}
	var m Module
	err := d.callPtr(cuModuleLoadDataEx, uintptr(unsafe.Pointer(&m)), uintptr(unsafe.Pointer(&image[0])),
		uintptr(len(options)),
		uintptr(unsafe.Pointer(&options[0])), uintptr(unsafe.Pointer(&values[0])))
	if err != nil {
		text, _, _ := bytes.Cut(log, []byte{0})
		if said := strings.TrimSpace(string(text)); said != "" {
			err = detail(err, "%s", said)
		}
		return 0, err
	}
	return m, nil
}

func (d *libcuda) ModuleUnload(m Module) error { return d.call(cuModuleUnload, uintptr(m)) }

func (d *libcuda) ModuleGetFunction(m Module, name string) (Function, error) {
	h, err := d.getNamed(cuModuleGetFunction, uintptr(m), name)
	if err != nil {
		return 0, detail(err, "kernel %s", name)
	}
	f := Function(h)
	n, known := d.paramBytes(f)
	d.params.set(f, n, known)
	return f, nil
}

func (d *libcuda) ModuleGetGlobal(m Module, name string) (p uintptr, n int, err error) {
	b := append([]byte(name), 0)
	err = d.callPtr(cuModuleGetGlobal, uintptr(unsafe.Pointer(&p)), uintptr(unsafe.Pointer(&n)), uintptr(m),
		uintptr(unsafe.Pointer(&b[0])))
	return p, n, detail(err, "variable %s", name)
}

func (d *libcuda) FuncGetAttribute(a FunctionAttribute, f Function) (int, error) {
	return d.getInt(cuFuncGetAttribute, uintptr(a), uintptr(f))
}

func (d *libcuda) FuncSetAttribute(f Function, a FunctionAttribute, v int) error {
	return d.call(cuFuncSetAttribute, uintptr(f), uintptr(a), uintptr(v))
}

func (d *libcuda) OccupancyMaxActiveBlocksPerMultiprocessor(f Function, threads, shared int) (int, error) {
	return d.getInt(cuOccupancyMaxActiveBlocksPerMultiprocessor, uintptr(f), uintptr(threads), uintptr(shared))
}
