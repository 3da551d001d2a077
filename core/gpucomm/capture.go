package gpucomm

import (
	"slices"
	"time"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
)

// A recording is the part that one graph has in the order of a communicator's operations.
// The graph waits once for the communicator's event, when it is launched, and records it
// once, at the end of the last operation. Between them each operation depends on the one
// before. Captures of the same calls make the same nodes and edges, so that an executable
// graph can be updated.
type recording struct {
	record cuda.GraphNode          // of the event; 0 before the first operation is captured
	last   []cuda.GraphNode        // at which the last operation ends
	past   map[cuda.GraphNode]bool // at which those before it ended

	windows []*Window // that its operations use
	copies  []*Window // of those, the ones in which copy engines work, which nothing can tell that all is over
}

// inGraph has f queue an operation on a stream that is being captured.
func (g *Comm) inGraph(s gpu.Stream, f func() error) error {
	d, id := g.Device.Driver(), g.capture.ID
	g.forget(g.estate.gone())
	r := g.recordings[id]
	if r == nil {
		if err := g.estate.hold(g.capture.Graph, id); err != nil {
			return err
		}
		r = new(recording)
		g.recordings[id], g.replays = r, true
		g.net.Vigilant(true)
		g.announce()
		if err := d.StreamWaitEvent(s, g.event, cuda.EventWaitExternal); err != nil {
			return err
		}
	} else {
		if err := r.follow(d, s, g.capture.Dependencies); err != nil {
			return err
		}
	}
	if err := f(); err != nil {
		return err
	}
	now, err := d.StreamGetCaptureInfo(s)
	if err != nil {
		return err
	}
	return r.endsAt(d, now.Graph, now.Dependencies, g.event)
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

// forget drops what graphs had that are gone.
func (g *Comm) forget(captures []uint64) {
	for _, id := range captures {
		delete(g.recordings, id)
		g.engine.Forget(id)
	}
	g.chain.forget(captures)
	if len(captures) > 0 && len(g.recordings) == 0 {
		g.net.Vigilant(false)
	}
}

// Capturing reports whether a stream of the rank's GPU is being captured. It may be called
// at any time.
func (g *Comm) Capturing(s gpu.Stream) bool {
	if s == 0 || s == gpu.Legacy { // these cannot be
		return false
	}
	status := cuda.CaptureNone
	err := g.Device.With(func() (err error) {
		status, err = g.Device.Driver().StreamIsCapturing(s)
		return err
	})
	return err == nil && status == cuda.CaptureActive
}

// uses notes that what was captured is in windows, which must stay open.
func (g *Comm) uses(p *placement, copies bool) {
	r := g.recordings[g.capture.ID]
	if !g.captures || r == nil {
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

// holders is how many graphs hold operations in a window.
func (g *Comm) holders(w *Window) (n int) {
	for end := time.Now().Add(graphTime); ; time.Sleep(time.Millisecond) {
		g.forget(g.estate.gone())
		n = 0
		for _, r := range g.recordings {
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
func (g *Comm) copiesIn(w *Window) bool {
	for _, r := range g.recordings {
		if slices.Contains(r.copies, w) {
			return true
		}
	}
	return false
}

// Held is how many graphs hold operations of the communicator, or did a moment ago. It may be
// called at any time, also after Close.
func (g *Comm) Held() int { return int(g.estate.graphs.Load()) }
