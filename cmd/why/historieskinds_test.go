package why

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/cmd/why/histories"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/trace/history"
	blame "github.com/ringo-go/ringo/trace/judge"
)

// A team is a communicator of a made job.
type team struct {
	id      string
	members []int // ranks of the job, by rank
}

// An act is what a rank of a made job does next: a collective, a message, or nothing for ever.
type act struct {
	team int
	sign string // of a collective
	to   int    // rank of the job; of a message
	send bool
	idle bool
}

// A jam is a job of n ranks that has come to a standstill: each rank has acts behind it, and is in the next one.
type jam struct {
	n     int
	teams []team
	acts  [][]act
	done  []int           // by rank: number of acts that have ended
	gone  map[int]bool    // ranks that leave no file
	mute  map[int]bool    // of these: ranks that the others know not to answer
	cause map[int]string  // by team: why it has failed
	blame map[int][]int   // by team: ranks of the team
	late  map[int]string  // by team: of a time-out
	link  [2]int          // ranks of the job between which nothing moves
	at    map[int]float64 // by team: when it failed, in seconds after the wait began
	after map[int]int     // by team: the team that Shrink has replaced by it
	files map[[2]int]leaf // by team and rank of the job: what is not as that of the team's others
	tells bool            // files say which other teams had failed
}

// A leaf is how a rank's file of a team that has failed differs from others' files.
type leaf struct {
	at    float64 // when it was written, in seconds after the wait began
	knows bool    // that the team has failed
	none  bool    // it is not there
}

const start, limit = 1_000_000, 4 // seconds

// newJam is a job whose ranks make the given number of AllReduces in the world. A third team has all ranks in another
// order.
func newJam(n, steps int) *jam {
	j := &jam{n: n, gone: map[int]bool{}, mute: map[int]bool{}, cause: map[int]string{}, blame: map[int][]int{},
		late: map[int]string{}, at: map[int]float64{}, after: map[int]int{}, link: [2]int{-1, -1}, acts: make([][]act, n)}
	world, all := team{id: "00world0"}, team{id: "0000all0"}
	for r := range n {
		world.members = append(world.members, r)
		all.members = append(all.members, (r+1)%n)
		for range steps {
			j.acts[r] = append(j.acts[r], act{sign: sum})
		}
	}
	j.teams = []team{world, {id: "000pair0"}, all}
	return j
}

const sum = "AllReduce(count 8, float32, sum)"

// add has ranks do something more.
func (j *jam) add(ranks []int, a ...act) {
	for _, r := range ranks {
		j.acts[r] = append(j.acts[r], a...)
	}
}

