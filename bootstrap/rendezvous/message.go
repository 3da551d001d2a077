package rendezvous

import (
	"math"
	"time"

	"github.com/ringo-go/ringo/trace/judge"
)

// Part is one rank's part of its Seq-th AllGather.
type Part struct {
	Seq  uint64
	Data []byte
}

func (m *Part) code(c *Coder) {
	c.all(&m.Seq)
	c.blob(&m.Data, MaxBlob)
}

// Gathered is everybody's part, by rank.
type Gathered struct {
	Seq  uint64
	Data [][]byte
}

func (m *Gathered) code(c *Coder) {
	c.all(&m.Seq)
	c.parts(&m.Data)
}

// Held says that the head of this rank's machine has the result of the Seq-th AllGather.
type Held struct{ Seq uint64 }

func (m *Held) code(c *Coder) { c.all(&m.Seq) }

// Resend says that the rank could not get the result from its head.
type Resend struct{ Held }

// Withdraw says that the rank gives up its Seq-th AllGather, whether it has come to it or not.
type Withdraw struct {
	Seq    uint64
	Reason string
}

func (m *Withdraw) code(c *Coder) { c.all(&m.Seq, &m.Reason) }

// Withdrawn says that the Seq-th AllGather has failed for all, because Rank gave it up.
type Withdrawn struct {
	Seq     uint64
	Rank    int
	Missing []int // ranks that had not come
	Reason  string
}

func (m *Withdrawn) code(c *Coder) { c.all(&m.Seq, &m.Rank, &m.Missing, &m.Reason) }

// Fail says that this rank cannot go on, for the Reason.
type Fail struct {
	Reason   string
	Culprits []int // none: the rank itself
	Broken   bool  // its connection with the other one of two Culprits broke, with the hub if it is the only one
	Silent   bool  // likewise, because that one's host answered nothing
}

func (m *Fail) code(c *Coder) {
	c.all(&m.Reason, &m.Culprits, &m.Broken, &m.Silent)
	n := len(m.Culprits)
	c.check(!m.Broken || n == 1 || n == 2)
}

// Failed tells of another rank's failure, or of a failure that the hub has found.
type Failed struct{ Failure }

func (m *Failed) code(c *Coder) {
	c.all(&m.Rank, &m.Died, &m.Reason, &m.Culprits, &m.Candidates, &m.Path, &m.Left, &m.Number)
	optional(c, &m.Disagree, func(c *Coder, d *Disagreement) {
		c.all(&d.Number, &d.RankA, &d.RankB, &d.CallA, &d.CallB)
		optional(c, &d.Counts, func(c *Coder, d *Differ) {
			c.rank(&d.Entry)
			long(c, &d.A)
			long(c, &d.B)
		})
	})
	optional(c, &m.Late, func(c *Coder, l *Lateness) {
		octet(c, &l.Reason)
		c.all(&l.Waiting, &l.Waited, &l.Still, &l.Call, &l.Last)
		c.check(m.blames())
	})
}

// blames reports whether there are as many culprits as the text of the Lateness names.
func (m *Failed) blames() bool {
	switch l := m.Late; {
	case l.Reason >= judge.Reasons:
		return false
	case l.Reason == judge.Link:
		return len(m.Culprits) >= 2
	case l.Reason == judge.Slow, l.Reason == judge.Silent && len(m.Candidates) > 0:
		return len(m.Culprits) == 0 && l.Last == (Called{})
	default:
		return len(m.Culprits) > 0 || l.Reason == judge.Unknown && l.Last == (Called{})
	}
}

// Inquire says that this rank has waited long, at this Position.
type Inquire struct{ Position }

func (m *Inquire) code(c *Coder) {
	c.all(&m.Awaits)
	within(c, &m.Needs, 0, MaxRanks+int64(ofRank))
	list(c, &m.Messages, maxMessages, func(c *Coder, s *Messages) { c.all(&s.Peer, &s.Count, &s.Call) })
	m.Position.code(c)
}

// Where asks a rank for its position.
type Where struct{ empty }

// There answers Where.
type There struct{ Known }

// Silent answers Inquire: these ranks were asked for their positions a second ago or more, and have answered nothing
// since.
type Silent struct{ Ranks []int }

