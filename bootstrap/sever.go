// Ranks that live and do not reach each other: which go on after a failure.

package bootstrap

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ringo-go/ringo/trace/history"
	"github.com/ringo-go/ringo/trace/judge"
)

// severed is what a coordinator knows of paths between ranks that live.
type severed struct {
	homes  [][]string   // by rank, twice: the names of its machine and of its process, "" if not known; nil for Local
	failed paths        // failed once, in this group or one before it
	out    map[int]bool // ranks that are left out of all later groups
	why    string       // why out
}

// paths are pairs of homes, each pair sorted.
type paths map[[2]string]bool

// homes are the names of the ranks' machines, and of their processes.
func (l *lobby) homes() [][]string {
	machines, processes := make([]string, l.size), make([]string, l.size)
	for r, s := range l.seats {
		machines[r], _, _ = strings.Cut(s.Machine, containers)
		processes[r] = fmt.Sprint(s.Pid, s.Host, s.Machine)
	}
	return [][]string{machines, processes}
}

// sever leaves out the ranks at one end of a path, if the failure is that of a path and both its ends want to go on. A
// connection may break although its path is well, so that counts the second time. The end with the hub's process goes
// on, else that with the lowest rank. Under mu.
func (r *coordinator) sever(t *muster) {
	f, v := r.failure, &r.severed
	if f == nil && r.pending != nil {
		f = &r.pending.Failure
	}
	if !f.OfPath() {
		return
	}
	a, b := f.Culprits[0], f.Culprits[1]
	_, comesA := t.come[a]
	if _, comesB := t.come[b]; !comesA || !comesB {
		return
	}
	names := v.apart(a, b, r.size)
	path := [2]string{min(names[a], names[b]), max(names[a], names[b])}
	what := "nothing moves between ranks %d and %d"
	if f.Late == nil {
		if !v.failed[path] {
			if v.failed == nil {
				v.failed = paths{}
			}
			v.failed[path] = true
			return
		}
		what = "ranks %d and %d have failed with each other again"
	}
	first := func(q int) int {
		if slices.ContainsFunc(r.hosts, func(host int) bool { return names[host] == names[q] }) {
			return -1
		}
		return slices.Index(names, names[q])
	}
	if first(b) < first(a) {
		a, b = b, a
	}
	var out []int
	if v.out == nil {
		v.out = map[int]bool{}
	}
	for q, name := range names {
		if name == names[b] {
			out, v.out[q] = append(out, q), true
		}
	}
	v.why = fmt.Sprintf(what+", so the others leave out %s: mend the network between the two (ringo check), then open "+
		"again, or Grow", f.Culprits[0], f.Culprits[1], history.Ranks(out))
	for _, q := range out {
		if round := t.come[q]; round > 0 && !r.gone[q] {
			r.tell([]int{q}, &regrouped{Round: round, Reason: v.why})
		}
		delete(t.come, q)
	}
}

// apart are names by rank that differ for two ranks: of machines, else of processes, else numbers.
func (v *severed) apart(a, b, size int) []string {
	for _, names := range v.homes {
		if names[a] != "" && names[b] != "" && names[a] != names[b] {
			return names
		}
	}
	numbers := make([]string, size)
	for q := range numbers {
		numbers[q] = strconv.Itoa(q)
	}
	return numbers
}

// OfPath reports whether the failure is that of the path between its two Culprits.
func (f *Failure) OfPath() bool {
	switch {
	case f == nil || len(f.Culprits) != 2 || f.Died || f.Left || f.Disagree != nil:
		return false
	case f.Late != nil:
		return f.Late.Reason == judge.Link
	}
	return f.Path
}
