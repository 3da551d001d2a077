package trace

import "time"

// An Observer is told of the calls of communicators: ringo.Config.Observer.
//
// Begin is called when a call has its number and its algorithm, before anything is sent; End when the call is done,
// well or badly, unless it panics. Calls that are refused before (ErrInvalid, a communicator that has failed) are not
// observed, nor are Split, Register and signals, which are no Calls. Both methods run on the goroutine that carries out
// the call: the caller's for Do, the communicator's own for Start. End of a call on a GPU comes after the GPU has done
// the call, when this rank makes another call, Synchronize or Close, and on the goroutine that makes it. Large sends
// and receives of a Group go side by side, each track on a goroutine of its own.
//
// The operation waits for an Observer, and the other ranks with it: it should return within
// a µs. It must not call the communicator, and must not keep the *Call, its Waits or its Steps after End:
// they are used again. Several goroutines may call an Observer at once: of tracks, and of several communicators,
// as with OpenLocal.
type Observer interface {
	Begin(*Call)
	End(*Call)
}

// A Call is one call of one rank. Times are of Now.
type Call struct {
	Comm       string // identifies the communicator, the same on all ranks
	Rank, Size int
	Host       string
	Track      int  // above 0 for calls that a group carries out side by side
	GPU        bool // on GPU memory
	Model      bool // not carried out, but computed by package sim

	Number uint32 // among the collectives, from 1; 0 for Send and Recv
	Kind   string // "AllReduce"
	Algo   string // "ring"
	Bytes  int    // of the larger buffer of this rank
	Peer   int    // the root, or the other end of a Send or Recv; -1 for none

	Start, End int64 // of the rank's part; on a GPU of the kernels, where they are known
	// Queued and Issued are when the host began and ended queueing a call on a GPU; 0 on host memory.
	// Where the GPU's clock says nothing, as of a call that is captured, Start and End are these too.
	Queued, Issued int64
	Err            error // why it failed; set at End

	// Waits is how long the call waited for each rank, by rank; set at End. It is nil on a GPU.
	Waits []time.Duration
	// Steps receives the Spans of the call. An Observer that wants them sets it in Begin to a
	// slice of no length: as many Spans are recorded as its capacity has room for, and Lost
	// counts the others.
	Steps []Span
	Lost  int

	// Own is for the Observer's use; it is kept from call to call of a track.
	Own any

	part int32
	open int // index of the open step in Steps, -1 if there was no room for it
	step Span
}

// A What is the kind of a Span.
type What uint8

// Kinds of Spans.
const (
	Step    What = iota // a step over one piece of the data
	Wait                // a wait for a message, or for room to send
	Connect             // a wait while the connection is made
)

func (w What) String() string { return [...]string{"step", "wait", "connect"}[w%3] }

// A Span is a step of a call, or a wait in it. Waits follow the step that they are part of.
type Span struct {
	Start, End  int64
	What        What
	Part        int32 // which of the schedules that carry out the call, from 0
	Round, Step int32 // Step is -1 for the waits at a call's end
	Recv, Send  int32 // the peers of a step, -1 for none; for a wait, one is the peer waited for
}

// Peer is the rank that was waited for.
func (s *Span) Peer() int { return int(max(s.Recv, s.Send)) }

// Reset makes the Call ready for the next one of its track, which begins now. What
// identifies the track stays.
func (c *Call) Reset() {
	c.Number, c.Kind, c.Algo, c.Bytes, c.Peer = 0, "", "", 0, -1
	c.Start, c.End, c.Queued, c.Issued, c.Err = Now(), 0, 0, 0, nil
	c.Steps, c.Lost, c.part, c.open = nil, 0, -1, -1
	c.step = Span{Step: -1, Recv: -1, Send: -1}
	clear(c.Waits)
}

// Clock is Now, and 0 for a nil Call: nobody observes it. The methods of a nil Call do nothing.
func (c *Call) Clock() int64 {
	if c == nil {
		return 0
	}
	return Now()
}

// Run begins the run of a schedule.
func (c *Call) Run() {
	if c != nil {
		c.part++
	}
}

// Enter begins a step.
func (c *Call) Enter(round, step int, recv, send int32) {
	if c != nil {
		c.enter(round, step, recv, send)
	}
}

func (c *Call) enter(round, step int, recv, send int32) {
	c.step = Span{Start: Now(), Part: c.part, Round: int32(round), Step: int32(step), Recv: recv, Send: send}
	c.open = -1
	if c.note(c.step) {
		c.open = len(c.Steps) - 1
	}
}

// Leave ends the step.
func (c *Call) Leave() {
	if c != nil {
		c.leave()
	}
}

func (c *Call) leave() {
	if c.open >= 0 {
		c.Steps[c.open].End = Now()
	}
	c.open, c.step.Step = -1, -1
}

// WaitedRecv notes a wait for a message of rank from; the wait began at since, a Clock.
func (c *Call) WaitedRecv(from int32, since int64) {
	if c != nil {
		c.waited(Wait, from, -1, since)
	}
}

// WaitedSend notes a wait, which began at since, for room to send to a rank.
func (c *Call) WaitedSend(to int32, since int64) {
	if c != nil {
		c.waited(Wait, -1, to, since)
	}
}

// Connected notes the making of a connection; one of the ranks is -1.
func (c *Call) Connected(from, to int32, since int64) {
	if c != nil {
		c.waited(Connect, from, to, since)
	}
}

func (c *Call) waited(what What, recv, send int32, since int64) {
	s := Span{Start: since, End: Now(), What: what, Part: c.part, Round: c.step.Round, Step: c.step.Step, Recv: recv,
		Send: send}
	c.Waits[s.Peer()] += time.Duration(s.End - s.Start)
	c.note(s)
}

// note keeps a Span if there is room.
func (c *Call) note(s Span) bool {
	if len(c.Steps) == cap(c.Steps) {
		if c.Steps != nil {
			c.Lost++
		}
		return false
	}
	c.Steps = append(c.Steps, s)
	return true
}

var base = time.Now()

// Now is the clock of traces in ns: the Unix time of the process's start, and the monotonic time since
// then.
func Now() int64 { return base.UnixNano() + int64(time.Since(base)) }
