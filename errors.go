package ringo

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/fifo"
)

// What callers may want to tell apart with errors.Is. Every error of an
// operation is an *Error and wraps one of these or a cause of the system.
var (
	ErrInvalid     = errors.New("invalid argument")    // nothing was sent; the communicator stays usable
	ErrUnsupported = errors.New("unsupported")         // likewise
	ErrMismatch    = errors.New("ranks disagree")      // the ranks called different things
	ErrPeer        = errors.New("a peer has failed")   // another rank died, aborted or failed
	ErrAborted     = errors.New("aborted")             // Abort was called
	ErrTimeout     = fifo.ErrDeadline                  // Config.Timeout passed
	ErrClosed      = errors.New("communicator closed") // Close was called
)

// An Error is what went wrong with an operation, where and with whom:
//
//	AllReduce #1042: rank 3 on hostB: recv from rank 2 over socket: connection reset
type Error struct {
	Op        string // "AllReduce", "Open", …
	Seq       uint32 // number of the collective on its communicator, 0 if it has none
	Rank      int    // the rank that reports
	Host      string
	Peer      int    // the other end, -1 if there is none
	Transport string // "shm", "" if no connection is concerned
	Phase     string // "send", "recv", "connect", "accept", "" if no step is concerned
	Err       error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Seq > 0 {
		fmt.Fprintf(&b, " #%d", e.Seq)
	}
	fmt.Fprintf(&b, ": rank %d", e.Rank)
	if e.Host != "" {
		fmt.Fprintf(&b, " on %s", e.Host)
	}
	if e.Phase != "" {
		fmt.Fprintf(&b, ": %s", e.Phase)
	}
	if e.Peer >= 0 {
		word := "to"
		if e.Phase == "recv" || e.Phase == "accept" {
			word = "from"
		}
		fmt.Fprintf(&b, " %s rank %d", word, e.Peer)
	}
	if e.Transport != "" {
		fmt.Fprintf(&b, " over %s", e.Transport)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether a deadline passed, as net.Error does.
func (e *Error) Timeout() bool { return errors.Is(e.Err, ErrTimeout) }

// peerError is the failure of another rank as the group reports it.
type peerError struct{ f *bootstrap.Failure }

func (e *peerError) Error() string   { return e.f.Error() }
func (e *peerError) Is(t error) bool { return t == ErrPeer }

// mismatch says in words what engine.MismatchError says in stamps.
type mismatch struct {
	rank, peer int
	cause      *engine.MismatchError
	at         placement // of the rank's own call, if that is in windows
}

func (e *mismatch) Is(t error) bool { return t == ErrMismatch }
func (e *mismatch) Unwrap() error   { return e.cause }

// ahead reports whether the peer is at a later call.
func (e *mismatch) ahead() bool {
	mine, theirs := signOf(e.cause.Want), signOf(e.cause.Got)
	return mine.seq != 0 && theirs.seq > mine.seq
}

func (e *mismatch) Error() string {
	mine, theirs := signOf(e.cause.Want), signOf(e.cause.Got)
	switch {
	case mine.where != theirs.where && sameCall(mine, theirs):
		here, there := "in no window", "in no window"
		if mine.where != 0 {
			if here = "in windows"; e.at.where != 0 {
				here = "with " + e.at.String()
			}
		}
		if theirs.where != 0 {
			there = "in windows, elsewhere"
		}
		return fmt.Sprintf("ranks disagree on the memory: rank %d calls %s %s, rank %d calls %s %s; "+
			"give all ranks the same offset in the same window, also for an Out that Reduce leaves alone, or memory in none",
			e.rank, mine.numbered(), here, e.peer, theirs.numbered(), there)
	case mine == theirs:
		return fmt.Sprintf("ranks disagree on %v: rank %d expects %d bytes, rank %d sent %d; give both the same counts",
			mine, e.rank, e.cause.WantBytes, e.peer, e.cause.GotBytes)
	case mine.algo != theirs.algo && sameCall(mine, theirs):
		return fmt.Sprintf("ranks disagree on the algorithm of %v: rank %d uses %v, rank %d uses %v; give all ranks the same RINGO_ALGO",
			mine, e.rank, mine.algo, e.peer, theirs.algo)
	}
	return fmt.Sprintf("ranks disagree: rank %d calls %s, rank %d calls %s; all ranks must make the same calls in the same order",
		e.rank, mine.numbered(), e.peer, theirs.numbered())
}

func sameCall(a, b sign) bool {
	a.algo, a.where = b.algo, b.where
	return a == b
}

func (s sign) numbered() string {
	if s.seq == 0 {
		return s.String()
	}
	name, rest, _ := strings.Cut(s.String(), "(")
	return fmt.Sprintf("%s #%d (%s", name, s.seq, rest)
}
