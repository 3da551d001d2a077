package life

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/engine"
)

// A Path says how an operation reaches its peers, for errors.
type Path interface {
	// Via names the path to a peer: "shm".
	Via(peer int) string
	// Memory describes the registered memory that a sign's Where stands for:
	// "In at 0 of window #1", or "" if that is not known.
	Memory(where uint16) string
}

// Locate makes of the cause of a failure an error that says the call, the peer, the phase and the path. path may be
// nil.
func (l *Life) Locate(c *call.Call, seq uint32, cause error, path Path) *call.Error {
	if c == nil {
		c = new(call.Call)
	}
	e := l.ErrorIn(call.Name(c), cause)
	if !c.Kind.Pairwise() {
		e.Seq = seq
	}
	var st *engine.StepError
	if !errors.As(cause, &st) {
		return e
	}
	e.Peer, e.Phase, e.Err = int(st.Peer), st.Phase, st.Err
	if path != nil {
		e.Transport = path.Via(e.Peer)
	}
	var m *engine.MismatchError
	if errors.As(st.Err, &m) {
		e.Err = &Mismatch{rank: l.Rank, peer: e.Peer, cause: m, path: path}
	}
	var peer *PeerError // who failed is enough: how a transport words its wait is left out
	if errors.As(st.Err, &peer) {
		e.Err = peer
		if peer.Failure.Disagree != nil || peer.Failure.Left || peer.Failure.Late != nil {
			e.Peer, e.Phase, e.Transport = -1, "", ""
		}
	}
	var earlier *call.Error // an Abort's error says its own place
	if errors.As(st.Err, &earlier) {
		e.Peer, e.Phase, e.Transport = -1, "", ""
	}
	return e
}

// ErrorIn is an error of something that is not a Call: "Open", "Split".
func (l *Life) ErrorIn(op string, cause error) *call.Error {
	return &call.Error{Op: op, Rank: l.Rank, Host: l.Host, Comm: l.ID(), Name: l.Name, Peer: -1, Err: cause}
}

// ErrorOf is an error of a method that all ranks call together, with who is to blame as far as err says so.
func (l *Life) ErrorOf(op string, err error) *call.Error {
	e := l.ErrorIn(op, err)
	var failed *call.Error
	var peer *PeerError
	var left *bootstrap.LeftError
	var late *bootstrap.WithdrawnError
	var step *engine.StepError
	switch {
	case errors.As(err, &failed):
		e.Culprits, e.Candidates = failed.Culprits, failed.Candidates
	case errors.As(err, &peer):
		e.Culprits, e.Candidates = slices.Clone(peer.Failure.Culprits), slices.Clone(peer.Failure.Candidates)
	case errors.As(err, &left):
		e.Culprits = []int{left.Rank}
	case errors.As(err, &late):
		e.Culprits = slices.Clone(late.Missing)
	case errors.As(err, &step) && errors.Is(err, call.ErrLeft):
		e.Culprits = []int{int(step.Peer)}
	}
	return e
}

// A Mismatch is an engine.MismatchError in words in place of stamps. It is call.ErrMismatch for errors.Is.
type Mismatch struct {
	rank, peer int
	cause      *engine.MismatchError
	path       Path
}

// Is tells that ranks disagree.
func (e *Mismatch) Is(t error) bool { return t == call.ErrMismatch }

// Unwrap is the *engine.MismatchError.
func (e *Mismatch) Unwrap() error { return e.cause }

// apart reports whether the peer is at an earlier or later collective, or may be: a kernel may have seen only that the
// peer's call is another one, and a Barrier only that calls before it differ.
func (e *Mismatch) apart() bool {
	mine, theirs := call.ReadSign(e.cause.Want), call.ReadSign(e.cause.Got)
	before := mine.Kind == call.Barrier && theirs.Kind == call.Barrier && mine != theirs // in calls before it
	return mine.Seq != 0 && (before || theirs.Kind == 0 || theirs.Seq != 0 && theirs.Seq != mine.Seq)
}

// known reports whether the calls differ in what a roll call compares.
func (e *Mismatch) known() bool {
	mine, theirs := call.ReadSign(e.cause.Want), call.ReadSign(e.cause.Got)
	memory := mine.Where != theirs.Where && call.SameCall(mine, theirs)
	return mine.Seq != 0 && mine != theirs && !memory && !ofLengths(mine, theirs)
}

