package trace

import (
	"slices"
	"sync"
)

// A Recorder is an Observer that keeps the last calls of each track with their Spans. It may be the Observer of any
// number of communicators. It keeps the calls of communicators that have ended, so a program that opens communicators
// again and again gives each a Recorder of its own.
type Recorder struct {
	calls, spans int
	mu           sync.Mutex
	tracks       []*track // guarded by mu
}

// How much a Recorder keeps.
const (
	DefaultCalls   = 1024
	DefaultSpans   = 1 << 14
	besideFraction = 16 // tracks above 0, of which there may be many, have less
)

// NewRecorder makes a Recorder that keeps of each track the last calls: at least calls, or as many as have spans
// Spans, and at most twice as many; 0 is DefaultCalls and DefaultSpans. A track takes 600 bytes a call and 160 a Span
// when it is first used; a track above 0 keeps and takes a 16th. A call with more than spans Spans may lose the last.
func NewRecorder(calls, spans int) *Recorder {
	if calls <= 0 {
		calls = DefaultCalls
	}
	if spans <= 0 {
		spans = DefaultSpans
	}
	return &Recorder{calls: calls, spans: spans}
}

// A track is the memory of calls that one goroutine at a time carries out. It has two halves, of
// which the older is thrown away when the newer is full.
type track struct {
	of    Call // Comm, Rank, Track and GPU identify it
	mu    sync.Mutex
	newer half
	older half
}

type half struct {
	calls []Call
	spans []Span
}

// Begin is part of Observer.
func (r *Recorder) Begin(c *Call) {
	l, ok := c.Own.(*track)
	if !ok {
		l = r.track(c)
		c.Own = l
	}
	if c.GPU {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := &l.newer; len(h.calls) == cap(h.calls) || 2*len(h.spans) > cap(h.spans) {
		l.flip()
	}
	spans := l.newer.spans
	c.Steps = spans[len(spans):]
}

// End is part of Observer.
func (r *Recorder) End(c *Call) {
	l := c.Own.(*track)
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := &l.newer; len(h.calls) == cap(h.calls) { // on a GPU calls begin before others end
		l.flip()
	}
	h := &l.newer
	kept := *c
	kept.Waits, kept.Own = nil, nil
	at := len(h.spans)
	n := min(len(c.Steps), cap(h.spans)-at)
	h.spans = append(h.spans, c.Steps[:n]...) // they lie there already, unless they are in another observer's slice
	kept.Steps = h.spans[at : at+n : at+n]
	kept.Lost += len(c.Steps) - n
	h.calls = append(h.calls, kept)
}

// flip throws away the older half.
func (l *track) flip() {
	l.newer, l.older = l.older, l.newer
	l.newer.calls, l.newer.spans = l.newer.calls[:0], l.newer.spans[:0]
}

// track finds or makes the track of a call.
func (r *Recorder) track(c *Call) *track {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.tracks {
		if l.of.Comm == c.Comm && l.of.Rank == c.Rank && l.of.Track == c.Track && l.of.GPU == c.GPU {
			return l
		}
	}
	l := &track{of: Call{Comm: c.Comm, Rank: c.Rank, Track: c.Track, GPU: c.GPU}}
	calls, spans := r.calls, r.spans
	if c.Track > 0 {
		calls, spans = max(1, calls/besideFraction), max(1, spans/besideFraction)
	}
	for _, h := range []*half{&l.newer, &l.older} {
		h.calls = make([]Call, 0, calls)
		if !c.GPU {
			h.spans = make([]Span, 0, 2*spans)
		}
	}
	r.tracks = append(r.tracks, l)
	return l
}

// Trace is a copy of the calls that are kept and have ended, track by track, oldest first.
func (r *Recorder) Trace() *Trace {
	t := &Trace{}
	r.each(func(l *track) {
		for _, h := range []*half{&l.older, &l.newer} {
			for _, c := range h.calls {
				c.Steps = slices.Clone(c.Steps)
				t.Calls = append(t.Calls, c)
			}
		}
	})
	return t
}

// Forget throws away what is kept. No call may be under way.
func (r *Recorder) Forget() {
	r.each(func(l *track) {
		for _, h := range []*half{&l.older, &l.newer} {
			h.calls, h.spans = h.calls[:0], h.spans[:0]
		}
	})
}

func (r *Recorder) each(f func(*track)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.tracks {
		l.mu.Lock()
		f(l)
		l.mu.Unlock()
	}
}
