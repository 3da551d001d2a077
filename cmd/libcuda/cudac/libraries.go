package cudac

import (
	"sync"

	"github.com/ringo-go/ringo/internal/cuda"
)

// libraries are CUlibrary objects, which belong to no context. A library becomes a module of a context when it is first
// used there.
type libraries struct {
	sync.Mutex
	last    uintptr
	loaded  map[uintptr]*loaded
	kernels map[uintptr]*kernel
}

// firstLibrary is below all handles of libraries and their kernels, and above all handles of the emulated driver.
const firstLibrary uint64 = 1 << 40

// A loaded is a library, with its modules by context and its kernels' handles by name.
type loaded struct {
	image   []byte
	modules map[cuda.Context]cuda.Module
	kernels map[string]uintptr
}

// firstHandle is firstLibrary as a handle; libcuda.so.1 is for 64 bits.
func firstHandle() uintptr {
	n := firstLibrary
	return uintptr(n)
}

// A kernel is a kernel of a library, in no context.
type kernel struct {
	library uintptr
	name    string
}

// give makes a handle. The caller holds the lock.
func (s *libraries) give() uintptr {
	if s.last == 0 {
		s.last, s.loaded, s.kernels = firstHandle(), map[uintptr]*loaded{}, map[uintptr]*kernel{}
	}
	s.last++
	return s.last
}

// moduleOf is the module of a library in the current context.
func (l *Library) moduleOf(handle uintptr) (cuda.Module, *loaded, error) {
	ctx, err := l.d.CtxGetCurrent()
	if err != nil {
		return 0, nil, err
	}
	if ctx == 0 {
		return 0, nil, cuda.ErrInvalidContext
	}
	l.libraries.Lock()
	defer l.libraries.Unlock()
	b := l.libraries.loaded[handle]
	if b == nil {
		return 0, nil, cuda.ErrInvalidHandle
	}
	m, ok := b.modules[ctx]
	if !ok {
		if m, err = l.loadImage(b.image); err != nil {
			return 0, nil, err
		}
		b.modules[ctx] = m
	}
	return m, b, nil
}

// functionOf is the function of a handle, which may be a module's function, or a library's kernel: then it is the
// function in the current context.
func (l *Library) functionOf(handle uintptr) (cuda.Function, error) {
	l.libraries.Lock()
	k := l.libraries.kernels[handle]
	l.libraries.Unlock()
	if k == nil {
		return cuda.Function(handle), nil
	}
	m, _, err := l.moduleOf(k.library)
	if err != nil {
		return 0, err
	}
	return l.d.ModuleGetFunction(m, k.name)
}

// kernelOf is the handle of a library's kernel.
func (l *Library) kernelOf(library uintptr, name string) (uintptr, error) {
	m, b, err := l.moduleOf(library)
	if err != nil {
		return 0, err
	}
	if _, err := l.d.ModuleGetFunction(m, name); err != nil {
		return 0, err
	}
	l.libraries.Lock()
	defer l.libraries.Unlock()
	h, ok := b.kernels[name]
	if !ok {
		h = l.libraries.give()
		b.kernels[name], l.libraries.kernels[h] = h, &kernel{library, name}
	}
	return h, nil
}

// unloadLibrary forgets a library, its kernels and its modules.
func (l *Library) unloadLibrary(handle uintptr) error {
	l.libraries.Lock()
	defer l.libraries.Unlock()
	b := l.libraries.loaded[handle]
	if b == nil {
		return cuda.ErrInvalidHandle
	}
	delete(l.libraries.loaded, handle)
	for _, h := range b.kernels {
		delete(l.libraries.kernels, h)
	}
	var failed error
	for _, m := range b.modules {
		if err := l.d.ModuleUnload(m); err != nil {
			failed = err
		}
	}
	return failed
}

var modulesOfLibraries = map[string]function{
	"cuLibraryLoadData": func(l *Library, a *Args) error {
		image, err := l.imageAt(a[1])
		if err != nil {
			return err
		}
		l.libraries.Lock()
		defer l.libraries.Unlock()
		h := l.libraries.give()
		l.libraries.loaded[h] = &loaded{image, map[cuda.Context]cuda.Module{}, map[string]uintptr{}}
		return put(a[0], h, nil)
	},
	"cuLibraryUnload": func(l *Library, a *Args) error { return l.unloadLibrary(a[0]) },
	"cuLibraryGetModule": func(l *Library, a *Args) error {
		m, _, err := l.moduleOf(a[1])
		return put(a[0], m, err)
	},
	"cuLibraryGetKernel": func(l *Library, a *Args) error {
		h, err := l.kernelOf(a[1], text(a[2]))
		return put(a[0], h, err)
	},
	"cuLibraryGetGlobal": func(l *Library, a *Args) error {
		m, _, err := l.moduleOf(a[2])
		if err != nil {
			return err
		}
		p, n, err := l.d.ModuleGetGlobal(m, text(a[3]))
		if err := put(a[0], p, err); err != nil {
			return err
		}
		return put(a[1], n, err)
	},
	"cuKernelGetFunction": func(l *Library, a *Args) error {
		f, err := l.functionOf(a[1])
		return put(a[0], f, err)
	},
	"cuKernelGetAttribute": func(l *Library, a *Args) error {
		f, err := l.functionOf(a[2])
		if err != nil {
			return err
		}
		v, err := l.d.FuncGetAttribute(cuda.FunctionAttribute(a.i(1)), f)
		return put(a[0], int32(v), err)
	},
	"cuKernelSetAttribute": func(l *Library, a *Args) error {
		f, err := l.functionOf(a[2])
		if err != nil {
			return err
		}
		return l.d.FuncSetAttribute(f, cuda.FunctionAttribute(a.i(0)), a.i(1))
	},
}
