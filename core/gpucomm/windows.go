package gpucomm

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/mem"
)

// windows is the registered memory of a communicator.
type windows struct {
	order

	open       byAddress
	retired    []*Window // open windows that no call of this rank uses any more
	registered int       // number of the last window
}

// byAddress are open windows, sorted by address. They do not overlap.
type byAddress []*Window

// above is the index of the first window that begins above an address.
func (ws byAddress) above(addr uintptr) int {
	i, n := 0, len(ws)
	for i < n {
		if h := int(uint(i+n) >> 1); ws[h].region.Ptr() <= addr {
			i = h + 1
		} else {
			n = h
		}
	}
	return i
}

// find looks up the window that holds n bytes at addr, and where in it they begin. ok is
// false if no window holds all of them, or if it has no effect or is retired. Cost: 10 to
// 25 ns, no allocation.
func (ws byAddress) find(addr uintptr, n int) (s spot, ok bool) {
	i := ws.above(addr)
	if i == 0 {
		return spot{}, false
	}
	w := ws[i-1]
	s = spot{w, int(addr - w.region.Ptr())}
	return s, w.span != nil && n <= w.region.Len()-s.offset && !w.retired.Load()
}

func (ws byAddress) overlap(r mem.Region) *Window {
	for _, w := range ws {
		if w.region.Overlaps(r) {
			return w
		}
	}
	return nil
}

func (ws *byAddress) insert(w *Window) {
	*ws = slices.Insert(*ws, ws.above(w.region.Ptr()), w)
}

// forget takes a window that is closed out of the lists.
func (ws *windows) forget(w *Window) {
	same := func(o *Window) bool { return o == w }
	ws.open, ws.retired = slices.DeleteFunc(ws.open, same), slices.DeleteFunc(ws.retired, same)
}

// A spot is where a buffer begins in a window; the zero spot is in none.
type spot struct {
	window *Window
	offset int
}

// inGrid is the spot for engine/grid.
func (s spot) inGrid() grid.WindowOffset {
	if s.window == nil {
		return grid.WindowOffset{}
	}
	return grid.WindowOffset{Window: &s.window.memory, Offset: s.offset}
}

// mixed is a hash of h and the spot.
func (s spot) mixed(h uint64) uint64 {
	x := uint64(0)
	if s.window != nil {
		x = uint64(s.window.number)<<48 ^ uint64(s.offset) + 1
	}
	h = (h ^ x) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// A placement is where the buffers of a call begin in windows. All ranks of a collective
// must have the same one: where travels with their signs.
type placement struct {
	in, out spot
	where   uint16 // hash of in and out
}

// place finds the memory of a call in windows: the buffers that the kernels of other ranks read or
// write. ok is false if one of them is in no window, or there is no kernel for windows.
func (ws *windows) place(c *call.Call) (p placement, ok bool) {
	k, ok := choice.WindowKernel(c.Kind)
	if !ok || len(ws.open) == 0 || c.Count == 0 {
		return p, false
	}
	needIn, needOut := k.InWindow()
	in, out := c.Shape(ws.Life.Rank, ws.Life.Size)
	if c.Kind == call.Reduce {
		out = c.Count // on all ranks, for they write to the root's
	}
	size := c.Type.Size()
	if needIn {
		if p.in, ok = ws.open.find(c.In.Ptr(), in*size); !ok {
			return p, false
		}
	}
	if needOut {
		if p.out, ok = ws.open.find(c.Out.Ptr(), out*size); !ok {
			return p, false
		}
	}
	p.where = p.hash()
	return p, true
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

// sweep takes the retired windows out of open: their addresses may be other memory's now. The Turn is held.
func (ws *windows) sweep() {
	ws.open = slices.DeleteFunc(ws.open, func(w *Window) bool {
		if w.retired.Load() {
			ws.retired = append(ws.retired, w)
			return true
		}
		return false
	})
}

// closeWindows closes the segments of the windows that are still open. No kernel of any rank uses them any more.
func (ws *windows) closeWindows() error {
	var errs []error
	ws.sweep()
	for _, w := range slices.Concat(ws.open, ws.retired) {
		errs = append(errs, w.closeFlat(), ws.closeSpan(w))
	}
	ws.open, ws.retired = nil, nil
	return errors.Join(errs...)
}

// closeSpan closes the other ranks' memory in a window. While graphs hold copies there, the estate has to do so.
func (ws *windows) closeSpan(w *Window) error {
	ws.order.forget(ws.upkeep.estate.gone())
	switch {
	case w.span == nil:
		return nil
	case !ws.order.copiesIn(w):
		return w.span.Close()
	}
	ws.Log.Warn("graphs hold copies in a window of a closed communicator: destroy them before any rank frees the "+
		"window's memory", "subsys", "REG", "window", w.number)
	ws.upkeep.estate.keep(w.span.Close)
	return w.span.Settle()
}
