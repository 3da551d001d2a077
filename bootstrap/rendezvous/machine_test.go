package rendezvous

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/tier"
)

// A client is a rank that keeps the protocol.
type client struct {
	rank  int
	next  uint64 // AllGathers that it has come to
	waits bool   // in the last of them
	stops uint64 // no AllGather from this one on can complete, for a rank has left
	up    []Message
	round uint64 // of a Regroup that has no answer
	fails bool
	told  bool // of a failure
	left  bool
	stays bool
	dead  bool
	cut   bool // its connection has ended in silence
}

// A play is a group of clients, in which a seed decides what happens.
type play struct {
	*group
	r        *rand.Rand
	clients  []*client
	answers  []Event        // that the machine waits for
	gathered map[uint64]int // by AllGather: 1 it has completed, 2 it was given up
	failure  *Failure
	log      []string
}

func newPlay(seed uint64) *play {
	p := &play{r: rand.New(rand.NewPCG(seed, 1)), gathered: map[uint64]int{}}
	c := Config{Size: 2 + p.r.IntN(5)}
	if p.r.IntN(2) == 0 {
		c.Hosts = []int{0}
	}
	if p.r.IntN(2) == 0 {
		c.Land.Silence = "silence"
		for rank := range c.Size {
			c.Land.Places = append(c.Land.Places, p.r.IntN(3))
			c.Land.Addresses = append(c.Land.Addresses, fmt.Sprint("at", rank))
		}
		c.Land.Hub = c.Land.Places[0]
	}
	for rank := range c.Size {
		p.clients = append(p.clients, &client{rank: rank, stops: math.MaxUint64})
	}
	p.group = newGroup(c)
	return p
}

// feed gives the machine an event, and does what it says.
func (p *play) feed(t *testing.T, e Event, actions []Action) {
	if e != nil {
		actions = p.step(e)
	}
	if s, ok := e.(Said); ok {
		p.log = append(p.log, fmt.Sprintf("%d: %T %+v", s.Rank, s.Message, s.Message))
	} else if e != nil {
		p.log = append(p.log, fmt.Sprintf("%T%+v", e, e))
	}
	for _, a := range actions {
		p.log = append(p.log, "  "+show(a))
		switch a := a.(type) {
		case Tell:
			for _, rank := range a.To {
				p.hear(t, p.clients[rank], a.Message)
			}
		case Refuse:
			require.Fail(t, "a rank that keeps the protocol is refused")
		case Announce:
			require.Nil(t, p.failure, "a second first failure")
			p.failure = &a.Failure
		case Meet:
			require.Greater(t, len(a.Members), 1)
			met := Met{Number: a.Number, ID: []byte("id")}
			if p.r.IntN(4) == 0 {
				met = Met{Number: a.Number, Err: "no address"}
			}
			p.answers = append(p.answers, met)
		case Look:
			p.answers = append(p.answers, Acknowledged{a.Ranks[:p.r.IntN(len(a.Ranks)+1)]})
		case Reach:
			for _, rank := range a.Ranks {
				p.answers = append(p.answers, Reached{a.Stage, rank, p.r.IntN(2) == 0})
			}
		}
	}
}

// hear is a client that gets a message.
func (p *play) hear(t *testing.T, c *client, m Message) {
	if c.dead {
		_, fails := m.(*Failed)
		require.True(t, fails && c.cut, "%T for a rank that has died", m)
	}
	switch m := m.(type) {
	case *Gathered:
		require.NotEqual(t, 2, p.gathered[m.Seq], "AllGather %d was given up", m.Seq)
		p.gathered[m.Seq] = 1
		require.Equal(t, c.next-1, m.Seq)
		c.waits = false
	case *Withdrawn:
		require.NotEqual(t, 1, p.gathered[m.Seq], "AllGather %d has completed", m.Seq)
		p.gathered[m.Seq] = 2
		if c.next == m.Seq+1 {
			c.waits = false
		}
	case *Failed:
		require.False(t, c.told, "two failures")
		require.True(t, p.own(c) || fmt.Sprint(*p.failure) == fmt.Sprint(m.Failure), "another failure than the first")
		c.told, c.waits = true, false
	case *Gone:
		c.stops = min(c.stops, m.Seq)
		c.waits = c.waits && c.next <= m.Seq
	case *Where:
		c.say(&There{})
	case *Knock:
		c.say(&Knocked{Stage: m.Stage, Heard: make([]bool, len(m.Targets))})
	case *Halt:
		c.say(&Late{Position{Stop: Stopped{At: 1, Peer: p.r.IntN(len(p.clients))}}})
	case *Regrouped:
		if m.Round == c.round {
			c.round = 0
		}
	case *Parted:
		require.True(t, c.stays)
	case *Bye, *Silent:
	default:
		require.Fail(t, "no rank expects that", "%T", m)
	}
}

