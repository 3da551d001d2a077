// Launches of kernels: the checks of the driver, and the work that a launch puts on a stream.

package cudaemu

import (
	"bytes"
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/simt"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

func (m *Machine) LaunchKernel(h cuda.Function, l *cuda.Launch, args []byte) error {
	return m.LaunchClusters(h, l, cuda.Dim3{}, args)
}

// LaunchClusters is LaunchKernel with clusters of so many blocks. Zeros stand for those that the kernel was compiled
// for.
func (m *Machine) LaunchClusters(h cuda.Function, l *cuda.Launch, cluster cuda.Dim3, args []byte) error {
	c, f, err := m.onFunction("cuLaunchKernel", h)
	if err != nil {
		return err
	}
	defer c.end()
	s, err := c.stream(l.Stream)
	if err != nil {
		return err
	}
	if f.mod.ctx != s.ctx {
		return c.fail(cuda.ErrInvalidHandle, "kernel %s is of device %d, the stream of device %d", f.kernel.Name,
			f.mod.ctx.dev.ordinal, s.ctx.dev.ordinal)
	}
	w := kernelWork{f: f, launch: *l, grid: size(l.Grid), block: size(l.Block), args: bytes.Clone(args),
		by: c.caller(s.ctx.dev)}
	if w.cluster, err = c.cluster(f, cluster, w.grid); err != nil {
		return err
	}
	if err := c.launchable(w); err != nil {
		return err
	}
	if l.Cooperative && f.kernel.Workspace {
		if w.workspace, err = c.workspace(f); err != nil {
			return err
		}
	}
	_, err = c.enqueue(s, w)
	return err
}

// workspaceBytes is more than the words that a barrier of a grid takes.
const workspaceBytes = 64

// workspace is the memory through which the blocks of a kernel's cooperative launches meet. It stays with the module.
func (c *call) workspace(f *function) (uint64, error) {
	name := "workspace of " + f.kernel.Name // which no variable is called
	r := f.mod.globals[name]
	if r == nil {
		var err error
		if r, err = c.allocate(f.mod.ctx, regionGlobal,
			workspaceBytes); err != nil {
			return 0, err
		}
		f.mod.globals[name] = r
	}
	return r.addr, nil
}

func size(d cuda.Dim3) [3]int {
	return [3]int{max(1, int(d.X)), max(1, int(d.Y)), max(1, int(d.Z))}
}

// launchable checks what the driver checks before it takes a launch.
func (c *call) launchable(w kernelWork) error {
	f := w.f
	d, k := f.mod.ctx.dev, f.kernel
	g, b := w.grid, w.block
	threads := b[0] * b[1] * b[2]
	fail := func(r cuda.Result, detail string, args ...any) error {
		return c.fail(r, "kernel %s, grid %v, block %v: %s", k.Name, g, b, fmt.Sprintf(detail, args...))
	}
	invalid := func(detail string, args ...any) error { return fail(cuda.ErrInvalidValue, detail, args...) }
	req := k.Func.ReqThreads
	switch {
	case len(w.args) != k.Func.ParamBytes:
		return fail(cuda.ErrLaunchOutOfResources, "%d bytes of arguments, it takes %d", len(w.args), k.Func.ParamBytes)
	case g[0] > 1<<31-1 || g[1] > 65535 || g[2] > 65535:
		return invalid("the grid is too large")
	case b[0] > 1024 || b[1] > 1024 || b[2] > 64 || threads > d.Shape.ThreadsPerBlock:
		return invalid("a block has at most %d threads, 1024 × 1024 × 64", d.Shape.ThreadsPerBlock)
	case threads > f.maxThreads() || req[0] > 0 && ptx.Dim(b) != (ptx.Dim{req[0], max(1, req[1]), max(1, req[2])}):
		return invalid("compiled for blocks of %d threads", f.maxThreads())
	case w.launch.Shared < 0 || w.launch.Shared > f.maxDynamic():
		return invalid("%d bytes of dynamic shared memory, at most %d: raise the kernel's MaxDynamicSharedMemorySize",
			w.launch.Shared, f.maxDynamic())
	}
	fits := c.world.Fits(d.ordinal, k, threads, w.launch.Shared)
	if fits == 0 {
		return fail(cuda.ErrLaunchOutOfResources, "a block does not fit a multiprocessor")
	}
	if n := extent(w.cluster); n > fits*d.Shape.SMs {
		return fail(cuda.ErrLaunchOutOfResources, "a cluster of %d blocks, %d fit at once", n, fits*d.Shape.SMs)
	}
	if blocks := extent(g); w.launch.Cooperative && blocks > fits*d.Shape.SMs {
		return fail(cuda.ErrCooperativeLaunchTooLarge, "%d blocks, %d fit at once", blocks, fits*d.Shape.SMs)
	}
	return nil
}

// kernelWork runs a kernel.
type kernelWork struct {
	f           *function
	launch      cuda.Launch
	grid, block [3]int
	cluster     [3]int // zeros: the launch says nothing, nor does the kernel
	args        []byte
	workspace   uint64
	by          Caller
}

func (w kernelWork) step(m *Machine, o *op) bool {
	if o.grid == nil {
		if o.hangs {
			return false
		}
		r, hangs := m.inject.check("kernel "+w.f.kernel.Name, w.f.mod.ctx.dev.ordinal)
		if o.hangs = hangs; hangs {
			return false
		}
		if r != 0 {
			o.ctx.fail(r, "injected into kernel "+w.f.kernel.Name)
			return true
		}
		limits := &w.f.mod.ctx.limits
		limits[limitStack] = max(limits[limitStack], w.f.kernel.Func.LocalBytes) // as the driver raises it
		o.grid = &simt.Grid{
			Image: w.f.mod.image, Kernel: w.f.kernel, Device: w.f.mod.ctx.dev.ordinal,
			Dim: w.grid, Block: w.block, Cluster: w.cluster, Shared: w.launch.Shared, Args: w.args,
			After: o.after, Cooperative: w.launch.Cooperative, Workspace: w.workspace,
			Stack: limits[limitStack], Heap: &w.f.mod.ctx.heap,
		}
		if w.by.Library {
			o.grid.For = w.by.forWhat
		}
		if m.cfg.Launched != nil {
			m.cfg.Launched(w.f.kernel.Name, w.f.kernel.Approximate)
		}
		if err := m.world.Start(o.grid); err != nil {
			m.faulted(o, &weakmem.Fault{Kind: weakmem.BadInstruction, Device: o.grid.Device, Kernel: w.f.kernel.Name,
				Detail: err.Error(), Count: 1})
			return true
		}
	}
	if !o.grid.Done() {
		return false
	}
	o.clock = o.grid.Clock()
	if f := o.grid.Fault(); f != nil && !o.ctx.broken() {
		m.faulted(o, f)
		m.world.Kill(o.grid.Device, f) // all that runs in the context
	}
	return true
}
