package gpucomm

import (
	"fmt"
	"slices"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
)

// An exchange is the sends and receives of a group. The next group reuses its memory.
type exchange struct {
	jobs    []grid.Job
	all     []*grid.Job
	streams []gpu.Stream     // those of the calls, each once
	meeting gpu.Event        // by which streams wait for each other
	latest  [2]choice.Latest // of sends, of receives
}

// Exchange queues checked sends and receives on GPU memory as one operation, in which none
// waits for another. It is on the first call's stream. The other calls' streams meet that
// one before it and after it: all calls begin when all streams have come to them.
func (q *queue) Exchange(calls []*call.Call) error {
	for _, c := range calls {
		if err := q.known.ours(c); err != nil {
			return err
		}
	}
	return q.known.with(calls[0], func(seen cuda.Sight) (err error) {
		x := &q.exchange
		e, err := q.admitAll(x, calls, seen)
		if err != nil {
			return err
		}
		if err := q.Life.Begin(calls[0], q); err != nil {
			return q.known.refusal(calls[0], err)
		}
		e.observed = q.upkeep.observed.arrive()
		defer func() { e.observed.issued(err) }()
		x.jobs, x.all = slices.Grow(x.jobs[:0], len(calls))[:len(calls)], x.all[:0]
		for i, c := range calls {
			t := task{entry: e, answer: *x.latest[recvs(c)].Choose(&q.chooser, question(c, false))}
			err := q.Numberer.Begin(&t.request, c, &t.answer, e.captures)
			if err == nil {
				x.jobs[i], err = q.prepare(c, &t)
			}
			if err = q.Numberer.End(&t.request, c, err, q); err != nil {
				return err
			}
			e.observed.add(c, &t.request)
			x.all = append(x.all, &x.jobs[i])
		}
		return q.order.after(&e, func() error {
			if len(x.streams) == 1 {
				x.all[0].Event = q.order.endEvent(&e)
			}
			if err := q.follow(x.streams[:1], x.streams[1:]); err != nil {
				return err
			}
			if err := q.engine.RunMessages(x.all); err != nil {
				return err
			}
			return q.follow(x.streams[1:], x.streams[:1])
		})
	})
}

// recvs is 1 for a receive.
func recvs(c *call.Call) int {
	if c.Kind == call.Recv {
		return 1
	}
	return 0
}

// MayWait reports whether an Exchange of so many messages may wait for room in the ring of tables, and so for
// calls that other ranks have yet to make.
func (q *queue) MayWait(messages int) bool { return !q.engine.Inline(messages) }

// admitAll admits all calls, and says where the first one is queued.
func (q *queue) admitAll(x *exchange, calls []*call.Call, seen cuda.Sight) (first entry, err error) {
	x.streams = x.streams[:0]
	for i, c := range calls {
		e, err := q.known.admit(c, seen)
		if err != nil {
			return first, err
		}
		if i == 0 {
			first = e
		} else if e.capture.ID != first.capture.ID {
			return first, fmt.Errorf("%w: the sends and receives of a group are on streams %#x and %#x, which are not in the "+
				"same capture", call.ErrInvalid, calls[0].Stream, c.Stream)
		}
		if !slices.Contains(x.streams, c.Stream) {
			x.streams = append(x.streams, c.Stream)
		}
	}
	return first, nil
}

// follow has all streams wait for the work that others have by then.
func (q *queue) follow(streams, others []gpu.Stream) error {
	for _, s := range streams {
		for _, o := range others {
			if err := cuda.After(q.Device.Driver(), s, o, q.exchange.meeting); err != nil {
				return err
			}
		}
	}
	return nil
}
