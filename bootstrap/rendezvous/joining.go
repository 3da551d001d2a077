package rendezvous

import (
	"maps"
	"math"
	"slices"
	"time"
)

// The most bytes of a card and of a random name, and the most of what a Start lists.
const (
	MaxCard       = 3 << 10
	nonceLen      = 32
	MaxSuccessors = 4 // processes besides the hub's that may die, one after the other, before the others cannot go on
	MaxWitnesses  = 8
)

// Claim identifies the rank. It is part of the rank's proof in the handshake, and no message of its own.
type Claim struct {
	Rank, Size int
	Pid        int
	Hosts      bool   // the hub lives in this rank's process
	Host       string // name of the rank's machine, for messages
	Machine    string // names the rank's machine; empty if that is not known
	Partial    bool   // the group may begin without ranks that do not come; the same for all ranks
	Card       []byte // with Partial: for the Roster
	Port       int    // of the rank, where others meet if the rank is a successor; 0 if it has none
	Witness    int    // a port of the rank, where others ask what it hears; 0 if it has none
	Rival      []byte // not empty: no rank comes, but the hub of that name asks which hub answers
}

func (m *Claim) code(c *Coder) {
	c.rank(&m.Rank)
	c.short(&m.Size)
	c.short(&m.Pid)
	c.all(&m.Hosts, &m.Host, &m.Machine, &m.Partial)
	c.blob(&m.Card, MaxCard)
	c.count(&m.Port, math.MaxUint16)
	c.count(&m.Witness, math.MaxUint16)
	c.blob(&m.Rival, nonceLen)
	c.check(m.Size >= 1 && m.Size <= MaxRanks && m.Rank >= 0 && m.Rank < m.Size)
}

// Hail answers the claim of another hub: it tells which hub answers.
type Hail struct {
	Name  []byte // random
	Began uint64 // ns since 1970
	Waits bool   // for ranks
	Pid   int
	Host  string
}

func (m *Hail) code(c *Coder) {
	c.blob(&m.Name, nonceLen)
	c.all(&m.Began, &m.Waits)
	c.short(&m.Pid)
	c.text(&m.Host)
}

// Refusal is the hub's last message to a rank that may not join, or to all when the group can never start.
type Refusal struct {
	Cause   Cause
	Rank    int   // with Dead and Cancelled; otherwise -1
	Missing []int // with Timeout
	Reason  string
}

// A Cause is why ranks may not join.
type Cause byte

const (
	Conflict  Cause = iota + 1 // a rank claimed twice, sizes that differ
	Timeout                    // ranks did not come
	Cancelled                  // a rank gave up waiting for another reason
	Dead                       // a rank died while joining
	Busy                       // try again: the last group has not ended
	TooLate                    // the others have begun without the rank
)

func (m *Refusal) code(c *Coder) {
	octet(c, &m.Cause)
	c.all(&m.Rank, &m.Missing, &m.Reason)
}

// Welcome says that the rank has its place and waits for the others.
type Welcome struct{ empty }

// Start says that all ranks are here.
type Start struct {
	Salt       [32]byte
	Hosts      []int // ranks in the process that serves the hub
	Head       int   // the rank that gets large results for this rank's machine; -1 if this rank gets them from the hub
	Takers     int   // number of ranks to which this rank, as a head, gives results
	Apart      bool  // some takers are in other processes
	Pulse      int   // a port at the hub's address that is open as long as its process lives; 0 if there is none
	Successors []RankAddr

	Here, There []int      // ranks on this rank's host and on the hub's, the lowest of many; nil if the host is one
	Witness     bool       // this rank is a witness for others
	Witnesses   []RankAddr // of other hosts, for this rank
}

// A RankAddr is a rank with a port that is open since the rank joined.
type RankAddr struct {
	Rank int
	Addr string
}

func (m *RankAddr) code(c *Coder) { c.all(&m.Rank, &m.Addr) }

func (m *Start) code(c *Coder) {
	at := func(c *Coder, h *RankAddr) { h.code(c) }
	c.fixed(m.Salt[:])
	c.all(&m.Hosts, &m.Head)
	c.short(&m.Takers)
	c.flag(&m.Apart)
	c.count(&m.Pulse, math.MaxUint16)
	list(c, &m.Successors, MaxSuccessors, at)
	c.all(&m.Here, &m.There, &m.Witness)
	list(c, &m.Witnesses, MaxWitnesses, at)
}

// GiveUp says that the rank stops waiting for the start.
type GiveUp struct {
	Timeout bool // its deadline passed; otherwise it was cancelled
	Waited  time.Duration
	Dead    []int  // if not empty, neither: these ranks will not come
	Reason  string // with Dead
}

func (m *GiveUp) code(c *Coder) { c.all(&m.Timeout, &m.Waited, &m.Dead, &m.Reason) }

// A Roster tells the ranks of a partial group who has come, before the start.
type Roster struct {
	Came  []int          // by rank in the group: the rank with which Meet was called, ascending
	Cards [][]byte       // by rank in the group: its card
	Away  map[int]string // by rank that is not here: why, "" if that is not known
}

func (m *Roster) code(c *Coder) {
	away := slices.Sorted(maps.Keys(m.Away))
	c.all(&m.Came)
	c.parts(&m.Cards)
	c.all(&away)
	if c.reading {
		m.Away = map[int]string{}
	}
	for _, rank := range away {
		why := m.Away[rank]
		if c.text(&why); c.reading {
			m.Away[rank] = why
		}
	}
	c.check(len(m.Cards) == len(m.Came) && len(m.Away) == len(away) && slices.IsSorted(away) && slices.IsSorted(m.Came))
}

// Ask is what a rank asks a witness of its group, and tells it.
type Ask struct {
	Home int  // the rank that stands for this rank's host
	Lost bool // the host has lost the hub
}

func (m *Ask) code(c *Coder) { c.all(&m.Home, &m.Lost) }

// A Statement is what a witness says of the hub, and which hosts have told it that they have lost the hub. Hosts are
// named by the rank that stands for them.
type Statement struct {
	Seen Sight
	Told []int
}

// A Sight is what a rank knows of the process that serves the hub.
type Sight byte

const (
	Unseen  Sight = iota // nothing
	Hears                // it answers, or its host does
	Missing              // it has answered nothing
)

func (m *Statement) code(c *Coder) {
	octet(c, &m.Seen)
	c.all(&m.Told)
}