func (m *Silent) code(c *Coder) { c.all(&m.Ranks) }

// Late says that an operation of this rank has run out of time, or was stopped because one of another rank has;
// Position.Stop is where.
type Late struct{ Position }

func (m *Late) code(c *Coder) {
	s := &m.Stop
	c.all(&s.Last, &s.At, &s.Peer, &s.Sending, &s.Unsure)
	long(c, &s.Round)
	long(c, &s.Step)
	c.all(&s.Waited, &s.Still)
	c.check(s.Round >= 0 && s.Step >= 0)
	m.Position.code(c)
}

// Halt makes a rank stop its operation, and answer with Late.
type Halt struct{ empty }

func (m *Called) code(c *Coder) { c.all(&m.Number, &m.Call) }

// code codes the position, without Stop, Awaits, Needs and Messages, which Late and Inquire add.
func (p *Position) code(c *Coder) {
	c.flag(&p.Waiting)
	list(c, &p.Calls, maxCalls, func(c *Coder, m *Called) { m.code(c) })
	list(c, &p.Counts, maxCounts, long[int])
}

// Append encodes the position, without Stop, Awaits, Needs and Messages.
func (p *Position) Append(b []byte) []byte { return Append(b, p) }

// Parse decodes what Append wrote.
func (p *Position) Parse(b []byte) error { return Parse(b, p) }

// Leave is the orderly goodbye, and the rank's position. A rank that stays waits for the others to part.
type Leave struct {
	Stays bool
	Known
}

func (m *Leave) code(c *Coder) { c.all(&m.Stays, &m.Known) }

// Parted says that a rank that stays has come to this stage of parting; as the hub's message, that all ranks have.
type Parted struct{ Stage int }

func (m *Parted) code(c *Coder) {
	c.rank(&m.Stage)
	c.check(m.Stage < numStages)
}

// Known is a position, if the rank can tell it.
type Known struct {
	Known bool
	Position
}

func (m *Known) code(c *Coder) { c.all(&m.Known, &m.Position) }

// Gone tells of another rank's goodbye. That rank took part in the AllGathers before Seq and in no later one, and in
// collectives up to number Last (Unsaid: not known).
type Gone struct {
	Rank int
	Seq  uint64
	Last uint64
}

// Unsaid is the Last of a rank that did not tell it.
const Unsaid = math.MaxUint64

func (m *Gone) code(c *Coder) { c.all(&m.Rank, &m.Seq, &m.Last) }

// Bye answers Leave: the hub will not take the end of the connection for a death.
type Bye struct{ empty }

// Regroup says that this rank wants to go on after a failure, and waits for the others for Wait.
type Regroup struct {
	Round uint64 // 0: the rank waits no more
	Wait  time.Duration
}

func (m *Regroup) code(c *Coder) {
	c.all(&m.Round, &m.Wait)
	c.check(m.Wait >= 0)
}

// Regrouped tells which ranks go on, and where they meet. It is secret, as it holds an ID.
type Regrouped struct {
	Round   uint64
	Members []int
	ID      []byte
	Reason  string // why they cannot meet, or why this rank is left out
	Here    any    // see Met; it does not travel
}

func (m *Regrouped) code(c *Coder) {
	c.all(&m.Round, &m.Members)
	c.blob(&m.ID, idLen)
	c.text(&m.Reason)
}

// idLen is the most bytes of an ID.
const idLen = 128

// Knock asks a rank to answer, and whether the hosts of Targets answer it.
type Knock struct {
	Stage   uint64
	Targets []int
	At      []string // an address of each, "" if there is none
}

func (m *Knock) code(c *Coder) {
	c.all(&m.Stage, &m.Targets)
	entries(c, &m.At, len(m.Targets), (*Coder).text)
}

// Knocked answers Knock.
type Knocked struct {
	Stage uint64
	Heard []bool // by target
}

func (m *Knocked) code(c *Coder) {
	c.all(&m.Stage)
	list(c, &m.Heard, len(c.b), (*Coder).flag)
}

// empty is the body of messages without content.
type empty struct{}

func (empty) code(*Coder) {}
