package gpucomm

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/gpupaths"
	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
)

// windows is the registered memory of a communicator.
type windows struct {
	life      *life.Life
	device    *gpu.Device
	net       *gpupaths.Net
	engine    *grid.Engine
	estate    *estate
	watch     *watch
	admission *admission
	order     *order
	meetings  meetings
	lock      func(context.Context) error // see Options
	log       *slog.Logger
	copies    copyStream

	open       byAddress
	retired    []*Window // open windows that no call of this rank uses any more
	registered int       // number of the last window
}

func newWindows(o *Options, net *gpupaths.Net, engine *grid.Engine, a *admission, w *watch, order *order) *windows {
	return &windows{life: o.Life, device: o.Device, net: net, engine: engine, estate: a.estate, watch: w, admission: a,
		order: order, meetings: meetingsOf(o), lock: o.Lock, log: o.Log}
}

// forget takes a window that is closed out of the lists.
func (ws *windows) forget(w *Window) {
	same := func(o *Window) bool { return o == w }
	ws.open, ws.retired = slices.DeleteFunc(ws.open, same), slices.DeleteFunc(ws.retired, same)
}

// place finds the memory of a call in windows: the buffers that the kernels of other ranks read or
// write. ok is false if one of them is in no window, or there is no kernel for windows.
func (ws *windows) place(c *call.Call) (p placement, ok bool) {
	k, ok := choice.WindowKernel(c.Kind)
	if !ok || len(ws.open) == 0 || c.Count == 0 {
		return p, false
	}
	needIn, needOut := k.InWindow()
	in, out := c.Shape(ws.life.Rank, ws.life.Size)
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

// close closes the segments of the windows that are still open. No kernel of any rank uses them any more.
func (ws *windows) close() error {
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
	switch {
	case w.span == nil:
		return nil
	case !ws.order.copiesIn(w.number):
		return w.span.Close()
	}
	ws.log.Warn("graphs hold copies in a window of a closed communicator: destroy them before any rank frees the "+
		"window's memory", "subsys", "REG", "window", w.number)
	ws.estate.keep(w.span.Close)
	return w.span.Settle()
}
