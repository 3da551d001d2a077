package hang

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/trace/history"
)

// circle is the cause in a circle of places, each of which waits for ranks in the next. Two of them that wait for each
// other are told first: they have the fewest candidates.
func (jd *judge) circle(way []place) (found cause) {
	sure := func(c *cause) bool { return len(c.culprits) > 0 && !c.either() }
	for i, one := range way {
		for _, other := range way[i+1:] {
			pair := jd.round([]place{one, other})
			if pair.Reason == Order && (found.Reason != Order || sure(&pair) && !sure(&found)) {
				found = pair
			}
		}
	}
	if found.Reason == Nothing {
		found = jd.round(way)
	}
	if found.Reason == Nothing {
		found = cause{Reason: Unknown, at: way[0]}
	}
	return found
}

// round is the cause in a circle, Nothing if a place does not wait for the one after it. Each two neighbours have an
// order only for ranks that are members of both. Who is wrong show earlier steps; of two places also the fewer ranks.
func (jd *judge) round(way []place) cause {
	found := cause{Reason: Order, at: way[0]}
	var unknown, odd, all []int
	told := true
	for i, at := range way {
		left := way[(i+len(way)-1)%len(way)]
		var ranks []int
		lost := jd.sort(left).unknown
		for _, r := range jd.members(at) {
			switch {
			case !jd.member(left, r):
			case jd.sooner(r, at, left):
				ranks = append(ranks, r)
			case slices.Contains(lost, r):
				unknown = append(unknown, r)
			}
		}
		if len(ranks) == 0 {
			return cause{}
		}
		found.sides = append(found.sides, side{ranks: ranks, call: jd.in(at, ranks[0])})
		all = append(all, ranks...)
		switch jd.habits(ranks, at, left) {
		case never:
			odd = append(odd, ranks...)
		case untold:
			told = false
		}
	}
	told = told && len(odd) > 0 && len(odd) < len(all)
	if len(way) > 2 {
		if told {
			slices.Sort(odd)
			found.culprits = slices.Compact(odd)
		}
		return found
	}
	one, other := found.sides[0], found.sides[1]
	if len(one.ranks) < len(other.ranks) {
		found.sides[0], found.sides[1] = other, one
	}
	switch found.culprits = fewer(one.ranks, other.ranks); {
	case !told:
		slices.Sort(unknown)
		return found.proven(slices.Compact(unknown))
	case 2*len(odd) > len(all): // new to most, and to the others it is not: either may be right
		slices.Sort(all)
		odd = all
	}
	found.culprits = odd
	return found
}

// member reports whether a rank is a member of a place.
func (jd *judge) member(at place, r int) bool {
	if ranks := jd.Groups[at.group].Ranks; at.number >= 0 && len(ranks) > 0 { // which may be very many
		_, is := slices.BinarySearch(ranks, r)
		return is
	}
	return slices.Contains(jd.members(at), r)
}

// sooner reports whether a rank waits at one place and has not come to another one.
func (jd *judge) sooner(r int, at, left place) bool {
	here, there := jd.in(at, r), jd.in(left, r)
	switch {
	case here == nil || here.ended() || jd.passed(left, r):
		return false
	case there == nil:
		return true
	case there.State == Begun || there.ended():
		return false
	case here.State == Begun:
		return true
	}
	for i := range jd.Ranks[r].Calls {
		if c := &jd.Ranks[r].Calls[i]; c == here || c == there {
			return c == here
		}
	}
	return false
}

// A habit is whether a rank has called in this order before.
type habit uint8

const (
	untold habit = iota
	usual
	never
)

// habits is the habit of all ranks of a side, untold if they differ. It tells nothing either where the program has done
// something new: where ranks outside the other place's group made the call against their habit too.
func (jd *judge) habits(ranks []int, at, left place) habit {
	h := jd.habit(ranks[0], at, left)
	for _, r := range ranks[1:] {
		if jd.habit(r, at, left) != h {
			return untold
		}
	}
	if h == never && slices.ContainsFunc(jd.open(at), func(r int) bool {
		return !jd.member(left, r) && jd.habit(r, at, at) == never
	}) {
		return untold
	}
	return h
}

