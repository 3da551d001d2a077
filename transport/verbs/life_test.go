package verbs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var phaseNames = map[phase]string{
	railUp: "up", railFailing: "failing", railDown: "down", railAsked: "asked", railCalled: "called", railTried: "tried",
}

var railEvents = map[string]railEvent{
	"broke": railBroke, "peer gave up": peerGaveUp, "made": railMade, "peer calls": peerCalls, "joined": railJoined,
	"proved": railProved, "peer has proof": peerHasProof,
}

var said = map[byte]string{down: "down", again: "again", proved: "proved"}

// Lives of rails: events, and after each event the phase and the actions.
func TestRailLives(t *testing.T) {
	for _, test := range []struct {
		name   string
		sender bool
		lines  string
	}{
		{"the sender notices, and the rail comes back", true, `
			broke          failing kill say down
			broke          failing
			peer gave up   down
			broke          down
			made           asked say again
			peer calls     called
			joined         tried
			proved         up say proved`},
		{"the receiver notices", true, `
			peer gave up   down kill say down
			peer gave up   down
			made           asked say again`},
		{"the receiver answers", false, `
			peer gave up   down kill say down
			peer calls     called
			joined         tried say again
			peer has proof up`},
		{"both notice", false, `
			broke          failing kill say down
			peer gave up   down
			peer calls     called`},
		{"the receiver cannot come back", false, `
			broke          failing kill say down
			peer gave up   down
			peer calls     called
			broke          failing kill say down
			peer gave up   down`},
		{"the receiver refuses", true, `
			broke          failing kill say down
			peer gave up   down
			made           asked say again
			peer gave up   down kill say down
			made           asked say again`},
		{"nothing comes through", true, `
			peer gave up   down kill say down
			made           asked say again
			peer calls     called
			joined         tried
			broke          failing kill say down
			peer gave up   down`},
		{"the sender gives up while it is answered", true, `
			peer gave up   down kill say down
			made           asked say again
			broke          failing kill say down
			peer calls     failing
			peer gave up   down`},
		{"the sender gives up before the receiver answers", false, `
			peer gave up   down kill say down
			peer calls     called
			peer gave up   down kill say down
			joined         down`},
		{"what is not for this end", false, `
			made           up
			proved         up
			joined         up
			peer calls     up
			peer has proof up
			peer gave up   down kill say down
			made           down`},
		{"nor for this one", true, `
			peer has proof up
			peer calls     up
			peer gave up   down kill say down
			peer calls     down
			joined         down
			made           asked say again
			proved         asked
			made           asked
			peer calls     called
			made           called
			proved         called
			joined         tried
			peer calls     tried
			peer has proof tried
			broke          failing kill say down
			made           failing
			peer calls     failing`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var p phase
			for line := range strings.SplitSeq(strings.TrimSpace(test.lines), "\n") {
				line = strings.TrimSpace(line)
				name := strings.TrimSpace(line[:min(15, len(line))])
				e, ok := railEvents[name]
				require.True(t, ok, "%q", name)
				next, a := p.step(e, test.sender)
				got := phaseNames[next]
				if a.kill {
					got += " kill"
				}
				if a.say != 0 {
					got += " say " + said[a.say]
				}
				require.Equal(t, strings.TrimSpace(line[15:]), got, "after %s", name)
				p = next
			}
		})
	}
}

// A note is a message of a model: its kind, and which of the sender's queue pairs it is about.
type note struct {
	kind byte
	pair int
}

// An affair is both ends of a rail in a model, and the messages on the line between them.
type affair struct {
	sender, receiver phase
	pair, led        int    // the sender's queue pair, and the one to which the receiver's is connected
	called, to       int    // the sender's queue pair in the last call to the receiver, and in the last answer to the sender
	there, back      string // notes on their way
	breaks           int    // number of breaks that may still happen
}

func push(line string, n note) string { return line + fmt.Sprintf("%d.%d ", n.kind, n.pair) }

func pop(line string) (n note, rest string) {
	word, rest, _ := strings.Cut(line, " ")
	fmt.Sscanf(word, "%d.%d", &n.kind, &n.pair)
	return n, rest
}

// at is the affair after an event at one end.
func (a affair) at(sender bool, e railEvent) affair {
	if sender {
		p, do := a.sender.step(e, true)
		if a.sender = p; do.say != 0 {
			a.there = push(a.there, note{do.say, a.pair})
		}
		return a
	}
	p, do := a.receiver.step(e, false)
	if a.receiver = p; do.say != 0 {
		a.back = push(a.back, note{do.say, a.led})
	}
	return a
}

var heard = map[byte]railEvent{down: peerGaveUp, again: peerCalls, proved: peerHasProof}

// next are the affairs that may follow a, without breaks.
func (a affair) next() (all []affair) {
	if a.there != "" {
		b := a
		n, rest := pop(a.there)
		if b.there = rest; n.kind == again {
			b.called = n.pair
		}
		all = append(all, b.at(false, heard[n.kind]))
	}
	if a.back != "" {
		b := a
		n, rest := pop(a.back)
		if b.back = rest; n.kind == again {
			b.to = n.pair
		}
		all = append(all, b.at(true, heard[n.kind]))
	}
	if a.sender == railDown {
		b := a
		b.pair++
		all = append(all, b.at(true, railMade))
	}
	if a.sender == railCalled {
		all = append(all, a.at(true, railJoined))
	}
	if a.receiver == railCalled {
		b := a
		b.led = b.called
		all = append(all, b.at(false, railJoined))
	}
	if a.sender == railTried && a.receiver != railFailing && a.receiver != railDown && a.led == a.pair {
		all = append(all, a.at(true, railProved))
	}
	return all
}

// Whenever anything breaks at either end, and however messages cross: slots go over a rail only while both ends' queue
// pairs are connected to each other, no slot is sent again while the peer may still receive it over the old queue pair,
// and if nothing breaks any more the rail is up again in the end.
func TestRailsAgree(t *testing.T) {
	first := affair{breaks: 6}
	seen, todo := map[affair]bool{first: true}, []affair{first}
	for len(todo) > 0 {
		a := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		quiet := a.there == "" && a.back == ""
		if a.sender == railDown {
			require.Contains(t, []phase{railFailing, railDown}, a.receiver, "%+v", a)
		}
		if a.sender == railUp && quiet {
			require.Equal(t, railUp, a.receiver, "%+v", a)
		}
		if a.sender == railTried || a.sender == railUp {
			require.Equal(t, a.pair, a.to, "%+v", a)
		}
		if a.receiver == railUp && (a.sender == railUp || a.sender == railTried) {
			require.Equal(t, a.pair, a.led, "%+v", a)
		}
		next := a.next()
		if len(next) == 0 {
			require.True(t, a.sender == railUp && a.receiver == railUp, "it is stuck: %+v", a)
		}
		if a.breaks > 0 {
			b := a
			b.breaks--
			next = append(next, b.at(true, railBroke), b.at(false, railBroke))
		}
		for _, b := range next {
			if !seen[b] {
				seen[b] = true
				todo = append(todo, b)
			}
		}
	}
	t.Log(len(seen), "states")
	require.Greater(t, len(seen), 400)
}
