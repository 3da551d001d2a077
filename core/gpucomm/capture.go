package gpucomm

import (
	"slices"
	"time"

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

	windows []*Window // that its operations use
	copies  []*Window // of windows: copy engines work here, and cannot be told that all is over
}

// inGraph has f queue an operation on a stream that is being captured.
func (o *order) inGraph(e *entry, f func() error) error {
	o.forget(o.upkeep.estate.gone())
	id := e.capture.ID
	r := o.recordings[id]
	if r == nil {
		if err := o.upkeep.estate.hold(e.capture.Graph, id); err != nil {
			return err
		}
		r = new(recording)
		o.recordings[id], o.replays = r, true
		o.net.Vigilant(true)
		o.upkeep.announce()
	}
	return r.add(o.Device.Driver(), e, o.event, f)
}

// add has f queue an operation, after the recording's last one. The graph waits for an event
// before the first one, and records it after this one.
func (r *recording) add(d cuda.Driver, e *entry, event gpu.Event, f func() error) (err error) {
	if r.record == 0 {
		err = d.StreamWaitEvent(e.handle, event, cuda.EventWaitExternal)
	} else {
		err = r.follow(d, e.handle, e.capture.Dependencies)
	}
	if err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	now, err := d.StreamGetCaptureInfo(e.handle)
	if err != nil {
		return err
	}
	return r.endsAt(d, now.Graph, now.Dependencies, event)
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

// forget drops what is kept for captures whose graphs are gone.
func (o *order) forget(captures []uint64) {
	for _, id := range captures {
		delete(o.recordings, id)
		o.engine.Forget(id)
	}
	o.chain.forget(captures)
	if len(captures) > 0 && len(o.recordings) == 0 {
		o.net.Vigilant(false)
	}
}

// Capturing reports whether a stream of the rank's GPU is being captured. It may be called
// at any time.
func (o *order) Capturing(s gpu.Stream) bool {
	if s == 0 || s == gpu.Legacy { // these cannot be captured
		return false
	}
	status := cuda.CaptureNone
	err := o.Device.With(func() (err error) {
		status, err = o.Device.Driver().StreamIsCapturing(s)
		return err
	})
	return err == nil && status == cuda.CaptureActive
}

// uses notes the windows of a captured operation, which must stay open. With copies, copy engines work in them.
func (o *order) uses(e *entry, p *placement, copies bool) {
	r := o.recordings[e.capture.ID]
	if !e.captures || r == nil {
		return
	}
	for _, w := range []*Window{p.in.window, p.out.window} {
		if w == nil {
			continue
		}
		if !slices.Contains(r.windows, w) {
			r.windows = append(r.windows, w)
		}
		if copies && !slices.Contains(r.copies, w) {
			r.copies = append(r.copies, w)
		}
	}
}

// graphTime is how long the driver may take to say that a graph which was destroyed is gone.
const graphTime = 200 * time.Millisecond

// holders is how many graphs hold operations in a window. It waits up to graphTime for them to go.
func (o *order) holders(w *Window) (n int) {
	for end := time.Now().Add(graphTime); ; time.Sleep(time.Millisecond) {
		o.forget(o.upkeep.estate.gone())
		n = 0
		for _, r := range o.recordings {
			if slices.Contains(r.windows, w) {
				n++
			}
		}
		if n == 0 || time.Now().After(end) {
			return n
		}
	}
}

// copiesIn reports whether a graph holds copies in a window.
func (o *order) copiesIn(w *Window) bool {
	for _, r := range o.recordings {
		if slices.Contains(r.copies, w) {
			return true
		}
	}
	return false
}
