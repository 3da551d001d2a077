package ncclog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/internal/given"
)

// timeOf makes the number of a line a time, which keeps calls in the order of lines. Most logs have no times.
func timeOf(line int64) time.Time { return time.Unix(0, line) }

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
