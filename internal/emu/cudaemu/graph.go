package cudaemu

import "github.com/ringo-go/ringo/internal/cuda"

// A graph is recorded work.
type graph struct {
	handle  cuda.Graph
	nodes   []*node // each after those it depends on
	objects map[*userObject]int
	by      Caller
	owned   bool       // by a conditional node
	running *graphExec // the only one, if the graph has conditional nodes
}

type node struct {
	handle   cuda.GraphNode
	work     work
	ctx      *context
	priority int
	deps     []*node
}

func (m *Machine) newGraph() *graph {
	g := &graph{handle: cuda.Graph(m.handles.give(graphHandle)), objects: map[*userObject]int{},
		by: m.caller(nil)}
	m.graphs[g.handle] = g
	return g
}

func (g *graph) add(m *Machine, s *stream, w work, deps []*node) *node {
	n := &node{handle: cuda.GraphNode(m.handles.give(nodeHandle)), work: w, ctx: s.ctx, priority: s.priority, deps: deps}
	g.nodes = append(g.nodes, n)
	return n
}

// copied returns copies of nodes, which do not change when the graph changes. Copies have no handles.
func copied(nodes []*node) []*node {
	copies := map[*node]*node{}
	list := make([]*node, len(nodes))
	for i, n := range nodes {
		c := *n
		c.handle, c.deps = 0, nil
		for _, d := range n.deps {
			c.deps = append(c.deps, copies[d])
		}
		switch w := n.work.(type) {
		case childWork:
			c.work = childWork{copied(w.nodes)}
		case conditionWork:
			c.work = conditionWork{w.condition, w.how, &graph{nodes: copied(w.body.nodes)}}
		}
		list[i], copies[n] = &c, &c
	}
	return list
}

// conditions are the conditional nodes of the graph, and of their bodies.
func conditions(nodes []*node) (list []conditionWork) {
	for _, n := range nodes {
		if w, ok := n.work.(conditionWork); ok {
			list = append(append(list, w), conditions(w.body.nodes)...)
		}
	}
	return list
}

// retainInto adds the references of the graph and of the bodies of its conditional nodes.
func (g *graph) retainInto(to map[*userObject]int) {
	retainAll(to, g.objects)
	for _, w := range conditions(g.nodes) {
		retainAll(to, w.body.objects)
	}
}

func (m *Machine) freeGraph(g *graph) {
	delete(m.graphs, g.handle)
	m.handles.back(graphHandle, uintptr(g.handle))
	for _, n := range g.nodes {
		m.handles.back(nodeHandle, uintptr(n.handle))
		if w, ok := n.work.(conditionWork); ok {
			m.freeGraph(w.body)
		}
	}
	m.releaseAll(g.objects)
}

func (c *call) graph(h cuda.Graph) *graph {
	g := c.graphs[h]
	c.refuse(g == nil, cuda.ErrInvalidValue, "%#x is no graph, or was destroyed", uintptr(h))
	return g
}

// nodes are the nodes of handles, all of graph g.
func (c *call) nodes(g *graph, handles []cuda.GraphNode) (list []*node) {
	byHandle := map[cuda.GraphNode]*node{}
	for _, n := range g.nodes {
		byHandle[n.handle] = n
	}
	for _, h := range handles {
		n := byHandle[h]
		c.refuse(n == nil, cuda.ErrInvalidValue, "%#x is no node of the graph", uintptr(h))
		list = union(list, []*node{n})
	}
	return list
}

func (m *Machine) GraphCreate() (_ cuda.Graph, err error) {
	c := m.call("cuGraphCreate", &err)
	defer c.end()
	c.begin()
	return m.newGraph().handle, nil
}

func (m *Machine) GraphDestroy(h cuda.Graph) (err error) {
	c := m.call("cuGraphDestroy", &err)
	defer c.end()
	c.begin()
	g := c.graph(h)
	for p := range m.captures {
		c.refuse(p.graph == g, cuda.ErrInvalidValue, "the graph is being captured: end the capture first")
	}
	c.refuse(g.owned, cuda.ErrInvalidValue, "the graph is the body of a conditional node, and goes with it")
	m.freeGraph(g)
	return nil
}

func (m *Machine) GraphClone(h cuda.Graph) (_ cuda.Graph, err error) {
	c := m.call("cuGraphClone", &err)
	defer c.end()
	c.begin()
	g := c.graph(h)
	c.refuse(conditions(g.nodes) != nil, cuda.ErrNotSupported, "a graph with conditional nodes cannot be cloned")
	clone := m.newGraph()
	clone.nodes = copied(g.nodes)
	for _, n := range clone.nodes {
		n.handle = cuda.GraphNode(m.handles.give(nodeHandle))
	}
	retainAll(clone.objects, g.objects)
	return clone.handle, nil
}

// childWork is a copy of a graph that is one node of another.
type childWork struct{ nodes []*node }

func (childWork) step(*Machine, *op) bool { return true }

func (m *Machine) GraphAddChildGraphNode(h cuda.Graph, after []cuda.GraphNode, ch cuda.Graph) (_ cuda.GraphNode,
	err error) {
	c := m.call("cuGraphAddChildGraphNode", &err)
	defer c.end()
	c.beginIn()
	g, deps := c.insertion(h, after)
	child := c.graph(ch)
	c.refuse(child == g, cuda.ErrInvalidValue, "the graph is to be its own child")
	c.refuse(conditions(child.nodes) != nil, cuda.ErrNotSupported, "a graph with conditional nodes cannot be a child")
	retainAll(g.objects, child.objects)
	return g.add(m, c.ctx.legacy, childWork{copied(child.nodes)}, deps).handle, nil
}

// insertion is the graph and the nodes that a new node comes after.
func (c *call) insertion(h cuda.Graph, after []cuda.GraphNode) (*graph, []*node) {
	g := c.graph(h)
	return g, c.nodes(g, after)
}

func (m *Machine) GraphGetNodes(h cuda.Graph) ([]cuda.GraphNode, error) {
	return of(m, "cuGraphGetNodes", (*call).graph, h, func(_ *call, g *graph) (list []cuda.GraphNode) {
		for _, n := range g.nodes {
			list = append(list, n.handle)
		}
		return list
	})
}