// own reports whether the first failure is that of a client alone, which may hear of the next one.
func (p *play) own(c *client) bool {
	return p.failure.Rank == c.rank && slices.Equal(p.failure.Culprits, []int{c.rank})
}

func (c *client) say(m Message) {
	if !c.left && !c.dead {
		c.up = append(c.up, m)
	}
}

// act has a client do something of its own.
func (p *play) act(t *testing.T, c *client) {
	if c.dead || c.left {
		if c.left && !c.dead && len(c.up) == 0 {
			c.dead = true
			p.feed(t, Lost{c.rank, "it has closed"}, nil)
		}
		return
	}
	switch other := (c.rank + 1 + p.r.IntN(len(p.clients)-1)) % len(p.clients); p.r.IntN(24) {
	case 0:
		c.stays = p.r.IntN(2) == 0
		c.say(&Leave{Stays: c.stays, Known: Known{p.r.IntN(2) == 0, p.position()}})
		c.left, c.waits, c.round = true, false, 0
	case 1:
		c.dead, c.up, c.round = true, nil, 0
		p.feed(t, Lost{c.rank, "killed"}, nil)
	case 2:
		c.dead, c.cut, c.up, c.round = true, true, nil, 0
		p.feed(t, Unheard{c.rank, "silent"}, nil)
	case 3:
		if !c.fails {
			c.fails = true
			c.say([]*Fail{{Reason: "no disk"}, {Reason: "reset", Culprits: []int{other}},
				{Reason: "reset", Culprits: []int{min(c.rank, other), max(c.rank, other)}, Broken: true, Silent: p.r.IntN(2) == 0},
				{Reason: "no hub", Culprits: []int{c.rank}, Broken: true, Silent: true}}[p.r.IntN(4)])
		}
	case 4, 5:
		inquire := &Inquire{p.position()}
		inquire.Waiting, inquire.Awaits = true, []int{other}
		c.say(inquire)
	case 6:
		c.say(&Late{Position{Stop: Stopped{At: 1, Peer: other}}})
	case 7, 8:
		if c.told || c.fails {
			c.round++
			c.say(&Regroup{c.round, time.Duration(1+p.r.IntN(60)) * time.Second})
		}
	case 9:
		if c.round > 0 {
			c.round = 0
			c.say(&Regroup{})
		}
	case 10:
		if c.waits {
			c.say(&Withdraw{c.next - 1, "late"})
		}
	default:
		if !c.waits && !c.told && c.next < c.stops {
			c.waits = p.gathered[c.next] != 2 // else it was told before it came
			c.next++
			c.say(&Part{c.next - 1, []byte{byte(c.rank)}})
		}
	}
}

// position is where a rank may be: mostly ranks agree.
func (p *play) position() Position {
	call := [16]byte{}
	if p.r.IntN(20) == 0 {
		call[0] = 1
	}
	return Position{Calls: []Called{{uint64(1 + p.r.IntN(3)), call}}}
}

