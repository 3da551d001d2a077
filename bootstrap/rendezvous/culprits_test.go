package rendezvous

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/tier"
)

// A fault is a host, a path or one direction of a path that is cut for a while.
type fault struct {
	a, b   int // places; b is -1 if a is cut off from all others
	oneWay bool
	since  time.Time
	until  time.Time
}

func (f *fault) String() string {
	what := fmt.Sprintf("path %d-%d", f.a, f.b)
	if f.b < 0 {
		what = fmt.Sprintf("host %d", f.a)
	} else if f.oneWay {
		what = fmt.Sprintf("way %d>%d", f.a, f.b)
	}
	return fmt.Sprintf("%s for %v", what, f.until.Sub(f.since))
}

// concerns reports whether the fault is on the way between two places, in this direction.
func (f *fault) concerns(from, to int) bool {
	switch {
	case from == to:
		return false
	case f.b < 0:
		return from == f.a || to == f.a
	}
	return from == f.a && to == f.b || !f.oneWay && from == f.b && to == f.a
}

// parts reports whether two places have lost each other.
func (f *fault) parts(a, b int) bool { return f.concerns(a, b) || f.concerns(b, a) }

// wrong says what is wrong with whom a failure blames, "" if that is right.
func (f *fault) wrong(places []int, blamed *Failure) string {
	at := func(ranks []int, place int) bool {
		return slices.ContainsFunc(ranks, func(r int) bool { return places[r] == place })
	}
	missed := func(place int) bool { return slices.Contains(places, place) && !at(blamed.Candidates, place) }
	switch culprits := blamed.Culprits; {
	case len(culprits) > 0 && f.b < 0:
		if slices.ContainsFunc(culprits, func(r int) bool { return places[r] != f.a }) {
			return "an innocent is named"
		}
	case len(culprits) > 0:
		if len(culprits) != 2 || !at(culprits, f.a) || !at(culprits, f.b) {
			return "a path is cut, and something else is named"
		}
	case len(blamed.Candidates) > 0 && (missed(f.a) || missed(f.b)):
		return "the candidates are without the culprit"
	}
	return ""
}

// An end is a rank in a world: its connection with the hub, and what it finds out.
type end struct {
	rank, place int
	here        []int    // ranks of its host
	blames      *Failure // as the hub says, or it has found out itself
	silence     bool     // its connection with the hub has ended in silence
	ended       bool     // the hub takes its connection for ended
	dead        bool
	sent        time.Time    // when all that it has said is with the hub
	lost        map[int]bool // as a witness: by home, hosts that have lost the hub
}

// A world is a group over hosts, between which something is cut.
type world struct {
	*group
	r      *rand.Rand
	f      *fault
	places []int
	hub    int
	hosts  []int
	exits  bool // ranks end when they have failed
	ends   []*end
	todo   []deed // what is to happen, by time
	log    strings.Builder
}

type deed struct {
	at time.Time
	do func()
}

func (w *world) after(d time.Duration, do func()) {
	at := w.now.Add(d)
	i, _ := slices.BinarySearchFunc(w.todo, at, func(x deed, at time.Time) int {
		return cmp.Or(x.at.Compare(at), -1) // behind those of the same time
	})
	w.todo = slices.Insert(w.todo, i, deed{at, do})
}

// cut reports whether one of the ways between two places is cut now.
func (w *world) cut(a, b int) bool {
	return w.f.parts(a, b) && !w.now.Before(w.f.since) && w.now.Before(w.f.until)
}

// reach calls do when two places have reached each other, or with false when a time is over.
func (w *world) reach(a, b int, within time.Duration, do func(ok bool)) {
	switch left := w.f.until.Sub(w.now) + time.Second/2; { // kernels try again
	case !w.cut(a, b):
		w.after(time.Millisecond, func() { do(true) })
	case left < within:
		w.after(left, func() { do(true) })
	default:
		w.after(within, func() { do(false) })
	}
}

// carry delivers a message from one place to another, at once or when the way passes again.
func (w *world) carry(from, to int, deliver func()) (at time.Time) {
	delay := time.Millisecond
	if w.f.concerns(from, to) && w.cut(from, to) {
		delay = w.f.until.Sub(w.now) + 200*time.Millisecond
	}
	w.after(delay, deliver)
	return w.now.Add(delay)
}

// feed gives the machine an event, and does what it says.
func (w *world) feed(e Event) { w.obey(w.step(e)) }

