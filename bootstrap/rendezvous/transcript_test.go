package rendezvous

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/transcript"
)

var rewrite = flag.Bool("rewrite", false, "write the transcripts anew")

// A words reads a line of a transcript. The first fault is kept.
type words struct {
	list []string
	err  error
}

func (w *words) next() string {
	if len(w.list) == 0 {
		return ""
	}
	s := w.list[0]
	w.list = w.list[1:]
	return s
}

func (w *words) rest() string {
	s := strings.Join(w.list, " ")
	w.list = nil
	return s
}

// option takes the value of NAME=VALUE, or "yes" for NAME, from anywhere in the line.
func (w *words) option(name string) string {
	i := slices.IndexFunc(w.list, func(s string) bool { return s == name || strings.HasPrefix(s, name+"=") })
	if i < 0 {
		return ""
	}
	_, value, given := strings.Cut(w.list[i], "=")
	w.list = slices.Delete(w.list, i, i+1)
	if !given {
		return "yes"
	}
	return value
}

func (w *words) number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil && s != "" && w.err == nil {
		w.err = err
	}
	return n
}

func (w *words) duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil && s != "" && w.err == nil {
		w.err = err
	}
	return d
}

func (w *words) numbers(s string) (list []int) {
	for _, n := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) {
		list = append(list, w.number(n))
	}
	return list
}

// position reads FROM:LETTERS, one letter a collective, the first of them number FROM, and the options of a Position.
func (w *words) position() (p Position) {
	p.Waiting = w.option("waits") != ""
	p.Counts, p.Awaits = w.numbers(w.option("counts")), w.numbers(w.option("awaits"))
	switch needs := w.option("needs"); needs {
	case "":
	case "all":
		p.Needs = Everyone
	default:
		p.Needs = NeedOf(w.number(needs))
	}
	for _, m := range strings.FieldsFunc(w.option("messages"), func(r rune) bool { return r == ',' }) {
		peer, count, _ := strings.Cut(m, "x")
		p.Messages = append(p.Messages, Messages{Peer: w.number(peer), Count: uint64(w.number(count)), Call: [16]byte{'r'}})
	}
	s := &p.Stop
	s.At, s.Peer = uint64(w.number(w.option("at"))), -1
	if peer := w.option("peer"); peer != "" {
		s.Peer = w.number(peer)
	}
	s.Waited, s.Still = w.duration(w.option("waited")), w.duration(w.option("still"))
	from, letters, _ := strings.Cut(w.next(), ":")
	for i, c := range letters {
		p.Calls = append(p.Calls, Called{uint64(w.number(from) + i), [16]byte{byte(c)}})
	}
	s.Last = p.last()
	return p
}

// message reads a rank's message.
func (w *words) message() Message {
	switch verb := w.next(); verb {
	case "part":
		return &Part{Seq: uint64(w.number(w.next())), Data: []byte(w.rest())}
	case "long": // a part of so many bytes
		return &Part{Seq: uint64(w.number(w.next())), Data: make([]byte, w.number(w.next()))}
	case "resend":
		return &Resend{Held{uint64(w.number(w.next()))}}
	case "withdraw":
		return &Withdraw{uint64(w.number(w.next())), w.rest()}
	case "fail":
		f := &Fail{Culprits: w.numbers(w.option("of")), Silent: w.option("silent") != ""}
		f.Broken = w.option("broken") != "" || f.Silent
		f.Reason = w.rest()
		return f
	case "leave":
		l := &Leave{Stays: w.option("stays") != ""}
		l.Known.Known = len(w.list) > 0
		l.Position = w.position()
		return l
	case "parted":
		return &Parted{w.number(w.next())}
	case "there":
		known := len(w.list) > 0
		return &There{Known{known, w.position()}}
	case "inquire":
		return &Inquire{w.position()}
	case "late":
		return &Late{w.position()}
	case "regroup":
		return &Regroup{uint64(w.number(w.next())), w.duration(w.next())}
	case "knocked":
		k := &Knocked{Stage: uint64(w.number(w.next()))}
		for _, s := range w.list {
			k.Heard = append(k.Heard, s == "yes")
		}
		w.list = nil
		return k
	default:
		w.err = fmt.Errorf("no message %q", verb)
		return nil
	}
}

