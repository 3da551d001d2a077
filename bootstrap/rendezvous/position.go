package rendezvous

import (
	"cmp"
	"fmt"
	"time"

	"github.com/ringo-go/ringo/trace/judge"
)

// A Position is a rank's progress in its sequence of collectives. An old Position stays
// true: the calls were begun.
type Position struct {
	Calls   []Called // the last collectives that the rank has begun, oldest first; 64 of them are kept
	Counts  []int    // of the last of Calls, if all ranks have to give it the same list
	Waiting bool     // the rank is in the last of Calls and has waited long
	Stop    Stopped  // for Late: where the rank's operation was stopped
	Awaits  []int    // for Inquire: the ranks whose connection it waits for
	Needs   Need     // for Inquire: the ranks without whose part it cannot end its collective

	// Messages are for Inquire. If this rank waits in a collective they are how many messages it has begun to send to each
	// peer, else how many it has begun to receive from peers, counted from the beginning of the group.
	Messages []Messages
}

// A Need is the ranks without whose part a rank cannot end a collective: Nobody, Everyone, or one rank (NeedOf).
type Need int32

// The Needs beside those of NeedOf.
const (
	Nobody Need = iota
	Everyone
	ofRank
)

// NeedOf is the Need of one rank's part.
func NeedOf(rank int) Need { return ofRank + Need(rank) }

func (n Need) of(rank int) bool { return n == Everyone || n == NeedOf(rank) }

// Messages count the Sends to a peer, or the Recvs from a peer, that a rank has begun. Call is the last Recv.
type Messages struct {
	Peer  int
	Count uint64
	Call  [16]byte
}

// The most Messages and Counts of a Position.
const (
	maxMessages = 1024
	maxCounts   = 1024
)

// Called is a collective that a rank has begun. All ranks must begin equal calls
// under one Number. Number 0 is for calls that are not compared.
type Called struct {
	Number uint64
	Call   [16]byte // opaque to this package
}

// maxCalls is the most calls of a Position that are sent.
const maxCalls = 64

// Recent is p with only its last maxCalls calls, and without lists that are too long.
func Recent(p Position) Position {
	p.Calls = p.Calls[max(0, len(p.Calls)-maxCalls):]
	if len(p.Messages) > maxMessages {
		p.Needs, p.Messages = Nobody, nil // messages left out would count as 0
	}
	if len(p.Counts) > maxCounts {
		p.Counts = nil
	}
	return p
}

// last is the highest number that the rank has begun, 0 if none.
func (p Position) last() (n uint64) {
	for _, c := range p.Calls {
		n = max(n, c.Number)
	}
	return n
}

// WaitsIn is the number of the collective in which the rank has waited long, 0 if the rank does not wait.
func WaitsIn(p Position) uint64 {
	if !p.Waiting || len(p.Calls) == 0 {
		return 0
	}
	return p.Calls[len(p.Calls)-1].Number
}

// A Disagreement says that two ranks have begun different calls under one Number.
type Disagreement struct {
	Number       uint64
	RankA, RankB int // RankA < RankB
	CallA, CallB [16]byte
	Counts       *Differ // nil if the calls do not differ in their Counts, or too little is known
}

// A Differ is the first entry in which the Counts of two ranks differ.
type Differ struct{ Entry, A, B int }

// firstDiffer is the Differ of two lists, nil if one is not known.
func firstDiffer(a, b []int) *Differ {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return &Differ{i, a[i], b[i]}
		}
	}
	return nil
}

func (d *Disagreement) String() string {
	return fmt.Sprintf("ranks %d and %d make different calls as collective #%d", d.RankA, d.RankB, d.Number)
}

// before orders disagreements: the first in the sequence is the cause of later
// ones. Under one Number the disagreement of the lowest ranks comes first.
func (d *Disagreement) before(e *Disagreement) bool {
	return e == nil || cmp.Or(cmp.Compare(d.Number, e.Number), cmp.Compare(d.RankA, e.RankA),
		cmp.Compare(d.RankB, e.RankB)) < 0
}

// A Stopped is where a rank's operation was stopped.
type Stopped struct {
	Last        uint64 // the last collective that the rank is known to have begun
	Unsure      bool   // the rank may have begun later ones
	At          uint64 // the collective that the rank was in, 0 if in none
	Peer        int    // the rank that it waited for, -1 if unknown; with At 0 in a Send or Recv
	Sending     bool   // it waited to send
	Round, Step int    // of the schedule
	Waited      time.Duration
	Still       time.Duration // of Waited: since data moved last, as far as is known
}

// A Lateness is why an operation ran out of time.
type Lateness struct {
	Reason  judge.Reason
	Call    Called        // the collective that ranks waited in, zero if they waited in a Send or Recv
	Waiting []int         // who waited there, ascending; at most 1024
	Waited  time.Duration // the longest wait of these
	Still   time.Duration // for how long no data have moved among them
	Last    Called        // the last collective that the first of the culprits has begun, zero if none or not known
}

func (l *Lateness) String() string {
	return fmt.Sprintf("rank %s waited for %s in collective #%d (%v)", Ranges(l.Waiting), Spell(l.Waited),
		l.Call.Number, l.Reason)
}
