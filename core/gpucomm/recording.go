package gpucomm

import (
	"slices"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
)

// A recording is the part that one graph has in the order of a communicator's operations, or of a chain's. The graph
// waits once for the event of that order, when it is launched, and records it once, at the end of the last operation.
// Between them each operation depends on the one before. Captures of the same calls make the same nodes and edges, so
// that an executable graph can be updated.
type recording struct {
	record cuda.GraphNode          // records the event; 0 before the first operation is captured
	last   []cuda.GraphNode        // the last operation ends at these
	past   map[cuda.GraphNode]bool // earlier operations end at these

	windows map[int]bool // numbers of those that its operations use; true if copy engines do, which cannot be stopped
}

// begin puts an operation after the recording's last one. The graph waits for an event before the first one.
func (r *recording) begin(d cuda.Driver, e *entry, event gpu.Event) error {
	if r.record == 0 {
		return d.StreamWaitEvent(e.handle, event, cuda.EventWaitExternal)
	}
	return r.follow(d, e.handle, e.capture.Dependencies)
}

// end has the graph record the event after the operation.
func (r *recording) end(d cuda.Driver, e *entry, event gpu.Event) error {
	now, err := d.StreamGetCaptureInfo(e.handle)
	if err != nil {
		return err
	}
	return r.endsAt(d, now.Graph, now.Dependencies, event)
}

// uses notes the window of an operation, which must stay open. With copies, copy engines work in it.
func (r *recording) uses(window int, copies bool) {
	if r.windows == nil {
		r.windows = map[int]bool{}
	}
	r.windows[window] = r.windows[window] || copies
}

// endsAt has the graph record the event after nodes.
func (r *recording) endsAt(d cuda.Driver, graph cuda.Graph, nodes []cuda.GraphNode, e gpu.Event) (err error) {
	if r.record == 0 {
		r.record, err = d.GraphAddEventRecordNode(graph, nodes, e)
	} else { // a node cannot be removed in a capture, edges can
		to := slices.Repeat([]cuda.GraphNode{r.record}, max(len(nodes), len(r.last)))
		if err = d.GraphRemoveDependencies(graph, r.last, to[:len(r.last)]); err == nil {
			err = d.GraphAddDependencies(graph, nodes, to[:len(nodes)])
		}
	}
	if r.past == nil {
		r.past = map[cuda.GraphNode]bool{}
	}
	for _, n := range r.last {
		r.past[n] = true
	}
	for _, n := range nodes { // of an operation without nodes
		delete(r.past, n)
	}
	r.last = nodes
	return err
}

// follow makes what the stream captures next depend on the recording's last operation alone, which depends on the
// earlier ones: operations that are captured on several streams make a graph without branches.
func (r *recording) follow(d cuda.Driver, s gpu.Stream, has []cuda.GraphNode) error {
	after := slices.Clone(r.last)
	for _, n := range has {
		if !r.past[n] && !slices.Contains(after, n) {
			after = append(after, n)
		}
	}
	if len(after) == len(has) &&
		!slices.ContainsFunc(has, func(n cuda.GraphNode) bool { return !slices.Contains(after, n) }) {
		return nil
	}
	return d.StreamUpdateCaptureDependencies(s, after, cuda.CaptureSetDependencies)
}
