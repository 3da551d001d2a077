package hang

import (
	"slices"
	"time"
)

// A Reason is why a job stands still.
type Reason uint8

const (
	Nothing   Reason = iota // no rank waits
	Unknown                 // ranks wait, and the files do not tell for whom
	Died                    // ranks have ended, by a log
	Silent                  // ranks left nothing
	NotMade                 // ranks have not made a group that others use
	Absent                  // ranks never made a call in which others wait, and wait in no other
	Different               // ranks made different calls
	Shapes                  // ranks made the same call with different types or sizes
	Roots                   // ranks made the same call with different roots
	Order                   // ranks called two groups, or messages, in different order
	Slow                    // ranks came, but after the others' time-out
	Short                   // the time-out is shorter than, or near, earlier waits of the job
	Blocked                 // ranks have made the call, and their GPUs have not come to it
	Stuck                   // all ranks are in the call, and nothing moves
	Link                    // all ranks are in the call, and nothing moves between two
	Failed                  // the group has found it while its ranks lived
	Reasons                 // the number of reasons
)

func (r Reason) String() string {
	return [...]string{"nothing", "unknown", "died", "silent", "not-made", "absent", "different", "shapes", "roots",
		"order", "slow", "short", "blocked", "stuck", "link", "failed"}[r]
}

// A cause is a reason at a place.
type cause struct {
	Reason
	culprits []int
	at       place
	sides    []side        // of Different, Shapes and Order
	quiet    bool          // no rank is known to wait
	alike    bool          // of Unknown: all have made the call, and it is not known whether their GPUs have begun it
	opposite bool          // of Order: ranks are in the calls of both sides, and made them in another order
	old      []int         // of Unknown: ranks whose files are too old; of Short: ranks that had not come in time
	most     []int         // of Unknown: ranks that have not come, if they are more than half
	late     time.Duration // of Slow: how late the ranks were; of Short: how long the job waited before
	doubt    *doubt        // of Nothing and Unknown: the cause that it were if ranks had waited for long
	unproven []int         // of Unknown with sides: ranks that may belong to either side
	verdict  *Verdict      // of Failed, and of Unknown, Died and Short where there is one
	between  []int         // of Short: ranks between which data have moved
}

// A side is ranks that did the same, and their call.
type side struct {
	ranks []int
	call  *Call
	shift int // of Different: by how many calls these ranks are ahead of the first side
}

// A place is where ranks wait: a collective of a group, or the messages from one rank to another.
type place struct {
	group    int
	number   int64 // -1 for messages
	from, to int
}

// A judge looks at one job.
type judge struct {
	*Job
	calls []map[int64]map[int]*Call // collectives by group, number and rank
	last  []map[int]int64           // the newest collective by group and rank
	// by rank, in the order made: the first call of each group that has not ended, and messages that have not
	waits [][]*Call
	first []int64      // by group: the first collective in which a rank waits, -1 if none does
	old   map[int]bool // ranks whose files were written before the others waited, or in another run
}

func newJudge(j *Job) *judge {
	j.Sort()
	old := j.outdated()
	j.infer()
	jd := &judge{Job: j, waits: make([][]*Call, len(j.Ranks)), old: old}
	for range j.Groups {
		jd.calls = append(jd.calls, map[int64]map[int]*Call{})
		jd.last = append(jd.last, map[int]int64{})
		jd.first = append(jd.first, -1)
	}
	for r := range j.Ranks {
		waiting := map[place]bool{}
		for i := range j.Ranks[r].Calls {
			c := &j.Ranks[r].Calls[i]
			at := jd.place(r, c)
			if !c.message() {
				at.number = 0
				of := jd.calls[c.Group]
				if of[c.Number] == nil {
					of[c.Number] = map[int]*Call{}
				}
				if c.before = of[c.Number][r]; c.before == nil || c.before.ended() || !c.ended() {
					of[c.Number][r] = c
				}
				jd.last[c.Group][r] = max(jd.last[c.Group][r], c.Number)
			}
			if !c.ended() && !waiting[at] {
				waiting[at] = true
				jd.waits[r] = append(jd.waits[r], c)
				if f := &jd.first[c.Group]; !c.message() && (*f < 0 || c.Number < *f) {
					*f = c.Number
				}
			}
		}
	}
	return jd
}

// place is the place of a rank's call.
func (jd *judge) place(r int, c *Call) place {
	switch {
	case c.message() && c.Send:
		return place{c.Group, -1, r, c.Peer}
	case c.message():
		return place{c.Group, -1, c.Peer, r}
	}
	return place{group: c.Group, number: c.Number}
}

