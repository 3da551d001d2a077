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
func (m *Machine) LaunchClusters(h cuda.Function, l *cuda.Launch, cluster cuda.Dim3, args []byte) (err error) {
	c := m.call("cuLaunchKernel", &err)
	defer c.end()
	f := c.onFunction(h)
	s := c.stream(l.Stream)
	if f.mod.ctx != s.ctx {
		c.fail(cuda.ErrInvalidHandle, "kernel %s is of device %d, the stream of device %d", f.kernel.Name,
			f.mod.ctx.dev.ordinal, s.ctx.dev.ordinal)
	}
	w := kernelWork{f: f, launch: *l, grid: size(l.Grid), block: size(l.Block), args: bytes.Clone(args),
		by: c.caller(s.ctx.dev)}
	w.cluster = c.cluster(f, cluster, w.grid)
	c.launchable(w)
	if l.Cooperative && f.kernel.Workspace {
		w.workspace = c.workspace(f)
	}
	c.enqueue(s, w)
	return nil
}

// workspaceBytes is more than the words that a barrier of a grid takes.
const workspaceBytes = 64

// workspace is the memory through which the blocks of a kernel's cooperative launches meet. It stays with the module.
func (c *call) workspace(f *function) uint64 {
	name := "workspace of " + f.kernel.Name // which no variable is called
	r := f.mod.globals[name]
	if r == nil {
		r = c.allocate(f.mod.ctx, regionGlobal, workspaceBytes)
		f.mod.globals[name] = r
	}
	return r.addr
}

func size(d cuda.Dim3) [3]int {
	return [3]int{max(1, int(d.X)), max(1, int(d.Y)), max(1, int(d.Z))}
}

// launchable checks what the driver checks before it takes a launch.
func (c *call) launchable(w kernelWork) {
	f := w.f
	d, k := f.mod.ctx.dev, f.kernel
	g, b := w.grid, w.block
	threads := b[0] * b[1] * b[2]
	refuse := func(wrong bool, r cuda.Result, detail string, args ...any) {
		if wrong {
			c.fail(r, "kernel %s, grid %v, block %v: %s", k.Name, g, b, fmt.Sprintf(detail, args...))
		}
	}
	invalid := func(wrong bool, detail string, args ...any) { refuse(wrong, cuda.ErrInvalidValue, detail, args...) }
	req, most, shared := k.Func.ReqThreads, f.maxThreads(), w.launch.Shared
	refuse(len(w.args) != k.Func.ParamBytes, cuda.ErrLaunchOutOfResources, "%d bytes of arguments, it takes %d",
		len(w.args), k.Func.ParamBytes)
	invalid(g[0] > 1<<31-1 || g[1] > 65535 || g[2] > 65535, "the grid is too large")
	invalid(b[0] > 1024 || b[1] > 1024 || b[2] > 64 || threads > d.Shape.ThreadsPerBlock,
		"a block has at most %d threads, 1024 × 1024 × 64", d.Shape.ThreadsPerBlock)
	invalid(threads > most || req[0] > 0 && ptx.Dim(b) != (ptx.Dim{req[0], max(1, req[1]), max(1, req[2])}),
		"compiled for blocks of %d threads", most)
	invalid(shared < 0 || shared > f.maxDynamic(),
		"%d bytes of dynamic shared memory, at most %d: raise the kernel's MaxDynamicSharedMemorySize", shared,
		f.maxDynamic())
	fits := c.world.Fits(d.ordinal, k, threads, shared)
	refuse(fits == 0, cuda.ErrLaunchOutOfResources, "a block does not fit a multiprocessor")
	fits *= d.Shape.SMs
	refuse(extent(w.cluster) > fits, cuda.ErrLaunchOutOfResources, "a cluster of %d blocks, %d fit at once",
		extent(w.cluster), fits)
	refuse(w.launch.Cooperative && extent(g) > fits, cuda.ErrCooperativeLaunchTooLarge, "%d blocks, %d fit at once",
		extent(g), fits)
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