// but are all ranks without one.
func (j *jam) but(bad ...int) (ranks []int) {
	for r := range j.n {
		if !slices.Contains(bad, r) {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// now is the act in which a rank is, nil if in none.
func (j *jam) now(r int) *act {
	if j.done[r] >= len(j.acts[r]) || j.acts[r][j.done[r]].idle {
		return nil
	}
	return &j.acts[r][j.done[r]]
}

// number is how many collectives of a team a rank has ended.
func (j *jam) number(r, team int) (n uint64) {
	for _, a := range j.acts[r][:j.done[r]] {
		if a.team == team && a.sign != "" {
			n++
		}
	}
	return n
}

// run carries out what can be.
func (j *jam) run() {
	j.done = make([]int, j.n)
	for moved := true; moved; {
		moved = false
		for r := range j.n {
			a := j.now(r)
			if a == nil {
				continue
			}
			with := []int{r, a.to}
			if a.sign != "" {
				with = j.teams[a.team].members
			}
			meets := !slices.ContainsFunc(with, func(q int) bool {
				b := j.now(q)
				if b == nil || b.team != a.team || b.sign != a.sign {
					return true
				}
				return a.sign != "" && j.number(q, a.team) != j.number(r, a.team) ||
					a.sign == "" && q != r && (b.to != r || b.send == a.send)
			})
			broken := slices.Contains(with, j.link[0]) && slices.Contains(with, j.link[1]) && j.done[r] >= 3
			if meets && !broken {
				for _, q := range with {
					j.done[q]++
				}
				moved = true
			}
		}
	}
}

// fail has a team run out of time: its ranks say where they were stopped, and who holds them up.
func (j *jam) fail(team int) {
	var states []blame.State
	for _, r := range j.teams[team].members {
		s := j.state(team, r, true)
		s.Heard = !j.gone[r]
		states = append(states, s)
	}
	v := blame.Waits(states)
	j.cause[team], j.blame[team], j.late[team] = "timed out in a call: "+history.Ranks(v.Culprits), v.Culprits,
		v.Reason.String()
}

// state is where a rank is in a team.
func (j *jam) state(team, r int, stopped bool) blame.State {
	members := j.teams[team].members
	me := slices.Index(members, r)
	s := blame.State{Rank: me, Heard: true, Last: j.number(r, team), Peer: -1}
	a := j.now(r)
	switch {
	case a == nil || a.team != team:
	case a.sign == "":
		s.Peer, s.Sending = slices.Index(members, a.to), a.send
	default:
		if s.Last++; true {
			s.At = s.Last
		}
		if stopped { // it waits for the rank before it, as in a ring
			s.Peer, s.Round, s.Step = (me+len(members)-1)%len(members), 1, 1+me
			if r == j.link[1] {
				s.Step = 0
			}
		}
	}
	return s
}

// records are the files of a team's ranks.
func (j *jam) records() (all []history.Record) {
	host := func(r int) string { return string(rune('a' + 2*r/j.n)) }
	for t, of := range j.teams {
		var members history.Members
		for _, q := range of.members {
			members = append(members, history.Member{Host: host(q), Pid: 100 + q, Number: q})
		}
		for me, r := range of.members {
			if j.gone[r] || !slices.ContainsFunc(j.acts, func(a []act) bool {
				return slices.ContainsFunc(a, func(a act) bool { return a.team == t })
			}) {
				continue
			}
			rec := history.Record{Comm: of.id, Rank: me, Size: len(of.members), Host: host(r), Pid: 100 + r,
				Members: members, State: j.state(t, r, j.cause[t] != ""), Cause: j.cause[t], Culprits: j.blame[t], Late: j.late[t]}
			if t > 0 {
				rec.Origin, rec.OriginSize = j.teams[0].id, j.n
			}
			if k, is := j.after[t]; is {
				rec.After = j.teams[k].id
			}
			at := start + limit + j.at[t]
			if f, is := j.files[[2]int{t, r}]; f.none {
				continue
			} else if at = at + f.at; is && !f.knows {
				rec.Cause, rec.Culprits, rec.Late = "", nil, ""
			}
			rec.Time = time.Unix(0, int64(at*1e9))
			if rec.State.At > 0 || rec.State.Peer >= 0 {
				rec.Waited = limit * time.Second
				rec.Still = rec.Waited
			}
			n := uint64(0)
			for _, a := range j.acts[r][:min(j.done[r]+1, len(j.acts[r]))] {
				if a.team == t && a.sign != "" && n < max(rec.State.Last, rec.State.At) {
					n++
					rec.Calls = append(rec.Calls, history.Call{Number: n, What: a.sign})
				}
			}
			if a := j.now(r); a != nil && a.team != t && !(j.cause[a.team] != "" && j.at[a.team] < j.at[t]) {
				rec.Beside = []string{j.teams[a.team].id}
			}
			for q := range j.mute {
				if i := slices.Index(of.members, q); i >= 0 {
					rec.Silent = append(rec.Silent, i)
				}
			}
			all = append(all, rec)
		}
	}
	for i := range all {
		if !j.tells {
			break
		}
		r := &all[i]
		r.Failed = []string{}
		for _, o := range all {
			if o.Pid == r.Pid && o.Comm != r.Comm && o.Cause != "" && (r.Cause == "" || o.Time.Before(r.Time)) {
				r.Failed = append(r.Failed, o.Comm)
			}
		}
	}
	return all
}

// A standstill is a kind of jam: make lets bad be at fault in it, and returns who is to blame with all files there.
type standstill struct {
	name  string
	make  func(n, bad int) (*jam, []int)
	fault func(n, bad int) []int // whom an answer may name, if not only those
}

func standstills() []standstill {
	next := func(n, bad int) int { return (bad + 1) % n }
	one := func(f func(j *jam, n, bad int)) func(n, bad int) (*jam, []int) {
		return func(n, bad int) (*jam, []int) {
			j := newJam(n, 3)
			f(j, n, bad)
			j.run()
			return j, []int{bad}
		}
	}
	differ := func(mine string) func(n, bad int) (*jam, []int) {
		return one(func(j *jam, n, bad int) {
			j.add([]int{bad}, act{sign: mine})
			j.add(j.but(bad), act{sign: sum})
		})
	}
	idle := act{idle: true}
	both := func(n, bad int) []int { return []int{min(bad, next(n, bad)), max(bad, next(n, bad))} }
	late := func(f func(j *jam, n, bad int), teams ...int) func(n, bad int) (*jam, []int) { // the teams run out of time
		return func(n, bad int) (*jam, []int) {
			j, want := one(f)(n, bad)
			for i, t := range teams {
				j.fail(t)
				j.at[t] = float64(i) / 100
			}
			return j, want
		}
	}
	two := func(f func(j *jam, n, bad int), teams ...int) func(n, bad int) (*jam, []int) { // bad, or the next
		return func(n, bad int) (*jam, []int) {
			j, _ := late(f, teams...)(n, bad)
			return j, both(n, bad)
		}
	}
	absent := func(j *jam, n, bad int) { j.add([]int{bad}, idle); j.add(j.but(bad), act{sign: sum}) }
	recv := func(j *jam, n, bad int) {
		j.add([]int{bad}, act{to: next(n, bad)})
		j.add(j.but(bad), act{sign: sum})
	}
	order := func(j *jam, n, bad int) {
		j.add([]int{bad}, act{team: 2, sign: sum}, act{sign: sum})
		j.add(j.but(bad), act{sign: sum}, act{team: 2, sign: sum})
	}
	part := func(j *jam, n, bad int) { // of the world and a team of two only these know an order
		j.teams[1].members = []int{next(n, bad), bad}
		j.add([]int{bad}, act{sign: sum}, act{team: 1, sign: sum})
		j.add([]int{next(n, bad)}, act{team: 1, sign: sum}, act{sign: sum})
		j.add(j.but(bad, next(n, bad)), act{sign: sum})
	}
	skip := func(j *jam, n, bad int) { // bad leaves out a team of two, whose other member keeps a second team waiting
		third := next(n, next(n, bad))
		j.teams[1].members, j.teams[2].members = []int{next(n, bad), bad}, []int{third, next(n, bad)}
		j.add([]int{next(n, bad)}, act{team: 1, sign: sum})
		j.add([]int{next(n, bad), third}, act{team: 2, sign: sum})
		j.add(j.but(), act{sign: sum})
	}
	deep := func(j *jam, n, bad int) { // one waits for bad in a team of both, all others for both in the world
		j.teams[1].members = []int{next(n, bad), bad}
		j.add([]int{bad}, idle)
		j.add([]int{next(n, bad)}, act{team: 1, sign: sum})
		j.add(j.but(bad, next(n, bad)), act{sign: sum})
	}
	message := func(j *jam, n, bad int) {
		j.add([]int{bad}, idle)
		j.add([]int{next(n, bad)}, act{to: bad})
		j.add(j.but(bad), act{sign: sum})
	}
	found := func(cause string) func(n, bad int) (*jam, []int) { // the group says it
		return func(n, bad int) (*jam, []int) {
			j, want := one(absent)(n, bad)
			j.gone[bad], j.cause[0], j.blame[0] = true, fmt.Sprintf(cause, bad), want
			return j, want
		}
	}
	var list []standstill
	for i, kind := range []string{"sleeps", "holds a lock", "closes", "aborts", "is killed"} {
		for k := range 4 { // then another rank ends of it: few learn of that, and in either order
			list = append(list, standstill{name: fmt.Sprint("two communicators, one ", kind, ", ", k),
				make: func(n, bad int) (*jam, []int) {
					j, want := one(func(j *jam, n, bad int) { j.add(j.but(), act{team: 2, sign: sum}); absent(j, n, bad) })(n, bad)
					j.tells, j.files = k >= 2, map[[2]int]leaf{}
					witness, late := bad, 0.009
					switch j.blame[0] = want; kind {
					case "sleeps", "holds a lock":
						j.fail(0)
						if kind == "sleeps" {
							late = 3
							j.files[[2]int{0, bad}] = leaf{at: late, knows: true}
						}
					case "closes":
						j.cause[0] = fmt.Sprintf("a peer has left: rank %d has closed the communicator", bad)
						j.files[[2]int{0, bad}] = leaf{none: true}
					case "aborts":
						j.cause[0] = fmt.Sprintf("rank %d failed: Abort: disk full", bad)
					case "is killed":
						j.cause[0], j.gone[bad], witness = fmt.Sprintf("rank %d died: killed by signal 9", bad), true, (bad+2)%n
					}
					if k%2 == 1 {
						late -= 0.001
					}
					if i == 1 || i == 3 { // the witness learns of both at once
						late = 0.001 - 0.002*float64(k%2)
					}
					j.cause[2] = fmt.Sprintf("rank %d died: its process ended without goodbye",
						slices.Index(j.teams[2].members, next(n, bad)))
					j.blame[2] = []int{slices.Index(j.teams[2].members, next(n, bad))}
					for r := range n {
						j.files[[2]int{2, r}] = leaf{at: 0.002}
					}
					j.files[[2]int{2, witness}] = leaf{at: late, knows: true}
					return j, want
				}})
		}
	}
	list = append(list, []standstill{
		{name: "absent", make: one(absent)},
		{name: "absent, out of time", make: late(absent, 0)},
		{name: "killed", make: found("rank %d died: killed by signal 9")},
		{name: "left", make: found("a peer has left: rank %d has closed the communicator")},
		{name: "aborted", make: found("rank %d failed: aborted")},
		{name: "another size", make: differ("AllReduce(count 9, float32, sum)")},
		{name: "another kind", make: differ("AllGather(count 8, float32)")},
		{name: "another operator", make: differ("AllReduce(count 8, float32, max)")},
		{name: "another type", make: differ("AllReduce(count 8, int32, sum)")},
		{name: "another root", make: one(func(j *jam, n, bad int) {
			j.add([]int{bad}, act{sign: "Broadcast(count 8, float32, root 1)"})
			j.add(j.but(bad), act{sign: "Broadcast(count 8, float32, root 0)"})
		})},
		{name: "one call fewer", make: one(func(j *jam, n, bad int) {
			j.add(j.but(bad), act{sign: sum})
			j.add(j.but(), act{sign: "AllGather(count 8, float32)"})
		})},
		{name: "one call more", make: one(func(j *jam, n, bad int) {
			j.add([]int{bad}, act{sign: "AllReduce(count 4, float32, sum)"})
			j.add(j.but(), act{sign: sum})
		})},
		{name: "a message in place of a collective", make: func(n, bad int) (*jam, []int) { // or its other end left out
			j, _ := one(recv)(n, bad)
			return j, both(n, bad)
		}, fault: both},
		{name: "a message that nobody sends", make: one(message)},
		{name: "a message that nobody sends, out of time", make: late(message, 0)},
		{name: "a chain of messages", make: one(func(j *jam, n, bad int) {
			j.add([]int{bad}, idle)
			for k := 1; k < n; k++ {
				j.add([]int{(bad + k) % n}, act{to: (bad + k - 1) % n})
			}
		})},
		{name: "sleeps before the world, two communicators", make: late(func(j *jam, n, bad int) {
			j.add(j.but(), act{team: 2, sign: sum})
			absent(j, n, bad)
		}, 0)},
		{name: "two communicators in another order", make: one(order)},
		{name: "two communicators in another order, out of time", make: late(order, 0)},
		{name: "two communicators in another order, both out of time", make: late(order, 2, 0)},
		{name: "two communicators in another order, that of most out of time first", make: late(order, 0, 2)},
		{name: "a part in another order", make: two(part), fault: both},
		{name: "a part in another order, out of time", make: two(part, 0), fault: both},
		{name: "a part in another order, both out of time", make: two(part, 1, 0), fault: both},
		{name: "a part left out", make: two(skip), fault: both},
		{name: "a part left out, out of time", make: two(skip, 0), fault: both},
		{name: "a circle of three communicators", make: func(n, bad int) (*jam, []int) {
			j, _ := one(func(j *jam, n, bad int) {
				a, b, c := bad, next(n, bad), next(n, next(n, bad))
				j.teams[1].members, j.teams[2].members = []int{a, b}, []int{b, c}
				j.teams = append(j.teams, team{id: "00third0", members: []int{c, a}})
				j.add([]int{a}, act{team: 1, sign: sum})
				j.add([]int{b}, act{team: 2, sign: sum})
				j.add([]int{c}, act{team: 3, sign: sum})
			})(n, bad)
			return j, nil
		}, fault: func(int, int) []int { return nil }},
		{name: "waits for one that waits for bad", make: one(deep)},
		{name: "waits for one that waits for bad, out of time", make: late(deep, 0)},
		{name: "waits for one that waits for bad, both out of time", make: late(deep, 1, 0)},
		{name: "after Shrink", make: func(n, bad int) (*jam, []int) {
			j := newJam(n, 3)
			j.add(j.but(), act{team: 2, sign: sum})
			j.add([]int{bad}, idle)
			j.add(j.but(bad), act{team: 2, sign: sum})
			j.run()
			j.cause[0], j.blame[0], j.at[0], j.after[2] = "rank 0 died", []int{0}, -100, 0
			j.fail(2)
			return j, []int{bad}
		}, fault: func(n, bad int) []int { return []int{0, bad} }}, // without the files of what came after, 0 was to blame
		{name: "others die of it", make: func(n, bad int) (*jam, []int) {
			j, want := late(func(j *jam, n, bad int) {
				j.add(j.but(), act{team: 2, sign: sum})
				absent(j, n, bad)
			}, 0)(n, bad)
			first := slices.Index(j.teams[2].members, next(n, bad))
			j.cause[2], j.blame[2], j.at[2] = "rank died: its process ended without goodbye", []int{first}, 0.01
			return j, want
		}},
		{name: "stopped", make: func(n, bad int) (*jam, []int) {
			j, want := one(absent)(n, bad)
			j.gone[bad], j.mute[bad] = true, true
			return j, want
		}},
		{name: "no file", make: func(n, bad int) (*jam, []int) {
			j, _ := one(absent)(n, bad)
			j.gone[bad] = true
			return j, nil
		}},
		{name: "a circle of messages", make: func(n, bad int) (*jam, []int) {
			j, _ := one(func(j *jam, n, bad int) {
				for r := range n {
					j.add([]int{r}, act{to: (r + 1) % n})
				}
			})(n, bad)
			return j, nil
		}, fault: func(int, int) []int { return nil }},
		{name: "nothing moves, by a signal", make: func(n, bad int) (*jam, []int) {
			j, _ := one(func(j *jam, n, bad int) { j.link = [2]int{bad, next(n, bad)}; j.add(j.but(), act{sign: sum}) })(n, bad)
			return j, nil
		}},
		{name: "nothing moves, out of time", make: func(n, bad int) (*jam, []int) {
			j, _ := late(func(j *jam, n, bad int) {
				j.link = [2]int{bad, next(n, bad)}
				j.add(j.but(), act{sign: sum})
			}, 0)(n, bad)
			return j, both(n, bad)
		}, fault: both},
	}...)
	return list
}

// Files that are missing, cut off, or of a host that nobody has fetched, make no rank guilty that is not: who is
// accused is at fault, and with all files there the right ones are.
func TestHistoriesWithheld(t *testing.T) {
	judged := func(records []history.Record, lost func(r *history.Record) bool, torn bool) hang.Answer {
		var left []history.Record
		var skipped []error
		for _, r := range records {
			switch {
			case !lost(&r):
				left = append(left, r)
			case torn:
				skipped = append(skipped, &history.Unreadable{Comm: r.Comm, Rank: r.Rank})
			}
		}
		if len(left) == 0 {
			return hang.Answer{}
		}
		jobs := histories.Jobs(left, skipped)
		require.Len(t, jobs, 1)
		return hang.Judge(jobs[0])
	}
	list := standstills()
	require.GreaterOrEqual(t, len(list), 20)
	for _, kind := range list {
		most, step := 5, 3
		if tier.Full() && !tier.Race {
			most, step = 8, 2
		}
		for n := 4; n <= most; n++ {
			for bad := n % 2; bad < n; bad += step {
				if strings.Contains(kind.name, "Shrink") && bad == 0 {
					continue
				}
				j, want := kind.make(n, bad)
				fault := []int{bad}
				if kind.fault != nil {
					fault = kind.fault(n, bad)
				}
				all := j.records()
				name := fmt.Sprintf("%s, %d ranks, fault of rank %d", kind.name, n, bad)
				a := judged(all, func(*history.Record) bool { return false }, false)
				require.Equal(t, want, a.Culprits, "%s: %s", name, a.Sentence)
				check := func(which string, lost func(r *history.Record) bool) {
					for _, torn := range []bool{false, true} {
						a := judged(all, lost, torn)
						for _, r := range a.Culprits {
							require.Contains(t, fault, r, "%s, %s, cut off %v: %s %v", name, which, torn, a.Sentence, a.Notes)
						}
						if len(a.Culprits) == 0 && a.Ranks > 0 && a.Reason == hang.Nothing {
							t.Fatalf("%s, %s: %s", name, which, a.Sentence)
						}
					}
				}
				for r := range n {
					check(fmt.Sprint("all files of rank ", r), func(x *history.Record) bool { return x.Pid == 100+r })
					for _, of := range j.teams {
						check(fmt.Sprint("a file of rank ", r, " of ", of.id), func(x *history.Record) bool {
							return x.Pid == 100+r && x.Comm == of.id
						})
					}
				}
				for _, host := range []string{"a", "b"} {
					check("host "+host, func(x *history.Record) bool { return x.Host == host })
				}
				for i, of := range j.teams {
					if len(j.cause) > 1 && j.cause[i] != "" && j.at[i] == 0 {
						continue // the files of the later failure do not tell of it
					}
					check("communicator "+of.id, func(x *history.Record) bool { return x.Comm == of.id })
				}
			}
		}
	}
}

// A group that fails as a message meets a collective does not know which of the two ranks is right.
func TestMessageMeetsCollective(t *testing.T) {
	for n := 2; n < 6; n++ {
		for bad := range n {
			next := (bad + 1) % n
			j := newJam(n, 3)
			j.add([]int{bad}, act{to: next})
			j.add(j.but(bad), act{sign: sum})
			j.run()
			j.cause[0], j.blame[0] = "ranks disagree: one calls Send/Recv", []int{min(bad, next), max(bad, next)}
			a := hang.Judge(histories.Jobs(j.records(), nil)[0])
			require.Equal(t, j.blame[0], a.Culprits, a.Sentence)
			require.True(t, a.Either, a.Sentence)
		}
	}
}