// event reads what happens: RANK and a message, or one of
//
//	RANK lost WHY, RANK unheard WHY
//	met NUMBER, unmet NUMBER WHY
//	acknowledged RANKS
//	reached STAGE RANK yes
func (w *words) event() Event {
	switch verb := w.next(); verb {
	case "met":
		return Met{Number: uint64(w.number(w.next())), ID: []byte("there")}
	case "unmet":
		return Met{Number: uint64(w.number(w.next())), Err: w.rest()}
	case "acknowledged":
		return Acknowledged{w.numbers(w.next())}
	case "reached":
		return Reached{uint64(w.number(w.next())), w.number(w.next()), w.next() == "yes"}
	default:
		rank := w.number(verb)
		if len(w.list) > 0 && (w.list[0] == "lost" || w.list[0] == "unheard") {
			if w.next() == "unheard" {
				return Unheard{rank, w.rest()}
			}
			return Lost{rank, w.rest()}
		}
		return Said{rank, w.message()}
	}
}

// config reads a line of what a group is: its size and options.
func (w *words) config() (c Config) {
	c.Size = w.number(w.next())
	c.Hosts, c.Heads = w.numbers(w.option("hosts")), w.numbers(w.option("heads"))
	if places := w.option("places"); places != "" {
		c.Land = Land{Places: w.numbers(places), Hub: w.number(w.option("hub")), Silence: "its host did not answer"}
		for r := range c.Size {
			c.Land.Addresses = append(c.Land.Addresses, fmt.Sprint("at", r))
		}
	}
	if homes := w.option("homes"); homes != "" {
		c.Homes = [][]string{strings.Split(homes, ""), make([]string, c.Size)}
	}
	if failed := w.option("failed"); failed != "" {
		c.Failed = Paths{{failed[:1], failed[1:]}: true}
	}
	return c
}

func show(a Action) string {
	switch a := a.(type) {
	case Tell:
		return fmt.Sprintf("tell %s: %s", Ranges(a.To), said(a.Message))
	case Begin:
		return fmt.Sprintf("begin %v %v", a.Timer, a.After)
	case End:
		return fmt.Sprintf("end %v", a.Timer)
	case Refuse:
		return fmt.Sprintf("refuse %d", a.Rank)
	case Meet:
		return strings.TrimSuffix(fmt.Sprintf("meet %d: %s, failed %v", a.Number, Ranges(a.Members), a.Failed),
			", failed map[]")
	case Miss:
		return fmt.Sprintf("miss %d of meeting %d: %s", a.Member, a.At.Number, a.Why)
	case Regrouping:
		if a.Members == nil {
			return "regrouping"
		}
		return fmt.Sprintf("regrouping %v", a.Members)
	case Announce:
		return "announce " + a.Failure.Error()
	case Look:
		return "look " + Ranges(a.Ranks)
	case Reach:
		return fmt.Sprintf("reach %s within %v, stage %d", Ranges(a.Ranks), a.Wait, a.Stage)
	}
	return fmt.Sprintf("%#v", a)
}

