// Package histories makes jobs of the histories of this library, the files of package history. Communicators of the
// same processes are one job, whose ranks have the numbers of the communicator that the others were made of, or else of
// the largest. It is part of the command ringo, and nothing here is promised to other modules.
package histories

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/trace/history"
	"github.com/ringo-go/ringo/trace/judge"
)

// A comm is what the records tell of a communicator.
type comm struct {
	id      string
	size    int
	records map[int]*history.Record // by rank: the latest
	torn    map[int]bool            // by rank: it has left a file that cannot be read
	members history.Members         // by rank; empty if not known
	origin  string
	number  []int // by rank: of the job
}

// host and pid are those of a rank, "" and 0 if not known.
func (c *comm) process(r int) (host string, pid int) {
	switch {
	case c.records[r] != nil:
		return c.records[r].Host, c.records[r].Pid
	case len(c.members) > 0:
		return c.members[r].Host, c.members[r].Pid
	}
	return "", 0
}

// Read makes jobs of files, and of the files in folders. Those that hold no history are left out: skipped says why.
func Read(paths ...string) (jobs []*hang.Job, skipped []error, err error) {
	records, skipped, err := history.Read(paths...)
	if err != nil {
		return nil, nil, err
	}
	return Jobs(records, skipped), skipped, nil
}

// Jobs makes jobs of records, the one with the most ranks first. skipped are the errors of Read: files that cannot be
// read are of ranks that have left one.
func Jobs(records []history.Record, skipped []error) []*hang.Job {
	comms := gather(records, skipped)
	b := newBook(comms)
	byJob := map[int][]*comm{}
	for _, c := range comms {
		at := b.find(b.of(c.id, 0))
		byJob[b.job(at)] = append(byJob[b.job(at)], c)
	}
	var jobs []*hang.Job
	for _, at := range slices.Sorted(maps.Keys(byJob)) {
		jobs = append(jobs, b.make(byJob[at]))
	}
	slices.SortStableFunc(jobs, func(a, b *hang.Job) int { return cmp.Compare(len(b.Ranks), len(a.Ranks)) })
	return jobs
}

// gather sorts records by communicator. Of records that disagree on its size those of the most count.
func gather(records []history.Record, skipped []error) []*comm {
	sizes := map[string]map[int]int{}
	for i := range records {
		r := &records[i]
		if sizes[r.Comm] == nil {
			sizes[r.Comm] = map[int]int{}
		}
		sizes[r.Comm][r.Size]++
	}
	all := map[string]*comm{}
	for id, of := range sizes {
		c := &comm{id: id, records: map[int]*history.Record{}, torn: map[int]bool{}}
		for _, n := range slices.Sorted(maps.Keys(of)) {
			if of[n] > of[c.size] {
				c.size = n
			}
		}
		all[id] = c
	}
	for i := range records {
		r, c := &records[i], all[records[i].Comm]
		if r.Size != c.size {
			continue
		}
		if old := c.records[r.Rank]; old == nil || r.Time.After(old.Time) {
			c.records[r.Rank] = r
		}
	}
	for _, err := range skipped {
		u, is := errors.AsType[*history.Unreadable](err)
		if !is {
			continue
		}
		if c := all[u.Comm]; c != nil && u.Rank < c.size && c.records[u.Rank] == nil {
			c.torn[u.Rank] = true
		}
	}
	var list []*comm
	for _, id := range slices.Sorted(maps.Keys(all)) {
		c := all[id]
		for _, r := range slices.Sorted(maps.Keys(c.records)) {
			if of := c.records[r]; len(c.members) == 0 && len(of.Members) > 0 {
				c.members, c.origin = of.Members, of.Origin
			}
		}
		list = append(list, c)
	}
	return list
}

// A book finds out which ranks of communicators are one rank of a job.
type book struct {
	nodes map[string]int // of ranks of communicators
	above []int          // union of nodes that are one rank
	jobs  []int          // union of nodes of one job
	sizes map[string]int // of communicators that Members name, and of all others
}

// of is the node of a communicator's rank.
func (b *book) of(id string, rank int) int {
	key := fmt.Sprint(rank, " ", id)
	n, ok := b.nodes[key]
	if !ok {
		n = len(b.above)
		b.nodes[key] = n
		b.above, b.jobs = append(b.above, n), append(b.jobs, n)
	}
	return n
}

func root(above []int, n int) int {
	for above[n] != n {
		above[n] = above[above[n]]
		n = above[n]
	}
	return n
}

func (b *book) find(n int) int { return root(b.above, n) }
func (b *book) job(n int) int  { return root(b.jobs, n) }