func (w *world) obey(actions []Action) {
	for _, a := range actions {
		fmt.Fprintf(&w.log, "%v %s\n", w.now.Sub(w.f.since), show(a))
		switch a := a.(type) {
		case Tell:
			for _, rank := range a.To {
				e := w.ends[rank]
				w.carry(w.hub, e.place, func() {
					if !e.silence && !e.dead {
						w.hear(e, a.Message)
					}
				})
			}
		case Look:
			hears := slices.DeleteFunc(slices.Clone(a.Ranks), func(rank int) bool {
				return w.cut(w.hub, w.ends[rank].place) && w.now.Sub(w.f.since) > 2*time.Second
			})
			w.after(0, func() { w.feed(Acknowledged{hears}) })
		case Reach:
			for _, rank := range a.Ranks {
				w.reach(w.hub, w.ends[rank].place, a.Wait, func(ok bool) { w.feed(Reached{a.Stage, rank, ok}) })
			}
		}
	}
}

// say sends the hub a message.
func (w *world) say(e *end, m Message) {
	e.sent = w.carry(e.place, w.hub, func() {
		if !e.ended {
			w.feed(Said{e.rank, m})
		}
	})
}

func (w *world) hear(e *end, m Message) {
	switch m := m.(type) {
	case *Failed:
		w.fail(e, &m.Failure)
	case *Where:
		w.say(e, &There{})
	case *Knock:
		k := &Knocked{Stage: m.Stage, Heard: make([]bool, len(m.Targets))}
		left := len(m.Targets)
		if left == 0 {
			w.say(e, k)
		}
		for i, target := range m.Targets {
			w.reach(e.place, w.places[target], KnockTime, func(ok bool) {
				k.Heard[i] = ok
				if left--; left == 0 {
					w.say(e, k)
				}
			})
		}
	}
}

// fail is a rank that knows a failure.
func (w *world) fail(e *end, f *Failure) {
	if e.blames != nil || e.dead {
		return
	}
	e.blames = f
	fmt.Fprintf(&w.log, "%v rank %d blames %v or %v: %v\n", w.now.Sub(w.f.since), e.rank, f.Culprits, f.Candidates, f)
	if !w.exits || slices.Contains(w.hosts, e.rank) {
		return
	}
	w.after(time.Duration(w.r.IntN(2000))*time.Millisecond, func() {
		e.dead = true
		w.reach(e.place, w.hub, time.Hour, func(bool) {
			w.after(max(e.sent.Sub(w.now), 0), func() {
				if !e.ended {
					e.ended = true
					w.feed(Lost{e.rank, "its connection ended without goodbye"})
				}
			})
		})
		next := w.ends[(e.rank+1)%len(w.ends)]
		w.reach(e.place, next.place, time.Hour, func(bool) { w.breaks(next, false) })
	})
}

// breaks is a rank whose connection with the rank before it has broken: it gives the group a moment, and complains.
func (w *world) breaks(e *end, silent bool) {
	from := (e.rank + len(w.ends) - 1) % len(w.ends)
	w.after(300*time.Millisecond, func() {
		if e.blames == nil && !e.dead {
			w.say(e, &Fail{Culprits: []int{min(from, e.rank), max(from, e.rank)}, Broken: true, Silent: silent})
		}
	})
}

// witnesses are the ranks that a rank asks: the first of each other host than the hub's.
func (w *world) witnesses(e *end) (all []*end) {
	if e.place == w.hub {
		return nil
	}
	for _, x := range w.ends {
		if x.place != w.hub && x.rank == x.here[0] && x != e {
			all = append(all, x)
		}
	}
	return all
}

// alone is a rank to which the hub answers nothing: it asks others, and judges by what they say.
func (w *world) alone(e *end) {
	e.silence = true
	said := &Hearing{Rank: e.rank, Home: e.here[0], Here: e.here, Hosts: w.hosts}
	for _, x := range w.ends {
		if x.place == w.hub {
			said.There = append(said.There, x.rank)
		}
	}
	w.reach(e.place, w.hub, KnockTime, func(back bool) {
		if e.rank == e.here[0] {
			said.Note(e.rank, Statement{Told: told(e)})
		}
		left := 1
		done := func() {
			if left--; left == 0 {
				w.reach(e.place, w.hub, AgainTime, func(again bool) {
					w.say(e, &Fail{Culprits: []int{e.rank}, Broken: true, Silent: true})
					w.fail(e, said.Verdict("silence", func() bool { return back || again }))
				})
			}
		}
		for _, x := range w.witnesses(e) {
			left++
			w.ask(e, x, said, done)
		}
		done()
	})
}

func told(e *end) (homes []int) {
	for r := range 8 {
		if e.lost[r] {
			homes = append(homes, r)
		}
	}
	return homes
}

