package ringo

import "github.com/ringo-go/ringo/engine/grid"

// A letterbox is up to which size, in bytes of the call's Count elements, a
// collective is carried out by a direct kernel rather than by a schedule.
type letterbox struct {
	kernel grid.Direct
	algo   algo // by which it is asked for
	most   func(ranks int) int
}

// letterboxes are the direct kernels of each collective, for small data first.
// Where they end is measured on 2 and 4 H200s, for 2-byte floats in a graph: a rank
// that sends the same to all others is as fast as a tree or ring while that is
// 1.5 MiB in all; two hops of one-shot's data are quicker from 768 KiB on; and
// where data is divided among ranks, the ring catches up at 16 MiB.
var letterboxes = [kinds][]letterbox{
	KindAllReduce: {
		{grid.OneShot, algoOneShot, sentToAll(768 << 10)},
		{grid.TwoShot, algoTwoShot, func(int) int { return 16 << 20 }},
	},
	KindReduceScatter: {{grid.ReduceScatter, algoDirect, shared(16 << 20)}},
	KindReduce:        {{grid.Reduce, algoDirect, sentToAll(1536 << 10)}},
	KindAllGather:     {{grid.AllGather, algoDirect, shared(16 << 20)}},
	KindAlltoAll:      {{grid.AllToAll, algoDirect, shared(32 << 20)}},
	KindBroadcast:     {{grid.Broadcast, algoDirect, sentToAll(1536 << 10)}},
	KindGather:        {{grid.Gather, algoDirect, shared(16 << 20)}},
	KindScatter:       {{grid.Scatter, algoDirect, shared(16 << 20)}},
}

func sentToAll(bytes int) func(int) int { return func(ranks int) int { return bytes / (ranks - 1) } }
func shared(bytes int) func(int) int    { return func(ranks int) int { return bytes / ranks } }

// letterbox is the direct kernel for a collective, if there is one and it is the
// best or asked for. It is a pure function of what all ranks know alike.
func (d *device) letterbox(kind Kind, ranks, bytes int, forced algo) (letterbox, bool) {
	if !d.engine.CanDirect() {
		return letterbox{}, false
	}
	for _, l := range letterboxes[kind] {
		if bytes <= grid.MaxMessage && (forced == l.algo || forced == algoAuto && bytes <= l.most(ranks)) {
			return l, true
		}
	}
	return letterbox{}, false
}

// planOnDevice chooses the algorithm of a collective on GPU memory.
func (c *Comm) planOnDevice(kind Kind, bytes int) algo {
	if l, ok := c.dev.letterbox(kind, c.size, bytes, c.cfg.algo); ok {
		return l.algo
	}
	a, _ := choosePlan(kind, c.topo, bytes, c.cfg.algo)
	return a
}