// join makes two nodes one rank.
func (b *book) join(n, m int) {
	b.above[b.find(n)] = b.find(m)
	b.jobs[b.job(n)] = b.job(m)
}

// newBook joins ranks by the number that Members give, and then by their processes: the k-th rank of a process in one
// communicator is the k-th in another, if it has equally many in both.
func newBook(comms []*comm) *book {
	b := &book{nodes: map[string]int{}, sizes: map[string]int{}}
	type process struct {
		host string
		pid  int
	}
	of := map[process]map[*comm][]int{}
	for _, c := range comms {
		b.sizes[c.id] = c.size
		first := b.of(c.id, 0)
		for r := range c.size {
			b.jobs[b.job(b.of(c.id, r))] = b.job(first)
			if c.origin != "" && c.members[r].Number >= 0 {
				b.join(b.of(c.id, r), b.of(c.origin, c.members[r].Number))
			}
			host, pid := c.process(r)
			if p := (process{host, pid}); pid > 0 {
				if of[p] == nil {
					of[p] = map[*comm][]int{}
				}
				of[p][c] = append(of[p][c], r)
			}
		}
		for _, rec := range c.records {
			if rec.Origin != "" {
				b.sizes[rec.Origin] = max(b.sizes[rec.Origin], rec.OriginSize)
			}
		}
	}
	for _, ranks := range of {
		largest := slices.MaxFunc(slices.Collect(maps.Keys(ranks)), func(x, y *comm) int {
			return cmp.Or(cmp.Compare(x.size, y.size), cmp.Compare(y.id, x.id))
		})
		for c, mine := range ranks {
			known := map[int]bool{}
			for _, r := range ranks[largest] {
				known[b.find(b.of(largest.id, r))] = true
			}
			if c == largest || len(mine) != len(ranks[largest]) ||
				slices.ContainsFunc(mine, func(r int) bool { return known[b.find(b.of(c.id, r))] }) {
				continue
			}
			for k, r := range mine {
				b.join(b.of(c.id, r), b.of(largest.id, ranks[largest][k]))
			}
		}
	}
	return b
}

// number gives the ranks of the communicators of a job their numbers in it, and reports whether these are those of one
// communicator.
func (b *book) number(comms []*comm) (n int, sure bool) {
	world := slices.MaxFunc(comms, func(x, y *comm) int {
		return cmp.Or(cmp.Compare(x.size, y.size), cmp.Compare(len(x.records), len(y.records)), cmp.Compare(y.id, x.id))
	})
	id, size := world.id, world.size
	for _, c := range comms {
		if b.sizes[c.origin] >= size && c.origin != "" {
			id, size = c.origin, b.sizes[c.origin]
		}
	}
	numbers := map[int]int{} // by root
	for r := range size {
		numbers[b.find(b.of(id, r))] = r
	}
	n, sure = size, true
	for _, c := range comms {
		c.number = make([]int, c.size)
		for r := range c.size {
			at := b.find(b.of(c.id, r))
			if _, ok := numbers[at]; !ok {
				numbers[at], sure = n, false
				n++
			}
			c.number[r] = numbers[at]
		}
	}
	return n, sure
}

// make makes a job of communicators.
func (b *book) make(comms []*comm) *hang.Job {
	slices.SortFunc(comms, func(x, y *comm) int {
		return cmp.Or(cmp.Compare(y.size, x.size), cmp.Compare(x.id, y.id))
	})
	n, sure := b.number(comms)
	j := &hang.Job{Own: true, Guessed: !sure}
	if !sure {
		j.Notes = append(j.Notes,
			"no communicator has all processes: those that the largest one lacks are numbered behind it")
	}
	j.Rank(min(n, hang.MaxRanks) - 1)
	for i, c := range comms {
		j.Groups = append(j.Groups, hang.Group{Name: c.name(), Desc: hang.Communicator,
			Ranks: slices.Sorted(slices.Values(c.number))})
		for r := range c.size {
			c.rank(j, i, r)
		}
		if v, ok := c.verdict(i); ok {
			j.Verdicts = append(j.Verdicts, v)
		}
	}
	b.after(j, comms)
	b.beside(j, comms)
	failed(j, comms)
	return j
}

