package rendezvous

import (
	"maps"
	"slices"
	"time"
)

// A rank that has called Fail by its own will may still go on, and has known of the failure for longest: the others
// wait 2 s for it. The time is counted by its answers, so that a rank whose process is slow or stopped has as much.
const (
	quitPolls = 20
	quitPoll  = 100 * time.Millisecond
)

// A round gathers the ranks that go on after a failure.
type round struct {
	number uint64
	ranks  *ranks
	out    *outbox
	cuts   *cuts
	come   map[int]uint64 // by rank that has come: the Round of its last Regroup, 0 if it is a member but has given up
	quits  map[int]int    // by rank that has called Fail and has not come: how often it has shown that it runs
	over   bool           // the ranks that go on are known
	end    time.Time      // of the timer
	list   []int          // the ranks that go on
	met    *Met           // where, nil until that is known
}

// await has the round end after a wait at the latest. The shortest wait counts.
func (t *round) await(now time.Time, wait time.Duration) {
	if end := now.Add(wait); t.end.IsZero() || end.Before(t.end) {
		t.end = end
		t.out.do(Begin{Timer{Of: Round}, wait})
	}
}

// giveUp notes that a rank waits no more.
func (t *round) giveUp(rank int) {
	switch _, come := t.come[rank]; {
	case come && !t.over:
		delete(t.come, rank)
	case come:
		t.come[rank] = 0
		t.missed(rank, "it has given up waiting")
	}
}

// complete reports whether all ranks have come that can. It asks those that have failed by their own will.
func (t *round) complete(silent func(rank int) bool) bool {
	all := true
	for _, q := range t.ranks.all() {
		if _, come := t.come[q]; come || silent(q) || t.cuts.out[q] {
			continue
		}
		shown, asked := t.quits[q]
		if t.ranks.quit[q] && !asked {
			t.quits[q] = 0
			t.out.do(Begin{Timer{Quitter, q}, quitPoll})
		}
		all = all && shown == quitPolls
	}
	return all
}

// shown notes that a rank has shown that it runs, and reports whether that was often enough.
func (t *round) shown(rank int) bool {
	n, asked := t.quits[rank]
	if t.over || !asked || n == quitPolls {
		return false
	}
	if t.quits[rank]++; n+1 < quitPolls {
		t.out.do(Begin{Timer{Quitter, rank}, quitPoll})
	}
	return n+1 == quitPolls
}

// finish ends the round, and reports whether its members are to meet.
func (t *round) finish(f *Failure) (meets bool) {
	t.over = true
	for _, q := range t.cuts.cut(f, func(rank int) bool { _, come := t.come[rank]; return come }) {
		if number := t.come[q]; number > 0 && !t.ranks.gone[q] {
			t.out.tell([]int{q}, &Regrouped{Round: number, Reason: t.cuts.why})
		}
		delete(t.come, q)
	}
	t.list = slices.DeleteFunc(t.ranks.all(), func(q int) bool { _, come := t.come[q]; return !come })
	if len(t.list) < 2 {
		t.tell(Met{})
		return false
	}
	t.out.do(Meet{t.number, t.list, maps.Clone(t.cuts.failed)})
	return true
}

// tell tells all who wait who goes on, and where they meet.
func (t *round) tell(met Met) {
	t.met = &met
	if met.Err == "" {
		t.out.do(Regrouping{t.list})
	} else {
		t.out.do(Regrouping{[]int{}})
	}
	for _, q := range t.list {
		if t.ranks.gone[q] {
			t.missed(q, "it has gone")
		} else if t.come[q] == 0 {
			t.missed(q, "it has given up waiting")
		}
	}
	waiting := map[uint64][]int{} // usually of one round
	for _, q := range t.ranks.all() {
		if number, come := t.come[q]; come {
			waiting[number] = append(waiting[number], q)
		}
	}
	for _, number := range slices.Sorted(maps.Keys(waiting)) {
		t.out.tell(waiting[number], &Regrouped{Round: number, Members: t.list, ID: met.ID, Reason: met.Err, Here: met.Here})
	}
}

// missed tells the members of a new group that a member left before it came there.
func (t *round) missed(rank int, why string) {
	if t.met == nil || t.met.Err != "" {
		return
	}
	if i := slices.Index(t.list, rank); i >= 0 && len(t.list) > 1 {
		t.out.do(Miss{*t.met, i, why})
	}
}
