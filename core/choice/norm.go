package choice

import (
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels/collective"
)

// Why a call with a Norm, which finishes the rows that it has summed, is carried out so. All ways give the same bits.
const (
	rowsInOrder   = "rows: contributions are moved as they are, and finished in order of rank"
	rowsByKernel  = "rows: one kernel sums and finishes them"
	rowsInTwoHops = "rows: one kernel, in which each rank sums a share of them: less goes over links than if all sum all"
)

// wholeRows is up to how many bytes, from a rank to all others together, each of more than two ranks sums and finishes
// all rows. Beyond, each finishes a share. Built-in plans have other all-reduces go in two hops from 256 to 512 KiB on.
const wholeRows = 512 << 10

// norm chooses for a call with a Norm on GPU memory.
func (c *Chooser) norm(q Question) Answer {
	n := c.Topo.Ranks
	d, algo, why := collective.ReduceScatter, call.Direct, rowsByKernel
	if q.Kind == call.AllReduce {
		d, algo = collective.OneShot, call.OneShot
		if c.Forced == call.TwoShot || c.Forced != call.OneShot && n > 2 && q.Bytes > wholeRows/(n-1) {
			d, algo, why = collective.TwoShot, call.TwoShot, rowsInTwoHops
		}
		if c.Forced == algo {
			why = asked
		}
	}
	can := c.Kernels != nil && c.Kernels.CanNorm(q.Row) && d.Message(n, q.Bytes) <= c.Kernels.LongestDirect()
	if c.Forced == call.Steps || !can {
		return Answer{Algo: call.ByRank, By: ByFold, Why: rowsInOrder}
	}
	return Answer{Algo: algo, By: ByNorm, Kernel: d, Why: why}
}
