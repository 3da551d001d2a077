package ringo

import "github.com/ringo-go/ringo/engine/grid"

// A devicePlan is which algorithm carries out a collective on GPU memory: rows in
// order of size, for memory as it comes and for registered memory.
type devicePlan [kinds][2][]planRow

// A planRow is an algorithm and up to which size it is chosen, in bytes of the
// call's Count elements.
type planRow struct {
	algo algo
	most int
}

// choose is the algorithm of a collective on GPU memory. It is a pure function of
// what all ranks know alike, so they choose alike, and allocates nothing.
// Registered says that the call's memory lies in windows on all ranks.
func (d *device) choose(kind Kind, bytes int, registered bool) algo {
	if forced := d.net.cfg.algo; forced != algoAuto && d.serves(kind, forced, bytes, registered) {
		return forced
	}
	if registered {
		if a := d.row(d.plan[kind][1], kind, bytes, true); a != algoAuto {
			return a
		}
	}
	if a := d.row(d.plan[kind][0], kind, bytes, false); a != algoAuto {
		return a
	}
	a, _ := choosePlan(kind, d.topo, bytes, d.net.cfg.algo)
	return a
}

// row is the algorithm of the first row that covers a size and can serve here,
// algoAuto if there is none.
func (d *device) row(rows []planRow, kind Kind, bytes int, registered bool) algo {
	for i := range rows {
		if r := &rows[i]; bytes <= r.most && d.serves(kind, r.algo, bytes, registered) {
			return r.algo
		}
	}
	return algoAuto
}

// serves reports whether an algorithm can carry out a collective here.
func (d *device) serves(kind Kind, a algo, bytes int, registered bool) bool {
	switch a {
	case algoWindow, algoCopies:
		return false // not before the engine has them
	case algoSteps:
		return true
	}
	if _, ok := d.kernel(kind, a, bytes); ok {
		return true
	}
	return programKey{kind: kind, algo: a}.exists(d.topo)
}

// kernel is the direct kernel that an algorithm of a collective stands for, if
// there is one; otherwise its schedule is carried out step by step.
func (d *device) kernel(kind Kind, a algo, bytes int) (grid.Direct, bool) {
	k := directKernels[kind]
	if kind == KindAllReduce && a == algoTwoShot {
		k = directKernel{grid.TwoShot, algoTwoShot}
	}
	return k.kernel, k.algo == a && a != algoAuto && bytes <= grid.MaxMessage && d.engine.CanDirect()
}

// A directKernel is the direct kernel of a collective and its name in a plan.
type directKernel struct {
	kernel grid.Direct
	algo   algo
}

// directKernels are the ones that collectives have; all-reduce has TwoShot besides.
var directKernels = [kinds]directKernel{
	KindAllReduce:     {grid.OneShot, algoOneShot},
	KindReduceScatter: {grid.ReduceScatter, algoDirect},
	KindReduce:        {grid.Reduce, algoDirect},
	KindAllGather:     {grid.AllGather, algoDirect},
	KindAlltoAll:      {grid.AllToAll, algoDirect},
	KindBroadcast:     {grid.Broadcast, algoDirect},
	KindGather:        {grid.Gather, algoDirect},
	KindScatter:       {grid.Scatter, algoDirect},
}

// builtinPlan is measured on 2 and 4 H200s, for 2-byte floats in a graph: a rank
// that sends the same to all others is as fast as a tree or ring while that is
// 1.5 MiB in all; two hops of one-shot's data are quicker from 768 KiB on; and
// where data is divided among ranks, the ring catches up at 16 MiB.
func builtinPlan(ranks int) (p devicePlan) {
	sent := max(1, ranks-1)
	p[KindAllReduce][0] = []planRow{{algoOneShot, 768 << 10 / sent}, {algoTwoShot, 16 << 20}}
	p[KindReduceScatter][0] = []planRow{{algoDirect, 16 << 20 / ranks}}
	p[KindReduce][0] = []planRow{{algoDirect, 1536 << 10 / sent}}
	p[KindAllGather][0] = []planRow{{algoDirect, 16 << 20 / ranks}}
	p[KindAlltoAll][0] = []planRow{{algoDirect, 32 << 20 / ranks}, {algoSteps, maxCount}}
	p[KindBroadcast][0] = []planRow{{algoDirect, 1536 << 10 / sent}}
	p[KindGather][0] = []planRow{{algoDirect, 16 << 20 / ranks}, {algoSteps, maxCount}}
	p[KindScatter][0] = []planRow{{algoDirect, 16 << 20 / ranks}, {algoSteps, maxCount}}
	return p
}
