package call

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ringo-go/ringo/fifo"
)

// The kinds of errors that a caller may tell apart with errors.Is. Every error of an operation is an *Error and wraps
// one of these or a cause of the system.
var (
	ErrInvalid     = errors.New("invalid argument")    // nothing was sent; the communicator stays usable
	ErrUnsupported = errors.New("unsupported")         // likewise
	ErrMismatch    = errors.New("ranks disagree")      // the ranks called different things, or are set up differently
	ErrPeer        = errors.New("a peer has failed")   // another rank died, aborted or failed
	ErrLeft        = errors.New("a peer has left")     // another rank has closed its communicator
	ErrAborted     = errors.New("aborted")             // Abort was called
	ErrTimeout     = fifo.ErrDeadline                  // the Timeout of the Call or the Config passed
	ErrClosed      = errors.New("communicator closed") // Close was called
)

// An Error is what went wrong with an operation, where and with whom:
//
//	AllReduce #1042: rank 3 on hostB: recv from rank 2 over socket: connection reset
type Error struct {
	Op        string // "AllReduce", "Open", …
	Seq       uint32 // number of the collective on its communicator, 0 if it has none; after 2³²−1 comes 1
	Rank      int    // the rank that reports, -1 of a nil Comm
	Host      string
	Comm      string // the communicator, as "ringo why" and Comm.History name it; "" before the ranks have met
	Name      string // Config.Name; of a communicator made of another without a name of its own, also its Comm
	Peer      int    // the other end, -1 if there is none
	Transport string // "shm", "" if no connection is concerned
	Phase     string // "send", "recv", "connect", "accept", "" if no step is concerned
	Err       error

	// Culprits are the ranks of Comm that are to blame, ascending, the same on every rank: who died,
	// left, gave up or aborted, who makes another call than most, who never came or answers
	// nothing, or both ends of a connection that broke between ranks that live. None if it is not known, or if
	// the error is of one call alone (ErrInvalid, ErrUnsupported).
	Culprits []int

	// Candidates are, where who is to blame cannot be known, the ranks of which some may be, or the network between
	// them: a rank to which nobody answers cannot know that it is not the one that is cut off.
	Candidates []int
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Seq > 0 {
		fmt.Fprintf(&b, " #%d", e.Seq)
	}
	if e.Name != "" {
		fmt.Fprintf(&b, " of %s", e.Name)
	}
	if e.Rank >= 0 {
		fmt.Fprintf(&b, ": rank %d", e.Rank)
	}
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

// Is makes an error that wraps ErrTimeout match context.DeadlineExceeded too.
func (e *Error) Is(target error) bool {
	return target == context.DeadlineExceeded && errors.Is(e.Err, ErrTimeout)
}

// Timeout reports whether a deadline passed, as net.Error does.
func (e *Error) Timeout() bool { return errors.Is(e.Err, ErrTimeout) }
