package hang

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// differ finds out whether ranks make different calls at a place, or the same call with different sizes or roots.
func (jd *judge) differ(at place) cause {
	if at.number < 0 {
		return jd.lengths(at)
	}
	calls := jd.calls[at.group][at.number]
	sides := jd.sides(calls, func(c *Call) string { return c.Kind })
	reason := Different
	if len(sides) < 2 {
		reason = Shapes
		sides = jd.sides(calls, equal)
	}
	if len(sides) < 2 {
		reason = Roots
		sides = jd.sides(calls, rooted)
	}
	if len(sides) < 2 {
		return cause{}
	}
	for i := 1; i < len(sides); i++ {
		sides[i].shift = jd.shift(at, sides[0].ranks[0], sides[i].ranks[0])
	}
	if len(sides) == 2 && len(sides[0].ranks) == len(sides[1].ranks) && sides[1].shift == 0 {
		if s := jd.shift(at, sides[1].ranks[0], sides[0].ranks[0]); s != 0 {
			sides[0], sides[1] = sides[1], sides[0]
			sides[1].shift = s
		}
	}
	if sides[1].shift != 0 {
		reason = Different
	}
	found := cause{Reason: reason, at: at, sides: sides}
	for i, s := range sides {
		if i > 0 || len(s.ranks) == len(sides[1].ranks) && sides[1].shift == 0 {
			found.culprits = append(found.culprits, s.ranks...)
		}
	}
	slices.Sort(found.culprits)
	return found
}

// sides groups ranks by the key of their calls, the largest side first. A rank whose key is "" is in none.
func (jd *judge) sides(calls map[int]*Call, key func(*Call) string) (sides []side) {
	by := map[string][]int{}
	for r, c := range calls {
		if k := key(c); k != "" {
			by[k] = append(by[k], r)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(by)) {
		slices.Sort(by[k])
		sides = append(sides, side{ranks: by[k], call: calls[by[k][0]]})
	}
	slices.SortStableFunc(sides, func(a, b side) int { return byLength(a.ranks, b.ranks) })
	return sides
}

// equal is the type and shape that all ranks must give alike, "" where they may differ.
func equal(c *Call) string {
	if c.Sign != "" {
		return c.Sign
	}
	kind := strings.ToLower(c.Kind)
	for _, uneven := range []string{"all_to_all", "alltoall", "_v", "gather", "scatter", "coalesced", "barrier", "split"} {
		if strings.Contains(kind, uneven) && kind != "_all_gather_base" && kind != "_reduce_scatter_base" {
			return ""
		}
	}
	return c.In
}

// rooted is the root of a call in words, "" if the call has none or it is not known.
func rooted(c *Call) string {
	kind := strings.ToLower(c.Kind)
	if c.Root > 0 && (strings.HasPrefix(kind, "broadcast") || kind == "reduce" || kind == "gather" || kind == "scatter") {
		return fmt.Sprintf("root %d", c.Root-1)
	}
	return ""
}

// shift is by how many calls the rank other is ahead of the rank one from a place on: 1 if other's call there is one's
// next, so that other has left a call out; -1 if one's call there is other's next; 0 if that cannot be told.
func (jd *judge) shift(at place, one, other int) int {
	match := func(by int64) bool {
		matched := 0
		for n := at.number; n < at.number+8; n++ {
			a, b := jd.calls[at.group][n+by][one], jd.calls[at.group][n][other]
			if by < 0 {
				a, b = jd.calls[at.group][n][one], jd.calls[at.group][n-by][other]
			}
			if a == nil || b == nil {
				break
			}
			if a.Kind != b.Kind || equal(a) != equal(b) {
				return false
			}
			matched++
		}
		return matched > 0
	}
	switch ahead, more := match(1), match(-1); {
	case ahead && !more:
		return 1
	case more && !ahead:
		return -1
	}
	return 0
}

// lengths compares the sizes at both ends of a message.
func (jd *judge) lengths(at place) cause {
	send, recv := jd.in(at, at.from), jd.in(at, at.to)
	if send == nil || recv == nil || send.Sizes.In < 0 || recv.Sizes.Out < 0 || send.Sizes.In == recv.Sizes.Out ||
		recv.Out == "" || send.In == "" {
		return cause{}
	}
	return cause{Reason: Shapes, at: at, culprits: []int{min(at.from, at.to), max(at.from, at.to)}, sides: []side{
		{ranks: []int{at.from}, call: send}, {ranks: []int{at.to}, call: recv},
	}}
}
