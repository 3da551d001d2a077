package ncclog

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/internal/given"
)

// timeOf makes the number of a line a time, which keeps calls in the order of lines. Most logs have no times.
func timeOf(line int64) time.Time { return time.Unix(0, line) }

var waits = regexp.MustCompile(`ran for (\d{1,12}) milliseconds before timing out`)

// stamp is the first time in a line, such as 2006-01-02T15:04:05.999 or 2006/01/02 15:04:05; zero if there is none.
func stamp(line string) time.Time {
	const before = 256
	for i := 4; i+15 <= len(line) && i < before; i++ {
		if c := line[i]; c != '-' && c != '/' || line[i+3] != c || line[i+9] != ':' || line[i+6] != ' ' && line[i+6] != 'T' {
			continue
		}
		text := line[i-4:i] + "-" + line[i+1:i+3] + "-" + line[i+4:i+6] + " " + line[i+7:i+15]
		t, err := time.Parse(time.DateTime, text)
		if err != nil || t.Unix() <= 0 {
			continue
		}
		rest := line[i+15:]
		if len(rest) > 1 && (rest[0] == '.' || rest[0] == ',') {
			unit := time.Second / 10
			for k := 1; k < len(rest) && rest[k] >= '0' && rest[k] <= '9'; k++ {
				t = t.Add(time.Duration(rest[k]-'0') * unit)
				unit /= 10
			}
		}
		return t
	}
	return time.Time{}
}

// clock reads the time of a line, which NCCL, a launcher or the program has written. Zones are those of the file.
func (l *log) clock(file, line string) {
	l.time = stamp(line)
	if l.time.After(l.last[file]) {
		l.last[file] = l.time
	}
	if l.first.IsZero() {
		l.first = l.time
	}
	if !strings.Contains(line, "before timing out") {
		return
	}
	if m := waits.FindStringSubmatch(line); m != nil {
		l.ran[file] = max(l.ran[file], time.Duration(given.Number(m[1]))*time.Millisecond)
	}
}

// date gives calls the times of their lines, and ranks that of the newest line, if all calls have one and it moves on.
func (l *log) date(j *hang.Job) {
	moves := false
	for _, t := range l.last {
		moves = moves || t.After(l.first)
	}
	for _, c := range l.comms {
		moves = moves && !slices.ContainsFunc(c.times, time.Time.IsZero)
	}
	if j.Glance = !moves; !moves {
		return
	}
	for _, c := range l.comms {
		for i := range c.calls { // the order of lines is that of calls
			c.calls[i].At = c.times[i].Add(c.calls[i].At.Sub(timeOf(0)))
		}
	}
	for r := range j.Ranks {
		k := &j.Ranks[r]
		if k.By = hang.LastLine; k.Source != "" {
			k.Taken = l.last[k.Source].Add(l.ran[k.Source])
		}
	}
}

// job makes a job of all lines. Ranks have their numbers in the largest communicator if that has all processes. Else
// processes are numbered by host, process and GPU, and a note says so.
func (l *log) job() *hang.Job {
	j := &hang.Job{Notes: l.notes, Faults: l.faults}
	groups := map[string][]*comm{}
	all := map[process]int{}
	for _, c := range l.comms {
		groups[c.id] = append(groups[c.id], c)
		all[c.process] = -1
	}
	ids := slices.Sorted(maps.Keys(groups))
	world := ""
	for _, id := range ids {
		if g := groups[id]; world == "" || g[0].size > groups[world][0].size {
			world = id
		}
	}
	known := len(all) > 0 && numbered(all, groups[world])
	if known {
		j.Rank(groups[world][0].size - 1)
	} else if len(all) > 0 {
		j.Guessed = true
		j.Notes = append(j.Notes, "no communicator has all processes: ranks are numbered by node, process and GPU")
		for i, p := range slices.SortedFunc(maps.Keys(all), compare) {
			all[p] = i
			j.Rank(i)
		}
	}
	for p, r := range all {
		if to := j.Rank(r); to != nil {
			to.Name, to.Pid = p.String(), p.pid
		}
	}
	for _, c := range l.comms {
		if to := j.Rank(all[c.process]); to != nil && to.Source == "" {
			to.Source = c.file
		}
	}
	l.date(j)
	for _, id := range ids { // a rank may wait in a call that the log lacks: then nobody may be accused
		if !l.whole(groups[id], known && id == world) {
			j.Notes = append(j.Notes,
				fmt.Sprintf("of communicator %s of %d ranks lines are torn or missing, or it cannot be told from another, or it "+
					"carries messages", given.Printable(id), groups[id][0].size))
			return j
		}
	}
	for _, id := range ids {
		l.group(j, id, groups[id], all, known && id == world)
	}
	return j
}

// numbered gives processes the ranks of a communicator, and reports whether that has all processes, each once.
func numbered(all map[process]int, world []*comm) bool {
	of := map[int]process{}
	for _, c := range world {
		if p, ok := of[c.rank]; ok && p != c.process || all[c.process] >= 0 && all[c.process] != c.rank {
			return false
		}
		of[c.rank], all[c.process] = c.process, c.rank
	}
	return len(of) == len(all)
}

func compare(p, q process) int {
	return cmp.Or(cmp.Compare(p.host, q.host), cmp.Compare(p.pid, q.pid), cmp.Compare(p.gpu, q.gpu))
}

// whole reports whether the log surely has all calls of the ranks of a communicator.
func (l *log) whole(comms []*comm, world bool) bool {
	seen := map[int]bool{}
	for _, c := range comms {
		if seen[c.rank] || c.size != comms[0].size || c.torn || c.ambiguous || c.message ||
			l.torn[process{host: c.host, pid: c.pid, gpu: -1}] {
			return false
		}
		seen[c.rank] = true
	}
	return world || len(seen) == comms[0].size
}

// group adds a communicator.
func (l *log) group(j *hang.Job, id string, comms []*comm, all map[process]int, world bool) {
	seen := map[int]bool{}
	var ranks []int
	for _, c := range comms {
		ranks = append(ranks, all[c.process])
		seen[c.rank] = true
	}
	if world {
		for r := range comms[0].size {
			if !seen[r] {
				ranks = append(ranks, r)
			}
		}
	}
	slices.Sort(ranks)
	g := j.GroupOf(given.Printable(id), hang.Communicator, ranks)
	initial := slices.ContainsFunc(comms, func(c *comm) bool { return !c.made && !c.ended })
	for _, c := range comms {
		to := j.Rank(all[c.process])
		if initial {
			call := hang.Call{Group: g, Kind: "CommInit", Peer: -1, State: hang.Begun}
			if c.made || c.ended {
				call.State = hang.Ended
			}
			to.Calls = append(to.Calls, call)
			continue
		}
		for _, call := range c.calls {
			call.Group = g
			if c.ended {
				call.State = hang.Ended
			}
			to.Calls = append(to.Calls, call)
		}
	}
}