// members are the ranks of a place.
func (jd *judge) members(at place) []int {
	if at.number < 0 {
		return []int{at.from, at.to}
	}
	if ranks := jd.Groups[at.group].Ranks; len(ranks) > 0 {
		return ranks
	}
	var ranks []int // the group's members are not known: the ranks that have called in it
	for r := range jd.Ranks {
		if _, ok := jd.last[at.group][r]; ok {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// in is the call of a rank at a place, nil if the rank has made none. A message that has ended does not count.
func (jd *judge) in(at place, r int) *Call {
	if at.number >= 0 {
		return jd.calls[at.group][at.number][r]
	}
	for _, c := range jd.waits[r] {
		if c.message() && jd.place(r, c) == at {
			return c
		}
	}
	return nil
}

// passed reports whether a rank has come further than a collective, whose record is lost.
func (jd *judge) passed(at place, r int) bool {
	return at.number >= 0 && jd.last[at.group][r] > at.number && jd.in(at, r) == nil
}

// earliest is the place that holds up a rank's call: for a collective the first of its group in which a rank waits.
func (jd *judge) earliest(r int, c *Call) place {
	at := jd.place(r, c)
	if at.number >= 0 {
		at.number = jd.first[c.Group]
	}
	return at
}

// find follows each place in which ranks wait to the cause, and takes the best one.
func (jd *judge) find() cause {
	var best cause
	seen := map[place]bool{}
	for r := range jd.Ranks {
		for _, c := range jd.waits[r] {
			at := jd.earliest(r, c)
			if seen[at] {
				continue
			}
			found := jd.settle(at, jd.follow(at, nil, seen))
			if better(found, best) || best.Reason == Nothing && found.doubt != nil {
				best = found
			}
		}
	}
	if best.Reason != Nothing {
		return best
	}
	if quiet := jd.quiet(); best.doubt == nil || quiet.Reason == Died || quiet.Reason == Slow || quiet.Reason == Short {
		return quiet
	}
	return best
}

// order is how much a reason explains. A death, for example, explains why ranks are absent.
var order = [Reasons]int{
	Nothing: 0, Unknown: 1, Stuck: 2, Blocked: 3, Silent: 4, Order: 5, Short: 6, Slow: 6, NotMade: 6, Absent: 7, Roots: 8,
	Shapes: 8, Different: 9, Died: 10, Link: 3,
}

func better(a, b cause) bool { return order[a.Reason] > order[b.Reason] }

// follow finds what holds up a place. way is the places that lead to it.
func (jd *judge) follow(at place, way []place, seen map[place]bool) cause {
	if i := slices.Index(way, at); i >= 0 {
		return jd.circle(way[i:])
	}
	if seen[at] {
		return cause{at: at}
	}
	seen[at] = true
	way = append(way, at)
	m := jd.sort(at)
	if differ := jd.differ(at); differ.Reason != Nothing {
		return differ.proven(append(m.unknown, m.old...))
	}
	var behind []int
	if len(m.late) < len(jd.members(at))-len(m.unknown) { // other ranks' GPUs have begun the call
		behind = m.late
	}
	if found := jd.surely(at, m); found.Reason != Nothing {
		return found
	}
	if found := jd.elsewhere(append(m.busy, behind...), at, way, seen); found.Reason != Nothing {
		return found
	}
	// no file tells that these are not at this place: what holds them up elsewhere counts, a circle back to here does not
	if found := jd.elsewhere(m.unknown, at, nil, seen); len(found.culprits) > 0 {
		return found
	}
	switch {
	case len(m.old) > 0:
		return cause{Reason: Unknown, at: at, old: m.old}
	case len(m.unknown) > 0:
		return jd.silent(at, m.unknown)
	case len(m.unsure) > 0:
		return jd.inside(at, m.unsure)
	case len(m.busy)+len(m.idle) > 0, jd.Groups[at.group].Open:
		return cause{Reason: Unknown, at: at}
	case len(behind) > 0:
		return cause{Reason: Blocked, culprits: behind, at: at}
	case len(m.late) > 0:
		return cause{Reason: Unknown, at: at}
	}
	return jd.stuck(at)
}

// stuck is the cause at a place in which all ranks are. Where nothing shows whether GPUs have begun the call, something
// before the call may hold them up.
func (jd *judge) stuck(at place) cause {
	open := jd.open(at)
	if found := jd.inside(at, nil); found.Reason != Unknown {
		return found
	}
	if slices.ContainsFunc(open, func(r int) bool { return jd.in(at, r).State == Open }) {
		if c := jd.opposite(at, open); c.Reason != Nothing {
			return c
		}
		if len(jd.Faults) == 0 {
			return cause{Reason: Unknown, at: at, alike: true}
		}
	}
	return cause{Reason: Stuck, culprits: open, at: at}
}

// sorted are the members of a place by their state there: dead, without a file, with too old a file, late (their GPUs
// have not begun the call), without the group, in no call, in a call elsewhere, in no call as far as is known.
type sorted struct {
	dead, unknown, old, late, unmade, idle, busy, unsure []int
}

// sort finds the state of each member of a place. Members that are in the call there are in none of the lists.
func (jd *judge) sort(at place) (m sorted) {
	for _, r := range jd.members(at) {
		rank := jd.Rank(r)
		c := jd.in(at, r)
		switch {
		case rank.Death != "" && (c == nil || !c.ended()), rank.Raised != "" && c == nil && len(jd.waits[r]) == 0:
			m.dead = append(m.dead, r)
		case jd.old[r], c == nil && jd.anew(at, r):
			m.old = append(m.old, r)
		case rank.Source == "", c == nil && jd.hidden(at.group, r):
			m.unknown = append(m.unknown, r)
		case c != nil && c.State == Called:
			m.late = append(m.late, r)
		case c != nil || jd.passed(at, r):
		case at.number >= 0 && jd.unmade(at.group, r):
			m.unmade = append(m.unmade, r)
		case len(jd.waits[r]) == 0 && slices.Contains(rank.Unsure, at.group):
			m.unsure = append(m.unsure, r)
		case len(jd.waits[r]) == 0:
			m.idle = append(m.idle, r)
		default:
			m.busy = append(m.busy, r)
		}
	}
	return m
}

// hidden reports whether it is not known where a rank is that has not made a call of a group, as far as files tell: one
// that is in no call may be in one of a group of which its file is missing.
func (jd *judge) hidden(group, r int) bool {
	rank := &jd.Ranks[r]
	return rank.Mute || slices.Contains(rank.Blind, group) ||
		len(jd.waits[r]) == 0 && len(rank.Hidden)+len(rank.Blind) > 0
}

// surely is a cause that lies at a place itself.
func (jd *judge) surely(at place, m sorted) cause {
	switch idle := len(m.idle) > 0 && !jd.together(m.idle); {
	case len(m.dead) > 0:
		return cause{Reason: Died, culprits: m.dead, at: at}
	case len(m.unmade) > 0:
		return cause{Reason: NotMade, culprits: m.unmade, at: at}
	case idle:
		if usual := jd.usual(at); 2*usual >= jd.limit(at) && usual > 0 {
			return cause{Reason: Short, at: at, late: usual, old: m.idle}
		}
		if 2*len(m.idle) > len(jd.members(at)) { // the ranks that wait may have made a call too many
			return cause{Reason: Unknown, at: at, most: m.idle}
		}
		return cause{Reason: Absent, culprits: m.idle, at: at}
	case len(m.idle)+len(m.unknown)+len(m.old)+len(m.busy) > 0:
		return cause{}
	}
	return jd.slow(at)
}

// elsewhere follows ranks to the other places where they wait. A rank that has made the call at this place too is held
// up by calls that it made before, and by later calls only if its GPU has begun them.
func (jd *judge) elsewhere(ranks []int, at place, way []place, seen map[place]bool) (best cause) {
	followed := map[place]bool{} // for thousands of ranks
	for _, r := range ranks {
		behind := false
		for _, c := range jd.waits[r] {
			next := jd.earliest(r, c)
			if next == at {
				behind = jd.in(at, r) != nil
				continue
			}
			if behind && c.State != Begun || followed[next] {
				continue
			}
			followed[next] = true
			if found := jd.follow(next, way, seen); better(found, best) {
				best = found
			}
		}
	}
	return best
}

// unmade reports whether a rank is known to have made groups, and not this one.
func (jd *judge) unmade(group, r int) bool {
	made := jd.Ranks[r].Made
	_, used := jd.last[group][r]
	return len(made) > 0 && !used && !slices.Contains(made, group)
}

// silent is the cause at a place whose other members left nothing. Those that were asked and do not answer are to
// blame. A file that is only missing proves nothing: it may not have been copied.
func (jd *judge) silent(at place, unknown []int) cause {
	mute := slices.DeleteFunc(slices.Clone(unknown), func(r int) bool { return !jd.Ranks[r].Mute })
	if len(mute) < len(unknown) || 2*len(mute) > len(jd.Ranks) {
		return cause{Reason: Unknown, at: at}
	}
	return cause{Reason: Silent, culprits: mute, at: at}
}

// open are the ranks that have made the call at a place and not ended it.
func (jd *judge) open(at place) (ranks []int) {
	for _, r := range jd.members(at) {
		if c := jd.in(at, r); c != nil && !c.ended() {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// proven is a cause of two sides if the smaller one is the smaller even with all ranks that may belong to it.
func (c cause) proven(unknown []int) cause {
	if len(unknown) == 0 || len(c.sides) < 2 {
		return c
	}
	small, large := len(c.sides[1].ranks), len(c.sides[0].ranks)
	if small+len(unknown) < large {
		return c
	}
	c.Reason, c.culprits, c.unproven = Unknown, nil, unknown
	return c
}
