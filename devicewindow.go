package ringo

import (
	"errors"
	"slices"

	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/sched"
)

// windows are those of a communicator that are open, in order of address. They do
// not overlap.
type windows []*Window

// after is the index of the first window that begins behind an address.
func (ws windows) after(addr uintptr) int {
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

// find is where n bytes lie in a window; false if they do not, or if the window has
// no effect. Cost: 10 to 25 ns, no allocation.
func (ws windows) find(addr uintptr, n int) (w *Window, offset int, ok bool) {
	i := ws.after(addr)
	if i == 0 {
		return nil, 0, false
	}
	w = ws[i-1]
	offset = int(addr - w.region.Ptr())
	return w, offset, w.span != nil && n <= w.region.Len()-offset
}

func (ws windows) overlap(r Region) *Window {
	for _, w := range ws {
		if w.region.Overlaps(r) {
			return w
		}
	}
	return nil
}

func (ws *windows) insert(w *Window) {
	*ws = slices.Insert(*ws, ws.after(w.region.Ptr()), w)
}

func (ws *windows) remove(w *Window) {
	if i := slices.Index(*ws, w); i >= 0 {
		*ws = slices.Delete(*ws, i, i+1)
	}
}

// reaches says which buffers of a collective ranks reach of each other, so that
// they have to be in windows: neither if there is nothing for windows.
func reaches(kind Kind) (in, out bool) {
	if k, ok := windowKernel(kind); ok {
		return k.InWindow()
	}
	return false, false
}

// A placement is where the memory of a call lies in windows.
type placement struct {
	in, out grid.Place
	where   uint16 // what the ranks compare
}

// place finds the memory of a call in windows; false if some of what the
// collective reaches is in none.
func (d *device) place(call *Call) (p placement, ok bool) {
	needIn, needOut := reaches(call.Kind)
	if len(d.windows) == 0 || call.Count == 0 || !needIn && !needOut {
		return p, false
	}
	in, out := call.shape(d.net.rank, d.net.size)
	if call.Kind == KindReduce {
		out = call.Count // on all ranks, for they write to the root's
	}
	size := call.Type.Size()
	var a, b *Window
	if needIn {
		if a, p.in.Offset, ok = d.windows.find(call.In.Ptr(), in*size); !ok {
			return p, false
		}
		p.in.Window = &a.memory
	}
	if needOut {
		if b, p.out.Offset, ok = d.windows.find(call.Out.Ptr(), out*size); !ok {
			return p, false
		}
		p.out.Window = &b.memory
	}
	p.where = whereOf(a, p.in.Offset, b, p.out.Offset)
	return p, true
}

// whereOf stands for windows and offsets; never 0. Other ones have another with
// a probability of 1 − 1/32767.
func whereOf(a *Window, aOffset int, b *Window, bOffset int) uint16 {
	const prime = 0x9e3779b97f4a7c15
	h := uint64(1)
	for i, w := range [2]*Window{a, b} {
		x := uint64(0)
		if w != nil {
			x = uint64(w.number)<<48 ^ uint64([2]int{aOffset, bOffset}[i]) + 1
		}
		h = (h ^ x) * prime
		h ^= h >> 29
	}
	return uint16(h%maxWhere) + 1
}

// route chooses the algorithm of a call.
func (d *device) route(call *Call) algo {
	var registered bool
	d.at, registered = d.place(call)
	return d.pick(call, registered)
}

// reach queues a request of a call that route has chosen to be carried out in windows.
func (d *device) reach(call *Call, r *request) error {
	j, p := &d.job, &d.at
	*j = jobOf(call, r)
	j.Stamp = stampAt(r.stamp, p.where)
	kernel, _ := windowKernel(call.Kind)
	root := sched.Rank(max(0, r.key.peer))
	return d.inOrder(call.Stream, func() error {
		copies := r.key.algo == algoCopies
		if call.copiesIn() && (copies || call.In.Ptr() != call.Out.Ptr()) {
			if err := d.copyIn(call, j); err != nil {
				return err
			}
		}
		if copies {
			return d.engine.RunCopies(j, kernel, p.in, p.out, root, call.bytes())
		}
		return d.engine.RunWindow(j, kernel, p.in, p.out, root, call.bytes())
	})
}

// closeWindows gives back what the windows that are still open hold. No kernel of
// any rank uses them any more.
func (d *device) closeWindows() error {
	var errs []error
	for _, w := range d.windows {
		if w.span != nil {
			errs = append(errs, w.span.Close())
		}
	}
	d.windows = nil
	return errors.Join(errs...)
}