// ask has a rank ask a witness what that sees of the hub.
func (w *world) ask(e, x *end, said *Hearing, done func()) {
	const patience = 10 * time.Second
	asked := w.now
	w.reach(e.place, x.place, patience, func(ok bool) {
		if !ok {
			said.Miss(x.rank)
			done()
			return
		}
		if x.dead {
			said.Note(x.rank, Statement{})
			done()
			return
		}
		x.lost[said.Home] = true
		w.reach(x.place, w.hub, KnockTime, func(hears bool) {
			s := Statement{Seen: Missing, Told: told(x)}
			if hears && !x.silence {
				s.Seen = Hears
			}
			w.reach(x.place, e.place, max(patience-w.now.Sub(asked), 0), func(ok bool) {
				if ok {
					said.Note(x.rank, s)
				} else {
					said.Miss(x.rank)
				}
				done()
			})
		})
	})
}

func newWorld(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 0))
	size, hosts := 2+r.IntN(7), 1
	w := &world{r: r, places: make([]int, size), exits: r.IntN(2) == 0}
	for rank := 1; rank < size; rank++ {
		if rank == 1 || r.IntN(4) > 0 {
			hosts++
		}
		w.places[rank] = hosts - 1
	}
	w.hub = r.IntN(hosts)
	if r.IntN(3) > 0 {
		w.hosts = []int{slices.Index(w.places, w.hub)}
	} else if r.IntN(2) == 0 {
		w.hub = hosts // a launcher on a host without ranks
		hosts++
	}
	c := Config{Size: size, Hosts: w.hosts, Land: Land{Places: w.places, Hub: w.hub, Addresses: make([]string, size)}}
	for rank, p := range w.places {
		c.Land.Addresses[rank] = "there"
		w.ends = append(w.ends, &end{rank: rank, place: p, here: c.Land.at(p), lost: map[int]bool{}})
	}
	w.group = newGroup(c)
	w.f = &fault{a: r.IntN(hosts), b: -1, since: w.now, until: w.now.Add(1000 * time.Hour)}
	if r.IntN(2) == 0 {
		w.f.b = (w.f.a + 1 + r.IntN(hosts-1)) % hosts
		w.f.oneWay = r.IntN(2) == 0
	}
	if r.IntN(2) == 0 {
		w.f.until = w.now.Add(time.Duration(5+r.IntN(30)) * time.Second)
	}
	return w
}

// run lets what is cut be noticed, by each end of a connection for itself, and lets all happen that follows.
func (w *world) run() {
	notice := func(a, b int, lost func()) {
		w.after(9*time.Second+time.Duration(w.r.IntN(12_000))*time.Millisecond, func() {
			if w.cut(a, b) {
				lost()
			}
		})
	}
	for _, e := range w.ends {
		from := w.ends[(e.rank+len(w.ends)-1)%len(w.ends)]
		notice(from.place, e.place, func() { w.breaks(e, true) })
		if slices.Contains(w.hosts, e.rank) {
			continue
		}
		notice(e.place, w.hub, func() { w.alone(e) })
		notice(e.place, w.hub, func() {
			if !e.ended {
				e.ended = true
				w.feed(Unheard{e.rank, "its host did not answer"})
			}
		})
	}
	for end := w.now.Add(10 * time.Minute); len(w.todo) > 0 && w.todo[0].at.Before(end); {
		next := w.todo[0]
		if t, ok := w.due(next.at); ok {
			w.obey(w.fire(t))
			continue
		}
		w.todo = w.todo[1:]
		w.now = next.at
		next.do()
	}
	for t, ok := w.due(w.now.Add(time.Minute)); ok; t, ok = w.due(w.now.Add(time.Minute)) {
		w.obey(w.fire(t))
	}
}

// Whatever host, path or direction is cut, for good or for a time, however late that is seen, wherever the hub is: no
// rank names an innocent, and all ranks that hear each other name the same.
func TestCulpritsAreOneSet(t *testing.T) {
	known, unknown := 0, 0
	for seed := range uint64(tier.Count(1000, 30_000)) {
		w := newWorld(seed)
		w.run()
		faults := ""
		var last *end
		for _, e := range w.ends {
			if e.blames == nil {
				continue
			}
			if bad := w.f.wrong(w.places, e.blames); bad != "" {
				faults += fmt.Sprintf("rank %d: %s\n", e.rank, bad)
			}
			if len(e.blames.Culprits) == 0 {
				unknown++
				continue
			}
			known++
			if last != nil && !w.f.parts(last.place, e.place) && !slices.Equal(last.blames.Culprits, e.blames.Culprits) {
				faults += fmt.Sprintf("ranks %d and %d name different ranks\n", last.rank, e.rank)
			}
			last = e
		}
		require.Empty(t, faults, "seed %d: hosts of ranks %v, hub on %d in the process of %v, %v, exits %v\n%s", seed, w.places,
			w.hub, w.hosts, w.f, w.exits, &w.log)
	}
	t.Logf("%d ranks know, %d cannot", known, unknown)
	require.Greater(t, known, unknown, "most ranks should know")
}
