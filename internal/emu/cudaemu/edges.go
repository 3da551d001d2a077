// Edges and event nodes of a graph that is being built.

package cudaemu

import (
	"slices"

	"github.com/ringo-go/ringo/internal/cuda"
)

func (m *Machine) GraphAddEventRecordNode(h cuda.Graph, after []cuda.GraphNode, eh cuda.Event) (_ cuda.GraphNode,
	err error) {
	c := m.call("cuGraphAddEventRecordNode", &err)
	defer c.end()
	c.begin()
	g, deps := c.insertion(h, after)
	e := c.event(eh)
	return g.add(m, e.ctx.legacy, recordWork{e}, deps).handle, nil
}

func (m *Machine) GraphAddDependencies(h cuda.Graph, from, to []cuda.GraphNode) error {
	return m.edges("cuGraphAddDependencies", h, from, to, func(c *call, g *graph, a, b *node) {
		c.refuse(slices.Contains(b.deps, a), cuda.ErrInvalidValue, "there is an edge from %#x to %#x",
			uintptr(a.handle), uintptr(b.handle))
		before := b.deps
		b.deps = append(slices.Clip(b.deps), a) // streams that capture may share it
		if !g.sort() {
			b.deps = before
			c.fail(cuda.ErrInvalidValue, "an edge from %#x to %#x makes a circle", uintptr(a.handle), uintptr(b.handle))
		}
	})
}

func (m *Machine) GraphRemoveDependencies(h cuda.Graph, from, to []cuda.GraphNode) error {
	return m.edges("cuGraphRemoveDependencies", h, from, to, func(c *call, g *graph, a, b *node) {
		i := slices.Index(b.deps, a)
		c.refuse(i < 0, cuda.ErrInvalidValue, "there is no edge from %#x to %#x", uintptr(a.handle), uintptr(b.handle))
		b.deps = slices.Delete(slices.Clone(b.deps), i, i+1)
	})
}

// edges calls f for each edge of a graph.
func (m *Machine) edges(name string, h cuda.Graph, from, to []cuda.GraphNode,
	f func(c *call, g *graph, a, b *node)) (err error) {
	c := m.call(name, &err)
	defer c.end()
	c.begin()
	g := c.graph(h)
	for i := range from {
		ends := c.nodes(g, []cuda.GraphNode{from[i], to[i]})
		c.refuse(len(ends) < 2, cuda.ErrInvalidValue, "an edge of a node to itself")
		f(c, g, ends[0], ends[1])
	}
	return nil
}

// sort puts each node after those it depends on. It fails if there is a circle.
func (g *graph) sort() bool {
	sorted := make([]*node, 0, len(g.nodes))
	state := map[*node]int{} // 1: its dependencies are being visited, 2: it is in the list
	var visit func(n *node) bool
	visit = func(n *node) bool {
		if state[n] != 0 {
			return state[n] == 2
		}
		state[n] = 1
		for _, d := range n.deps {
			if !visit(d) {
				return false
			}
		}
		state[n] = 2
		sorted = append(sorted, n)
		return true
	}
	for _, n := range g.nodes {
		if !visit(n) {
			return false
		}
	}
	g.nodes = sorted
	return true
}
