package cudaemu

import (
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/simt"
)

// A function is a kernel of a module.
type function struct {
	handle  cuda.Function
	mod     *module
	kernel  *simt.Kernel
	dynamic int // bytes of dynamic shared memory allowed, if set
	clusterSettings
}

// sharedByDefault is how much shared memory a block may have, static and
// dynamic, without FuncMaxDynamicShared being set.
const sharedByDefault = 48 << 10

func (f *function) maxThreads() int {
	n := f.mod.ctx.dev.Shape.ThreadsPerBlock
	if bound := f.kernel.Func.LaunchBound(); bound > 0 {
		return min(n, bound)
	}
	return n
}

// maxDynamic is how much dynamic shared memory a launch may ask for.
func (f *function) maxDynamic() int {
	return max(f.dynamic, min(sharedByDefault, f.mod.ctx.dev.Shape.SharedPerBlock)-f.kernel.Shared)
}

// onFunction begins a call about a function. No context need be current.
func (m *Machine) onFunction(name string, h cuda.Function) (*call, *function, error) {
	c, err := m.begin(name)
	if err != nil {
		return nil, nil, err
	}
	f := c.funcs[h]
	if f == nil {
		err = c.fail(cuda.ErrInvalidHandle, "%#x is no function, or its module was unloaded", uintptr(h))
	} else {
		err = c.healthy(f.mod.ctx)
	}
	if err != nil {
		c.end()
		return nil, nil, err
	}
	return c, f, nil
}

func (m *Machine) FuncGetAttribute(a cuda.FunctionAttribute, h cuda.Function) (int, error) {
	c, f, err := m.onFunction("cuFuncGetAttribute", h)
	if err != nil {
		return 0, err
	}
	defer c.end()
	d := f.mod.ctx.dev
	switch a {
	case cuda.FuncMaxThreadsPerBlock:
		return f.maxThreads(), nil
	case cuda.FuncSharedBytes:
		return f.kernel.Shared, nil
	case cuda.FuncLocalBytes:
		return f.kernel.Local, nil
	case cuda.FuncRegisters:
		return f.kernel.Registers, nil
	case cuda.FuncPTXVersion:
		major, minor, _ := target(f.mod.image.Program.Module)
		return 10*major + minor, nil
	case cuda.FuncBinaryVersion:
		return 10*d.Major + d.Minor, nil
	case cuda.FuncMaxDynamicShared:
		return f.maxDynamic(), nil
	}
	if v, ok := f.clusterAttribute(a); ok {
		return v, nil
	}
	return 0, c.fail(cuda.ErrInvalidValue, "attribute %d is not emulated", a)
}

// FuncGetParamInfo is where a kernel's i-th parameter lies among its arguments.
func (m *Machine) FuncGetParamInfo(h cuda.Function, i int) (offset, size int, err error) {
	c, f, err := m.onFunction("cuFuncGetParamInfo", h)
	if err != nil {
		return 0, 0, err
	}
	defer c.end()
	params := f.kernel.Func.Params
	if i < 0 || i >= len(params) {
		return 0, 0, c.fail(cuda.ErrInvalidValue, "kernel %s has %d parameters", f.kernel.Name, len(params))
	}
	return params[i].Offset, params[i].Size(), nil
}

func (m *Machine) FuncSetAttribute(h cuda.Function, a cuda.FunctionAttribute, v int) error {
	c, f, err := m.onFunction("cuFuncSetAttribute", h)
	if err != nil {
		return err
	}
	defer c.end()
	most := f.mod.ctx.dev.Shape.SharedPerBlock - f.kernel.Shared
	switch {
	case f.setClusterAttribute(a, v):
		return nil
	case a != cuda.FuncMaxDynamicShared:
		return c.fail(cuda.ErrInvalidValue, "attribute %d cannot be set", a)
	case v < 0 || v > most:
		return c.fail(cuda.ErrInvalidValue, "%d bytes of dynamic shared memory, at most %d", v, most)
	}
	f.dynamic = v
	return nil
}

// OccupancyMaxActiveBlocksPerMultiprocessor is how many blocks fit. It does not check
// that the function was compiled for that number of threads.
func (m *Machine) OccupancyMaxActiveBlocksPerMultiprocessor(h cuda.Function, threads, shared int) (int, error) {
	c, f, err := m.onFunction("cuOccupancyMaxActiveBlocksPerMultiprocessor", h)
	if err != nil {
		return 0, err
	}
	defer c.end()
	if err := c.healthy(c.ctx); err != nil {
		return 0, err
	}
	if threads <= 0 || shared < 0 {
		return 0, c.fail(cuda.ErrInvalidValue, "%d threads, %d bytes", threads, shared)
	}
	if threads > f.mod.ctx.dev.Shape.ThreadsPerBlock || shared > f.maxDynamic() {
		return 0, nil
	}
	return m.world.Fits(f.mod.ctx.dev.ordinal, f.kernel, threads, shared), nil
}
