package gpucomm

import (
	"slices"
	"sync/atomic"

	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport/p2p"
)

// A Window is registered memory: a segment on each rank's GPU that the kernels of all ranks read and write directly.
// See ringo.Comm.Register.
type Window struct {
	of     *windows
	number int // on its communicator, the same on all ranks
	region mem.Region
	span   *p2p.Segment // nil if the window has no effect
	memory grid.Window  // the segments of all ranks, at this rank's addresses
	flat   *p2p.Flat    // the same in one range of addresses; nil before Flat, or if there is none
	stalls bool         // a copy between two of the ranks may wait for calls of other threads, see p2p.Stalls
	reason string       // why the window has no effect, "" if it has
	closed bool

	retired atomic.Bool
}

// Region is this rank's memory.
func (w *Window) Region() mem.Region { return w.region }

// Reason says, in the same words on all ranks, why the window has no effect; "" if it has.
func (w *Window) Reason() string { return w.reason }

// Retire has no later call of this rank use the window: the memory at its addresses may be freed, or mapped anew, when
// what this rank has queued is done. It waits for nobody and may be called from any goroutine. The other ranks do the
// same at the same point among their calls; the calls of a rank that has not are an ErrMismatch. Close gives back what
// the ranks hold of each other's memory.
func (w *Window) Retire() { w.retired.Store(true) }

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
