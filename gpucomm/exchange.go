package gpucomm

import (
	"fmt"
	"slices"

	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
)

// An exchange is the sends and receives of a group, kept for the next one.
type exchange struct {
	jobs    []grid.Job
	all     []*grid.Job
	streams []gpu.Stream // those of the calls, each once
	meeting gpu.Event    // by which streams wait for each other
}

// Exchange queues checked sends and receives on GPU memory as one operation, in which none
// waits for another. It is on the first call's stream. The other calls' streams meet that
// one before it and after it: all calls begin when all streams have come to them.
func (g *Comm) Exchange(calls []*call.Call) error {
	for _, c := range calls {
		if err := g.ours(c); err != nil {
			return err
		}
	}
	return g.with(calls[0], func() error {
		x := &g.exchange
		if err := g.admitAll(x, calls); err != nil {
			return err
		}
		if err := g.Life.Begin(calls[0], g); err != nil {
			return g.refusal(calls[0], err)
		}
		g.observed.arrive()
		g.blocks = 0
		x.jobs, x.all = slices.Grow(x.jobs[:0], len(calls))[:len(calls)], x.all[:0]
		for i, c := range calls {
			r, j := &g.request, &x.jobs[i]
			err := g.Numberer.Number(r, c, g.chooser.Choose(question(c, false)).Algo, g.captures)
			if err == nil {
				err = g.prepare(c, r, j, &g.layout)
			}
			if err != nil {
				err = g.Life.Fail(c, 0, err, g)
				g.observed.issued(err)
				return err
			}
			g.observed.begin(c, r)
			j.Stream = x.streams[0]
			x.all = append(x.all, j)
		}
		err := g.after(x.streams[0], func() error {
			if err := g.follow(x.streams[:1], x.streams[1:]); err != nil {
				return err
			}
			if err := g.engine.RunMessages(x.all); err != nil {
				return err
			}
			return g.follow(x.streams[1:], x.streams[:1])
		})
		g.observed.issued(err)
		return err
	})
}

// admitAll admits all calls, the first one last.
func (g *Comm) admitAll(x *exchange, calls []*call.Call) error {
	x.streams = x.streams[:0]
	var id uint64 // of the capture
	for i, c := range calls {
		if err := g.admit(c); err != nil {
			return err
		}
		if i > 0 && g.capture.ID != id {
			return fmt.Errorf("%w: the sends and receives of a group are on streams %#x and %#x, which are not in the same capture", call.ErrInvalid, calls[0].Stream, c.Stream)
		}
		if id = g.capture.ID; !slices.Contains(x.streams, c.Stream) {
			x.streams = append(x.streams, c.Stream)
		}
	}
	if len(x.streams) == 1 {
		return nil
	}
	return g.admit(calls[0])
}

// follow has all streams wait for what others have now.
func (g *Comm) follow(streams, others []gpu.Stream) (err error) {
	e := &g.exchange.meeting
	for _, s := range streams {
		for _, o := range others {
			if *e == 0 {
				if *e, err = newEvent(g.Device); err != nil {
					return err
				}
			}
			if err := cuda.After(g.Device.Driver(), s, o, *e); err != nil {
				return err
			}
		}
	}
	return nil
}

// close gives back the event. The context is current.
func (x *exchange) close(d cuda.Driver) error {
	if x.meeting == 0 {
		return nil
	}
	return d.EventDestroy(x.meeting)
}
