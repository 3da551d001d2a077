// Package hostcomm is the host half of a communicator: it carries out calls on host
// memory. It is part of a communicator, and nothing here is promised to other modules.
//
// Do has package choice say what carries a call out, numbers it (package request), finds the program of its schedule,
// and has package engine run it. Composites are made of other calls. Exchange carries out sends and receives side by
// side. The half sees the life of the communicator and its paths, and nothing else of it. The trap: the caller holds
// the communicator's Turn and has checked the calls.
package hostcomm

import (
	"fmt"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/core/rankorder"
	"github.com/ringo-go/ringo/core/request"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// A Comm is the host half of one rank's communicator. Its methods are called with the
// Turn held.
type Comm struct {
	life     *life.Life
	chooser  *choice.Chooser
	latest   choice.Latest
	numberer *request.Numberer
	links    *paths.Links
	limits   transport.Limits

	engine    *engine.Engine
	job       engine.Job
	request   request.Request // of the current call
	key       choice.Key      // of the program used last
	program   *engine.Program
	programs  map[choice.Key]*engine.Program
	layout    [4][]int     // of the v-variants
	spare     []byte       // copy of In for an all-to-all in place
	order     []*call.Call // of an exchange
	parts     parts        // of a composite
	reduction *rankorder.Reduction
	workplace workplace
	watch     *request.Watch   // nil if nobody observes
	beside    []*request.Watch // of the goroutines of a large exchange
}

// New makes the host half of a communicator whose ranks have agreed on their paths.
func New(l *life.Life, ch *choice.Chooser, n *request.Numberer, net *paths.Net) *Comm {
	return &Comm{
		life: l, chooser: ch, numberer: n, links: net.Links, limits: net.Limits,
		engine: engine.New(net.Limits), programs: map[choice.Key]*engine.Program{}, watch: n.Watch(0, false),
	}
}

// Via implements life.Path.
func (h *Comm) Via(peer int) string { return h.links.Via(peer) }

// Topology is how the ranks lie on hosts.
func (h *Comm) Topology() choice.Topology { return h.chooser.Topo }

// Memory implements life.Path: host memory is in no window.
func (h *Comm) Memory(uint16) string { return "" }

// Do carries out a checked call on host memory and returns when this rank's part is
// done. An error is a *call.Error. It allocates nothing after the first call of a kind.
func (h *Comm) Do(c *call.Call) error {
	if c.Kind.Composite() {
		return h.composite(c)
	}
	if err := h.life.Begin(c, h); err != nil {
		return err
	}
	err := h.one(c)
	h.life.Guard.End() // not deferred: a defer costs a tenth of a call of 8 bytes, and a panic ends the communicator
	return err
}

// one carries out a call whose time has begun.
func (h *Comm) one(c *call.Call) error {
	h.watch.Arrive()
	ans, r := h.Answer(c), &h.request
	err := h.numberer.Begin(r, c, ans, false)
	if err == nil {
		h.job.Observed = h.watch.Begin(c, r)
		if ans.By == choice.ByFold {
			err = h.inOrder(c, r)
		} else {
			err = h.run(c, r)
		}
	}
	err = h.numberer.End(r, c, err, h)
	h.watch.End(err)
	return err
}

// Answer returns what carries a call out, and why. The answer is valid until the next call of Answer.
func (h *Comm) Answer(c *call.Call) *choice.Answer {
	ans := h.latest.Choose(h.chooser, choice.QuestionOf(c))
	if c.Kind.Reduces() && c.Op.Unit > h.limits.SlotBytes {
		return &choice.Answer{Err: fmt.Errorf("%w: %v takes %d bytes as a whole, and a slot has %d: raise RINGO_SLOT_BYTES",
			call.ErrInvalid, c.Op, c.Op.Unit, h.limits.SlotBytes)}
	}
	return ans
}

// run has the engine carry out the schedule of a request.
func (h *Comm) run(c *call.Call, r *request.Request) error {
	j := &h.job
	if err := h.prepare(j, c, r); err != nil {
		return err
	}
	if err := h.engine.Run(j); err != nil {
		return err
	}
	if j.Reducer != nil && j.Reducer.Finishes() && len(j.Out) > 0 {
		j.Reducer.Finish(j.Out)
	}
	j.In, j.Out = nil, nil // else the caller's memory could not be collected
	return nil
}

// prepare fills in a job: its sign, program, memory and arithmetic.
func (h *Comm) prepare(j *engine.Job, c *call.Call, r *request.Request) error {
	if h.program == nil || r.Key != h.key {
		p, err := h.compile(r.Key)
		if err != nil {
			return err
		}
		h.key, h.program = r.Key, p
	}
	j.Program, j.Reducer, j.Stamp, j.Each = h.program, r.Reducer, r.Stamp, r.Each
	// A Send lends nothing: it returns when its message is in the queue, so that two ranks may both send what fits
	// there, and then receive.
	j.Lend = !c.Kind.Pairwise()
	j.In, j.Out = nil, nil
	if r.In > 0 {
		j.In = c.In.Bytes()[:r.In]
	}
	if r.Out > 0 {
		j.Out = c.Out.Bytes()[:r.Out]
	}
	j.InL, j.OutL = r.Layouts(c, h.life.Rank, j.Program.Shape(), &h.layout)
	if c.CopiesIn() {
		h.spare = append(h.spare[:0], j.In...)
		j.In = h.spare
	}
	return nil
}

// compile finds or makes the program of a key.
func (h *Comm) compile(key choice.Key) (*engine.Program, error) {
	if p := h.programs[key]; p != nil {
		return p, nil
	}
	p, err := engine.Compile(key.Schedule(h.chooser.Topo), sched.Rank(h.life.Rank), h.links)
	if err == nil {
		h.programs[key] = p
	}
	return p, err
}
