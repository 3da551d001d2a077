package cudaemu

import "github.com/ringo-go/ringo/internal/cuda"

// A condition is the value of a conditional node.
type condition struct {
	graph   *graph
	ctx     *context
	initial uint32
	assign  bool // the initial value, at each launch
	value   uint32
	used    bool // by a node
}

// conditionWork, in a graph, runs its body if, or while, the value is not 0.
type conditionWork struct {
	*condition
	how  cuda.ConditionType
	body *graph
}

func (conditionWork) step(*Machine, *op) bool { return true }

func (m *Machine) GraphConditionalHandleCreate(h cuda.Graph, x cuda.Context, initial, flags uint32) (_ cuda.Condition,
	err error) {
	c := m.call("cuGraphConditionalHandleCreate", &err)
	defer c.end()
	c.begin()
	g := c.graph(h)
	ctx := c.context(x)
	c.refuse(flags&^cuda.ConditionAssignDefault != 0, cuda.ErrInvalidValue, "flags %#x", flags)
	m.serial++
	v := cuda.Condition(m.serial)
	m.conditions[v] = &condition{graph: g, ctx: ctx, initial: initial, assign: flags == cuda.ConditionAssignDefault}
	return v, nil
}

func (m *Machine) GraphAddConditionalNode(h cuda.Graph, after []cuda.GraphNode, v cuda.Condition,
	how cuda.ConditionType, x cuda.Context) (n cuda.GraphNode, body cuda.Graph, err error) {
	c := m.call("cuGraphAddNode", &err)
	defer c.end()
	c.begin()
	g, deps := c.insertion(h, after)
	ctx := c.context(x)
	d := m.conditions[v]
	switch {
	case d == nil || d.used:
		c.fail(cuda.ErrInvalidValue, "%#x is no conditional handle, or has its node", uint64(v))
	case d.ctx != ctx:
		c.fail(cuda.ErrInvalidValue, "the handle is of another context")
	case how > cuda.ConditionWhile:
		c.fail(cuda.ErrInvalidValue, "type %d is not emulated", how)
	}
	d.used = true
	b := m.newGraph()
	b.owned = true
	return g.add(m, ctx.legacy, conditionWork{d, how, b}, deps).handle, b.handle, nil
}

// conditional fails if the graph's conditional nodes or handles forbid to make it executable.
func (c *call) conditional(g *graph) {
	if conditions(g.nodes) != nil && g.running != nil {
		c.fail(cuda.ErrNotSupported,
			"a graph with conditional nodes has one executable graph at a time: destroy the other")
	}
	for _, d := range c.conditions {
		c.refuse(d.graph == g && !d.used, cuda.ErrInvalidValue, "a conditional handle of the graph has no node")
	}
	for _, w := range conditions(g.nodes) {
		c.body(w.body.nodes, w.ctx)
	}
}

// body fails if a body has nodes that it must not have.
func (c *call) body(nodes []*node, ctx *context) {
	for _, n := range nodes {
		switch w := n.work.(type) {
		case kernelWork, copyWork, setWork, nothing, conditionWork:
		case childWork:
			c.body(w.nodes, ctx)
		default:
			c.fail(cuda.ErrNotSupported,
				"the body of a conditional node has a node for %s: it may have kernels, copies, sets, children and conditional "+
					"nodes alone", kindOf(n.work))
		}
		c.refuse(n.ctx != ctx, cuda.ErrNotSupported, "the body of a conditional node has a node of another context")
	}
}

// setCondition is cudaGraphSetConditional; kernels call it.
func (m *Machine) setCondition(device int, v uint64, value uint32) bool {
	d := m.conditions[cuda.Condition(v)]
	if d == nil || d.ctx.dev.ordinal != device {
		return false
	}
	d.value = value
	return true
}

// resetWork begins a launch: it gives conditions their initial values.
type resetWork struct{ list []conditionWork }

func (w resetWork) step(*Machine, *op) bool {
	for _, d := range w.list {
		if d.assign {
			d.value = d.initial
		}
	}
	return true
}

// conditionRun is a launch of a conditional node.
type conditionRun struct {
	conditionWork
	last *op // of the body, if it was launched
}

func (r *conditionRun) step(m *Machine, o *op) bool {
	if r.last != nil {
		if !r.last.done {
			return false
		}
		o.after = r.last.clock
	}
	if r.value == 0 || r.how == cuda.ConditionIf && r.last != nil {
		return true
	}
	begin := &op{done: true, clock: o.after}
	l := &graphLaunch{m: m} // without records: a body has none
	r.last = m.submit(o.ctx, o.priority, nothing{}, append(l.run(r.body.nodes, begin), begin)...)
	return false
}
