package bootstrap

import (
	"math"
	"time"

	"github.com/ringo-go/ringo/internal/auth"
	"github.com/ringo-go/ringo/trace/judge"
)

// claim identifies the rank. It is part of the rank's proof in the handshake, and no message
// of its own.
type claim struct {
	Rank, Size int
	Pid        int
	Hosts      bool   // the hub lives in this rank's process
	Host       string // name of the rank's machine, for messages
	Machine    string // names the rank's machine, see machineID; empty if that is not known
	Partial    bool   // the group may begin without ranks that do not come; the same for all ranks
	Card       []byte // with Partial: for the Roster
	Port       int    // of the rank, where others meet if the rank is an heir; 0 if it has none
	Witness    int    // a port of the rank, where others ask what it hears; 0 if it has none
	Rival      []byte // not empty: no rank comes, but the hub of that name asks which hub answers
}

func (m *claim) Append(b []byte) []byte {
	b = appendU32(appendU32(appendU32(b, m.Rank), m.Size), m.Pid)
	b = appendText(appendText(appendFlag(b, m.Hosts), m.Host), m.Machine)
	b = appendU32(appendU32(appendBlob(appendFlag(b, m.Partial), m.Card), m.Port), m.Witness)
	return appendBlob(b, m.Rival)
}

func (m *claim) Parse(b []byte) error {
	f := fields{b: b}
	m.Rank, m.Size, m.Pid = f.rank(), int(f.u32()), int(f.u32())
	m.Hosts, m.Host, m.Machine = f.flag(), f.text(), f.text()
	m.Partial, m.Card, m.Port, m.Witness = f.flag(), f.blob(MaxCard), f.count(math.MaxUint16), f.count(math.MaxUint16)
	m.Rival = f.blob(auth.NonceLen)
	if m.Size < 1 || m.Size > maxRanks || m.Rank < 0 || m.Rank >= m.Size {
		f.bad = true
	}
	return f.end()
}

// refusal is the hub's last message to a rank that may not join, or to all when the group
// can never start.
type refusal struct {
	Cause   cause
	Rank    int   // with causeDied and causeCancelled; otherwise -1
	Missing []int // with causeTimeout
	Reason  string
}

type cause byte

const (
	causeConflict  cause = iota + 1 // a rank claimed twice, sizes that differ
	causeTimeout                    // ranks did not come
	causeCancelled                  // a rank gave up waiting for another reason
	causeDied                       // a rank died while joining
	causeBusy                       // try again: the last group has not ended
	causeLate                       // the others have begun without the rank
)

func (*refusal) kind() kind { return kRefusal }

func (m *refusal) Append(b []byte) []byte {
	b = appendU32(append(b, byte(m.Cause)), m.Rank)
	return appendText(appendRanks(b, m.Missing), m.Reason)
}

func (m *refusal) Parse(b []byte) error {
	f := fields{b: b}
	m.Cause, m.Rank, m.Missing, m.Reason = cause(f.u8()), f.rank(), f.ranks(), f.text()
	return f.end()
}

// welcome: the rank has its seat and waits for the others.
type welcome struct{ empty }

func (*welcome) kind() kind { return kWelcome }

// start: all ranks are here.
type start struct {
	Salt   salt
	Hosts  []int // ranks in the process that serves the hub
	Head   int   // the rank that gets large results for this rank's machine; -1 if this rank gets them from the hub
	Takers int   // number of ranks to which this rank, as a head, gives results
	Apart  bool  // some takers are in other processes
	Pulse  int   // a port at the hub's address that is open as long as its process lives; 0 if there is none
	Heirs  []heir

	Here, There []int  // ranks on this rank's host and on the hub's, the lowest maxNamed; nil if the host is one
	Witness     bool   // this rank is a witness for others
	Witnesses   []heir // of other hosts, for this rank
}

func (*start) kind() kind { return kStart }

func (m *start) Append(b []byte) []byte {
	b = appendU32(appendU32(appendRanks(append(b, m.Salt[:]...), m.Hosts), m.Head), m.Takers)
	b = appendU32(appendU32(appendFlag(b, m.Apart), m.Pulse), len(m.Heirs))
	b = appendHeirs(b, m.Heirs)
	b = appendFlag(appendRanks(appendRanks(b, m.Here), m.There), m.Witness)
	return appendHeirs(appendU32(b, len(m.Witnesses)), m.Witnesses)
}

func appendHeirs(b []byte, all []heir) []byte {
	for _, h := range all {
		b = appendText(appendU32(b, h.Rank), h.Addr)
	}
	return b
}

