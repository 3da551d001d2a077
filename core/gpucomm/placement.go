package gpucomm

import (
	"fmt"
	"sync"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/gpupaths"
)

// A placement is where the buffers of a call begin in windows. All ranks of a collective
// must have the same one: where travels with their signs.
type placement struct {
	in, out spot
	where   uint16 // hash of in and out
}

// stalls reports whether copies there may wait for calls of other threads.
func (p *placement) stalls() bool {
	return p.in.window != nil && p.in.window.stalls || p.out.window != nil && p.out.window.stalls
}

// hash is never 0. Two different placements have the same hash with a probability of 1 in
// 32767.
func (p *placement) hash() uint16 { return uint16(p.out.mixed(p.in.mixed(1))%call.MaxWhere) + 1 }

// String says where a placement is: "In at 0 and Out at 128 of window #1".
func (p *placement) String() string {
	a, b := p.in.window, p.out.window
	switch {
	case a == nil && b == nil:
		return ""
	case a == nil:
		return fmt.Sprintf("Out at %d of window #%d", p.out.offset, b.number)
	case b == nil:
		return fmt.Sprintf("In at %d of window #%d", p.in.offset, a.number)
	case a != b:
		return fmt.Sprintf("In at %d of window #%d and Out at %d of window #%d", p.in.offset, a.number,
			p.out.offset, b.number)
	case p.in.offset == p.out.offset:
		return fmt.Sprintf("In and Out at %d of window #%d", p.in.offset, a.number)
	}
	return fmt.Sprintf("In at %d and Out at %d of window #%d", p.in.offset, p.out.offset, a.number)
}

// usedBy notes in a recording, nil for none, that an operation uses the windows.
func (p *placement) usedBy(r *recording, copies bool) {
	if r == nil {
		return
	}
	for _, w := range [...]*Window{p.in.window, p.out.window} {
		if w != nil {
			r.uses(w.number, copies)
		}
	}
}

// placements remembers the placements of the last calls, for errors that are found after a call has been queued. Its
// methods may be called from any goroutine.
type placements struct {
	mu   sync.Mutex
	last [16]placement
}

func (l *placements) add(p *placement) {
	l.mu.Lock()
	l.last[p.where%16] = *p
	l.mu.Unlock()
}

// find is the placement that has a hash, the zero placement if it is not remembered.
func (l *placements) find(where uint16) (p placement) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x := l.last[where%16]; x.where == where {
		p = x
	}
	return p
}

// A path is a life.Path: it says what leads to a peer and in which windows memory lies. Its methods may be called at
// any time.
type path struct {
	net        *gpupaths.Net
	placements placements // of the last calls
}

// Via is part of life.Path.
func (p *path) Via(peer int) string { return p.net.Via(peer) }

// Memory is part of life.Path.
func (p *path) Memory(where uint16) string {
	at := p.placements.find(where)
	return at.String()
}
