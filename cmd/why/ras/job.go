package ras

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/internal/given"
)

// inProgress is NCCL's result of an operation that has not ended.
const inProgress = 7

// results are NCCL's results by number. A remote process's error blames nobody.
var results = [...]string{1: "an unhandled CUDA error", 2: "a system error", 3: "an internal error",
	4: "an invalid argument", 5: "an invalid usage", 6: "a remote process's error"}

const remote = 6

// errorOf is the number of a result in RAS's words, 0 if there is none.
func errorOf(text string) int {
	for i, words := range [...]string{1: "Unhandled CUDA", 2: "System", 3: "Internal", 4: "Invalid argument",
		5: "Invalid usage", 6: "Remote"} {
		if words != "" && strings.HasPrefix(text, words) {
			return i
		}
	}
	return 0
}

// A builder makes a job of a report.
type builder struct {
	*hang.Job
	source string
	report *Report
	global map[any]int // the rank in the job by Peer, or by member if the process is not known
}

// A member is a rank of a communicator whose process is not known.
type member struct {
	hash string
	rank int
}

// Job makes a job of a report. Ranks have their numbers in the largest communicator if that has all processes. Else
// processes are numbered by node, process and GPU, and a note says so. source is the Source of ranks.
func (r *Report) Job(source string) *hang.Job {
	b := &builder{Job: new(hang.Job), source: source, report: r, global: map[any]int{}}
	b.number()
	for i := range r.Comms {
		b.comm(&r.Comms[i])
	}
	for _, p := range r.Lost {
		if g, ok := b.global[p]; ok {
			b.lost(g, p)
		} else {
			b.note("%s does not answer RAS: dead, stopped, or cut off", p)
		}
	}
	b.Open = len(b.Ranks) == 0
	return b.Job
}

func (b *builder) note(format string, args ...any) {
	const most = 8
	text := given.Printable(fmt.Sprintf(format, args...))
	if len(b.Notes) < most && !slices.Contains(b.Notes, text) {
		b.Notes = append(b.Notes, text)
	}
}

func (p Peer) String() string {
	return fmt.Sprintf("process %d on node %s, GPU %d", p.Pid, given.Printable(p.Host), p.GPU)
}

func key(c *Comm, m *Rank) any {
	if m.Pid < 0 || m.Host == "unknown" {
		return member{c.Hash, m.Rank}
	}
	return m.Peer
}

// number gives each process a rank of the job.
func (b *builder) number() {
	all := map[any]bool{}
	var world *Comm
	for i := range b.report.Comms {
		c := &b.report.Comms[i]
		for _, m := range slices.Concat(c.Ranks, c.Missing) {
			all[key(c, &m)] = true
		}
		if world == nil || c.Size > world.Size {
			world = c
		}
	}
	if world == nil {
		return
	}
	if world.Size >= max(len(all), b.report.GPUs) {
		for r := range world.Size {
			b.Rank(r)
		}
		for _, m := range slices.Concat(world.Ranks, world.Missing) {
			b.global[key(world, &m)] = m.Rank
		}
	}
	if len(b.global) == 0 || !covers(b.global, all) {
		b.Guessed = true
		b.note("no communicator has all processes: ranks are numbered by node, process and GPU")
		clear(b.global)
		for i, k := range slices.SortedFunc(maps.Keys(all), compare) {
			b.global[k] = i
			b.Rank(i)
		}
	}
}

func covers(global map[any]int, all map[any]bool) bool {
	for k := range all {
		if _, ok := global[k]; !ok {
			return false
		}
	}
	return true
}

// compare orders processes by node, number and GPU, and members after all processes.
func compare(x, y any) int {
	p, xp := x.(Peer)
	q, yp := y.(Peer)
	switch {
	case xp && yp:
		return cmp.Or(cmp.Compare(p.Host, q.Host), cmp.Compare(p.Pid, q.Pid), cmp.Compare(p.GPU, q.GPU))
	case xp:
		return -1
	case yp:
		return 1
	}
	m, n := x.(member), y.(member)
	return cmp.Or(cmp.Compare(m.hash, n.hash), cmp.Compare(m.rank, n.rank))
}

