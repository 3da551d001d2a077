package cuda

import "unsafe"

func (d *libcuda) GraphCreate() (Graph, error) {
	g, err := d.get(cuGraphCreate, 0)
	return Graph(g), err
}

func (d *libcuda) GraphDestroy(g Graph) error { return d.call(cuGraphDestroy, uintptr(g)) }

func (d *libcuda) GraphGetNodes(g Graph) ([]GraphNode, error) {
	var n uintptr
	if err := d.callPtr(cuGraphGetNodes, uintptr(g), 0, uintptr(unsafe.Pointer(&n))); err != nil || n == 0 {
		return nil, err
	}
	nodes := make([]GraphNode, n)
	if err := d.callPtr(cuGraphGetNodes, uintptr(g), uintptr(unsafe.Pointer(&nodes[0])), uintptr(unsafe.Pointer(&n))); err != nil {
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
	return d.callPtr(s, uintptr(g), uintptr(unsafe.Pointer(unsafe.SliceData(from))), uintptr(unsafe.Pointer(unsafe.SliceData(to))), uintptr(n))
}

func (d *libcuda) GraphInstantiate(g Graph, flags uint64) (GraphExec, error) {
	x, err := d.get(cuGraphInstantiateWithFlags, uintptr(g), uintptr(flags))
	return GraphExec(x), err
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
