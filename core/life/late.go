// Time-outs: how this rank stops when an operation of any rank has run out of time, and says where it was.

package life

import (
	"errors"
	"fmt"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/trace/history"
	"github.com/ringo-go/ringo/trace/judge"
)

// errHalted is the cause of an operation's end when an operation of another rank has run out of time.
var errHalted = fmt.Errorf("stopped, for an operation of another rank ran out of time: %w", call.ErrTimeout)

// stopTime is how long an operation that is to stop may take to say where it was.
const stopTime = 500 * time.Millisecond

// halt stops this rank because an operation of another one has run out of time, and says
// where it was.
func (l *Life) halt() {
	number, pairwise := l.Turn.inside()
	works := number > 0 || pairwise || l.works()
	doubt := l.step(HaltAsked{l.ErrorIn(OpComm, errHalted)})
	if works { // the operation under way says where it was stopped itself, and more exactly
		wait := time.NewTimer(stopTime)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-doubt: // nil where there is none
		}
	}
	p := l.Turn.position(false)
	p.Stop = bootstrap.Stopped{Last: last(p, l.onGPU()), Unsure: l.onGPU(), At: number, Peer: -1, Waited: l.Guard.Waited(),
		Still: l.Guard.Still()}
	l.say(p)
}

// last is the number of the last collective in a position, 0 if there is none or not known: GPUs number collectives,
// those of graphs included, themselves.
func last(p bootstrap.Position, onGPU bool) uint64 {
	if n := len(p.Calls); n > 0 && !onGPU {
		return p.Calls[n-1].Number
	}
	return 0
}

// say tells the group where this rank was stopped, once.
func (l *Life) say(p bootstrap.Position) {
	l.mu.Lock()
	said := l.stop != nil
	if !said {
		l.stop = &p.Stop
	}
	l.mu.Unlock()
	if !said {
		l.group.Late(p)
	}
}

// stoppedIn is where an operation was stopped.
func (l *Life) stoppedIn(e *call.Error, at *engine.StepError) bootstrap.Position {
	p := l.Turn.position(e.Seq > 0)
	p.Stop = bootstrap.Stopped{
		Last: last(p, l.onGPU()), At: l.Turn.number(e.Seq), Peer: int(at.Peer),
		Sending: at.Phase == "send" || at.Phase == "connect", Round: at.Round, Step: at.Step,
		Waited: l.Guard.Waited(), Still: l.Guard.Still(),
	}
	if p.Stop.Waited == 0 && !errors.Is(e, errHalted) { // on a GPU
		p.Stop.Waited, p.Stop.Still = l.Timeout, l.Timeout
	}
	if p.Stop.Peer < -1 || p.Stop.Peer >= l.Size {
		p.Stop.Peer = -1
	}
	return p
}

// lateness says in words who held up an operation.
func lateness(f *bootstrap.Failure) string {
	l := f.Late
	who, waited := history.Ranks(f.Culprits), history.Ranks(l.Waiting)+" waited in it"
	if l.Waited > 0 {
		waited += fmt.Sprintf(" for %v", history.Spell(l.Waited))
	}
	what := "a Send or Recv"
	if s := sign(l.Call.Call); s.Kind != 0 {
		what = s.Numbered()
	} else if l.Call.Number > 0 {
		what = fmt.Sprintf("collective #%d", l.Call.Number)
	}
	last := "it has begun no collective before"
	if s := sign(l.Last.Call); s.Kind != 0 {
		last = fmt.Sprintf("rank %d's last collective is %s", f.Culprits[0], s.Numbered())
	}
	if len(f.Candidates) > 0 {
		return fmt.Sprintf("timed out in %s: %s; %s%s", what, f.Reason, waited, f.Doubt())
	}
	switch l.Reason {
	case judge.Silent:
		return fmt.Sprintf("timed out in %s: %s answered nothing: is a process stopped, or a host cut off? %s", what,
			who, waited)
	case judge.Absent:
		return fmt.Sprintf("timed out in %s: %s never entered it; %s; %s", what, who, waited, last)
	case judge.Link:
		return fmt.Sprintf("timed out in %s: nothing moves between ranks %d and %d; %s", what, f.Culprits[0],
			f.Culprits[1], waited)
	case judge.Slow:
		return fmt.Sprintf("timed out in %s: the time-out is too short, or the network has failed just now: data moved "+
			"until %v before; %s", what, history.Spell(l.Still), waited)
	case judge.Circle:
		return fmt.Sprintf("timed out in %s: %s wait for each other; %s", what, who, waited)
	}
	return fmt.Sprintf("timed out in %s: %s", what, waited)
}