// comm adds a communicator, without the members whose counts are not known.
func (b *builder) comm(c *Comm) {
	var known []*Rank
	var global []int
	initial := slices.ContainsFunc(c.Ranks, func(m Rank) bool { return m.Status.Init == inProgress })
	for i := range c.Ranks {
		m := &c.Ranks[i]
		g := b.global[key(c, m)]
		b.present(g, c, m)
		if m.Counts != nil || initial {
			known, global = append(known, m), append(global, g)
		}
	}
	members := slices.Clone(global)
	for i := range c.Missing {
		m := &c.Missing[i]
		g := b.global[key(c, m)]
		switch {
		case m.Status.Silent || m.Status.Dead:
			members = append(members, g)
			b.lost(g, m.Peer)
		case initial: // the rank answers, but has not begun to make this communicator
			members = append(members, g)
			b.present(g, c, m)
		default:
			b.present(g, c, m)
			b.note("rank %d has left %s %s, or not made it", g, hang.Communicator, c.Hash)
		}
	}
	slices.Sort(members)
	group := b.GroupOf(given.Printable(c.Hash), hang.Communicator, slices.Compact(members))
	if initial {
		for i, m := range known {
			call := hang.Call{Group: group, Kind: "CommInit", Peer: -1, State: hang.Ended, Number: 0}
			if m.Status.Init == inProgress {
				call.State = hang.Begun
			}
			b.Ranks[global[i]].Calls = append(b.Ranks[global[i]].Calls, call)
		}
		return
	}
	b.calls(group, known, global)
}

// present notes that a rank has answered.
func (b *builder) present(g int, c *Comm, m *Rank) {
	r := b.Rank(g)
	r.Source = b.source
	if m.Pid >= 0 {
		r.Name, r.Pid = m.Peer.String(), m.Pid
	}
	for _, code := range []int{m.Status.Init, m.Status.Async} {
		switch {
		case code <= 0 || code >= len(results):
		case code == remote:
			b.note("rank %d reports %s", g, results[code])
		default:
			r.Death = "has failed with " + results[code] + ", as NCCL's RAS says"
		}
	}
	if m.Status.Abort {
		b.note("rank %d has aborted %s %s", g, hang.Communicator, c.Hash)
	}
}

// lost notes that a rank does not answer.
func (b *builder) lost(g int, p Peer) {
	r := b.Rank(g)
	r.Source, r.Calls, r.Mute = "", nil, true
	if p.Pid >= 0 {
		r.Name, r.Pid = p.String(), p.Pid
	}
}

// lonely are kinds of calls that not all ranks of a communicator make alike.
var lonely = []string{"Send", "Recv", "SendRecv", "PutSignal", "Signal", "WaitSignal"}

// calls turns counts into one call for each rank: the last call that all have made, or the next for ranks that are
// further.
func (b *builder) calls(group int, known []*Rank, global []int) {
	if len(known) == 0 {
		return
	}
	least := maps.Clone(known[0].Counts)
	for _, m := range known {
		for kind := range m.Counts {
			if _, ok := least[kind]; !ok {
				least[kind] = 0
			}
		}
	}
	for _, kind := range lonely {
		delete(least, kind)
	}
	base := int64(0)
	for kind := range least {
		for _, m := range known {
			least[kind] = max(0, min(least[kind], m.Counts[kind]))
		}
		base += least[kind]
	}
	next := kinds(known, least)
	for i, m := range known {
		to := &b.Ranks[global[i]]
		call := hang.Call{Group: group, Number: base, Kind: "collective", Peer: -1, State: hang.Seen}
		if next[i] != "" {
			call.Number, call.Kind = base+1, next[i]
		} else if base == 0 {
			continue
		}
		if m.Status.Abort || m.Status.Final || m.Status.Destroy {
			call.State = hang.Ended
		}
		to.Calls = append(to.Calls, call)
	}
}