func (m *start) Parse(b []byte) error {
	f := fields{b: b}
	copy(m.Salt[:], f.take(len(m.Salt)))
	m.Hosts, m.Head, m.Takers, m.Apart, m.Pulse = f.ranks(), f.rank(), int(f.u32()), f.flag(), f.count(math.MaxUint16)
	for range f.count(maxHeirs) {
		m.Heirs = append(m.Heirs, heir{f.rank(), f.text()})
	}
	m.Here, m.There, m.Witness = f.ranks(), f.ranks(), f.flag()
	for range f.count(maxWitnesses) {
		m.Witnesses = append(m.Witnesses, heir{f.rank(), f.text()})
	}
	return f.end()
}

// giveUp: the rank stops waiting for the start.
type giveUp struct {
	Timeout bool // its deadline passed; otherwise it was cancelled
	Waited  time.Duration
	Dead    []int  // if not empty, neither: these ranks will not come
	Reason  string // with Dead
}

func (*giveUp) kind() kind { return kGiveUp }

func (m *giveUp) Append(b []byte) []byte {
	return appendText(appendRanks(appendU64(appendFlag(b, m.Timeout), uint64(m.Waited)), m.Dead), m.Reason)
}

func (m *giveUp) Parse(b []byte) error {
	f := fields{b: b}
	m.Timeout, m.Waited, m.Dead, m.Reason = f.flag(), time.Duration(f.u64()), f.ranks(), f.text()
	return f.end()
}

// part is one rank's part of its Seq-th AllGather.
type part struct {
	Seq  uint64
	Data []byte
}

func (*part) kind() kind { return kPart }

func (m *part) Append(b []byte) []byte { return appendBlob(appendU64(b, m.Seq), m.Data) }

func (m *part) Parse(b []byte) error {
	f := fields{b: b}
	m.Seq, m.Data = f.u64(), f.blob(maxBlob)
	return f.end()
}

// gathered is everybody's part, by rank.
type gathered struct {
	Seq  uint64
	Data [][]byte
}

func (*gathered) kind() kind { return kGathered }

func (m *gathered) Append(b []byte) []byte { return appendParts(appendU64(b, m.Seq), m.Data) }

func (m *gathered) Parse(b []byte) error {
	f := fields{b: b}
	m.Seq, m.Data = f.u64(), f.parts()
	return f.end()
}

// held: the head of this rank's machine has the result of the Seq-th AllGather.
type held struct{ Seq uint64 }

func (*held) kind() kind { return kHeld }

func (m *held) Append(b []byte) []byte { return appendU64(b, m.Seq) }

func (m *held) Parse(b []byte) error {
	f := fields{b: b}
	m.Seq = f.u64()
	return f.end()
}

// resend: the rank could not get the result from its head.
type resend struct{ held }

func (*resend) kind() kind { return kResend }

// withdraw: the rank gives up its Seq-th AllGather, whether it has come to it or not.
type withdraw struct {
	Seq    uint64
	Reason string
}

func (*withdraw) kind() kind { return kWithdraw }

func (m *withdraw) Append(b []byte) []byte { return appendText(appendU64(b, m.Seq), m.Reason) }

func (m *withdraw) Parse(b []byte) error {
	f := fields{b: b}
	m.Seq, m.Reason = f.u64(), f.text()
	return f.end()
}

// withdrawn: the Seq-th AllGather has failed for all, because Rank gave it up.
type withdrawn struct {
	Seq     uint64
	Rank    int
	Missing []int // ranks that had not come
	Reason  string
}

func (*withdrawn) kind() kind { return kWithdrawn }

func (m *withdrawn) Append(b []byte) []byte {
	return appendText(appendRanks(appendU32(appendU64(b, m.Seq), m.Rank), m.Missing), m.Reason)
}

func (m *withdrawn) Parse(b []byte) error {
	f := fields{b: b}
	m.Seq, m.Rank, m.Missing, m.Reason = f.u64(), f.rank(), f.ranks(), f.text()
	return f.end()
}

// fail: this rank cannot go on, for the Reason.
type fail struct {
	Reason   string
	Culprits []int // none: the rank itself
	Broken   bool  // its connection with the other one of two Culprits broke, with the hub if it is the only one
	Silent   bool  // likewise, because that one's host answered nothing
}

func (*fail) kind() kind { return kFail }

func (m *fail) Append(b []byte) []byte {
	return appendFlag(appendFlag(appendRanks(appendText(b, m.Reason), m.Culprits), m.Broken), m.Silent)
}

func (m *fail) Parse(b []byte) error {
	f := fields{b: b}
	m.Reason, m.Culprits, m.Broken, m.Silent = f.text(), f.ranks(), f.flag(), f.flag()
	if n := len(m.Culprits); m.Broken && n != 1 && n != 2 {
		return errMalformed
	}
	return f.end()
}

