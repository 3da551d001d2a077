package cuda

import "unsafe"

func (d *libcuda) GraphCreate() (Graph, error) {
	return made[Graph](d, cuGraphCreate, 0)
}

func (d *libcuda) GraphDestroy(g Graph) error { return d.call(cuGraphDestroy, uintptr(g)) }

func (d *libcuda) GraphGetNodes(g Graph) ([]GraphNode, error) {
	var n uintptr
	if err := d.callPtr(cuGraphGetNodes, uintptr(g), 0, uintptr(unsafe.Pointer(&n))); err != nil || n == 0 {
		return nil, err
	}
	nodes := make([]GraphNode, n)
	if err := d.callPtr(cuGraphGetNodes, uintptr(g), uintptr(unsafe.Pointer(&nodes[0])),
		uintptr(unsafe.Pointer(&n))); err != nil {
		return nil, err
	}
	return nodes[:min(int(n), len(nodes))], nil
}

func (d *libcuda) GraphAddEventRecordNode(g Graph, after []GraphNode, e Event) (n GraphNode, err error) {
	err = d.callPtr(cuGraphAddEventRecordNode, uintptr(unsafe.Pointer(&n)), uintptr(g),
		uintptr(unsafe.Pointer(unsafe.SliceData(after))), uintptr(len(after)), uintptr(e))
	return n, err
}

func (d *libcuda) GraphAddDependencies(g Graph, from, to []GraphNode) error {
	return d.edges(cuGraphAddDependencies, g, from, to)
}

func (d *libcuda) GraphRemoveDependencies(g Graph, from, to []GraphNode) error {
	return d.edges(cuGraphRemoveDependencies, g, from, to)
}

func (d *libcuda) edges(s symbol, g Graph, from, to []GraphNode) error {
	n := min(len(from), len(to))
	return d.callPtr(s, uintptr(g), uintptr(unsafe.Pointer(unsafe.SliceData(from))),
		uintptr(unsafe.Pointer(unsafe.SliceData(to))), uintptr(n))
}

func (d *libcuda) GraphInstantiate(g Graph, flags uint64) (GraphExec, error) {
	return made[GraphExec](d, cuGraphInstantiateWithFlags, uintptr(g), uintptr(flags))
}

func (d *libcuda) GraphUpload(x GraphExec, s Stream) error {
	return d.call(cuGraphUpload, uintptr(x), uintptr(s))
}

func (d *libcuda) GraphLaunch(x GraphExec, s Stream) error {
	return d.call(cuGraphLaunch, uintptr(x), uintptr(s))
}

func (d *libcuda) GraphExecDestroy(x GraphExec) error { return d.call(cuGraphExecDestroy, uintptr(x)) }

func (d *libcuda) UserObjectRetain(o UserObject, references int) error {
	return d.call(cuUserObjectRetain, uintptr(o), uintptr(references))
}

func (d *libcuda) UserObjectRelease(o UserObject, references int) error {
	return d.call(cuUserObjectRelease, uintptr(o), uintptr(references))
}

// graphUserObjectMove gives the caller's references away.
const graphUserObjectMove = 1

func (d *libcuda) GraphRetainUserObject(g Graph, o UserObject, references int, move bool) error {
	var flags uintptr
	if move {
		flags = graphUserObjectMove
	}
	return d.call(cuGraphRetainUserObject, uintptr(g), uintptr(o), uintptr(references), flags)
}

func (d *libcuda) GraphClone(g Graph) (Graph, error) {
	return made[Graph](d, cuGraphClone, uintptr(g))
}

func (d *libcuda) GraphAddChildGraphNode(g Graph, after []GraphNode, child Graph) (n GraphNode, err error) {
	err = d.callPtr(cuGraphAddChildGraphNode, uintptr(unsafe.Pointer(&n)), uintptr(g),
		uintptr(unsafe.Pointer(unsafe.SliceData(after))), uintptr(len(after)), uintptr(child))
	return n, err
}

// CUgraphExecUpdateResultInfo
type updateInfo struct {
	result     uint32
	node, from GraphNode
}

func (d *libcuda) GraphExecUpdate(x GraphExec, g Graph) (GraphUpdate, error) {
	var i updateInfo
	err := d.callPtr(cuGraphExecUpdate, uintptr(x), uintptr(g), uintptr(unsafe.Pointer(&i)))
	return GraphUpdate{UpdateResult(i.result), i.node, i.from}, err
}

func (d *libcuda) GraphConditionalHandleCreate(g Graph, c Context, initial, flags uint32) (Condition, error) {
	return made[Condition](d, cuGraphConditionalHandleCreate, uintptr(g), uintptr(c), uintptr(initial), uintptr(flags))
}

const nodeConditional = 13 // CU_GRAPH_NODE_TYPE_CONDITIONAL

// CUgraphNodeParams of a conditional node; the union has 232 bytes
type nodeParams struct {
	kind      uint32
	reserved0 [3]uint32
	condition Condition
	how       ConditionType
	size      uint32
	bodies    *Graph // the driver's own memory, good as long as the node
	ctx       Context
	union     [232 - 32]byte
	reserved2 uint64
}

func (d *libcuda) GraphAddConditionalNode(g Graph, after []GraphNode, v Condition, t ConditionType,
	c Context) (n GraphNode, body Graph, err error) {
	p := &nodeParams{kind: nodeConditional, condition: v, how: t, size: 1, ctx: c}
	err = d.callPtr(cuGraphAddNode, uintptr(unsafe.Pointer(&n)), uintptr(g),
		uintptr(unsafe.Pointer(unsafe.SliceData(after))), 0, uintptr(len(after)), uintptr(unsafe.Pointer(p)))
	if err == nil && p.bodies != nil {
		body = *p.bodies
	}
	return n, body, err
}
