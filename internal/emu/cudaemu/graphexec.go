package cudaemu

import "github.com/ringo-go/ringo/internal/cuda"

// A graphExec is a graph ready to be launched. Launches of it follow each other.
type graphExec struct {
	handle  cuda.GraphExec
	source  *graph // if it has conditional nodes
	nodes   []*node
	objects map[*userObject]int
	by      Caller
	last    *op // of the last launch
}

// GraphInstantiate may be called while the graph is being captured, if the mode of capture
// permits it, and takes the nodes that it has by then.
func (m *Machine) GraphInstantiate(h cuda.Graph, flags uint64) (_ cuda.GraphExec, err error) {
	c := m.call("cuGraphInstantiateWithFlags", &err)
	defer c.end()
	c.beginIn()
	c.unsafe()
	g := c.graph(h)
	c.refuse(flags > 15, cuda.ErrInvalidValue, "flags %#x", flags)
	c.conditional(g)
	x := &graphExec{handle: cuda.GraphExec(m.handles.give(execHandle)), nodes: copied(g.nodes),
		objects: map[*userObject]int{}, by: m.caller(nil)}
	if conditions(g.nodes) != nil {
		x.source, g.running = g, x
	}
	g.retainInto(x.objects)
	m.execs[x.handle] = x
	return x.handle, nil
}

func (c *call) graphExec(h cuda.GraphExec) *graphExec {
	x := c.execs[h]
	c.refuse(x == nil, cuda.ErrInvalidValue, "%#x is no executable graph, or was destroyed", uintptr(h))
	return x
}

func (m *Machine) GraphUpload(h cuda.GraphExec, sh cuda.Stream) (err error) {
	c := m.call("cuGraphUpload", &err)
	defer c.end()
	s, x := c.onStream(sh), c.graphExec(h)
	c.uncaptured(s, "an upload cannot be captured")
	c.implicit(s)
	x.last = c.push(s, nothing{}, x.last)
	return nil
}

func (m *Machine) GraphLaunch(h cuda.GraphExec, sh cuda.Stream) (err error) {
	c := m.call("cuGraphLaunch", &err)
	defer c.end()
	s, x := c.onStream(sh), c.graphExec(h)
	c.uncaptured(s, "the launch of a graph cannot be captured: make it a child node")
	c.implicit(s)
	c.living(x.nodes)
	begin := c.push(s, resetWork{conditions(x.nodes)}, x.last)
	l := &graphLaunch{m: m}
	all := l.run(x.nodes, begin)
	for _, r := range l.records { // a wait of this launch is for a record before it
		r.e.attach(r.o)
	}
	s.last = m.submit(s.ctx, s.priority, nothing{}, append(all, begin)...)
	x.last = s.last
	return nil
}

// living fails if nodes name events that were destroyed, whatever hardware does then.
func (c *call) living(nodes []*node) {
	for _, n := range nodes {
		var e *event
		switch w := n.work.(type) {
		case eventWait:
			e = w.e
		case recordWork:
			e = w.e
		case childWork:
			c.living(w.nodes)
		}
		if e != nil && e.destroyed {
			c.fail(cuda.ErrInvalidHandle,
				"a node of the graph is %s that was destroyed: keep events as long as graphs name them", kindOf(n.work))
		}
	}
}

// A graphLaunch makes ops of nodes.
type graphLaunch struct {
	m       *Machine
	records []record
}

// A record is the op that records an event in a launch of a graph.
type record struct {
	e *event
	o *op
}

// run submits nodes after begin.
func (l *graphLaunch) run(nodes []*node, begin *op) (all []*op) {
	ops := map[*node]*op{}
	for _, n := range nodes {
		deps := []*op{begin}
		for _, d := range n.deps {
			deps = append(deps, ops[d])
		}
		o := l.node(n, deps)
		ops[n] = o
		all = append(all, o)
	}
	return all
}

func (l *graphLaunch) node(n *node, deps []*op) *op {
	submit := func(w work, deps ...*op) *op { return l.m.submit(n.ctx, n.priority, w, deps...) }
	switch w := n.work.(type) {
	case eventWait: // for the last record before this launch
		return submit(foreignWait{w.e, w.e.target()}, append(deps, w.e.last)...)
	case recordWork:
		o := submit(w, deps...)
		l.records = append(l.records, record{w.e, o})
		return o
	case childWork:
		begin := submit(nothing{}, deps...)
		return submit(nothing{}, append(l.run(w.nodes, begin), begin)...)
	case conditionWork:
		return submit(&conditionRun{conditionWork: w}, deps...)
	}
	return submit(n.work, deps...)
}

// GraphExecDestroy lets running launches finish.
func (m *Machine) GraphExecDestroy(h cuda.GraphExec) (err error) {
	c := m.call("cuGraphExecDestroy", &err)
	defer c.end()
	c.begin()
	x := c.graphExec(h)
	delete(m.execs, h)
	m.handles.back(execHandle, uintptr(h))
	if x.source != nil {
		x.source.running = nil
	}
	x.drop(m, x.objects)
	return nil
}

// drop releases references when the launches so far are done. When the host hears that an object
// is destroyed, it knows that the launches are done.
func (x *graphExec) drop(m *Machine, objects map[*userObject]int) {
	release := func() {
		if x.last != nil && len(objects) > 0 {
			m.mem.HostSaw(x.last.clock)
		}
		m.releaseAll(objects)
	}
	if x.last == nil || x.last.done {
		release()
		return
	}
	before := x.last.onDone
	x.last.onDone = func() {
		if before != nil {
			before()
		}
		release()
	}
}
