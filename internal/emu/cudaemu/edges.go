// Edges and event nodes of a graph that is being built.

package cudaemu

import (
	"slices"

	"github.com/ringo-go/ringo/internal/cuda"
)

func (m *Machine) GraphAddEventRecordNode(h cuda.Graph, after []cuda.GraphNode, eh cuda.Event) (cuda.GraphNode, error) {
	c, err := m.begin("cuGraphAddEventRecordNode")
	if err != nil {
		return 0, err
	}
	defer c.end()
	g, deps, err := c.insertion(h, after)
	if err != nil {
		return 0, err
	}
	e, err := c.event(eh)
	if err != nil {
		return 0, err
	}
	return g.add(m, e.ctx.legacy, recordWork{e}, deps).handle, nil
}

func (m *Machine) GraphAddDependencies(h cuda.Graph, from, to []cuda.GraphNode) error {
	return m.edges("cuGraphAddDependencies", h, from, to, func(c *call, g *graph, a, b *node) error {
		if slices.Contains(b.deps, a) {
			return c.fail(cuda.ErrInvalidValue, "there is an edge from %#x to %#x", uintptr(a.handle), uintptr(b.handle))
		}
		before := b.deps
		b.deps = append(slices.Clip(b.deps), a) // streams that capture may share it
		if !g.sort() {
			b.deps = before
			return c.fail(cuda.ErrInvalidValue, "an edge from %#x to %#x makes a circle", uintptr(a.handle), uintptr(b.handle))
		}
		return nil
	})
}

func (m *Machine) GraphRemoveDependencies(h cuda.Graph, from, to []cuda.GraphNode) error {
	return m.edges("cuGraphRemoveDependencies", h, from, to, func(c *call, g *graph, a, b *node) error {
		i := slices.Index(b.deps, a)
		if i < 0 {
			return c.fail(cuda.ErrInvalidValue, "there is no edge from %#x to %#x", uintptr(a.handle), uintptr(b.handle))
		}
		b.deps = slices.Delete(slices.Clone(b.deps), i, i+1)
		return nil
	})
}

// edges calls f for each edge of a graph.
func (m *Machine) edges(name string, h cuda.Graph, from, to []cuda.GraphNode,
	f func(c *call, g *graph, a, b *node) error) error {
	c, err := m.begin(name)
	if err != nil {
		return err
	}
	defer c.end()
	g, err := c.graph(h)
	if err != nil {
		return err
	}
	for i := range from {
		ends, err := c.nodes(g, []cuda.GraphNode{from[i], to[i]})
		if err != nil {
			return err
		}
		if len(ends) < 2 {
			return c.fail(cuda.ErrInvalidValue, "an edge of a node to itself")
		}
		if err := f(c, g, ends[0], ends[1]); err != nil {
			return err
		}
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
