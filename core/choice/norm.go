package choice

import (
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels/collective"
)

// Why rows are finished as they are. All ways give the same bits.
const (
	rowsInOrder   = "rows: contributions are moved as they are, and finished in order of rank"
	rowsByKernel  = "rows: one kernel sums and finishes them"
	rowsInTwoHops = "rows: one kernel, in which each rank sums a share of them: less goes over links than if all sum all"
)

// wholeRows is up to how many bytes, from a rank to all others together, every rank finishes all rows of more than two
// ranks: half of where all-reduces begin to go in two hops by built-in plans, for rows are whole in blocks, so one hop
// takes longer.
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
