package choice

import (
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
)

// Kernels says which kernels there are: a grid.Engine, or paperKernels.
type Kernels interface {
	LongestDirect() int // bytes from one rank to another by a direct kernel, 0: there are none
	CanWindow(collective.Direct) bool
	CanCopy(collective.Direct) bool
	CanNorm(row int) bool // rows of so many bytes
}

// kernel is the direct kernel that an algorithm of a collective stands for here,
// if there is one; otherwise its schedule is carried out step by step.
func (c *Chooser) kernel(kind call.Kind, a call.Algo, bytes int) (collective.Direct, bool) {
	d, ok := directKernel(kind, a)
	return d, ok && c.Kernels != nil && isDirect(d, c.Topo.Ranks, bytes, c.Kernels.LongestDirect())
}

// isDirect reports whether a direct kernel is for a collective of this many bytes, where
// its messages have at most longest.
func isDirect(d collective.Direct, ranks, bytes, longest int) bool {
	return longest > 0 && bytes <= collective.MaxMessage && d.Message(ranks, bytes) <= longest
}

// directKernel is the direct kernel of a collective that has the algorithm's name.
func directKernel(kind call.Kind, a call.Algo) (collective.Direct, bool) {
	switch {
	case kind == call.AllReduce && a == call.OneShot:
		return collective.OneShot, true
	case kind == call.AllReduce && a == call.TwoShot:
		return collective.TwoShot, true
	case kind == call.AllReduce || a != call.Direct:
		return 0, false
	}
	return WindowKernel(kind)
}

// WindowKernel is the kernel of a collective in windows; ok is false for a collective without one.
func WindowKernel(kind call.Kind) (d collective.Direct, ok bool) {
	d = windowKernels[kind]
	return d - 1, d > 0
}

// windowKernels are one more than the kernels of WindowKernel.
var windowKernels = [call.Kinds]collective.Direct{
	call.AllReduce: collective.TwoShot + 1, call.ReduceScatter: collective.ReduceScatter + 1,
	call.Reduce: collective.Reduce + 1, call.AllGather: collective.AllGather + 1, call.AlltoAll: collective.AllToAll + 1,
	call.Broadcast: collective.Broadcast + 1, call.Gather: collective.Gather + 1, call.Scatter: collective.Scatter + 1,
}

// anyDirect reports whether there are direct kernels for messages of any length.
func (c *Chooser) anyDirect() bool {
	return c.Kernels != nil && c.Kernels.LongestDirect() == collective.MaxMessage
}

// paperKernels are the Kernels of an engine that is not there.
type paperKernels struct {
	longest int  // message of direct kernels
	reach   bool // all GPUs reach each other's memory
}

func (k paperKernels) LongestDirect() int { return k.longest }

func (k paperKernels) CanWindow(d collective.Direct) bool {
	in, out := d.InWindow()
	return k.reach && (in || out)
}

func (k paperKernels) CanCopy(d collective.Direct) bool { return k.CanWindow(d) && d.ByCopies() }

func (k paperKernels) CanNorm(row int) bool { return k.reach && row <= kernels.MaxNormRow }
