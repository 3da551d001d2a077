package choice

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/internal/plain"
	"github.com/ringo-go/ringo/transport"
)

// Rows are the rows of each collective in the order in which they count: [0] for any
// memory, [1] for registered memory, for which [1] counts before [0].
type Rows [call.Kinds][2][]Row

// A Row is an algorithm and up to which size it is chosen, in bytes of the
// call's Count elements.
type Row struct {
	Algo   call.Algo
	Most   int
	From   string // where the row is from
	Blocks int    `json:",omitempty"` // that it takes; 0 if nobody has measured it
	Few    int    `json:",omitempty"` // the same by the policies efficiency and zero
}

// row is the first row that covers a size and can serve here, nil if there is none. narrowed reports whether the budget
// has left one out.
func (c *Chooser) row(kind call.Kind, bytes int, where memory) (row *Row, narrowed bool) {
	for list := len(c.Rows[kind]) - 1; list >= 0; list-- {
		if list == 1 && where == anywhere {
			continue
		}
		rows := c.Rows[kind][list]
		for i := range rows {
			r := &rows[i]
			if bytes > r.Most || !c.serves(kind, r.Algo, bytes, where) {
				continue
			}
			if c.Budget.takes(r, kind, bytes*kind.Shares(c.Topo.Ranks)) {
				return r, narrowed
			}
			narrowed = true
		}
	}
	return nil, narrowed
}

// Names are the algorithms that can serve on these GPUs, each once, by the names of plans.
func (c *Chooser) Names(kind call.Kind, bytes int, registered bool) (list []string) {
	q := Question{Registered: registered}
	for a := call.Ring; a < lastAlgo(); a++ {
		if a == call.Steps {
			if _, taken := c.kernel(kind, Default(kind), bytes); !taken {
				continue // the default is step by step under its own name
			}
		}
		if c.serves(kind, a, bytes, q.memory()) {
			list = append(list, a.String())
		}
	}
	return list
}

// serves reports whether an algorithm can carry out a collective here.
func (c *Chooser) serves(kind call.Kind, a call.Algo, bytes int, where memory) bool {
	switch a {
	case call.Auto:
		return false
	case call.Window:
		d, ok := WindowKernel(kind)
		return ok && where >= forKernels && c.Kernels != nil && c.Kernels.CanWindow(d) && c.inWindows(kind, a)
	case call.Copies:
		d, ok := WindowKernel(kind)
		return ok && where == forCopies && c.Kernels != nil && c.Kernels.CanCopy(d) && c.inWindows(kind, a)
	case call.Steps:
		return true
	}
	if _, ok := c.kernel(kind, a, bytes); ok {
		return true
	}
	return Key{Kind: kind, Algo: a}.Exists(c.Topo)
}

// inWindows reports whether a collective may use windows. Reduce, Gather and Scatter may only if
// a is asked for: a root in place has its memory at another offset than the other ranks. Such a
// call is correct, and in a window it would fail.
func (c *Chooser) inWindows(kind call.Kind, a call.Algo) bool {
	return !kind.Rooted() || kind == call.Broadcast || c.Forced == a
}

// algorithmsOnGPUs are the names of algorithms that a plan's row of a collective may have: built-in ones. A program's
// own may have other numbers in other processes.
func algorithmsOnGPUs(kind call.Kind, registered bool) (list []string) {
	for a := call.Ring; a < call.Algos; a++ {
		d, window := WindowKernel(kind)
		_, direct := directKernel(kind, a)
		switch {
		case a == call.Steps:
			direct = true
		case a == call.Window:
			in, out := d.InWindow()
			direct = window && registered && (in || out)
		case a == call.Copies:
			direct = window && registered && d.ByCopies()
		}
		if direct || slices.ContainsFunc(tables(kind), func(t table) bool { return t.algo == a }) {
			list = append(list, a.String())
		}
	}
	return list
}

// add appends the rows of a plan for as many ranks as the fabric has.
func (rows *Rows) add(p *Plan, f *Fabric) {
	ranks, elsewhere := f.Topo.Ranks, p.elsewhere(f)
	for i := range p.Rows {
		r := &p.Rows[i]
		if ranks < r.From || ranks > r.To {
			continue
		}
		a, _ := call.ParseAlgo(r.Algo)
		list := &rows[r.Kind][0]
		if r.Registered {
			list = &rows[r.Kind][1]
		}
		from := fmt.Sprintf("%s, line %d", p.name, r.line)
		if r.Note != "" {
			from += " (" + r.Note + ")"
		}
		from += elsewhere
		*list = append(*list, Row{Algo: a, Most: int(r.most()) / r.Kind.Shares(ranks), From: from, Blocks: r.Blocks,
			Few: r.Few})
	}
}

// A Fabric is what the GPUs of a communicator are and how they are connected.
type Fabric struct {
	GPUs      []string          // names
	Near, Far transport.GPUPath // the best path of a pair and the worst
	Topo      Topology
}

// path is the name of the path of all pairs, "" if they differ.
func (f *Fabric) path() string {
	if f.Near != f.Far {
		return ""
	}
	return f.Near.String()
}

// String says which GPUs and paths a fabric has.
func (f *Fabric) String() string {
	names := slices.Compact(slices.Sorted(slices.Values(f.GPUs)))
	return strings.Join(names, ", ") + ", " + cmp.Or(f.path(), "several paths")
}

// RowsFor are the rows of a plan that was given (or nil), of the built-in plans and of the model,
// in this order; plans for other GPUs or paths are left out. The model's are made once a process, see
// modelRanks. longest is Kernels.LongestDirect.
func RowsFor(given *Plan, f *Fabric, longest int) (rows Rows) {
	if given != nil && given.Matches(f) {
		rows.add(given, f)
		for kind := range rows { // those for any memory count before the built-in ones for registered memory
			rows[kind][1] = append(rows[kind][1], rows[kind][0]...)
		}
	}
	for _, p := range builtinPlans() {
		if p.Matches(f) {
			rows.add(p, f)
		}
	}
	rows.model(f, longest)
	return rows
}

// Encode is the rows as they travel from rank 0 to the others.
func (rows *Rows) Encode() []byte { return plain.JSON(rows) }

// DecodeRows reads what Encode wrote.
func DecodeRows(b []byte) (rows Rows, err error) {
	if err := json.Unmarshal(b, &rows); err != nil {
		return rows, fmt.Errorf("rank 0's plan: %w", err)
	}
	for kind := range rows {
		for _, list := range rows[kind] {
			for _, r := range list {
				if r.Algo >= call.Algos || !validBlocks(r.Blocks, r.Few) {
					return rows, fmt.Errorf("rank 0's plan: %v of %v with %d and %d blocks", r.Algo, call.Kind(kind), r.Blocks, r.Few)
				}
			}
		}
	}
	return rows, nil
}