// deliver hands the machine what is under way, or lets time pass. It reports whether there was anything.
func (p *play) deliver(t *testing.T) bool {
	var ready []*client
	for _, c := range p.clients {
		if len(c.up) > 0 {
			ready = append(ready, c)
		}
	}
	switch n := len(ready) + len(p.answers); {
	case n > 0:
		if i := p.r.IntN(n); i < len(ready) {
			c := ready[i]
			m := c.up[0]
			c.up = c.up[1:]
			p.feed(t, Said{c.rank, m}, nil)
		} else {
			i -= len(ready)
			e := p.answers[i]
			p.answers = slices.Delete(p.answers, i, i+1)
			p.feed(t, e, nil)
		}
		return true
	case len(p.timers) > 0:
		timer, _ := p.due(p.now.Add(time.Hour))
		actions := p.fire(timer)
		p.log = append(p.log, "fired "+timer.String())
		p.feed(t, nil, actions)
		return true
	}
	return false
}

// Whatever ranks do in whatever order: an AllGather ends the same way on all, no rank waits for others that have gone,
// there is one first failure, which all hear, nobody is told anything after its end, and a regroup ends.
func TestMachineLaws(t *testing.T) {
	for seed := range uint64(tier.Count(1000, 50_000)) {
		p := newPlay(seed)
		done := t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Log(strings.Join(p.log, "\n"))
				}
			}()
			p.run(t)
		})
		if !done {
			return
		}
	}
}

func (p *play) run(t *testing.T) {
	for range 20 + p.r.IntN(100) {
		if p.r.IntN(2) == 0 {
			p.act(t, p.clients[p.r.IntN(len(p.clients))])
		} else {
			p.deliver(t)
		}
	}
	for steps := 0; p.deliver(t); steps++ {
		require.Less(t, steps, 10_000, "it does not come to an end")
	}
	var here, come int
	for _, c := range p.clients {
		if !c.left && !c.dead {
			here++
			if c.waits {
				come++
			}
		}
	}
	for _, c := range p.clients {
		if c.left || c.dead {
			continue
		}
		require.Equal(t, p.Here(), slices.DeleteFunc(slices.Clone(p.Here()), p.Gone))
		if p.failure != nil {
			require.True(t, c.told || p.own(c), "rank %d has not heard of the failure", c.rank)
		}
		if c.waits {
			require.Equal(t, len(p.clients), here, "rank %d waits for one that has gone", c.rank)
			require.Less(t, come, here, "all have come")
		}
		require.Zero(t, c.round, "rank %d waits for a round", c.rank)
	}
	require.False(t, p.Settling())
}

// Messages that only the hub sends end the connection of a rank that sends them.
func TestRefuses(t *testing.T) {
	for _, m := range []Message{&Refusal{}, &Welcome{}, &Start{}, &Gathered{}, &Failed{}, &Gone{}, &Bye{}, &Where{},
		&Silent{}, &Withdrawn{}, &Held{}, &Halt{}, &Regrouped{}, &Roster{}, &Knock{}} {
		require.Equal(t, []Action{Refuse{0}}, New(Config{Size: 2}).Step(time.Time{}, Said{0, m}), "%T", m)
	}
	require.Empty(t, New(Config{Size: 2}).Step(time.Time{}, Said{0, &GiveUp{}}), "it may cross with the start")
}

// The log of calls keeps a bounded number of them.
func TestCallLogForgets(t *testing.T) {
	l := newCallLog(2)
	for n := range uint64(20 * logDepth) {
		l.note(0, Position{Calls: []Called{{Number: n + 1}}}, time.Time{})
	}
	require.LessOrEqual(t, len(l.first), 2*logDepth)
	l.note(1, Position{Calls: []Called{{Number: ^uint64(0)}, {Number: 1}}}, time.Time{})
}

// What is sent of a position is bounded.
func TestRecent(t *testing.T) {
	p := Position{Calls: make([]Called, 100), Counts: make([]int, maxCounts), Messages: make([]Messages, maxMessages)}
	require.Len(t, Recent(p).Calls, maxCalls)
	require.Len(t, Recent(p).Counts, maxCounts)
	require.Len(t, Recent(p).Messages, maxMessages)
	p.Counts, p.Messages, p.Needs = append(p.Counts, 0), append(p.Messages, Messages{}), Everyone
	require.Nil(t, Recent(p).Counts)
	require.Nil(t, Recent(p).Messages)
	require.Equal(t, Nobody, Recent(p).Needs)
}
