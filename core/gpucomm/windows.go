package gpucomm

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/choice"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/request"
	"github.com/ringo-go/ringo/sched"
)

// windows are the open windows of a communicator, sorted by address. They do not overlap.
type windows []*Window

// above is the index of the first window that begins above an address.
func (ws windows) above(addr uintptr) int {
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
// false if no window holds all of them, or if it has no effect. Cost: 10 to 25 ns, no
// allocation.
func (ws windows) find(addr uintptr, n int) (s spot, ok bool) {
	i := ws.above(addr)
	if i == 0 {
		return spot{}, false
	}
	w := ws[i-1]
	s = spot{w, int(addr - w.region.Ptr())}
	return s, w.span != nil && n <= w.region.Len()-s.offset
}

func (ws windows) overlap(r mem.Region) *Window {
	for _, w := range ws {
		if w.region.Overlaps(r) {
			return w
		}
	}
	return nil
}

func (ws *windows) insert(w *Window) {
	*ws = slices.Insert(*ws, ws.above(w.region.Ptr()), w)
}

func (ws *windows) remove(w *Window) {
	if i := slices.Index(*ws, w); i >= 0 {
		*ws = slices.Delete(*ws, i, i+1)
	}
}

// reaches says which buffers of a collective the kernels of other ranks read or write; those
// have to be in windows. It is neither for an operation that has no kernel for windows.
func reaches(kind call.Kind) (in, out bool) {
	if k, ok := choice.WindowKernel(kind); ok {
		return k.InWindow()
	}
	return false, false
}

// A spot is where a buffer begins in a window; the zero spot is in none.
type spot struct {
	window *Window
	offset int
}

// inGrid is the spot for engine/grid.
func (s spot) inGrid() grid.Place {
	if s.window == nil {
		return grid.Place{}
	}
	return grid.Place{Window: &s.window.memory, Offset: s.offset}
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

// place finds the memory of a call in windows. ok is false if a buffer that has to be in a
// window is in none.
func (g *Comm) place(c *call.Call) (p placement, ok bool) {
	needIn, needOut := reaches(c.Kind)
	if len(g.windows) == 0 || c.Count == 0 || !needIn && !needOut {
		return p, false
	}
	in, out := c.Shape(g.Life.Rank, g.Life.Size)
	if c.Kind == call.Reduce {
		out = c.Count // on all ranks, for they write to the root's
	}
	size := c.Type.Size()
	if needIn {
		if p.in, ok = g.windows.find(c.In.Ptr(), in*size); !ok {
			return p, false
		}
	}
	if needOut {
		if p.out, ok = g.windows.find(c.Out.Ptr(), out*size); !ok {
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
		return fmt.Sprintf("In at %d of window #%d and Out at %d of window #%d", p.in.offset, a.number, p.out.offset, b.number)
	case p.in.offset == p.out.offset:
		return fmt.Sprintf("In and Out at %d of window #%d", p.in.offset, a.number)
	}
	return fmt.Sprintf("In at %d and Out at %d of window #%d", p.in.offset, p.out.offset, a.number)
}

// placements remembers those of the last calls: an error may have to describe one after the
// call has been queued. Its methods may be called from any goroutine.
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

// shareProgram is the reduce-scatter with which an all-reduce by copy engines begins.
var shareProgram = choice.Key{Kind: call.ReduceScatter, Algo: call.Ring, Peer: -1}

// inWindows queues a request whose memory is in windows, at g.at.
func (g *Comm) inWindows(c *call.Call, r *request.Request, ans choice.Answer) (err error) {
	j, p := &g.job, &g.at
	*j = g.jobOf(c, r)
	j.Stamp = call.StampAt(r.Stamp, p.where)
	g.placements.add(p)
	in, out := p.in.inGrid(), p.out.inGrid()
	copies := ans.By == choice.ByCopies
	if copies && c.Kind == call.AllReduce { // begins with a reduce-scatter by this program
		if j.Program, err = g.program(shareProgram); err != nil {
			return err
		}
	}
	root := sched.Rank(max(0, r.Key.Peer))
	defer g.uses(p, copies)
	return g.after(c.Stream, func() error {
		if c.CopiesIn() && (copies || c.In.Ptr() != c.Out.Ptr()) {
			if err := g.copyIn(c, j); err != nil {
				return err
			}
		}
		if copies {
			return g.copyStream.instead(g.Device.Driver(), c.Stream, func(s gpu.Stream) error {
				j.Stream = s
				return g.engine.RunCopies(j, ans.Kernel, in, out, root, c.Bytes())
			})
		}
		return g.engine.RunWindow(j, ans.Kernel, in, out, root, c.Bytes())
	})
}

// closeWindows closes the spans of the windows that are still open. No kernel of any rank
// uses them any more.
func (g *Comm) closeWindows() error {
	var errs []error
	for _, w := range g.windows {
		errs = append(errs, w.closeFlat(), g.closeSpan(w))
	}
	g.windows = nil
	return errors.Join(errs...)
}

// closeSpan closes the memory of other ranks, when the graphs that hold copies in it are gone.
func (g *Comm) closeSpan(w *Window) error {
	g.forget(g.estate.gone())
	switch {
	case w.span == nil:
		return nil
	case !g.copiesIn(w):
		return w.span.Close()
	}
	g.Log.Warn("graphs hold copies in a window of a closed communicator: destroy them before any rank frees the window's memory", "subsys", "REG", "window", w.number)
	g.estate.keep(w.span.Close)
	return w.span.Settle()
}
