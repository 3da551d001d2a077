package rendezvous

import (
	"fmt"
	"time"
)

// An Event is what happens to a group: one of the types below.
type Event any

type (
	// Said is a message of a rank.
	Said struct {
		Rank    int
		Message Message
	}
	// Lost says that a rank's connection has ended, which is its death unless it has left before.
	Lost struct {
		Rank int
		Why  string
	}
	// Unheard says that a rank's connection has ended because its host answers nothing: either of the two hosts may be
	// cut off, or the path between them.
	Unheard struct {
		Rank int
		Why  string
	}
	// Fired says that a timer has run out.
	Fired struct{ Timer Timer }
	// Met answers Meet: the ID of the new group or its ranks, if all are in this process, or why there is none.
	Met struct {
		Number uint64
		ID     []byte
		Here   any
		Err    string
	}
	// Acknowledged answers Look: the ranks whose hosts have acknowledged what was sent to them.
	Acknowledged struct{ Ranks []int }
	// Reached answers Reach, for each of its ranks: whether the host answers.
	Reached struct {
		Stage uint64
		Rank  int
		OK    bool
	}
)

// An Action is what the owner of a Machine must do, in order: one of the types below.
type Action any

type (
	// Tell sends ranks a message.
	Tell struct {
		To      []int
		Message Message
	}
	// Begin starts a timer, or starts it anew.
	Begin struct {
		Timer Timer
		After time.Duration
	}
	// End stops a timer, if it runs.
	End struct{ Timer Timer }
	// Refuse ends the connection of a rank that has sent what it must not.
	Refuse struct{ Rank int }
	// Meet opens a new group for some ranks of this one, and answers by Met. Failed are the paths that have failed once.
	Meet struct {
		Number  uint64
		Members []int
		Failed  Paths
	}
	// Miss tells a new group that one of its ranks will not come.
	Miss struct {
		At     Met
		Member int // of the new group
		Why    string
	}
	// Regrouping says that ranks begin to wait for a new group (nil), or which ranks are its members.
	Regrouping struct{ Members []int }
	// Announce says that the group has failed: once.
	Announce struct{ Failure Failure }
	// Look finds out which hosts of ranks acknowledge what is sent to them, and answers by Acknowledged.
	Look struct{ Ranks []int }
	// Reach finds out whether hosts of ranks answer a connection within a time, and answers by Reached for each.
	Reach struct {
		Stage uint64
		Ranks []int
		Wait  time.Duration
	}
)

// A Timer is one of a machine's timers. Only Quitter has one for each rank.
type Timer struct {
	Of   Purpose
	Rank int
}

// A Purpose is what a timer is for.
type Purpose uint8

const (
	Settle  Purpose = iota // a failure is pending
	Inquiry                // ranks tell where an operation that ran out of time was stopped
	Inquest                // ranks and hosts are asked for the end of a stage
	Round                  // ranks wait for each other after a failure
	Quitter                // a rank that has failed by its own will is asked whether it runs
)

func (t Timer) String() string {
	name := [...]string{"settle", "inquiry", "inquest", "round", "quitter"}[t.Of]
	if t.Of == Quitter {
		return fmt.Sprint(name, " ", t.Rank)
	}
	return name
}

// An outbox collects actions.
type outbox struct{ actions []Action }

func (o *outbox) do(a Action) { o.actions = append(o.actions, a) }

func (o *outbox) tell(to []int, m Message) {
	if len(to) > 0 {
		o.do(Tell{to, m})
	}
}
