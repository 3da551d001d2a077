package cudaemu

import "github.com/ringo-go/ringo/internal/cuda"

// A graph is recorded work.
type graph struct {
	handle  cuda.Graph
	nodes   []*node // each after those it depends on
	objects map[*userObject]int
}

type node struct {
	handle   cuda.GraphNode
	work     work
	ctx      *context
	priority int
	deps     []*node
}

func (m *Machine) newGraph() *graph {
	g := &graph{handle: cuda.Graph(m.handles.give(graphHandle)), objects: map[*userObject]int{}}
	m.graphs[g.handle] = g
	return g
}

func (g *graph) add(m *Machine, s *stream, w work, deps []*node) *node {
	n := &node{handle: cuda.GraphNode(m.handles.give(nodeHandle)), work: w, ctx: s.ctx, priority: s.priority, deps: deps}
	g.nodes = append(g.nodes, n)
	return n
}

func (m *Machine) freeGraph(g *graph) {
	delete(m.graphs, g.handle)
	m.handles.back(graphHandle, uintptr(g.handle))
	for _, n := range g.nodes {
		m.handles.back(nodeHandle, uintptr(n.handle))
	}
	m.releaseAll(g.objects)
}

func (c *call) graph(h cuda.Graph) (*graph, error) {
	g := c.graphs[h]
	return g, c.want(g != nil, cuda.ErrInvalidValue, "%#x is no graph, or was destroyed", uintptr(h))
}

// nodes are those of handles, all of one graph.
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
	m.freeGraph(g)
	return nil
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

// A graphExec is a graph ready to be launched. Launches of it follow each other.
type graphExec struct {
	handle  cuda.GraphExec
	nodes   []*node
	objects map[*userObject]int
	last    *op // of the last launch
}

// GraphInstantiate may be called while the graph is being captured, and takes the
// nodes that it has by then.
func (m *Machine) GraphInstantiate(h cuda.Graph, flags uint64) (cuda.GraphExec, error) {
	c, err := m.beginIn("cuGraphInstantiateWithFlags")
	if err != nil {
		return 0, err
	}
	defer c.end()
	g, err := c.graph(h)
	if err != nil {
		return 0, err
	}
	if flags > 15 {
		return 0, c.fail(cuda.ErrInvalidValue, "flags %#x", flags)
	}
	x := &graphExec{handle: cuda.GraphExec(m.handles.give(execHandle)), nodes: append([]*node{}, g.nodes...), objects: map[*userObject]int{}}
	retainAll(x.objects, g.objects)
	m.execs[x.handle] = x
	return x.handle, nil
}

func (c *call) graphExec(h cuda.GraphExec) (*graphExec, error) {
	x := c.execs[h]
	return x, c.want(x != nil, cuda.ErrInvalidValue, "%#x is no executable graph, or was destroyed", uintptr(h))
}

// onExec begins a call about an executable graph on a stream.
func (m *Machine) onExec(name string, h cuda.GraphExec, sh cuda.Stream) (*call, *graphExec, *stream, error) {
	c, s, err := m.onStream(name, sh)
	if err != nil {
		return nil, nil, nil, err
	}
	x, err := c.graphExec(h)
	if err != nil {
		c.end()
		return nil, nil, nil, err
	}
	return c, x, s, nil
}

func (m *Machine) GraphUpload(h cuda.GraphExec, sh cuda.Stream) error {
	c, x, s, err := m.onExec("cuGraphUpload", h, sh)
	if err != nil {
		return err
	}
	defer c.end()
	if s.capture != nil {
		return c.violate([]*capture{s.capture}, cuda.ErrStreamCaptureUnsupported, "an upload cannot be captured")
	}
	if err := c.implicit(s); err != nil {
		return err
	}
	x.last = c.push(s, nothing{}, x.last)
	return nil
}

func (m *Machine) GraphLaunch(h cuda.GraphExec, sh cuda.Stream) error {
	c, x, s, err := m.onExec("cuGraphLaunch", h, sh)
	if err != nil {
		return err
	}
	defer c.end()
	if s.capture != nil {
		return c.inline(s, x)
	}
	if err := c.implicit(s); err != nil {
		return err
	}
	begin := c.push(s, nothing{}, x.last)
	ops := map[*node]*op{}
	all := []*op{begin}
	for _, n := range x.nodes {
		deps := []*op{begin}
		for _, d := range n.deps {
			deps = append(deps, ops[d])
		}
		work := n.work
		if w, ok := work.(eventWait); ok { // for the last record before this launch
			work, deps = foreignWait{w.e, w.e.target()}, append(deps, w.e.last)
		}
		o := m.submit(n.ctx, n.priority, work, deps...)
		if w, ok := n.work.(recordWork); ok {
			w.e.attach(o)
		}
		ops[n] = o
		all = append(all, o)
	}
	s.last = m.submit(s.ctx, s.priority, nothing{}, all...)
	x.last = s.last
	return nil
}

// inline adds the nodes of an executable graph to the graph that is being captured.
func (c *call) inline(s *stream, x *graphExec) error {
	if err := c.recordable(s); err != nil {
		return err
	}
	g := s.capture.graph
	retainAll(g.objects, x.objects)
	begin := g.add(c.Machine, s, nothing{}, s.tail)
	s.tail = []*node{begin}
	copies := map[*node]*node{}
	for _, n := range x.nodes {
		deps := []*node{begin}
		for _, d := range n.deps {
			deps = append(deps, copies[d])
		}
		copies[n] = g.add(c.Machine, s, n.work, deps)
		copies[n].ctx, copies[n].priority = n.ctx, n.priority
		s.tail = append(s.tail, copies[n])
	}
	s.tail = []*node{g.add(c.Machine, s, nothing{}, s.tail)}
	return nil
}

// GraphExecDestroy lets running launches finish.
func (m *Machine) GraphExecDestroy(h cuda.GraphExec) error {
	c, err := m.begin("cuGraphExecDestroy")
	if err != nil {
		return err
	}
	defer c.end()
	x, err := c.graphExec(h)
	if err != nil {
		return err
	}
	delete(m.execs, h)
	m.handles.back(execHandle, uintptr(h))
	release := func() { m.releaseAll(x.objects) }
	if x.last == nil || x.last.done {
		release()
	} else {
		x.last.onDone = release
	}
	return nil
}
