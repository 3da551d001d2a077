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

func (c *call) graph(h cuda.Graph) (*graph, error) {
	g := c.graphs[h]
	return g, c.want(g != nil, cuda.ErrInvalidValue, "%#x is no graph, or was destroyed", uintptr(h))
}

// nodes are the nodes of handles, all of graph g.
func (c *call) nodes(g *graph, handles []cuda.GraphNode) (list []*node, err error) {
	byHandle := map[cuda.GraphNode]*node{}
	for _, n := range g.nodes {
		byHandle[n.handle] = n
	}
	for _, h := range handles {
		n := byHandle[h]
		if n == nil {
			return nil, c.fail(cuda.ErrInvalidValue, "%#x is no node of the graph", uintptr(h))
		}
		list = union(list, []*node{n})
	}
	return list, nil
}

func (m *Machine) GraphCreate() (cuda.Graph, error) {
	c, err := m.begin("cuGraphCreate")
	if err != nil {
		return 0, err
	}
	defer c.end()
	return m.newGraph().handle, nil
}

func (m *Machine) GraphDestroy(h cuda.Graph) error {
	c, err := m.begin("cuGraphDestroy")
	if err != nil {
		return err
	}
	defer c.end()
	g, err := c.graph(h)
	if err != nil {
		return err
	}
	for p := range m.captures {
		if p.graph == g {
			return c.fail(cuda.ErrInvalidValue, "the graph is being captured: end the capture first")
		}
	}
	if g.owned {
		return c.fail(cuda.ErrInvalidValue, "the graph is the body of a conditional node, and goes with it")
	}
	m.freeGraph(g)
	return nil
}

func (m *Machine) GraphClone(h cuda.Graph) (cuda.Graph, error) {
	c, err := m.begin("cuGraphClone")
	if err != nil {
		return 0, err
	}
	defer c.end()
	g, err := c.graph(h)
	if err != nil {
		return 0, err
	}
	if conditions(g.nodes) != nil {
		return 0, c.fail(cuda.ErrNotSupported, "a graph with conditional nodes cannot be cloned")
	}
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

func (m *Machine) GraphAddChildGraphNode(h cuda.Graph, after []cuda.GraphNode, ch cuda.Graph) (cuda.GraphNode, error) {
	c, err := m.beginIn("cuGraphAddChildGraphNode")
	if err != nil {
		return 0, err
	}
	defer c.end()
	g, deps, err := c.insertion(h, after)
	if err != nil {
		return 0, err
	}
	child, err := c.graph(ch)
	switch {
	case err != nil:
		return 0, err
	case child == g:
		return 0, c.fail(cuda.ErrInvalidValue, "the graph is to be its own child")
	case conditions(child.nodes) != nil:
		return 0, c.fail(cuda.ErrNotSupported, "a graph with conditional nodes cannot be a child")
	}
	retainAll(g.objects, child.objects)
	return g.add(m, c.ctx.legacy, childWork{copied(child.nodes)}, deps).handle, nil
}

// insertion is the graph and the nodes that a new node comes after.
func (c *call) insertion(h cuda.Graph, after []cuda.GraphNode) (*graph, []*node, error) {
	g, err := c.graph(h)
	if err != nil {
		return nil, nil, err
	}
	deps, err := c.nodes(g, after)
	return g, deps, err
}

func (m *Machine) GraphGetNodes(h cuda.Graph) ([]cuda.GraphNode, error) {
	c, err := m.begin("cuGraphGetNodes")
	if err != nil {
		return nil, err
	}
	defer c.end()
	g, err := c.graph(h)
	if err != nil {
		return nil, err
	}
	var list []cuda.GraphNode
	for _, n := range g.nodes {
		list = append(list, n.handle)
	}
	return list, nil
}
