package engine

import (
	"fmt"

	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// Links gives the connections of one rank. A connection is made when it is
// first asked for and stays the same for the life of the communicator.
type Links interface {
	Send(to sched.Rank) (transport.SendConn, error)
	Recv(from sched.Rank) (transport.RecvConn, error)
}

// A Program is the column of one rank in a schedule, with its connections: what
// Run carries out. It is compiled once and run any number of times.
type Program struct {
	steps []step
	shape sched.Shape
}

// Shape is the shape of the schedule.
func (p *Program) Shape() sched.Shape { return p.shape }

type step struct {
	send     transport.SendConn
	recv     transport.RecvConn
	into     transport.Into // recv, if it has this power
	src, dst sched.Ref
	to, from sched.Rank
}

// Compile resolves the steps of rank r. It dials before it accepts, and a dial
// never waits for the peer's Compile, so all ranks may compile in any order.
func Compile(s sched.Schedule, r sched.Rank, links Links) (*Program, error) {
	p := &Program{steps: make([]step, s.Len(r)), shape: s.Shape()}
	for i := range p.steps {
		t := s.At(r, i)
		if t.Src.Buf == sched.None && t.Dst.Buf == sched.None {
			return nil, fmt.Errorf("step %d of rank %d has neither source nor destination", i, r)
		}
		p.steps[i] = step{src: t.Src, dst: t.Dst, to: t.Send, from: t.Recv}
		if t.Send != sched.Nobody {
			c, err := links.Send(t.Send)
			if err != nil {
				return nil, &StepError{Peer: t.Send, Phase: "connect", Err: err}
			}
			p.steps[i].send = c
		}
	}
	for i := range p.steps {
		st := &p.steps[i]
		if st.from == sched.Nobody {
			continue
		}
		c, err := links.Recv(st.from)
		if err != nil {
			return nil, &StepError{Peer: st.from, Phase: "accept", Err: err}
		}
		st.recv = c
		st.into, _ = c.(transport.Into)
	}
	return p, nil
}
