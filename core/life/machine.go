package life

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/trace/history"
	"github.com/ringo-go/ringo/trace/judge"
)

// A State is where a communicator is in its life.
type State uint8

const (
	Open State = iota // operations are carried out
	// an operation has failed, or is to stop, and another rank may be the cause: the group is given time to say so
	Doubtful
	Failed // for good: waits are ended, the group knows
	Closed // by Close
)

func (s State) String() string { return [...]string{"open", "doubtful", "failed", "closed"}[s] }

// An Event is something that happens to a communicator.
type Event interface{ event() }

type (
	// An OperationFailed is why an operation of this rank could not be carried out.
	OperationFailed struct {
		Err   *call.Error
		Doubt Doubt
	}
	// A GroupSaid is the first failure that the other ranks report.
	GroupSaid struct{ Failure *bootstrap.Failure }
	// A HaltAsked is that an operation of another rank has run out of time: this rank stops too, so that all ranks can
	// say where they were.
	HaltAsked struct{ Err *call.Error }
	// A PatienceEnded follows Actions.Await.
	PatienceEnded struct{}
	// An OperationRefused is that an operation of this rank did not begin because of the verdict.
	OperationRefused struct{}
	// An AbortCalled is Abort with its reason.
	AbortCalled struct{ Err *call.Error }
	// A CloseCalled is Close, when all that was started has ended.
	CloseCalled struct{ Err *call.Error }
)

func (OperationFailed) event()  {}
func (GroupSaid) event()        {}
func (HaltAsked) event()        {}
func (PatienceEnded) event()    {}
func (OperationRefused) event() {}
func (AbortCalled) event()      {}
func (CloseCalled) event()      {}

// A Doubt says whether another rank may be the cause of an operation's failure.
type Doubt uint8

const (
	Certain Doubt = iota // the error names the cause
	Broken               // a connection broke: the group knows in a moment who has died, if anybody has
	// the peer is at an earlier or later call: which call the ranks first differ in, or who was cut short, the group knows
	Apart
	// the peer makes another call under the same number: which of the two is that of most ranks, the group knows
	Differs
	Between // the error names two ranks: of several such errors the group says which counts
	Late    // the operation ran out of time: who holds it up, the group finds out
)

func (d Doubt) patience() time.Duration {
	switch d {
	case Apart, Differs:
		return RollCallWait
	case Late:
		return TrialWait
	case Between:
		return 0
	}
	return RootCauseWait
}

// Actions are what the owner of a Machine must do, Stop before Tell.
type Actions struct {
	Stop  error         // ends this rank's waits and kernels with this cause, unless nil
	Tell  *call.Error   // tells the group that this rank has failed, unless nil
	Lost  bool          // with Tell: the connection with its Peer broke
	Await time.Duration // sends PatienceEnded after this time, unless 0
	Seek  bool          // finds out why the group says nothing, and then sends PatienceEnded
}

// RootCauseWait is how long a rank whose connection broke waits to hear from the
// group which rank has died, so as to name it and not just a neighbour. RollCallWait is how
// long a rank whose peer is at another collective waits for the result of a roll call, and TrialWait how
// long one that ran out of time waits to hear who holds it up.
const (
	RootCauseWait = 300 * time.Millisecond
	RollCallWait  = time.Second
	TrialWait     = bootstrap.TrialTime + time.Second
)

// WordWait is how long a rank that has told the group of a broken connection waits to hear which rank, host or path
// that is the fault of: all ranks get the same answer.
const WordWait = bootstrap.InquestTime + time.Second

// A Machine decides what the events in the life of a communicator mean. It is pure: it
// knows no time, no goroutines and no network.
type Machine struct {
	state   State
	verdict *call.Error        // why the communicator is of no more use
	word    *bootstrap.Failure // what the group has said
	doubted *call.Error        // the error that waits for the group's word
	doubt   Doubt              // about doubted
	stopped bool               // waits have been ended
	met     bool               // an operation of this rank has failed or was refused
	told    bool               // the group has been told of doubted
	sought  bool               // see Actions.Seek
	// Hosts are the other ranks of the process that serves the rendezvous.
	Hosts []int
	// Left reports whether another rank is known to have said goodbye, if not nil.
	Left func(rank int) bool
	// Wrap makes an error of the communicator as a whole.
	Wrap func(op string, cause error) *call.Error
}

