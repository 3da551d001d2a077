// Package cublas multiplies matrices with NVIDIA's cuBLASLt, for benchmarks beside the products of
// training. The library is opened at run time; a build needs nothing of it. The trap: cuBLASLt uses the
// context that is current on the calling thread.
package cublas

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/ringo-go/ringo/internal/dl"
)

// names are the files that are tried, newest first.
var names = []string{"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}

// Constants of library_types.h and cublas_api.h.
const (
	realFloat32   = 0  // CUDA_R_32F
	realBFloat16  = 14 // CUDA_R_16BF
	computeFloat  = 68 // CUBLAS_COMPUTE_32F
	elementBytes  = 2
	workspaceSize = 32 << 20
)

// A Library is cuBLASLt with a handle. It is for one goroutine.
type Library struct {
	lib    dl.Library
	syms   map[string]uintptr
	handle uintptr
}

// Open loads the library from a file, or from one of its usual names if file is empty.
func Open(file string) (*Library, error) {
	files := names
	if file != "" {
		files = []string{file}
	}
	var errs []error
	for _, name := range files {
		lib, err := dl.Open(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		l := &Library{lib: lib, syms: map[string]uintptr{}}
		l.handle, err = l.make("cublasLtCreate")
		return l, err
	}
	return nil, fmt.Errorf("cublas: %w", errors.Join(errs...))
}

// call calls a function by its name. A status other than 0 is an error.
func (l *Library) call(name string, args ...uintptr) error {
	fn, ok := l.syms[name]
	if !ok {
		var err error
		if fn, err = l.lib.Sym(name); err != nil {
			return fmt.Errorf("cublas: %w", err)
		}
		l.syms[name] = fn
	}
	if r := int32(dl.Call(fn, args...)); r != 0 {
		return fmt.Errorf("cublas: %s: status %d", name, r)
	}
	return nil
}

// make calls a function that stores a new handle at its first argument, and returns the handle.
func (l *Library) make(name string, args ...uintptr) (uintptr, error) {
	made := new(uintptr)
	err := l.call(name, append([]uintptr{addressOf(made)}, args...)...)
	return *made, err
}

// Close gives the handle back.
func (l *Library) Close() error { return l.call("cublasLtDestroy", l.handle) }

// A Product is C = A × B of matrices of bfloat16: A has m × k elements, B k × n, C m × n, by columns.
type Product struct {
	l       *Library
	matmul  uintptr
	layouts [3]uintptr
	factors *[2]float32 // of the product, and of C before
	args    []uintptr
}

// Bytes is the device memory of a product in bytes: the three matrices one behind the other, then
// workspace for cuBLAS.
func Bytes(m, n, k int) int { return elementBytes*(m*k+k*n+m*n) + workspaceSize }

// Product describes a product in memory of Bytes(m, n, k) on the device.
func (l *Library) Product(m, n, k int, memory uintptr) (p *Product, err error) {
	p = &Product{l: l, factors: &[2]float32{1, 0}}
	if p.matmul, err = l.make("cublasLtMatmulDescCreate", computeFloat, realFloat32); err != nil {
		return nil, err
	}
	for i, shape := range [3][2]int{{m, k}, {k, n}, {m, n}} {
		rows, columns := uintptr(shape[0]), uintptr(shape[1])
		if p.layouts[i], err = l.make("cublasLtMatrixLayoutCreate", realBFloat16, rows, columns, rows); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	a, b := memory, memory+uintptr(elementBytes*m*k)
	c := b + uintptr(elementBytes*k*n)
	one, zero := addressOf(&p.factors[0]), addressOf(&p.factors[1])
	p.args = []uintptr{l.handle, p.matmul, one, a, p.layouts[0], b, p.layouts[1], zero, c, p.layouts[2], c, p.layouts[2],
		0, c + uintptr(elementBytes*m*n), workspaceSize, 0}
	return p, nil
}

// Queue queues the product on a stream.
func (p *Product) Queue(stream uintptr) error {
	p.args[len(p.args)-1] = stream
	err := p.l.call("cublasLtMatmul", p.args...)
	runtime.KeepAlive(p)
	return err
}

// Close destroys the product's descriptions. Queued products must be done by then.
func (p *Product) Close() error {
	var errs []error
	for i, x := range p.layouts {
		if x != 0 {
			errs = append(errs, p.l.call("cublasLtMatrixLayoutDestroy", x))
			p.layouts[i] = 0
		}
	}
	if p.matmul != 0 {
		errs = append(errs, p.l.call("cublasLtMatmulDescDestroy", p.matmul))
		p.matmul = 0
	}
	return errors.Join(errs...)
}
