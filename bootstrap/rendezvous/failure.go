package rendezvous

import (
	"fmt"

	"github.com/ringo-go/ringo/trace/history"
	"github.com/ringo-go/ringo/trace/judge"
)

// A Failure is the end of a group. A rank died; or it gave up and said why; or
// the hub has found that the ranks cannot go on, because their calls differ,
// others wait for a rank that has left, or an operation ran out of time.
type Failure struct {
	Rank   int    // that failed; -1 is a process that serves the hub and is no rank, or no single rank (Disagree, Late)
	Died   bool   // its connection ended without goodbye
	Reason string // the rank's own words, or how its death was seen; empty if the hub found the failure

	// Culprits are the ranks to blame, ascending, as far as is known: they died, left or gave up,
	// make another call than most, or do not come. All ranks get the same list.
	Culprits []int
	// Candidates are, where there is no proof, the ranks of which some may be to blame, or the network between them.
	Candidates []int

	Path     bool          // both Culprits live, and nothing passes between them
	Disagree *Disagreement // two ranks have begun different calls
	Left     bool          // Rank has left in order, and another waits in a later collective
	Number   uint64        // with Left: the last collective that Rank had begun, 0 if none
	Late     *Lateness     // an operation ran out of time
}

func (f *Failure) Error() string {
	switch {
	case f.Disagree != nil:
		return f.Disagree.String()
	case f.Late != nil:
		return f.Late.String()
	case f.Left && f.Number == 0:
		return fmt.Sprintf("rank %d has left before its first collective, and others wait for it", f.Rank)
	case f.Left:
		return fmt.Sprintf("rank %d has left after collective #%d, and others wait for it in a later one", f.Rank, f.Number)
	}
	if len(f.Candidates) > 0 {
		return f.Reason + f.Doubt()
	}
	if f.Path && f.Rank < 0 {
		return fmt.Sprintf("nothing passes between the hosts of %s, and both are well: %s", history.Ranks(f.Culprits),
			f.Reason)
	}
	who := fmt.Sprintf("rank %d", f.Rank)
	if f.Rank < 0 {
		who = "the process that serves the rendezvous"
	}
	if f.Died {
		return fmt.Sprintf("%s died: %s", who, f.Reason)
	}
	return fmt.Sprintf("%s failed: %s", who, f.Reason)
}

// Doubt says that it cannot be known who is to blame, with the Candidates; it is empty if there are none.
func (f *Failure) Doubt() string {
	if len(f.Candidates) == 0 {
		return ""
	}
	return fmt.Sprintf("; who is to blame cannot be known: %s, or the network between them (ringo check)",
		history.Ranks(f.Candidates))
}

// OfPath reports whether the failure is that of the path between its two Culprits.
func (f *Failure) OfPath() bool {
	switch {
	case f == nil || len(f.Culprits) != 2 || f.Died || f.Left || f.Disagree != nil:
		return false
	case f.Late != nil:
		return f.Late.Reason == judge.Link
	}
	return f.Path
}