// OpComm is the Op of an error of the communicator while it is not known which operation of
// this rank is concerned.
const OpComm = "Comm"

// State is where the communicator is.
func (m *Machine) State() State { return m.state }

// Verdict is why the communicator is of no more use, nil while it is open or doubtful.
func (m *Machine) Verdict() *call.Error { return m.verdict }

// Met reports whether the verdict is this rank's own, or an operation of this rank has met it. A rank that waits for
// nothing when another one ends is well until it begins its next operation.
func (m *Machine) Met() bool { return m.verdict != nil && (m.met || m.verdict.Op != OpComm) }

// Step takes an event and says what to do.
func (m *Machine) Step(e Event) Actions {
	switch e := e.(type) {
	case OperationFailed:
		return m.operationFailed(e)
	case GroupSaid:
		if m.word == nil {
			m.word = e.Failure
		}
		switch m.state {
		case Open:
			a := m.fail(m.blaming(m.Wrap(OpComm, &PeerError{e.Failure}), Certain), false)
			a.Stop = &PeerError{e.Failure}
			return a
		case Doubtful:
			return m.fail(m.explained(m.doubted, m.doubt), false)
		}
	case HaltAsked:
		if m.state == Open {
			m.state, m.doubted, m.doubt, m.stopped = Doubtful, e.Err, Late, true
			return Actions{Stop: e.Err.Err, Await: Late.patience()}
		}
	case PatienceEnded:
		if m.state == Doubtful {
			return m.unanswered()
		}
	case OperationRefused:
		m.met = true
	case AbortCalled:
		if m.state == Open || m.state == Doubtful {
			return m.fail(m.blaming(e.Err, Certain), true)
		}
	case CloseCalled:
		if m.state == Closed {
			return Actions{}
		}
		if m.state == Doubtful && m.doubted.Op != OpComm { // else another rank is late, and tells of it
			a := m.fail(m.explained(m.doubted, m.doubt), true)
			m.state = Closed
			return a
		}
		if !m.Met() {
			m.verdict = e.Err
		}
		m.state = Closed
	}
	return Actions{}
}

// operationFailed is Step for an OperationFailed.
func (m *Machine) operationFailed(e OperationFailed) Actions {
	m.met = true
	switch {
	case m.state == Failed && m.verdict.Op == OpComm:
		m.verdict = m.explained(e.Err, e.Doubt) // says where, by the group's word
	case m.state == Doubtful && m.doubted.Op == OpComm:
		m.doubted = e.Err // likewise
	case m.state != Open:
	case e.Doubt == Certain:
		return m.fail(m.blaming(e.Err, Certain), true)
	default:
		m.state, m.doubted, m.doubt = Doubtful, e.Err, e.Doubt
		if e.Doubt.patience() == 0 {
			return m.unanswered()
		}
		return Actions{Await: e.Doubt.patience()}
	}
	return Actions{}
}

// unanswered goes on where the group has said nothing of an error in doubt: the group is told, so that all ranks,
// this one too, hear one answer; if there is none this rank finds out why; and then it judges alone.
func (m *Machine) unanswered() Actions {
	switch {
	case m.unserved() || m.sought:
		return m.fail(m.explained(m.doubted, m.doubt), true)
	case m.told || m.doubt == Late:
		m.sought = true
		return Actions{Seek: true}
	}
	err := m.caused(m.doubted, m.doubt)
	if blames := m.blaming(err, m.doubt); len(blames.Culprits) == 1 { // who has left, or this rank itself
		return m.fail(blames, true)
	} else if m.doubt != Broken {
		err = blames
	}
	m.told = true
	a := Actions{Tell: err, Lost: m.breaks(err), Await: WordWait}
	if !m.stopped {
		a.Stop, m.stopped = err, true
	}
	return a
}

// breaks reports whether the doubt is about this rank's connection with a peer.
func (m *Machine) breaks(err *call.Error) bool {
	return m.doubt == Broken && m.doubted != nil && err.Peer >= 0 && err.Peer != err.Rank
}

