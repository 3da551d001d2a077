package cudaemu

import (
	"slices"

	"github.com/ringo-go/ringo/internal/cuda"
)

// kindOf names the type of a node.
func kindOf(w work) string {
	switch w.(type) {
	case kernelWork:
		return "a kernel"
	case copyWork:
		return "a copy"
	case setWork:
		return "a set"
	case hostWork:
		return "a host function"
	case recordWork:
		return "an event's record"
	case eventWait:
		return "an event's wait"
	case writeValue, waitValue:
		return "a stream memory operation"
	case childWork:
		return "a child graph"
	case conditionWork:
		return "a condition"
	}
	return "nothing"
}

// GraphExecUpdate pairs the nodes of both graphs by their edges, from those that nothing
// comes after, in the order in which they were made.
func (m *Machine) GraphExecUpdate(xh cuda.GraphExec, h cuda.Graph) (u cuda.GraphUpdate, err error) {
	u.Result = cuda.UpdateError
	c := m.call("cuGraphExecUpdate", &err)
	defer c.end()
	c.begin()
	x := c.graphExec(xh)
	g := c.graph(h)
	for _, w := range conditions(g.nodes) {
		c.body(w.body.nodes, w.ctx)
	}
	p := pairing{m: m, of: map[*node]*node{}, back: map[*node]*node{}}
	u = p.graphs(x.nodes, g.nodes)
	c.refuse(u.Result != cuda.UpdateSuccess, cuda.ErrGraphExecUpdateFailure, "%s", p.reason)
	for old, n := range p.of {
		deps := old.deps
		*old = *n
		old.deps = deps
		switch w := n.work.(type) { // their nodes are paired, too
		case childWork:
			old.work = childWork{copied(w.nodes)}
		case conditionWork:
			old.work = conditionWork{w.condition, w.how, &graph{nodes: copied(w.body.nodes)}}
		}
	}
	x.drop(m, x.objects)
	x.objects = map[*userObject]int{}
	g.retainInto(x.objects)
	return u, nil
}

// A pairing maps the nodes of an executable graph to the nodes of another graph.
type pairing struct {
	m        *Machine
	of, back map[*node]*node // nodes of the graph itself; the nodes of child graphs are compared apart
	reason   string
}

func (p *pairing) fail(r cuda.UpdateResult, n, from *node, reason string) cuda.GraphUpdate {
	u := cuda.GraphUpdate{Result: r}
	if n != nil {
		u.Node = n.handle
	}
	if from != nil {
		u.FromNode = from.handle
	}
	p.reason = reason
	return u
}

// sinks are the nodes that nothing comes after.
func sinks(nodes []*node) (list []*node) {
	inner := map[*node]bool{}
	for _, n := range nodes {
		for _, d := range n.deps {
			inner[d] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(n *node) bool { return inner[n] })
}

func (p *pairing) graphs(old, next []*node) cuda.GraphUpdate {
	if len(old) != len(next) {
		return p.fail(cuda.UpdateTopologyChanged, nil, nil, "another number of nodes")
	}
	a, b := sinks(old), sinks(next)
	if len(a) != len(b) {
		return p.fail(cuda.UpdateTopologyChanged, b[min(len(a), len(b)-1)], nil,
			"another number of nodes that nothing comes after")
	}
	for i := range b {
		if u := p.nodes(a[i], b[i]); u.Result != cuda.UpdateSuccess {
			return u
		}
	}
	return cuda.GraphUpdate{}
}

func (p *pairing) nodes(old, next *node) cuda.GraphUpdate {
	p.of[old], p.back[next] = next, old
	if len(old.deps) != len(next.deps) {
		return p.fail(cuda.UpdateTopologyChanged, next, nil, "a node with another number of edges")
	}
	if r, reason := p.works(old, next); r != cuda.UpdateSuccess {
		return p.fail(r, next, nil, reason)
	}
	for i, d := range next.deps {
		o := old.deps[i]
		switch {
		case p.of[o] == nil && p.back[d] == nil:
			if u := p.nodes(o, d); u.Result != cuda.UpdateSuccess {
				return u
			}
		case p.of[o] != d:
			return p.fail(cuda.UpdateTopologyChanged, next, d, "an edge from another node")
		}
	}
	return cuda.GraphUpdate{}
}

// works says whether the work of a node can become another.
func (p *pairing) works(old, next *node) (cuda.UpdateResult, string) {
	if kindOf(old.work) != kindOf(next.work) {
		return cuda.UpdateNodeTypeChanged, kindOf(old.work) + " becomes " + kindOf(next.work)
	}
	inner := func(a, b []*node) (cuda.UpdateResult, string) {
		q := pairing{m: p.m, of: map[*node]*node{}, back: map[*node]*node{}}
		return q.graphs(a, b).Result, "within " + kindOf(old.work) + ": " + q.reason
	}
	switch w := next.work.(type) {
	case kernelWork:
		v := old.work.(kernelWork)
		switch {
		case v.f.mod.ctx != w.f.mod.ctx:
			return cuda.UpdateUnsupportedFunctionChange, "a kernel of another context"
		case v.launch.Cooperative != w.launch.Cooperative:
			return cuda.UpdateAttributesChanged, "a kernel becomes cooperative, or is no longer"
		case v.cluster != w.cluster:
			return cuda.UpdateAttributesChanged, "a kernel's clusters have another size"
		}
	case copyWork:
		v := old.work.(copyWork)
		if !p.alike(v.dst, w.dst) || !p.alike(v.src, w.src) {
			return cuda.UpdateParametersChanged, "a copy from or to memory of another device, or kind"
		}
	case setWork:
		if !p.alike(old.work.(setWork).p, w.p) {
			return cuda.UpdateParametersChanged, "a set of memory of another device, or kind"
		}
	case childWork:
		return inner(old.work.(childWork).nodes, w.nodes)
	case conditionWork:
		v := old.work.(conditionWork)
		if v.how != w.how || v.ctx != w.ctx {
			return cuda.UpdateParametersChanged, "a condition of another type or context"
		}
		return inner(v.body.nodes, w.body.nodes)
	}
	return cuda.UpdateSuccess, ""
}

// alike reports whether addresses are of the same device, or both of the host. An address
// of memory that was freed since is like any other.
func (p *pairing) alike(a, b uint64) bool {
	x, y := p.m.regions.find(a), p.m.regions.find(b)
	return x == nil || y == nil || x.dev == y.dev
}