// ofLengths reports whether two signs differ in the length of one message of an AlltoAllv, which its other ranks do not
// know.
func ofLengths(a, b call.Sign) bool {
	same := a
	same.Count = b.Count
	return a.Kind == call.AlltoAllv && a.Whole == 0 && a.Count != b.Count && same == b
}

func (e *Mismatch) Error() string {
	mine, theirs := call.ReadSign(e.cause.Want), call.ReadSign(e.cause.Got)
	switch {
	case theirs.Kind == 0:
		return fmt.Sprintf("%v: rank %d calls %s, rank %d another call; all ranks must make the same calls in the same order",
			call.ErrMismatch, e.rank, mine.Numbered(), e.peer)
	case mine.Where != theirs.Where && call.SameCall(mine, theirs):
		here, there := "in no window", "in no window"
		if mine.Where != 0 {
			here = "in windows"
			if at := e.path.Memory(mine.Where); at != "" {
				here = "with " + at
			}
		}
		if theirs.Where != 0 {
			there = "in windows, elsewhere"
		}
		return fmt.Sprintf("ranks disagree on the memory: rank %d calls %s %s, rank %d calls %s %s; "+
			"give all ranks the same offset in the same window, also for an Out that Reduce leaves alone, or memory in none",
			e.rank, mine.Numbered(), here, e.peer, theirs.Numbered(), there)
	case ofLengths(mine, theirs):
		return fmt.Sprintf("%v on the counts of %s: rank %d expects %d elements of rank %d, which sends %d; give both the "+
			"same counts", call.ErrMismatch, mine.Numbered(), e.rank, mine.Count, e.peer, theirs.Count)
	case mine.Kind == call.Send && theirs.Kind == call.Send && mine.Root < 0 && theirs.Root < 0 && mine != theirs:
		return fmt.Sprintf("%v on a message: rank %d receives %d elements of %v, rank %d sends %d of %v; give a Recv the "+
			"count and the type of its Send", call.ErrMismatch, e.rank, mine.Count, mine.Type, e.peer, theirs.Count, theirs.Type)
	case mine == theirs && e.cause.WantBytes == e.cause.GotBytes:
		return fmt.Sprintf("ranks disagree on the group of %v: rank %d has other calls beside it than rank %d; give all "+
			"ranks the same groups",
			mine, e.rank, e.peer)
	case mine == theirs:
		return fmt.Sprintf("ranks disagree on %v: rank %d expects %d bytes, rank %d sent %d; give both the same counts",
			mine, e.rank, e.cause.WantBytes, e.peer, e.cause.GotBytes)
	}
	return disagreement(e.rank, mine, e.peer, theirs, nil)
}

// disagreement names the different calls of two ranks. counts is where their counts differ, if that is known.
func disagreement(rank int, a call.Sign, peer int, b call.Sign, counts *bootstrap.Differ) string {
	if same := a; a.Shared() && a.Count != b.Count {
		if same.Count = b.Count; same == b {
			where := fmt.Sprintf("ranks %d and %d have different ones", rank, peer)
			if counts != nil {
				where = fmt.Sprintf("that of rank %d is %d on rank %d and %d on rank %d", counts.Entry, counts.A, rank, counts.B,
					peer)
			}
			return fmt.Sprintf("%v on the counts of %s: %s; give all ranks the same counts", call.ErrMismatch, a.Numbered(),
				where)
		}
	}
	if a.Algo != b.Algo && call.SameCall(a, b) {
		return fmt.Sprintf("%v on the algorithm of %v: rank %d uses %v, rank %d uses %v; give all ranks the same RINGO_ALGO",
			call.ErrMismatch, a, rank, a.Algo, peer, b.Algo)
	}
	if a.Kind == call.Barrier && b.Kind == call.Barrier && a.Seq == b.Seq {
		return fmt.Sprintf("%v: ranks %d and %d have made different calls before %s; all ranks must make the same calls in "+
			"the same order",
			call.ErrMismatch, rank, peer, a.Numbered())
	}
	return fmt.Sprintf("%v: rank %d calls %s, rank %d calls %s; all ranks must make the same calls in the same order",
		call.ErrMismatch, rank, a.Numbered(), peer, b.Numbered())
}

// bytesOf is a stamp in the bytes in which the group carries it; sign reads them.
func bytesOf(s [2]uint64) (b [16]byte) {
	binary.LittleEndian.PutUint64(b[:], s[0])
	binary.LittleEndian.PutUint64(b[8:], s[1])
	return b
}

func sign(b [16]byte) call.Sign {
	return call.ReadSign([2]uint64{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])})
}