func (m *Machine) fail(err *call.Error, tell bool) Actions {
	m.state, m.verdict = Failed, err
	var a Actions
	if !m.stopped {
		a.Stop, m.stopped = err, true
	}
	if lost := len(err.Candidates) > 0 && m.breaks(err); tell && !m.told && (lost || len(err.Culprits) > 0) {
		a.Tell, a.Lost = err, lost // who cannot know whom to blame, and has lost no peer, has nothing to tell
	}
	return a
}

// blaming is an error with its culprits, err itself if it has them.
func (m *Machine) blaming(err *call.Error, d Doubt) *call.Error {
	if err.Culprits != nil || err.Candidates != nil {
		return err
	}
	e := *err // a copy: the owner of err may read it
	e.Culprits, e.Candidates = m.culprits(err, d)
	var peer *PeerError
	if len(e.Candidates) > 0 && !errors.As(e.Err, &peer) { // which says so itself
		e.Err = fmt.Errorf("%w%s", e.Err, (&bootstrap.Failure{Candidates: e.Candidates}).Doubt())
	}
	return &e
}

// culprits are the ranks to blame for an error: those that the group names, also if this rank has failed itself; else a
// peer that has left, or this rank, with the peer whose call differs. If the group does not answer who is to blame for
// a loss cannot be known: then candidates are those that this rank hears nothing of, and itself.
func (m *Machine) culprits(e *call.Error, d Doubt) (culprits, candidates []int) {
	var peer *PeerError
	var silent []int
	switch {
	case errors.Is(e.Err, call.ErrAborted): // whatever the reason is, it may be of another communicator
		return []int{e.Rank}, nil
	case errors.As(e.Err, &peer):
		f := peer.Failure // ranks of one process share it
		return slices.Clone(f.Culprits), slices.Clone(f.Candidates)
	case m.word != nil && d != Certain:
		return slices.Clone(m.word.Culprits), slices.Clone(m.word.Candidates)
	case errors.Is(e.Err, call.ErrClosed):
		return nil, nil
	case errors.Is(e.Err, call.ErrLeft) && e.Peer >= 0:
		return []int{e.Peer}, nil
	case d == Late && len(m.serving()) > 0:
		silent = m.serving()
	case d == Late && e.Peer < 0:
	case e.Peer < 0 || e.Peer == e.Rank:
		return []int{e.Rank}, nil
	case errors.Is(e.Err, call.ErrMismatch):
		return []int{min(e.Rank, e.Peer), max(e.Rank, e.Peer)}, nil
	default:
		if silent = []int{e.Peer}; m.sought { // nobody has answered this rank's complaint either
			silent = append(silent, m.serving()...)
		}
	}
	l := judge.Losses([]judge.Testimony{{From: e.Rank, Lost: silent}})
	return l.Culprits, l.Candidates
}

// Explain is the cause of an operation's failure after the doubt has ended: the group's word, if that explains the
// failure, with the cause that this rank has seen.
func (m *Machine) Explain(cause error, d Doubt) error {
	switch {
	case d == Broken && m.word == nil && errors.Is(cause, fifo.ErrClosed):
		return fmt.Errorf("%w: it has closed the communicator (%w); all ranks must make the same calls before Close",
			call.ErrLeft, cause)
	case m.word == nil && d == Late && len(m.serving()) > 0:
		return fmt.Errorf("%w; the rendezvous does not answer either: is the process of %s, which serves it, stopped?", cause,
			history.Ranks(m.serving()))
	case m.word == nil && d == Late && len(m.Hosts) > 0:
		return fmt.Errorf("%w; nobody knows more, for %s, which served the rendezvous, has closed the communicator", cause,
			history.Ranks(m.Hosts))
	case m.word == nil || d == Certain || d == Between:
		return cause
	case d == Late && m.word.Late != nil && cause != call.ErrTimeout && !errors.Is(cause, errHalted):
		return fmt.Errorf("%w (%v)", &PeerError{m.word}, cause)
	case d == Late && m.word.Late != nil, (d == Apart || d == Differs || d == Late) && m.word.Disagree != nil:
		return &PeerError{m.word}
	case d == Differs:
		return cause
	case d == Apart || d == Late:
		return fmt.Errorf("%w (%w)", &PeerError{m.word}, cause)
	}
	return fmt.Errorf("%w (%v)", &PeerError{m.word}, cause)
}

