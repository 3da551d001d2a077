package hang

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/trace/history"
)

// circle is the cause in a circle of places, each of which waits for ranks in the next.
func (jd *judge) circle(way []place) cause {
	found := cause{Reason: Order, at: way[0]}
	for _, at := range way {
		ranks := jd.open(at)
		if begun := slices.DeleteFunc(slices.Clone(ranks),
			func(r int) bool { return jd.in(at, r).State == Called }); len(begun) > 0 {
			ranks = begun // the other ranks' GPUs have begun another call
		}
		if len(ranks) == 0 {
			continue
		}
		found.sides = append(found.sides, side{ranks: ranks, call: jd.in(at, ranks[0])})
		found.culprits = append(found.culprits, ranks...)
	}
	slices.Sort(found.culprits)
	found.culprits = slices.Compact(found.culprits)
	if len(found.sides) != 2 {
		return found
	}
	// of two orders that of most ranks is right
	one, other := found.sides[0], found.sides[1]
	found.culprits = fewer(one.ranks, other.ranks)
	if len(one.ranks) < len(other.ranks) {
		found.sides[0], found.sides[1] = other, one
	}
	var unknown []int
	for _, at := range way {
		unknown = append(unknown, jd.sort(at).unknown...)
	}
	slices.Sort(unknown)
	return found.proven(slices.Compact(unknown))
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
	return "ranks wait for each other in a circle: " + strings.Join(parts, ", ")
}
