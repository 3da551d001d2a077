package gpucomm

import (
	"slices"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
)

// An exchange is the sends and receives of a group. The next group reuses its memory.
type exchange struct {
	all     []*grid.Job
	streams []gpu.Stream     // those of the calls, each once
	meeting gpu.Event        // by which streams wait for each other
	latest  [2]choice.Latest // of sends, of receives
}

// Exchange queues checked sends and receives on GPU memory as one operation, in which none
// waits for another. It is on the first call's stream. The other calls' streams meet that
// one before it and after it: all calls begin when all streams have come to them.
func (q *calls) Exchange(calls []*call.Call) error { return q.queue(&task{how: exchanged}, calls) }

// launchExchange queues the messages of an exchange.
func (q *calls) launchExchange(t *task, calls []*call.Call) error {
	x := &q.exchange
	x.streams, x.all = x.streams[:0], x.all[:0]
	for i, c := range calls {
		x.all = append(x.all, &q.jobs[i])
		if !slices.Contains(x.streams, c.Stream) {
			x.streams = append(x.streams, c.Stream)
		}
	}
	if len(x.streams) == 1 {
		x.all[0].Event = q.order.endEvent(&t.entry)
	}
	if err := q.follow(x.streams[:1], x.streams[1:]); err != nil {
		return err
	}
	if err := q.engine.RunMessages(x.all); err != nil {
		return err
	}
	return q.follow(x.streams[1:], x.streams[:1])
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
func (q *calls) MayWait(messages int) bool { return !q.engine.Inline(messages) }

// follow has all streams wait for the work that others have by then.
func (q *calls) follow(streams, others []gpu.Stream) error {
	for _, s := range streams {
		for _, o := range others {
			if err := cuda.After(q.admission.driver, s, o, q.exchange.meeting); err != nil {
				return err
			}
		}
	}
	return nil
}