func said(m Message) string {
	switch m := m.(type) {
	case *Failed:
		s := "failed: " + m.Error()
		if len(m.Culprits) > 0 {
			s += "; culprits " + Ranges(m.Culprits)
		}
		if d := m.Disagree; d != nil && d.Counts != nil {
			s += fmt.Sprintf("; entry %d: %d and %d", d.Counts.Entry, d.Counts.A, d.Counts.B)
		}
		if l := m.Late; l != nil {
			s += fmt.Sprintf("; still %v, last #%d", l.Still, l.Last.Number)
		}
		return s
	case *Silent:
		return strings.TrimSpace("silent " + Ranges(m.Ranks))
	case *Gone:
		if m.Last == Unsaid {
			return fmt.Sprintf("rank %d has left at %d", m.Rank, m.Seq)
		}
		return fmt.Sprintf("rank %d has left at %d, after collective #%d", m.Rank, m.Seq, m.Last)
	case *Gathered:
		if len(m.Data[0]) > 100 {
			return fmt.Sprintf("gathered %d", m.Seq)
		}
		return fmt.Sprintf("gathered %d: %s", m.Seq, m.Data)
	case *Held:
		return fmt.Sprintf("held %d", m.Seq)
	case *Withdrawn:
		return fmt.Sprintf("withdrawn %d: rank %d without %s: %s", m.Seq, m.Rank, Ranges(m.Missing), m.Reason)
	case *Regrouped:
		return strings.TrimSpace(fmt.Sprintf("regrouped, round %d: %s %s%s", m.Round, Ranges(m.Members), m.ID, m.Reason))
	case *Parted:
		return fmt.Sprintf("parted %d", m.Stage)
	case *Knock:
		return strings.TrimSpace(fmt.Sprintf("knock %d %s", m.Stage, strings.Join(m.At, " ")))
	}
	return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", m), "*rendezvous."))
}

// A group is a machine with a clock and timers.
type group struct {
	*Machine
	now    time.Time
	timers map[Timer]time.Time
}

func newGroup(c Config) *group {
	return &group{New(c), time.Unix(1_000_000, 0), map[Timer]time.Time{}}
}

func (g *group) step(e Event) []Action {
	actions := slices.Clone(g.Step(g.now, e))
	for _, a := range actions {
		switch a := a.(type) {
		case Begin:
			g.timers[a.Timer] = g.now.Add(a.After)
		case End:
			delete(g.timers, a.Timer)
		}
	}
	return actions
}

// due is the timer that runs out first, until a time.
func (g *group) due(until time.Time) (first Timer, ok bool) {
	for t, at := range g.timers {
		if !at.After(until) && (!ok || at.Before(g.timers[first]) || at.Equal(g.timers[first]) &&
			(t.Of < first.Of || t.Of == first.Of && t.Rank < first.Rank)) {
			first, ok = t, true
		}
	}
	return first, ok
}

// fire runs a timer out.
func (g *group) fire(t Timer) []Action {
	g.now = g.timers[t]
	delete(g.timers, t)
	return g.step(Fired{t})
}

// play adds what a line of a transcript does.
func (g *group) play(line string, out *strings.Builder) error {
	w := &words{list: strings.Fields(line)}
	print := func(actions []Action) {
		for _, a := range actions {
			fmt.Fprintln(out, " ", show(a))
		}
	}
	if w.list[0] == "wait" {
		until := g.now.Add(w.duration(w.list[1]))
		for t, ok := g.due(until); ok; t, ok = g.due(until) {
			actions := g.fire(t)
			fmt.Fprintf(out, " fired %v\n", t)
			print(actions)
		}
		g.now = until
		return w.err
	}
	e := w.event()
	if w.err == nil && len(w.list) > 0 {
		return fmt.Errorf("%q is left of %q", w.rest(), line)
	} else if w.err != nil {
		return w.err
	}
	print(g.step(e))
	return nil
}

// TestTranscripts plays the events of testdata to a Machine and compares what it says to do. The line behind "== title"
// says which group begins. "go test ./bootstrap/rendezvous -rewrite" writes them anew.
func TestTranscripts(t *testing.T) {
	transcript.Play(t, *rewrite, func(t *testing.T) func(string) string {
		var g *group
		return func(line string) string {
			var answer strings.Builder
			switch {
			case strings.HasPrefix(line, "=="):
			case strings.HasPrefix(line, "group "):
				w := &words{list: strings.Fields(line)[1:]}
				g = newGroup(w.config())
				require.NoError(t, w.err)
			default:
				require.NoError(t, g.play(line, &answer), line)
			}
			return answer.String()
		}
	})
}