// failed tells of another rank's failure, or of a failure that the hub has found.
type failed struct{ Failure }

func (*failed) kind() kind { return kFailed }

func (m *failed) Append(b []byte) []byte {
	b = appendText(appendFlag(appendU32(b, m.Rank), m.Died), m.Reason)
	b = appendFlag(appendRanks(appendRanks(b, m.Culprits), m.Candidates), m.Path)
	b = appendU64(appendFlag(b, m.Left), m.Number)
	b = appendFlag(b, m.Disagree != nil)
	if d := m.Disagree; d != nil {
		b = appendU32(appendU32(appendU64(b, d.Number), d.RankA), d.RankB)
		b = append(append(b, d.CallA[:]...), d.CallB[:]...)
		b = appendFlag(b, d.Counts != nil)
		if c := d.Counts; c != nil {
			b = appendU64(appendU64(appendU32(b, c.Entry), uint64(c.A)), uint64(c.B))
		}
	}
	b = appendFlag(b, m.Late != nil)
	if l := m.Late; l != nil {
		b = appendRanks(append(b, byte(l.Reason)), l.Waiting)
		b = l.Last.append(l.Call.append(appendU64(appendU64(b, uint64(l.Waited)), uint64(l.Still))))
	}
	return b
}

// blames reports whether there are as many culprits as the text of the Lateness names.
func (m *failed) blames() bool {
	switch l := m.Late; {
	case l.Reason >= judge.Reasons:
		return false
	case l.Reason == judge.Link:
		return len(m.Culprits) >= 2
	case l.Reason == judge.Slow:
		return len(m.Culprits) == 0 && l.Last == (Called{})
	case l.Reason == judge.Silent && len(m.Candidates) > 0:
		return len(m.Culprits) == 0 && l.Last == (Called{})
	default:
		return len(m.Culprits) > 0 || l.Reason == judge.Unknown && l.Last == (Called{})
	}
}

func (m *failed) Parse(b []byte) error {
	f := fields{b: b}
	m.Rank, m.Died, m.Reason = f.rank(), f.flag(), f.text()
	m.Culprits, m.Candidates, m.Path, m.Left, m.Number = f.ranks(), f.ranks(), f.flag(), f.flag(), f.u64()
	if f.flag() {
		d := &Disagreement{Number: f.u64(), RankA: f.rank(), RankB: f.rank()}
		copy(d.CallA[:], f.take(len(d.CallA)))
		copy(d.CallB[:], f.take(len(d.CallB)))
		if f.flag() {
			d.Counts = &Differ{f.rank(), int(f.u64()), int(f.u64())}
		}
		m.Disagree = d
	}
	if f.flag() {
		m.Late = &Lateness{Reason: judge.Reason(f.u8()), Waiting: f.ranks(), Waited: time.Duration(f.u64()),
			Still: time.Duration(f.u64()), Call: f.called(), Last: f.called()}
		if !m.blames() {
			return errMalformed
		}
	}
	return f.end()
}

// inquire: this rank has waited long, at this Position.
type inquire struct{ Position }

func (*inquire) kind() kind { return kInquire }

func (m *inquire) Append(b []byte) []byte {
	b = appendU32(appendU32(appendRanks(b, m.Awaits), int(m.Needs)), len(m.Messages))
	for _, s := range m.Messages {
		b = append(appendU64(appendU32(b, s.Peer), s.Count), s.Call[:]...)
	}
	return m.Position.Append(b)
}

func (m *inquire) Parse(b []byte) error {
	f := fields{b: b}
	m.Awaits, m.Needs = f.ranks(), Need(f.count(maxRanks+int(ofRank)))
	for range f.count(maxMessages) {
		s := Messages{Peer: f.rank(), Count: f.u64()}
		copy(s.Call[:], f.take(len(s.Call)))
		m.Messages = append(m.Messages, s)
	}
	if f.bad {
		return errMalformed
	}
	return m.Position.Parse(f.b)
}

// where asks a rank for its position.
type where struct{ empty }

func (*where) kind() kind { return kWhere }

// position answers where.
type position struct{ known }

func (*position) kind() kind { return kPosition }

// silent answers inquire: these ranks were asked for their positions a second ago
// or more, and have answered nothing since.
type silent struct{ Ranks []int }

func (*silent) kind() kind { return kSilent }

func (m *silent) Append(b []byte) []byte { return appendRanks(b, m.Ranks) }

func (m *silent) Parse(b []byte) error {
	f := fields{b: b}
	m.Ranks = f.ranks()
	return f.end()
}

