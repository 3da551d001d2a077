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
func (c *call) onFunction(h cuda.Function) *function {
	c.begin()
	return c.function(h)
}

func (c *call) function(h cuda.Function) *function {
	f := c.funcs[h]
	c.refuse(f == nil, cuda.ErrInvalidHandle, "%#x is no function, or its module was unloaded", uintptr(h))
	c.healthy(f.mod.ctx)
	return f
}

func (m *Machine) FuncGetAttribute(a cuda.FunctionAttribute, h cuda.Function) (int, error) {
	return of(m, "cuFuncGetAttribute", (*call).function, h, func(c *call, f *function) int {
		switch a {
		case cuda.FuncMaxThreadsPerBlock:
			return f.maxThreads()
		case cuda.FuncSharedBytes:
			return f.kernel.Shared
		case cuda.FuncLocalBytes:
			return f.kernel.Local
		case cuda.FuncRegisters:
			return f.kernel.Registers
		case cuda.FuncPTXVersion:
			major, minor, _ := target(f.mod.image.Program.Module)
			return 10*major + minor
		case cuda.FuncBinaryVersion:
			return 10*f.mod.ctx.dev.Major + f.mod.ctx.dev.Minor
		case cuda.FuncMaxDynamicShared:
			return f.maxDynamic()
		}
		v, ok := f.clusterAttribute(a)
		c.refuse(!ok, cuda.ErrInvalidValue, "attribute %d is not emulated", a)
		return v
	})
}

// FuncGetParamInfo is where a kernel's i-th parameter lies among its arguments.
func (m *Machine) FuncGetParamInfo(h cuda.Function, i int) (offset, size int, err error) {
	c := m.call("cuFuncGetParamInfo", &err)
	defer c.end()
	f := c.onFunction(h)
	params := f.kernel.Func.Params
	if i < 0 || i >= len(params) {
		c.fail(cuda.ErrInvalidValue, "kernel %s has %d parameters", f.kernel.Name, len(params))
	}
	return params[i].Offset, params[i].Size(), nil
}

func (m *Machine) FuncSetAttribute(h cuda.Function, a cuda.FunctionAttribute, v int) (err error) {
	c := m.call("cuFuncSetAttribute", &err)
	defer c.end()
	f := c.onFunction(h)
	most := f.mod.ctx.dev.Shape.SharedPerBlock - f.kernel.Shared
	switch {
	case f.setClusterAttribute(a, v):
		return nil
	case a != cuda.FuncMaxDynamicShared:
		c.fail(cuda.ErrInvalidValue, "attribute %d cannot be set", a)
	case v < 0 || v > most:
		c.fail(cuda.ErrInvalidValue, "%d bytes of dynamic shared memory, at most %d", v, most)
	}
	f.dynamic = v
	return nil
}

// OccupancyMaxActiveBlocksPerMultiprocessor is how many blocks fit. It does not check
// that the function was compiled for that number of threads.
func (m *Machine) OccupancyMaxActiveBlocksPerMultiprocessor(h cuda.Function, threads, shared int) (_ int, err error) {
	c := m.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", &err)
	defer c.end()
	f := c.onFunction(h)
	c.healthy(c.ctx)
	c.refuse(threads <= 0 || shared < 0, cuda.ErrInvalidValue, "%d threads, %d bytes", threads, shared)
	if threads > f.mod.ctx.dev.Shape.ThreadsPerBlock || shared > f.maxDynamic() {
		return 0, nil
	}
	return m.world.Fits(f.mod.ctx.dev.ordinal, f.kernel, threads, shared), nil
}
