package gpucomm

import (
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/core/request"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/mem"
)

// calls makes kernels and copies of calls, and queues them on their streams.
type calls struct {
	life      *life.Life
	engine    *grid.Engine
	chooser   *choice.Chooser
	numberer  *request.Numberer
	path      *path
	observed  *observed
	admission *admission
	order     *order
	windows   *windows

	latest    choice.Latest
	programs  *programs
	prepared  map[prepared]bool // what PrepareAll has loaded
	layout    [4][]int          // counts and offsets of the v-variants, reused
	jobs      []grid.Job        // of the calls that are queued together, reused
	exchange  exchange
	spare     *cuda.Growing // for copies of In
	workplace *workplace
}

func newCalls(o *Options, chooser *choice.Chooser, at *path, observed *observed, ws *windows) (q *calls, err error) {
	q = &calls{life: o.Life, engine: ws.engine, chooser: chooser, numberer: o.Numberer, observed: observed,
		path: at, admission: ws.admission, order: ws.order, windows: ws,
		programs: newPrograms(ws.engine, chooser, o.Life.Rank), prepared: map[prepared]bool{}, spare: ws.estate.memory()}
	if q.exchange.meeting, err = ws.estate.event(); err != nil {
		return nil, err
	}
	q.workplace = newWorkplace(o.Device, ws.estate, ws.engine, q.programs, chooser, o.Life)
	return q, q.workplace.openEarly()
}

// A task is what is known of calls on their way to a stream, as one operation: a call, those of a batch on one stream,
// or an exchange. It is made for them and passed down; what outlives them is in the parts of the Comm.
type task struct {
	how   way
	batch *grid.Batch // of batched

	visit visit
	entry entry
	now   int    // index of the call of which is to be told if something goes wrong
	seq   uint32 // its number, before it has one the last call's

	request request.Request
	answer  choice.Answer
	at      placement  // of its memory in windows
	idle    bool       // nothing is to be done
	spare   mem.Region // for a copy of In, which Out overlaps; else empty
	gather  call.Algo  // of all-gathers in a reduction in order of rank
	share   mem.Region // of a reduction in shares
}

// A way is how calls are queued together.
type way uint8

const (
	single    way = iota
	batched       // small all-reduces on one stream, in shared kernels
	exchanged     // sends and receives, of which none waits for another
)

// Do queues a checked call on GPU memory on its stream. An error is a *call.Error.
func (q *calls) Do(c *call.Call) error {
	list := [1]*call.Call{c}
	return q.queue(&task{how: single}, list[:])
}

// queue is the path of all calls: it queues checked calls as one operation, in the order in which it reads.
func (q *calls) queue(t *task, calls []*call.Call) (err error) {
	t.seq = q.life.Turn.Seq()
	defer func() { err = q.leave(t, calls[t.now], err) }()
	if t.how == batched { // Batch has entered and admitted the memory; but the capture may have gone on since
		t.entry, err = q.admission.admitStream(calls[0].Stream, cuda.Sight{})
	} else if err = q.admission.enter(&t.visit, calls[0].Stream); err == nil {
		t.entry, err = q.admission.admit(&t.visit, calls, t.how == exchanged)
	}
	if err != nil {
		return err
	}
	t.entry.observed, q.jobs = q.observed.arrive(), q.jobs[:0]
	for i, c := range calls {
		t.now = i
		if t.how == batched && q.likeBefore(calls, i) {
			q.numberer.Again(&t.request, c, t.answer.Algo, t.entry.captures)
		} else {
			q.choose(c, t)
			if err = q.numberer.Begin(&t.request, c, &t.answer, t.entry.captures); err != nil {
				return err
			}
		}
		t.seq = t.request.Seq()
		t.entry.observed.add(c, &t.request)
		if err = q.prepare(c, t); err != nil {
			return err
		}
	}
	if t.now = 0; t.idle {
		return nil
	}
	if err = q.order.begin(&t.entry); err != nil {
		return err
	}
	if err = q.launch(t, calls); err != nil {
		return withOldest(err)
	}
	return q.order.end(&t.entry)
}

// leave ends what queue has begun, also after an error, of which it makes a *call.Error.
func (q *calls) leave(t *task, c *call.Call, err error) error {
	q.order.leave(&t.entry)
	err = q.admission.leave(&t.visit, c, t.seq, err)
	t.entry.observed.issued(err)
	return err
}

// choose places a call in windows and chooses what carries it out: the same on all ranks.
func (q *calls) choose(c *call.Call, t *task) {
	switch t.how {
	case batched:
		t.answer = choice.Answer{Algo: call.OneShot, By: choice.ByKernel}
	case exchanged:
		t.answer = *q.exchange.latest[recvs(c)].Choose(q.chooser, question(c, false))
	default:
		t.answer, t.at = q.answer(c)
	}
}

// Answer says what carries a call out, and why.
func (q *calls) Answer(c *call.Call) choice.Answer {
	ans, _ := q.answer(c)
	return ans
}

// answer is Answer, and where the call's memory is in windows.
func (q *calls) answer(c *call.Call) (choice.Answer, placement) {
	at, registered := q.windows.place(c)
	ask := question(c, registered)
	ask.NoCopies = at.stalls()
	return *q.latest.Choose(q.chooser, ask), at
}

func question(c *call.Call, registered bool) choice.Question {
	q := choice.QuestionOf(c)
	q.OnGPU, q.Registered = true, registered
	return q
}