// habit tells what a rank called in former steps after the same calls as now. These reach back to its last call in the
// group of each place. A call never made before is untold, and so is the order of calls without times.
func (jd *judge) habit(r int, at, left place) habit {
	of := func(c *Call, p place) bool {
		q := jd.place(r, c)
		q.number, p.number = min(q.number, 0), min(p.number, 0)
		return q == p
	}
	alike := func(c, d *Call) bool {
		return c.Group == d.Group && c.Peer == d.Peer && c.Send == d.Send && c.Kind == d.Kind && c.Sizes == d.Sizes &&
			c.Where == d.Where
	}
	calls, here := jd.Ranks[r].Calls, jd.in(at, r)
	n, from, since := -1, -1, -1
	known := false
	for i := range calls {
		c := &calls[i]
		if c == here {
			n = i
			break
		}
		if c.At.IsZero() { // nothing tells the order
			return untold
		}
		known = known || alike(c, here)
		if of(c, at) {
			from = i
		}
		if of(c, left) {
			since = i
		}
	}
	if from = min(from, since); n < 0 || from < 0 || !known || jd.in(left, r) != nil && left != at {
		return untold
	}
	others := 0
	for i := n - from; i < n; i++ { // the call of index i comes after calls that may be the same
		k := from
		for k < n && alike(&calls[i-n+k], &calls[k]) {
			k++
		}
		switch {
		case k < n:
		case of(&calls[i], at):
			return usual
		default:
			others++
		}
	}
	if others > 1 {
		return never
	}
	return untold
}

// opposite finds a collective of another group, with all its members in it, that some ranks of a place called before
// the place's collective and others after. If the calls before these two were in opposite order too, and have ended,
// the order is no cause.
func (jd *judge) opposite(at place, open []int) cause {
	before := func(r int, one, other place) bool { return jd.in(one, r).At.Before(jd.in(other, r).At) }
	both := func(r int, one, other place) bool { return jd.in(one, r) != nil && jd.in(other, r) != nil }
	if at.number < 0 { // a batch of messages has no order
		return cause{}
	}
	for _, c := range jd.waits[open[0]] {
		next := jd.earliest(open[0], c)
		if next.group == at.group || c.message() {
			continue
		}
		was, nextWas := at, next
		was.number--
		nextWas.number--
		var first, second []int
		used := false
		for _, r := range open {
			switch {
			case !both(r, at, next):
				continue
			case before(r, at, next):
				first = append(first, r)
			default:
				second = append(second, r)
			}
			used = used || both(r, was, nextWas) && both(open[0], was, nextWas) &&
				before(r, was, nextWas) != before(open[0], was, nextWas)
		}
		whole := !slices.ContainsFunc(jd.members(next),
			func(r int) bool { return jd.in(next, r) == nil || jd.in(next, r).ended() })
		if len(first) == 0 || len(second) == 0 || used || !whole {
			continue
		}
		found := cause{Reason: Order, at: at, opposite: true,
			sides: []side{{ranks: first, call: jd.in(at, first[0])}, {ranks: second, call: jd.in(next, second[0])}}}
		found.culprits = fewer(first, second)
		return found
	}
	return cause{}
}

// fewer are the ranks of the smaller of two sides, or of both sides if they have one size.
func fewer(one, other []int) []int {
	switch {
	case len(one) < len(other):
		return one
	case len(other) < len(one):
		return other
	}
	both := slices.Concat(one, other)
	slices.Sort(both)
	return slices.Compact(both)
}

// either reports whether the culprits are two sides, one of which may be right.
func (c *cause) either() bool {
	return len(c.sides) == 2 && slices.Contains(c.culprits, c.sides[0].ranks[0]) &&
		slices.Contains(c.culprits, c.sides[1].ranks[0])
}

// crossed says which ranks wait for each other, and in which calls.
func (jd *judge) crossed(c *cause) string {
	var parts []string
	if c.opposite {
		for _, s := range c.sides {
			part := fmt.Sprintf("%s called %s of %s first", history.Ranks(s.ranks), s.call.name(), &jd.Groups[s.call.Group])
			if s.call.Where != "" {
				part += " (" + s.call.Where + ")"
			}
			parts = append(parts, part)
		}
		return "collectives of two groups were called in another order, and none of them ends: " +
			strings.Join(parts, ", and ")
	}
	for _, s := range c.sides {
		part := fmt.Sprintf("%s %s in %s", history.Ranks(s.ranks), verb(s.ranks, "waits", "wait"), s.call.name())
		if !s.call.message() {
			part += " of " + jd.Groups[s.call.Group].String()
		}
		if s.call.Where != "" {
			part += " (" + s.call.Where + ")"
		}
		parts = append(parts, part)
	}
	text := "ranks wait for each other in a circle: " + strings.Join(parts, ", ")
	if len(c.culprits) == 0 && len(c.unproven) == 0 {
		text = "I cannot say which of these ranks has the wrong order: " + text
	}
	return text
}