// serving are the Hosts that have not said goodbye.
func (m *Machine) serving() []int {
	return slices.DeleteFunc(slices.Clone(m.Hosts), func(r int) bool { return m.Left != nil && m.Left(r) })
}

// unserved reports whether all that served the rendezvous have left: nobody knows more than this rank.
func (m *Machine) unserved() bool { return len(m.Hosts) > 0 && len(m.serving()) == 0 }

// explained is an error with the cause that Explain gives, and its culprits.
func (m *Machine) explained(err *call.Error, d Doubt) *call.Error {
	return m.blaming(m.caused(err, d), d)
}

// caused is explained without culprits.
func (m *Machine) caused(err *call.Error, d Doubt) *call.Error {
	e := *err // its owner may read it
	cause := err.Err
	if d == Broken && m.word == nil && m.Left != nil && e.Peer >= 0 && m.Left(e.Peer) &&
		!errors.Is(cause, fifo.ErrClosed) {
		cause = fmt.Errorf("%w: %w", fifo.ErrClosed, cause) // what was sent met a connection that had no reader any more
	}
	if d == Broken && m.word == nil && e.Peer >= 0 && m.unserved() &&
		!errors.Is(cause, fifo.ErrClosed) && !bootstrap.IsSilence(cause) { // nobody is left who could see the death
		cause = fmt.Errorf("%w (%v)", &PeerError{&bootstrap.Failure{Rank: e.Peer, Died: true,
			Reason: "its connection ended without goodbye", Culprits: []int{e.Peer}}}, cause)
	}
	e.Err = cause
	own := m.word != nil && m.told && m.word.Rank == e.Rank // the word is this rank's complaint
	// A peer closes its end too if it has failed. That it has left the group says.
	closed := m.word == nil && d == Broken && errors.Is(cause, fifo.ErrClosed) && m.Left != nil && e.Peer >= 0 &&
		!m.Left(e.Peer) && !m.unserved()
	if !own && !closed {
		e.Err = m.Explain(cause, d)
	}
	return &e
}

// A PeerError is the failure of another rank, or the disagreement of two, as the group
// reports it. It is call.ErrPeer, call.ErrLeft, call.ErrMismatch or call.ErrTimeout for errors.Is.
type PeerError struct{ Failure *bootstrap.Failure }

func (e *PeerError) Error() string {
	f := e.Failure
	switch {
	case f.Disagree != nil:
		d := f.Disagree
		return disagreement(d.RankA, sign(d.CallA), d.RankB, sign(d.CallB), d.Counts)
	case f.Late != nil:
		return lateness(f)
	case f.Left && f.Number == 0:
		return fmt.Sprintf("%v: rank %d has closed the communicator before its first collective", call.ErrLeft, f.Rank)
	case f.Left:
		return fmt.Sprintf("%v: rank %d has closed the communicator after collective #%d; all ranks must make the same "+
			"calls before Close", call.ErrLeft, f.Rank, f.Number)
	}
	return f.Error()
}

// Unwrap is the *bootstrap.Failure.
func (e *PeerError) Unwrap() error { return e.Failure }

// Is tells the kind of failure.
func (e *PeerError) Is(t error) bool {
	switch {
	case e.Failure.Disagree != nil:
		return t == call.ErrMismatch
	case e.Failure.Late != nil:
		return t == call.ErrTimeout
	case e.Failure.Left:
		return t == call.ErrLeft
	}
	return t == call.ErrPeer
}

// certain are the causes that need no word of the group.
var certain = []error{call.ErrPeer, call.ErrLeft, call.ErrMismatch, call.ErrAborted}

func doubtOf(e *call.Error) Doubt {
	var m *Mismatch
	if errors.As(e, &m) {
		switch {
		case m.apart():
			return Apart
		case m.known():
			return Differs
		}
		return Between
	}
	for _, c := range certain {
		if errors.Is(e, c) {
			return Certain
		}
	}
	if errors.Is(e, call.ErrTimeout) {
		return Late
	}
	return Broken
}
