package hang

import (
	"slices"
)

// A Reason is why a job stands still.
type Reason uint8

const (
	Nothing   Reason = iota // no rank waits
	Unknown                 // ranks wait, and what is there does not say for whom
	Died                    // ranks have ended, as a log says
	Silent                  // ranks left nothing
	NotMade                 // ranks have not made a group that others use
	Absent                  // ranks never made a call in which others wait, and are in no other
	Different               // ranks called different things
	Shapes                  // ranks called the same with different types or sizes
	Order                   // ranks called two groups, or messages, in different order
	Blocked                 // ranks have made the call, and their GPUs have not come to it
	Stuck                   // all are in it, and nothing moves
	Reasons
)

func (r Reason) String() string {
	return [...]string{"nothing", "unknown", "died", "silent", "not-made", "absent", "different", "shapes", "order", "blocked", "stuck"}[r]
}

// A cause is a reason at a place.
type cause struct {
	Reason
	culprits []int
	at       place
	sides    []side // of Different, Shapes and Order
	quiet    bool   // no rank is known to wait
}

// A side is ranks that did the same, and their call.
type side struct {
	ranks []int
	call  *Call
	shift int // of Different: what they call is what the others call so much later
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
	waits [][]*Call                 // by rank: of each group the first call that has not ended, and messages; as they were made
	first []int64                   // by group: the first collective in which a rank waits, -1 if none does
}

func newJudge(j *Job) *judge {
	j.Sort()
	j.infer()
	jd := &judge{Job: j, waits: make([][]*Call, len(j.Ranks))}
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
				if of[c.Number][r] == nil || !c.ended() { // several make up a coalesced one
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

// place is where a rank waits in a call.
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
	var ranks []int // the group did not say
	for r := range jd.Ranks {
		if _, ok := jd.last[at.group][r]; ok {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// in is the call of a rank at a place, nil if it has made none, or of messages none that has not ended.
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

// passed reports whether a rank has come further than a collective, so that its record of it is lost.
func (jd *judge) passed(at place, r int) bool {
	return at.number >= 0 && jd.last[at.group][r] > at.number && jd.in(at, r) == nil
}

// earliest is the place in which ranks wait for what a call waits for: the first of its group.
func (jd *judge) earliest(r int, c *Call) place {
	at := jd.place(r, c)
	if at.number >= 0 {
		at.number = jd.first[c.Group]
	}
	return at
}

// find goes from each place in which ranks wait to what holds it up.
func (jd *judge) find() cause {
	var best cause
	seen := map[place]bool{}
	for r := range jd.Ranks {
		for _, c := range jd.waits[r] {
			at := jd.earliest(r, c)
			if seen[at] {
				continue
			}
			if found := jd.follow(at, nil, seen); better(found, best) {
				best = found
			}
		}
	}
	if best.Reason == Nothing {
		return jd.quiet()
	}
	return best
}

// order is how much a reason explains: a death explains why ranks are absent.
var order = [Reasons]int{Nothing: 0, Unknown: 1, Stuck: 2, Blocked: 3, Silent: 4, Order: 5, NotMade: 6, Absent: 7, Shapes: 8, Different: 9, Died: 10}

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
	if differ := jd.differ(at); differ.Reason != Nothing {
		return differ
	}
	var dead, unknown, unmade, idle, busy, late, behind []int
	for _, r := range jd.members(at) {
		rank := jd.Rank(r)
		c := jd.in(at, r)
		switch {
		case rank.Death != "" && (c == nil || !c.ended()):
			dead = append(dead, r)
		case rank.Source == "":
			unknown = append(unknown, r)
		case c != nil && c.State == Called:
			late = append(late, r)
		case c != nil || jd.passed(at, r):
		case at.number >= 0 && jd.unmade(at.group, r):
			unmade = append(unmade, r)
		case len(jd.waits[r]) == 0:
			idle = append(idle, r)
		default:
			busy = append(busy, r)
		}
	}
	if len(late) < len(jd.members(at))-len(unknown) { // others have begun it
		behind = late
	}
	switch {
	case len(dead) > 0:
		return cause{Reason: Died, culprits: dead, at: at}
	case len(unmade) > 0:
		return cause{Reason: NotMade, culprits: unmade, at: at}
	case len(idle) > 0 && !jd.together(idle):
		return cause{Reason: Absent, culprits: idle, at: at}
	}
	if found := jd.elsewhere(append(busy, behind...), at, way, seen); found.Reason != Nothing {
		return found
	}
	switch {
	case len(unknown) > 0:
		return jd.silent(at, unknown)
	case len(busy)+len(idle) > 0:
		return cause{Reason: Unknown, at: at}
	case len(behind) > 0:
		return cause{Reason: Blocked, culprits: behind, at: at}
	case len(late) > 0:
		return cause{Reason: Unknown, at: at}
	}
	return cause{Reason: Stuck, culprits: jd.open(at), at: at}
}

// elsewhere follows ranks that wait somewhere else to there. Of those that have made the call at a place too, only what
// they have called before it counts.
func (jd *judge) elsewhere(ranks []int, at place, way []place, seen map[place]bool) (best cause) {
	for _, r := range ranks {
		for _, c := range jd.waits[r] {
			next := jd.earliest(r, c)
			if next == at {
				if jd.in(at, r) != nil {
					break
				}
				continue
			}
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

// silent is about ranks that left nothing: they are to blame if they are few, for then the others have said where they are.
func (jd *judge) silent(at place, unknown []int) cause {
	left := 0
	for _, r := range jd.Ranks {
		if r.Source == "" && r.Death == "" {
			left++
		}
	}
	if 2*left > len(jd.Ranks) {
		return cause{Reason: Unknown, at: at}
	}
	return cause{Reason: Silent, culprits: unknown, at: at}
}

// open are the ranks that have begun the call at a place and not ended it.
func (jd *judge) open(at place) (ranks []int) {
	for _, r := range jd.members(at) {
		if c := jd.in(at, r); c != nil && !c.ended() {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// circle is of places each of which waits for ranks in the next.
func (jd *judge) circle(way []place) cause {
	found := cause{Reason: Order, at: way[0]}
	for _, at := range way {
		ranks := jd.open(at)
		if len(ranks) == 0 {
			continue
		}
		found.sides = append(found.sides, side{ranks: ranks, call: jd.in(at, ranks[0])})
		found.culprits = append(found.culprits, ranks...)
	}
	slices.Sort(found.culprits)
	found.culprits = slices.Compact(found.culprits)
	return found
}