// late: an operation of this rank has run out of time, or was stopped because one of another
// rank has; Position.Stop is where.
type late struct{ Position }

func (*late) kind() kind { return kLate }

func (m *late) Append(b []byte) []byte {
	s := &m.Stop
	b = appendFlag(appendFlag(appendU32(appendU64(appendU64(b, s.Last), s.At), s.Peer), s.Sending), s.Unsure)
	b = appendU64(appendU64(appendU64(b, uint64(s.Round)), uint64(s.Step)), uint64(s.Waited))
	b = appendU64(b, uint64(s.Still))
	return m.Position.Append(b)
}

func (m *late) Parse(b []byte) error {
	f := fields{b: b}
	s := Stopped{Last: f.u64(), At: f.u64(), Peer: f.rank(), Sending: f.flag(), Unsure: f.flag(), Round: int(f.u64()),
		Step: int(f.u64()), Waited: time.Duration(f.u64()), Still: time.Duration(f.u64())}
	if f.bad || s.Round < 0 || s.Step < 0 {
		return errMalformed
	}
	m.Stop = s
	return m.Position.Parse(f.b)
}

// halt makes a rank stop its operation, and answer with late.
type halt struct{ empty }

func (*halt) kind() kind { return kHalt }

func (c Called) append(b []byte) []byte { return append(appendU64(b, c.Number), c.Call[:]...) }

func (f *fields) called() (c Called) {
	c.Number = f.u64()
	copy(c.Call[:], f.take(len(c.Call)))
	return c
}

// Append encodes the position, without Stop, Awaits, Needs and Messages, which late and inquire add.
func (m *Position) Append(b []byte) []byte {
	b = appendU32(appendFlag(b, m.Waiting), len(m.Calls))
	for _, c := range m.Calls {
		b = c.append(b)
	}
	b = appendU32(b, len(m.Counts))
	for _, n := range m.Counts {
		b = appendU64(b, uint64(n))
	}
	return b
}

// Parse decodes what Append wrote.
func (m *Position) Parse(b []byte) error {
	f := fields{b: b}
	m.Waiting = f.flag()
	n := f.count(maxCalls)
	for range n {
		m.Calls = append(m.Calls, f.called())
	}
	n = f.count(maxCounts)
	for range n {
		m.Counts = append(m.Counts, int(f.u64()))
	}
	return f.end()
}

// leave: the orderly goodbye, and the rank's position. A rank that stays waits for the others to part.
type leave struct {
	Stays bool
	known
}

func (*leave) kind() kind { return kLeave }

func (m *leave) Append(b []byte) []byte { return m.known.Append(appendFlag(b, m.Stays)) }

func (m *leave) Parse(b []byte) error {
	f := fields{b: b}
	m.Stays = f.flag()
	if f.bad {
		return errMalformed
	}
	return m.known.Parse(f.b)
}

// parted: a rank that stays has come to this stage of parting; as the hub's message, all ranks have.
type parted struct{ Stage int }

func (*parted) kind() kind { return kParted }

func (m *parted) Append(b []byte) []byte { return appendU32(b, m.Stage) }

func (m *parted) Parse(b []byte) error {
	f := fields{b: b}
	if m.Stage = f.rank(); m.Stage >= stages {
		return errMalformed
	}
	return f.end()
}

// known is a position, if the rank can tell it.
type known struct {
	Known bool
	Position
}

func (m *known) Append(b []byte) []byte { return m.Position.Append(appendFlag(b, m.Known)) }

func (m *known) Parse(b []byte) error {
	f := fields{b: b}
	m.Known = f.flag()
	if f.bad {
		return errMalformed
	}
	return m.Position.Parse(f.b)
}

// left tells of another rank's goodbye. That rank took part in the AllGathers before
// Seq and in no later one, and in collectives up to number Last (unsaid: not known).
type left struct {
	Rank int
	Seq  uint64
	Last uint64
}

const unsaid = math.MaxUint64

func (*left) kind() kind { return kLeft }

func (m *left) Append(b []byte) []byte {
	return appendU64(appendU64(appendU32(b, m.Rank), m.Seq), m.Last)
}

func (m *left) Parse(b []byte) error {
	f := fields{b: b}
	m.Rank, m.Seq, m.Last = f.rank(), f.u64(), f.u64()
	return f.end()
}

// bye answers leave: the hub will not take the end of the connection for a
// death.
type bye struct{ empty }

func (*bye) kind() kind { return kBye }

// empty is the body of messages without content.
type empty struct{}

func (empty) Append(b []byte) []byte { return b }

func (empty) Parse(b []byte) error {
	if len(b) != 0 {
		return errMalformed
	}
	return nil
}
