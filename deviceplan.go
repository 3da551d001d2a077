package ringo

import (
	"fmt"
	"slices"

	"github.com/ringo-go/ringo/engine/grid"
)

// A planner chooses the algorithms of collectives on GPU memory. All ranks have
// rank 0's rows.
type planner struct {
	rows   planRows
	topo   topology
	forced algo
	can    kernelSet

	shares, piece int // of reductions in shares, see reducesInShares; 0 for the defaults
}

// planRows are the rows of each collective in the order in which they count, for
// memory as it comes and for registered memory.
type planRows [kinds][2][]planRow

// A planRow is an algorithm and up to which size it is chosen, in bytes of the
// call's Count elements.
type planRow struct {
	Algo algo
	Most int
	From string // where the row is from
}

// A kernelSet says which kernels there are; it is a grid.Engine, or how one would be.
type kernelSet interface {
	CanDirect() bool
	CanWindow(grid.Direct) bool
	CanCopy(grid.Direct) bool
}

// choose is the algorithm of a collective on GPU memory. It is a pure function of
// what all ranks know alike, so they choose alike, and allocates nothing.
// Registered says that the call's memory lies in windows on all ranks.
func (p *planner) choose(kind Kind, bytes int, registered bool) algo {
	if p.forced != algoAuto && p.serves(kind, p.forced, bytes, registered) {
		return p.forced
	}
	if r := p.row(kind, bytes, registered); r != nil {
		return r.Algo
	}
	a, _ := choosePlan(kind, p.topo, bytes, algoAuto)
	return a
}

// row is the first row that covers a size and can serve here, nil if there is none.
func (p *planner) row(kind Kind, bytes int, registered bool) *planRow {
	for memory := len(p.rows[kind]) - 1; memory >= 0; memory-- {
		if memory == 1 && !registered {
			continue
		}
		rows := p.rows[kind][memory]
		for i := range rows {
			if r := &rows[i]; bytes <= r.Most && p.serves(kind, r.Algo, bytes, registered) {
				return r
			}
		}
	}
	return nil
}

// because says in words why choose chooses.
func (p *planner) because(kind Kind, bytes int, registered bool) string {
	if p.forced != algoAuto && p.serves(kind, p.forced, bytes, registered) {
		return asked
	}
	if r := p.row(kind, bytes, registered); r != nil {
		return r.From
	}
	_, reason := choosePlan(kind, p.topo, bytes, algoAuto)
	return reason
}

// names are the different algorithms that can serve, by the names they have in a plan.
func (p *planner) names(kind Kind, bytes int, registered bool) (list []string) {
	for a := algoRing; a < algos; a++ {
		if a == algoSteps {
			if _, taken := p.kernel(kind, book[kind][0].algo, bytes); !taken {
				continue // it has a name of its own
			}
		}
		if p.serves(kind, a, bytes, registered) {
			list = append(list, a.String())
		}
	}
	return list
}

// serves reports whether an algorithm can carry out a collective here.
func (p *planner) serves(kind Kind, a algo, bytes int, registered bool) bool {
	switch a {
	case algoAuto:
		return false
	case algoWindow:
		d, ok := windowKernel(kind)
		return ok && registered && p.can.CanWindow(d) && p.inWindows(kind, a)
	case algoCopies:
		d, ok := windowKernel(kind)
		return ok && registered && p.can.CanCopy(d) && p.inWindows(kind, a)
	case algoSteps:
		return true
	}
	if _, ok := p.kernel(kind, a, bytes); ok {
		return true
	}
	return programKey{kind: kind, algo: a}.exists(p.topo)
}

// inWindows reports whether windows are for a collective unless a is asked for. A
// root whose call is in place has its memory elsewhere than the others, and does
// not know where theirs is; such a call is right and must not fail for a window.
func (p *planner) inWindows(kind Kind, a algo) bool {
	return !kind.Rooted() || kind == KindBroadcast || p.forced == a
}

// kernel is the direct kernel that an algorithm of a collective stands for here,
// if there is one; otherwise its schedule is carried out step by step.
func (p *planner) kernel(kind Kind, a algo, bytes int) (grid.Direct, bool) {
	d, ok := directKernel(kind, a)
	return d, ok && bytes <= grid.MaxMessage && p.can.CanDirect()
}

// directKernel is the direct kernel of a collective that has the algorithm's name.
func directKernel(kind Kind, a algo) (grid.Direct, bool) {
	switch {
	case kind == KindAllReduce && a == algoOneShot:
		return grid.OneShot, true
	case kind == KindAllReduce && a == algoTwoShot:
		return grid.TwoShot, true
	case kind == KindAllReduce || a != algoDirect:
		return 0, false
	}
	return windowKernel(kind)
}

// windowKernel is how engine/grid names a collective in windows.
func windowKernel(kind Kind) (d grid.Direct, ok bool) {
	switch kind {
	case KindAllReduce:
		return grid.TwoShot, true
	case KindReduceScatter:
		return grid.ReduceScatter, true
	case KindReduce:
		return grid.Reduce, true
	case KindAllGather:
		return grid.AllGather, true
	case KindAlltoAll:
		return grid.AllToAll, true
	case KindBroadcast:
		return grid.Broadcast, true
	case KindGather:
		return grid.Gather, true
	case KindScatter:
		return grid.Scatter, true
	}
	return 0, false
}

// algorithmsOnGPUs are those that a collective may have on GPU memory.
func algorithmsOnGPUs(kind Kind, registered bool) (list []string) {
	for a := algoRing; a < algos; a++ {
		d, window := windowKernel(kind)
		_, direct := directKernel(kind, a)
		switch {
		case a == algoSteps:
			direct = true
		case a == algoWindow:
			in, out := d.InWindow()
			direct = window && registered && (in || out)
		case a == algoCopies:
			direct = window && registered && d.ByCopies()
		}
		if direct || slices.ContainsFunc(book[kind], func(t table) bool { return t.algo == a }) {
			list = append(list, a.String())
		}
	}
	return list
}

// add appends what a plan says for a number of ranks.
func (rows *planRows) add(p *Plan, ranks int) {
	for i := range p.Rows {
		r := &p.Rows[i]
		if ranks < r.From || ranks > r.To {
			continue
		}
		a, _ := parseAlgo(r.Algo)
		list := &rows[r.Kind][0]
		if r.Registered {
			list = &rows[r.Kind][1]
		}
		from := fmt.Sprintf("%s, line %d", p.name, r.line)
		if r.Note != "" {
			from += " (" + r.Note + ")"
		}
		*list = append(*list, planRow{a, int(r.most()) / r.Kind.shares(ranks), from})
	}
}
