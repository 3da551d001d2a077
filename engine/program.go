package engine

import (
	"fmt"

	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// Links gives the connections of one rank. A connection is made when it is
// first asked for and stays the same for the life of the communicator. Send does
// not wait for the peer; Recv waits until the peer has asked for its Send.
type Links interface {
	Send(to sched.Rank) (transport.SendConn, error)
	Recv(from sched.Rank) (transport.RecvConn, error)
}

// Wide is implemented by Links some of whose connections have larger slots than the others.
type Wide interface {
	// Width is the size of slots between this rank and a peer, both ways, in multiples of
	// Limits.SlotBytes: 1 or more. Both ends must return the same.
	Width(peer sched.Rank) int
}

// A Program is the column of one rank in a schedule, for Run. It is compiled once and
// run any number of times, by one goroutine at a time.
type Program struct {
	steps []step
	shape sched.Shape
	links Links
}

// Shape is the shape of the schedule.
func (p *Program) Shape() sched.Shape { return p.shape }

// A step is a sched.Step with its connections. Connections are made when the step is first
// carried out and not before: a rank must have sent, and so named its call, before it
// waits for a connection. Otherwise ranks that disagree would wait for each other in
// silence.
type step struct {
	sched.Step
	connected bool
	send      transport.SendConn
	recv      transport.RecvConn
	sendWidth int            // of send's slots; see Wide
	recvWidth int            // of recv's slots
	into      transport.Into // recv, if it is an Into
	from      transport.From // send, if it is a From and lends is not None
	lends     sched.Ref      // memory that v may be sent from, None if that memory changes later
}

// Compile makes the program of rank r. It refuses a step without source and destination.
func Compile(s sched.Schedule, r sched.Rank, links Links) (*Program, error) {
	p := &Program{steps: make([]step, s.Len(r)), shape: s.Shape(), links: links}
	for i := range p.steps {
		t := s.At(r, i)
		if t.Src.Buf == sched.None && t.Dst.Buf == sched.None {
			return nil, fmt.Errorf("step %d of rank %d has neither source nor destination", i, r)
		}
		p.steps[i].Step = t
	}
	for i := range p.steps {
		p.steps[i].lends = p.lends(i)
	}
	return p, nil
}

// lends is the memory that holds v after step i and is not written again before
// the program ends: v may be sent from there without a copy. Scratch is written
// again in the next round.
func (p *Program) lends(i int) sched.Ref {
	t := p.steps[i].Step
	ref := t.Dst
	if ref.Buf == sched.None && t.Recv == sched.Nobody {
		ref = t.Src
	}
	if t.Send == sched.Nobody || ref.Buf == sched.Tmp {
		return sched.Ref{}
	}
	for _, later := range p.steps[i+1:] {
		if later.Dst == ref {
			return sched.Ref{}
		}
	}
	return ref
}

// connect makes the connections of a step.
func (st *step) connect(j *Job, links Links) (err error) {
	st.sendWidth, st.recvWidth = widthOf(links, st.Send), widthOf(links, st.Recv)
	if st.Send != sched.Nobody && st.send == nil {
		since := j.Observed.Clock()
		st.send, err = links.Send(st.Send)
		j.Observed.Connected(-1, int32(st.Send), since)
		if err != nil {
			return &StepError{Peer: st.Send, Phase: "connect", Err: err}
		}
		if st.lends.Buf != sched.None {
			st.from, _ = st.send.(transport.From)
		}
	}
	if st.Recv != sched.Nobody {
		since := j.Observed.Clock()
		st.recv, err = links.Recv(st.Recv)
		j.Observed.Connected(int32(st.Recv), -1, since)
		if err != nil {
			return &StepError{Peer: st.Recv, Phase: "accept", Err: err}
		}
		st.into, _ = st.recv.(transport.Into)
	}
	st.connected = true
	return nil
}

func widthOf(links Links, peer sched.Rank) int {
	if w, ok := links.(Wide); ok && peer != sched.Nobody {
		return w.Width(peer)
	}
	return 1
}

// width is the width of a step's slots. mixed is true if its two connections have slots of
// different widths.
func (st *step) width() (n int, mixed bool) {
	switch {
	case st.recv == nil && st.send == nil:
		return 1, false
	case st.recv == nil:
		return st.sendWidth, false
	case st.send == nil:
		return st.recvWidth, false
	}
	return st.sendWidth, st.sendWidth != st.recvWidth
}
