// Package hostcomm is the host half of a communicator: it carries out calls on host
// memory.
//
// Do has package choice say what carries a call out, numbers it (package request), finds
// the program of its schedule, and has package engine run it. Exchange carries out sends
// and receives side by side. The half sees the life of the communicator and its paths, and
// nothing else of it. The trap: the caller holds the communicator's Turn and has checked
// the calls.
package hostcomm

import (
	"fmt"

	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/choice"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/life"
	"github.com/ringo-go/ringo/paths"
	"github.com/ringo-go/ringo/rankorder"
	"github.com/ringo-go/ringo/request"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// A Comm is the host half of one rank's communicator. Its methods are called with the
// Turn held.
type Comm struct {
	life     *life.Life
	chooser  *choice.Chooser
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
	reduction *rankorder.Reduction
	workplace workplace
	watch     *request.Watch   // nil if nobody observes
	beside    []*request.Watch // of the lanes of a large exchange
}

// New is the half of a communicator whose paths are agreed.
func New(l *life.Life, ch *choice.Chooser, n *request.Numberer, net *paths.Net) *Comm {
	return &Comm{
		life: l, chooser: ch, numberer: n, links: net.Links, limits: net.Limits,
		engine: engine.New(net.Limits), programs: map[choice.Key]*engine.Program{}, watch: n.Watch(0, false),
	}
}

// Via is part of life.Path.
func (h *Comm) Via(peer int) string { return h.links.Via(peer) }

// Topology is how the ranks lie on hosts.
func (h *Comm) Topology() choice.Topology { return h.chooser.Topo }

// Memory is part of life.Path: host memory is in no window.
func (h *Comm) Memory(uint16) string { return "" }

// Do carries out a checked call on host memory and returns when this rank's part is
// done. An error is a *call.Error. It allocates nothing after the first call of a kind.
func (h *Comm) Do(c *call.Call) error {
	if err := h.life.Begin(c, h); err != nil {
		return err
	}
	defer h.life.Guard.End()
	h.watch.Arrive()
	ans := h.Answer(c)
	r := &h.request
	err := h.chooser.Prove(c, ans.Algo)
	if c.Kind.Reduces() && c.Op.Unit > h.limits.SlotBytes {
		err = fmt.Errorf("%w: %v takes %d bytes as a whole, and a slot has %d: raise RINGO_SLOT_BYTES", call.ErrInvalid, c.Op, c.Op.Unit, h.limits.SlotBytes)
	}
	if err == nil {
		err = h.numberer.Number(r, c, ans.Algo, false)
	}
	if err == nil {
		h.job.Observed = h.watch.Begin(c, r)
		if ans.By == choice.ByFold {
			err = h.inOrder(c, r)
		} else {
			err = h.run(c, r)
		}
	}
	if err != nil {
		err = h.life.Fail(c, r.Seq(), err, h)
	}
	h.watch.End(err)
	return err
}

// Answer says what carries a call out, and why.
func (h *Comm) Answer(c *call.Call) choice.Answer {
	return h.chooser.Choose(choice.Question{Kind: c.Kind, Bytes: c.Bytes(), Type: c.Type, Op: c.Op.Kind})
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
	j.In, j.Out = nil, nil // the caller may want it collected
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
	j.Program, j.Reducer, j.Stamp = h.program, r.Reducer, r.Stamp
	// A Send returns when its message is in the queue, so that two ranks may both
	// send and then receive what fits there.
	j.Lend = !c.Kind.Pairwise()
	j.In, j.Out = nil, nil
	if r.In > 0 {
		j.In = c.In.Bytes()[:r.In]
	}
	if r.Out > 0 {
		j.Out = c.Out.Bytes()[:r.Out]
	}
	j.InL, j.OutL = Layouts(c, h.life.Rank, j.Program.Shape(), r, &h.layout)
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

// Layouts says where the chunks of a call's In and Out lie. Layouts of the v-variants are
// kept in room.
func Layouts(c *call.Call, rank int, shape sched.Shape, r *request.Request, room *[4][]int) (in, out engine.Layout) {
	size, one := r.Size, c.Count*r.Size
	switch c.Kind {
	case call.AllReduce, call.Reduce, call.Broadcast:
		in = engine.Even(one, shape.In, r.Unit) // In and Out have the same chunks
		return in, in
	case call.AllGatherv:
		out = engine.Layout{Off: offsets(&room[2], c.OutCounts, c.OutOffsets, size), Len: scaled(&room[3], c.OutCounts, size)}
		return engine.Layout{Total: out.Len[rank], Chunk: out.Len[rank]}, out
	case call.AlltoAllv:
		return engine.Layout{Off: offsets(&room[0], c.InCounts, c.InOffsets, size), Len: scaled(&room[1], c.InCounts, size)},
			engine.Layout{Off: offsets(&room[2], c.OutCounts, c.OutOffsets, size), Len: scaled(&room[3], c.OutCounts, size)}
	}
	if k := shape.In / blocksIn(c.Kind, shape.Ranks); k > 1 { // of a schedule that divides shares
		return divided(&room[0], &room[1], one, shape.In, k, r.Unit), divided(&room[2], &room[3], one, shape.Out, k, r.Unit)
	}
	// chunks are the shares of the ranks
	return engine.Layout{Total: shape.In * one, Chunk: one}, engine.Layout{Total: shape.Out * one, Chunk: one}
}

// blocksIn is how many shares In has.
func blocksIn(kind call.Kind, ranks int) int {
	switch kind {
	case call.ReduceScatter, call.AlltoAll, call.Scatter:
		return ranks
	}
	return 1
}

// divided is the layout of shares of one bytes that have k chunks each.
func divided(off, length *[]int, one, chunks, k, unit int) engine.Layout {
	*off, *length = (*off)[:0], (*length)[:0]
	share := engine.Even(one, k, unit)
	for c := range chunks {
		at, n := share.Span(c % k)
		*off, *length = append(*off, c/k*one+at), append(*length, n)
	}
	return engine.Layout{Off: *off, Len: *length}
}

// scaled is counts in bytes.
func scaled(room *[]int, counts []int, size int) []int {
	*room = (*room)[:0]
	for _, n := range counts {
		*room = append(*room, n*size)
	}
	return *room
}

// offsets are given, or follow from counts that are packed; in bytes.
func offsets(room *[]int, counts, given []int, size int) []int {
	if given != nil {
		return scaled(room, given, size)
	}
	*room = (*room)[:0]
	at := 0
	for _, n := range counts {
		*room = append(*room, at)
		at += n * size
	}
	return *room
}
