package cudaemu

import (
	"slices"

	"github.com/ringo-go/ringo/internal/cuda"
)

// A capture turns the work put on streams into nodes of a graph.
type capture struct {
	id      uint64
	graph   *graph
	origin  *stream
	streams []*stream // that take part, the origin too
	thread  int
	mode    cuda.CaptureMode
	invalid bool // useless, but it still has to be ended
	given   bool // the graph was there before
}

// capturesOf returns the captures of which some stream meets a condition.
func (c *call) capturesOf(meets func(*stream) bool) (list []*capture) {
	for p := range c.captures {
		if slices.ContainsFunc(p.streams, meets) {
			list = append(list, p)
		}
	}
	return list
}

// violate invalidates captures and says why.
func (c *call) violate(list []*capture, r cuda.Result, why string) {
	for _, p := range list {
		p.invalid = true
	}
	c.fail(r, "%s; the capture is invalidated", why)
}

// uncaptured fails if the stream is capturing.
func (c *call) uncaptured(s *stream, why string) {
	if s.capture != nil {
		c.violate([]*capture{s.capture}, cuda.ErrStreamCaptureUnsupported, why)
	}
}

// unsafe fails if streams are capturing and the thread's mode forbids calls that
// allocate or wait. Hardware permits copies and loading of modules, which do so too.
func (c *call) unsafe() {
	var bad []*capture
	for p := range c.captures {
		own := p.thread == c.th.id && p.mode != cuda.CaptureRelaxed
		others := p.thread != c.th.id && p.mode == cuda.CaptureGlobal
		if own && c.th.mode != cuda.CaptureRelaxed || others && c.th.mode == cuda.CaptureGlobal {
			bad = append(bad, p)
		}
	}
	if bad != nil {
		c.violate(bad, cuda.ErrStreamCaptureUnsupported, "not permitted while a stream is capturing")
	}
}

// implicit fails if s is the legacy stream, which would have to wait for a stream that captures.
func (c *call) implicit(s *stream) {
	if !s.isLegacy() {
		return
	}
	bad := c.capturesOf(func(o *stream) bool { return o.ctx == s.ctx && o.isBlocking() })
	if bad != nil {
		c.violate(bad, cuda.ErrStreamCaptureImplicit, "the legacy stream waits for a stream that is capturing")
	}
}

// recordable fails if the stream's capture is invalid.
func (c *call) recordable(s *stream) {
	c.refuse(s.capture.invalid, cuda.ErrStreamCaptureInvalidated, "")
}

// record makes work a node of the graph that the stream captures.
func (c *call) record(s *stream, w work) {
	c.recordable(s)
	s.tail = []*node{s.capture.graph.add(c.Machine, s, w, s.tail)}
}

// join has a stream wait for an event that was recorded in a capture: it takes
// part from then on.
func (c *call) join(s *stream, e *event) {
	p := e.capture
	switch {
	case p.invalid:
		c.fail(cuda.ErrStreamCaptureInvalidated, "")
	case s.isLegacy():
		c.violate([]*capture{p}, cuda.ErrStreamCaptureImplicit, "the legacy stream cannot take part in a capture")
	case s.capture != nil && s.capture != p:
		c.violate([]*capture{p, s.capture}, cuda.ErrStreamCaptureMerge, "the stream belongs to another capture")
	case s.capture == nil:
		s.capture, s.tail = p, nil
		p.streams = append(p.streams, s)
	}
	s.tail = union(s.tail, e.nodes)
}

func union(a, b []*node) []*node {
	a = slices.Clone(a)
	for _, n := range b {
		if !slices.Contains(a, n) {
			a = append(a, n)
		}
	}
	return a
}

func (m *Machine) StreamBeginCapture(h cuda.Stream, mode cuda.CaptureMode) (err error) {
	c := m.call("cuStreamBeginCapture", &err)
	defer c.end()
	s := c.onStream(h)
	c.mayCapture(s, mode)
	c.capture(s, &capture{graph: m.newGraph(), mode: mode}, nil)
	return nil
}

// StreamBeginCaptureToGraph leaves the graph as it is when the capture is lost.
func (m *Machine) StreamBeginCaptureToGraph(h cuda.Stream, gh cuda.Graph, after []cuda.GraphNode,
	mode cuda.CaptureMode) (err error) {
	c := m.call("cuStreamBeginCaptureToGraph", &err)
	defer c.end()
	s := c.onStream(h)
	g, deps := c.insertion(gh, after)
	c.mayCapture(s, mode)
	c.capture(s, &capture{graph: g, mode: mode, given: true}, deps)
	return nil
}

// mayCapture fails if the stream cannot begin a capture.
func (c *call) mayCapture(s *stream, mode cuda.CaptureMode) {
	switch {
	case mode > cuda.CaptureRelaxed:
		c.fail(cuda.ErrInvalidValue, "mode %d", mode)
	case s.isLegacy():
		c.fail(cuda.ErrStreamCaptureUnsupported, "the legacy default stream cannot capture")
	case s.capture != nil:
		c.fail(cuda.ErrIllegalState, "the stream is capturing already")
	}
}