// kinds is by rank the kinds of calls made beyond the calls of all, "" for a rank that has made no more. Ranks that may
// have made the same calls, some of them more, have the same kinds.
func kinds(known []*Rank, least map[string]int64) []string {
	more := func(m *Rank) string {
		var words []string
		for _, kind := range slices.Sorted(maps.Keys(least)) {
			if m.Counts[kind] > least[kind] {
				words = append(words, given.Printable(kind))
			}
		}
		return strings.Join(words, " or ")
	}
	total := func(m *Rank) (n int64) {
		for kind := range least {
			n += m.Counts[kind]
		}
		return n
	}
	sorted := slices.SortedFunc(slices.Values(known), func(x, y *Rank) int { return cmp.Compare(total(x), total(y)) })
	chain, first := true, ""
	for i, m := range sorted {
		for kind := range least {
			chain = chain && (i == 0 || m.Counts[kind] >= sorted[i-1].Counts[kind])
		}
		if first == "" {
			first = more(m)
		}
	}
	next := make([]string, len(known))
	for i, m := range known {
		if next[i] = more(m); chain && next[i] != "" {
			next[i] = first
		}
	}
	return next
}

// Judge says why a job stands still. all are RAS's answers, the oldest first, and j is the job of the last one, to
// which other files may have added. Nobody is late if ranks have called more between the last two answers.
func Judge(j *hang.Job, all []Report) hang.Answer {
	last := &all[len(all)-1]
	j.Glance = len(all) == 1
	a := hang.Judge(j)
	a.Source = "NCCL's RAS"
	switch {
	case len(j.Ranks) == 0:
		a.Reason = hang.Unknown
		a.Sentence = "I cannot say: RAS sees no rank that has called less than the others of its communicator, and whether " +
			"their last calls have ended it does not say"
		a.Remedy = "dumps of PyTorch's flight recorder show it: TORCH_NCCL_TRACE_BUFFER_SIZE=2000; where none were " +
			"written, as none are in new_group: py-spy dump --pid PID of each rank"
	case a.Reason == hang.Nothing || a.Reason == hang.Unknown && j.Mute():
		a.Reason, a.Culprits = hang.Unknown, nil
		a.Sentence = "I cannot say: RAS counts calls and does not tell whether they have ended, and " + last.messages()
		a.Remedy = "ask again whether counts grow; dumps of PyTorch's flight recorder, histories of this library " +
			"(RINGO_HISTORY_SIGNAL) or py-spy dump --pid PID of each rank show who waits for whom"
	}
	switch late := a.Reason != hang.Died && a.Reason != hang.Silent; {
	case !late:
	case len(all) == 1:
		a.Notes = append(a.Notes,
			"RAS was asked once: a rank that is only slow looks the same; ask again, whether its counts grow")
	case Moved(&all[len(all)-2], last):
		a.Reason, a.Culprits, a.Remedy = hang.Nothing, nil, ""
		a.Sentence = "the job moves: ranks have called more collectives from one answer of RAS to the next"
	}
	return a
}

// messages says that no rank is late by the collectives that ranks have called, and which messages they have called.
func (r *Report) messages() string {
	n, collectives := map[string]int64{}, int64(0)
	for _, c := range r.Comms {
		for _, m := range c.Ranks {
			for kind, k := range m.Counts {
				if n[kind] += k; !slices.Contains(lonely, kind) {
					collectives += k
				}
			}
		}
	}
	var words []string
	for _, kind := range lonely {
		if n[kind] > 0 {
			words = append(words, fmt.Sprintf("%d %s", n[kind], kind))
		}
	}
	switch text := strings.Join(words, ", "); {
	case collectives > 0 && text != "":
		return "no rank has called fewer collectives than the others; in which of " + text + " ranks wait is not known"
	case collectives == 0 && text != "":
		return "ranks have called messages alone, " + text + ": in which of them ranks wait is not known"
	}
	return "no rank is known to have called fewer collectives than the others"
}

// Moved reports whether ranks have called more in the later report of a job than in the earlier one.
func Moved(earlier, later *Report) bool {
	type place struct {
		hash string
		rank int
		kind string
	}
	counts := map[place]int64{}
	for _, c := range earlier.Comms {
		for _, m := range c.Ranks {
			for kind, n := range m.Counts {
				counts[place{c.Hash, m.Rank, kind}] = n
			}
		}
	}
	for _, c := range later.Comms {
		for _, m := range c.Ranks {
			for kind, n := range m.Counts {
				if old, ok := counts[place{c.Hash, m.Rank, kind}]; ok && n != old {
					return true
				}
			}
		}
	}
	return false
}