// failed notes which communicators had failed before others, by the others' files, and which of them have no file that
// says why.
func failed(j *hang.Job, comms []*comm) {
	before := map[int]map[int][]int{} // by group and rank
	for i, c := range comms {
		for r, rec := range c.records {
			for _, id := range rec.Failed {
				if slices.ContainsFunc(comms, func(x *comm) bool { return x.after(id) }) { // the program went on
					continue
				}
				k := slices.IndexFunc(comms, func(x *comm) bool { return x.id == id })
				if k < 0 { // it may have been added already
					k = slices.IndexFunc(j.Groups, func(g hang.Group) bool { return g.Name == id })
				}
				if k < 0 {
					k = len(j.Groups)
					j.Groups = append(j.Groups, hang.Group{Name: id, Desc: hang.Communicator})
				}
				if before[i] == nil {
					before[i] = map[int][]int{}
				}
				before[i][c.number[r]] = append(before[i][c.number[r]], k)
				if slices.ContainsFunc(j.Verdicts, func(v hang.Verdict) bool { return v.Group == k }) {
					continue
				}
				j.Verdicts = append(j.Verdicts, hang.Verdict{Group: k, Lost: true, Sentence: fmt.Sprintf(
					"communicator %s had failed, by the files of others, and no file of it says why", id)})
			}
		}
	}
	for i := range j.Verdicts {
		j.Verdicts[i].Before = before[j.Verdicts[i].Group]
	}
}

// after reports whether Shrink has made a communicator of another one.
func (c *comm) after(id string) bool {
	for _, rec := range c.records {
		if rec.After == id {
			return true
		}
	}
	return false
}

// name is the communicator's, with that of the program.
func (c *comm) name() string {
	for _, r := range slices.Sorted(maps.Keys(c.records)) {
		if of := c.records[r]; of.Name != "" {
			return fmt.Sprintf("%s (%s)", c.id, of.Name)
		}
	}
	return c.id
}

// rank adds what is known of a rank of the communicator of index group.
func (c *comm) rank(j *hang.Job, group, r int) {
	to := j.Rank(c.number[r])
	if to == nil {
		return
	}
	if host, pid := c.process(r); pid > 0 && to.Pid == 0 {
		to.Host, to.Pid, to.Name = host, pid, fmt.Sprintf("process %d on host %s", pid, host)
	}
	rec := c.records[r]
	file := history.FileOf(c.id, r)
	switch {
	case rec == nil && c.torn[r], rec != nil && !rec.State.Heard:
		to.Torn, to.Torns = true, append(to.Torns, file)
	case rec == nil:
		to.Absent = append(to.Absent, file)
	}
	if rec != nil && (rec.State.Heard || rec.Cause != "") {
		to.Source = file
	}
	if rec == nil || !rec.State.Heard || c.stale(rec) {
		to.Blind = append(to.Blind, group)
	}
	if rec == nil {
		to.Mute = to.Mute || c.mute(r)
		return
	}
	if rec.State.Heard && rec.Cause == "" { // of what has failed the time-out has told how long ranks waited
		to.Taken, to.By = rec.Time, hang.Content
	}
	if rec.State.Heard && !c.stale(rec) {
		to.Calls = append(to.Calls, c.calls(group, rec)...)
	}
	if rec.State.Unsure {
		to.Unsure = append(to.Unsure, group)
	}
}

// mute reports whether a rank does not answer, by what the records of others say.
func (c *comm) mute(r int) bool {
	for _, rec := range c.records {
		if slices.Contains(rec.Silent, r) {
			return true
		}
	}
	return false
}

// Clocks of two hosts may differ by so much, those of one host by less.
const (
	farClocks  = time.Minute
	nearClocks = 500 * time.Millisecond
)

// stale reports whether a record of a rank in no call was written before others began to wait for it.
func (c *comm) stale(rec *history.Record) bool {
	if rec.State.At > 0 || rec.State.Peer >= 0 || rec.Cause != "" {
		return false
	}
	for _, w := range c.records {
		slack := farClocks
		if w.Host == rec.Host {
			slack = nearClocks
		}
		if w.State.At > rec.State.Last && w.Cause == "" && rec.Time.Add(slack).Before(w.Time.Add(-w.Waited)) {
			return true
		}
	}
	return false
}

// calls are the calls of a record: all have ended but the one that the rank is in.
func (c *comm) calls(group int, rec *history.Record) (calls []hang.Call) {
	s := &rec.State
	since := rec.Time.Add(-rec.Waited)
	wait := &hang.Wait{For: -1, Sending: s.Sending, Round: s.Round, Step: s.Step, Waited: rec.Waited, Still: rec.Still}
	if s.Peer >= 0 {
		wait.For = c.number[s.Peer]
	}
	add := func(call hang.Call, open bool) {
		call.Group, call.State = group, hang.Ended
		if open {
			call.State, call.At, call.Wait = hang.Begun, since, wait
		}
		calls = append(calls, call)
	}
	last := uint64(0)
	for _, x := range rec.Calls {
		if x.Number > 0 {
			kind, _, _ := strings.Cut(x.What, "(")
			last = max(last, x.Number)
			add(hang.Call{Number: int64(x.Number), Kind: kind, Peer: -1, Sign: x.What}, x.Number == s.At)
		}
	}
	if n := max(s.At, s.Last); n > last { // only its number is known
		add(hang.Call{Number: int64(n), Peer: -1}, n == s.At)
	}
	if s.At == 0 && s.Peer >= 0 {
		add(hang.Call{Number: 1, Kind: "message", Peer: wait.For, Send: s.Sending, Sizes: hang.Sizes{In: -1, Out: -1}}, true)
	}
	return calls
}