// capture begins a capture after some nodes.
func (c *call) capture(s *stream, p *capture, after []*node) {
	c.serial++
	p.id, p.origin, p.streams, p.thread = c.serial, s, []*stream{s}, c.th.id
	s.capture, s.tail = p, after
	c.captures[p] = true
}

func (m *Machine) StreamEndCapture(h cuda.Stream) (_ cuda.Graph, err error) {
	c := m.call("cuStreamEndCapture", &err)
	defer c.end()
	s := c.onStream(h)
	p := s.capture
	switch {
	case p == nil:
		c.fail(cuda.ErrIllegalState, "the stream is not capturing")
	case p.origin != s:
		c.violate([]*capture{p}, cuda.ErrStreamCaptureUnmatched, "it began on another stream")
	}
	unjoined := p.unjoined()
	switch {
	case p.mode != cuda.CaptureRelaxed && p.thread != c.th.id:
		err = c.error(cuda.ErrStreamCaptureWrongThread, "begun by thread %d; the capture is lost", p.thread)
	case p.invalid:
		err = c.error(cuda.ErrStreamCaptureInvalidated, "")
	case unjoined != nil:
		err = c.error(cuda.ErrStreamCaptureUnjoined, "nothing of the origin stream waits for work on stream %#x",
			uintptr(unjoined.handle))
	}
	if err != nil {
		m.dropCapture(p)
		return 0, err
	}
	m.leave(p)
	return p.graph.handle, nil
}

// leave takes a capture's streams out of it: they carry out work again.
func (m *Machine) leave(p *capture) {
	for _, s := range p.streams {
		s.capture, s.tail = nil, nil
	}
	delete(m.captures, p)
}

// dropCapture ends a capture and forgets its work.
func (m *Machine) dropCapture(p *capture) {
	m.leave(p)
	if !p.given {
		m.freeGraph(p.graph)
	}
}

// unjoined is a stream whose work the origin does not wait for.
func (p *capture) unjoined() *stream {
	seen := map[*node]bool{}
	var visit func([]*node)
	visit = func(list []*node) {
		for _, n := range list {
			if !seen[n] {
				seen[n] = true
				visit(n.deps)
			}
		}
	}
	visit(p.origin.tail)
	for _, s := range p.streams {
		for _, n := range s.tail {
			if !seen[n] {
				return s
			}
		}
	}
	return nil
}

func (m *Machine) StreamIsCapturing(h cuda.Stream) (cuda.CaptureStatus, error) {
	i, err := m.captureInfo("cuStreamIsCapturing", h)
	return i.Status, err
}

func (m *Machine) StreamGetCaptureInfo(h cuda.Stream) (cuda.CaptureInfo, error) {
	return m.captureInfo("cuStreamGetCaptureInfo", h)
}

func (m *Machine) captureInfo(name string, h cuda.Stream) (i cuda.CaptureInfo, err error) {
	c := m.call(name, &err)
	defer c.end()
	s := c.onStream(h)
	if s.isLegacy() {
		bad := c.capturesOf(func(o *stream) bool { return o.ctx == s.ctx && o.isBlocking() })
		c.refuse(bad != nil, cuda.ErrStreamCaptureImplicit, "a blocking stream is capturing")
		return i, nil
	}
	p := s.capture
	switch {
	case p == nil:
		return i, nil
	case p.invalid:
		return cuda.CaptureInfo{Status: cuda.CaptureInvalidated}, nil
	}
	i = cuda.CaptureInfo{Status: cuda.CaptureActive, ID: p.id, Graph: p.graph.handle}
	for _, n := range s.tail {
		i.Dependencies = append(i.Dependencies, n.handle)
	}
	return i, nil
}

func (m *Machine) StreamUpdateCaptureDependencies(h cuda.Stream, nodes []cuda.GraphNode, flags uint32) (err error) {
	c := m.call("cuStreamUpdateCaptureDependencies", &err)
	defer c.end()
	s := c.onStream(h)
	c.refuse(s.capture == nil, cuda.ErrIllegalState, "the stream is not capturing")
	c.recordable(s)
	list := c.nodes(s.capture.graph, nodes)
	switch {
	case flags == 0: // CU_STREAM_ADD_CAPTURE_DEPENDENCIES
		s.tail = union(s.tail, list)
	case flags == 1: // CU_STREAM_SET_CAPTURE_DEPENDENCIES
		s.tail = list
	default:
		c.fail(cuda.ErrInvalidValue, "flags %#x", flags)
	}
	return nil
}

func (m *Machine) ThreadExchangeStreamCaptureMode(mode cuda.CaptureMode) (_ cuda.CaptureMode, err error) {
	c := m.call("cuThreadExchangeStreamCaptureMode", &err)
	defer c.end()
	c.begin()
	c.refuse(mode > cuda.CaptureRelaxed, cuda.ErrInvalidValue, "mode %d", mode)
	old := c.th.mode
	c.th.mode = mode
	return old, nil
}
