package simt

import (
	"slices"

	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// A graph is the functions that a kernel reaches, the kernel first.
type graph struct {
	funcs     []*ptx.Func
	callees   [][]int
	activates []bool // they may be called within themselves, or by address
	depth     []int  // how many calls lead there at most, those within cycles not counted
}

// functionAddress is the address of a function: in a window where no memory can be, beside those of package address.
func functionAddress(i int) uint64 { return functionWindow | uint64(i+1)<<4 }

// reach finds what a kernel calls.
func (c *compiler) reach(kernel *ptx.Func) *graph {
	g := &graph{}
	number := map[*ptx.Func]int{}
	add := func(f *ptx.Func) int {
		n, ok := number[f]
		if !ok {
			n = len(g.funcs)
			number[f] = n
			g.funcs, g.callees, g.activates = append(g.funcs, f), append(g.callees, nil), append(g.activates, false)
		}
		return n
	}
	add(kernel)
	var taken []*ptx.Func // by address
	for i := 0; i < len(g.funcs); i++ {
		f := g.funcs[i]
		for k := range f.Body {
			in := &f.Body[k]
			switch {
			case in.Op != "call" || c.extern(in) != nil:
				continue
			case in.Operands[1].Kind == ptx.RegOperand:
				if taken == nil {
					taken = addressed(c.m)
				}
				for _, t := range taken {
					if suits(in, f, t) {
						n := add(t)
						g.activates[n] = true
						g.callees[i] = append(g.callees[i], n)
					}
				}
				continue
			}
			g.callees[i] = append(g.callees[i], add(c.callee(in)))
		}
	}
	g.measure()
	return g
}

// suits reports whether a call through a register may be of a function: the sizes of results and parameters agree.
func suits(in *ptx.Instr, caller, f *ptx.Func) bool {
	same := func(a, b ptx.Var) bool { return a.Size() == b.Size() }
	proto := caller.Prototypes[in.Operands[3].Name]
	return slices.EqualFunc(proto.Results, f.Results, same) && slices.EqualFunc(proto.Params, f.Params, same)
}

// addressed are the functions of a module that it takes the address of.
func addressed(m *ptx.Module) (list []*ptx.Func) {
	names := map[string]bool{}
	for _, v := range m.Vars {
		for _, r := range v.Relocs {
			names[r.Name] = true
		}
	}
	for _, f := range m.Funcs {
		for _, in := range f.Body {
			if in.Op == "mov" {
				for _, o := range in.Operands {
					names[o.Name] = true
				}
			}
		}
	}
	for _, f := range m.Funcs {
		if names[f.Name] && !f.Entry && !f.Declare {
			list = append(list, f)
		}
	}
	return list
}

// measure finds the cycles, by Tarjan's algorithm, and the depths.
func (g *graph) measure() {
	n := len(g.funcs)
	index, low, of := make([]int, n), make([]int, n), make([]int, n) // of: the component, from 1
	var stack []int
	count, components := 0, [][]int{{}}
	var visit func(v int)
	visit = func(v int) {
		count++
		index[v], low[v] = count, count
		stack = append(stack, v)
		for _, u := range g.callees[v] {
			if index[u] == 0 {
				visit(u)
			}
			if of[u] == 0 {
				low[v] = min(low[v], low[u])
			}
			g.activates[v] = g.activates[v] || u == v
		}
		if low[v] < index[v] {
			return
		}
		at := slices.Index(stack, v)
		for _, u := range stack[at:] {
			of[u] = len(components)
			g.activates[u] = g.activates[u] || len(stack)-at > 1
		}
		components = append(components, slices.Clone(stack[at:]))
		stack = stack[:at]
	}
	visit(0)
	g.depth = make([]int, n)
	for k := len(components) - 1; k > 0; k-- { // those that call come after what they call
		deepest := 0
		for _, v := range components[k] {
			deepest = max(deepest, g.depth[v])
		}
		for _, v := range components[k] {
			g.depth[v] = deepest
			for _, u := range g.callees[v] {
				if of[u] != k {
					g.depth[u] = max(g.depth[u], deepest+1)
				}
			}
		}
	}
}