// after notes which communicators Shrink has made of others that had failed.
func (b *book) after(j *hang.Job, comms []*comm) {
	for i, c := range comms {
		for _, rec := range c.records {
			if k := slices.IndexFunc(comms, func(x *comm) bool { return x.id == rec.After }); k >= 0 && k != i {
				j.Groups[i].After = k + 1
			}
		}
	}
}

// beside marks ranks that wait in communicators of which they have left no file.
func (b *book) beside(j *hang.Job, comms []*comm) {
	for _, c := range comms {
		for _, rec := range c.records {
			to := j.Rank(c.number[rec.Rank])
			for _, id := range rec.Beside {
				k := slices.IndexFunc(comms, func(x *comm) bool { return x.id == id })
				if to != nil && (k < 0 || slices.Contains(to.Blind, k)) && !slices.Contains(to.Hidden, id) {
					to.Hidden = append(to.Hidden, id)
				}
				if k < 0 && !slices.Contains(j.Lost, id) {
					j.Lost = append(j.Lost, id)
				}
			}
		}
	}
}

// died matches the Cause of ranks that have ended.
var died = regexp.MustCompile(`\branks? [0-9, and]+ died\b`)

// verdict is what the ranks of the communicator of index group have found as its failure, by judge.Elect. The sentence
// is that of the first rank that says the same, else of the first.
func (c *comm) verdict(group int) (v hang.Verdict, ok bool) {
	v = hang.Verdict{Group: group, Knew: map[int]time.Time{}, Unaware: map[int]time.Time{}}
	var votes []judge.Vote
	var failed []*history.Record
	for _, r := range slices.Sorted(maps.Keys(c.records)) {
		rec := c.records[r]
		if rec.Cause == "" {
			v.Unaware[c.number[r]] = rec.Time
			continue
		}
		votes = append(votes, judge.Vote{Culprits: rec.Culprits, Candidates: rec.Candidates, Path: rec.Path})
		failed = append(failed, rec)
		v.Knew[c.number[r]] = rec.Time
		if v.At.IsZero() || rec.Time.Before(v.At) {
			v.At = rec.Time
		}
	}
	if len(failed) == 0 {
		return v, false
	}
	culprits, candidates := judge.Elect(votes)
	first := failed[max(0, slices.IndexFunc(failed, func(r *history.Record) bool {
		return slices.Equal(r.Culprits, culprits)
	}))]
	v.TimedOut = first.Late != "" || strings.Contains(first.Cause, "timed out in ")
	v.Died = !v.TimedOut && died.MatchString(first.Cause)
	v.Slow = first.Late == judge.Slow.String()
	v.Silent = first.Late == judge.Silent.String() || strings.Contains(first.Cause, "answered nothing")
	v.Sentence = fmt.Sprintf("communicator %s of %d ranks: %s", c.name(), c.size, first.Cause)
	if len(culprits) > 0 && !slices.Equal(first.Culprits, culprits) {
		v.Sentence += "; what the ranks say together is the fault of " + history.Ranks(culprits)
	}
	if len(candidates) > 0 && len(first.Candidates) == 0 { // else it says so
		v.Sentence += fmt.Sprintf("; who is to blame cannot be known: %s, or the network between them",
			history.Ranks(candidates))
	}
	var there []string
	for _, r := range slices.Concat(culprits, candidates) {
		if c.number[r] != r && len(there) < 4 {
			there = append(there, fmt.Sprintf("its rank %d is rank %d of the job", r, c.number[r]))
		}
	}
	if len(there) > 0 {
		v.Sentence += "; " + strings.Join(there, ", ")
	}
	for _, r := range culprits {
		if rec := c.records[r]; v.Died && rec != nil && rec.Cause == "" && rec.Failed == nil &&
			v.At.Sub(rec.Time).Abs() < farClocks {
			v.Outlived = append(v.Outlived, c.number[r])
		}
		v.Culprits = append(v.Culprits, c.number[r])
	}
	slices.Sort(v.Culprits)
	return v, true
}
