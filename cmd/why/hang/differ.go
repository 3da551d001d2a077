package hang

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// differ finds out whether ranks make different calls at a place, or the same call with different sizes or roots.
// Differences with which calls have ended before are none.
func (jd *judge) differ(at place) cause {
	if at.number < 0 {
		return jd.lengths(at)
	}
	reason, sides := Different, jd.sides(at, family)
	if len(sides) < 2 {
		reason, sides = Shapes, jd.sides(at, equal)
	}
	if len(sides) < 2 {
		reason, sides = Roots, jd.sides(at, rooted)
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

// sides groups ranks by the key of their calls at a place, the largest side first. A rank whose key is "" is in none,
// and sides are one if their keys have met in a collective that has ended.
func (jd *judge) sides(at place, key func(*Call) string) (sides []side) {
	calls := jd.calls[at.group][at.number]
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
	for i := len(sides) - 1; i > 0; i-- {
		if jd.met(at, key, sides[0], sides[i]) {
			sides[0].ranks = slices.Sorted(slices.Values(slices.Concat(sides[0].ranks, sides[i].ranks)))
			sides = slices.Delete(sides, i, i+1)
		}
	}
	return sides
}

// met reports whether an earlier collective of the group has ended in which ranks of the two sides differed as here. It
// proves nothing where some have ended the call here: they have taken what others sent for another call.
func (jd *judge) met(at place, key func(*Call) string, one, other side) bool {
	for _, c := range jd.calls[at.group][at.number] {
		if c.State == Ended {
			return false
		}
	}
	same := func(n int64, s side) bool {
		return slices.ContainsFunc(s.ranks, func(r int) bool {
			c := jd.calls[at.group][n][r]
			return c != nil && c.State == Ended && family(c) == family(s.call) && key(c) == key(s.call)
		})
	}
	for n := range jd.calls[at.group] {
		if n < at.number && same(n, one) && same(n, other) {
			return true
		}
	}
	return false
}

// family is the function of NCCL that a call is carried out by, where PyTorch has several names for it.
func family(c *Call) string {
	kind := strings.ToLower(strings.ReplaceAll(c.Kind, "_", ""))
	return strings.TrimSuffix(strings.TrimSuffix(kind, "base"), "oop")
}

// sent spells what a number of elements is for NCCL. Of a reduction that is type and number, of what is only moved the
// number of bytes.
func sent(c *Call, elements int64, reduces bool) string {
	name := strings.ToLower(c.Type)
	if size := bytesOf[name]; size > 0 && !reduces {
		return fmt.Sprint(elements*size, " bytes")
	}
	if name == "bool" { // NCCL has no such type
		name = "byte"
	}
	return fmt.Sprint(elements, " ", name)
}

// bytesOf is how many bytes an element has, by the name of its type in PyTorch and in NCCL.
var bytesOf = map[string]int64{
	"byte": 1, "char": 1, "bool": 1, "float8_e5m2": 1, "float8_e4m3fn": 1, "int8": 1, "uint8": 1, "float8e4m3": 1,
	"float8e5m2": 1, "short": 2, "half": 2, "bfloat16": 2, "uint16": 2, "float16": 2, "int": 4, "float": 4, "uint32": 4,
	"int32": 4, "float32": 4, "long": 8, "double": 8, "uint64": 8, "int64": 8, "float64": 8,
}

// equal is what all ranks must give NCCL alike in a call, "" where they may differ. The calls of a coalesced group are
// compared one by one, as NCCL is called.
func equal(c *Call) string {
	if c.Sign != "" {
		return c.Sign
	}
	text := ""
	switch kind := family(c); {
	case c.In == "" && c.Out == "", c.Sizes.In < 0 || c.Sizes.Out < 0:
	case kind == "allreduce" || kind == "reduce":
		text = sent(c, c.Sizes.In, true)
	case kind == "broadcast", kind == "allgather" && c.even():
		text = sent(c, c.Sizes.In, false)
	case kind == "reducescatter" && c.even():
		text = sent(c, c.Sizes.Out, true)
	}
	if c.before == nil || text == "" {
		return text
	}
	return equal(c.before) + " + " + text
}

// even reports whether a gathering or scattering call gives each rank as much: PyTorch's of one tensor, and NCCL's own.
func (c *Call) even() bool {
	return strings.HasSuffix(strings.ToLower(c.Kind), "_base") || c.Kind == "AllGather" || c.Kind == "ReduceScatter"
}

// loose is what most programs give alike in a call though NCCL can end it otherwise too, "" if that is nothing.
func loose(c *Call) string {
	if c.In == "" && c.Out == "" || c.Sizes.In < 0 || c.Sizes.Out < 0 {
		return ""
	}
	switch family(c) {
	case "broadcast", "allgather", "gather", "allreducecoalesced":
		return sent(c, c.Sizes.In, true)
	case "scatter", "reducescatter":
		return sent(c, c.Sizes.Out, true)
	}
	return ""
}

// suspects is a note of differences at a place in which all ranks are, "" if there are none. They accuse nobody.
func (jd *judge) suspects(at place) string {
	if at.number < 0 {
		return ""
	}
	const end = "; NCCL does not compare that, but may wait for ever"
	if sides := jd.sides(at, loose); len(sides) > 1 {
		return jd.difference(&cause{Reason: Shapes, at: at, sides: sides}) + end
	}
	var in, out int64
	for _, r := range jd.members(at) {
		c := jd.in(at, r)
		if c == nil || !strings.HasPrefix(family(c), "alltoall") || c.In == "" || c.Out == "" || c.Sizes.In < 0 {
			return ""
		}
		in, out = in+c.Sizes.In, out+c.Sizes.Out
	}
	if in == out {
		return ""
	}
	return fmt.Sprintf("in %s ranks send %d elements and receive %d together%s", jd.what(at), in, out, end)
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

// lengths compares the sizes at both ends of a message, unless such a message has arrived before.
func (jd *judge) lengths(at place) cause {
	send, recv := jd.in(at, at.from), jd.in(at, at.to)
	if send == nil || recv == nil || sentBy(send) == "" || sentBy(recv) == "" || sentBy(send) == sentBy(recv) {
		return cause{}
	}
	sends, recvs := jd.arrived(at, at.from), jd.arrived(at, at.to)
	for i := 1; i <= min(len(sends), len(recvs)); i++ { // the newest have their other end in the file for sure
		if sends[len(sends)-i] == sentBy(send) && recvs[len(recvs)-i] == sentBy(recv) {
			return cause{}
		}
	}
	return cause{Reason: Shapes, at: at, culprits: []int{min(at.from, at.to), max(at.from, at.to)}, sides: []side{
		{ranks: []int{at.from}, call: send}, {ranks: []int{at.to}, call: recv},
	}}
}

// arrived are the lengths of the messages of a place that have ended, as a rank noted them.
func (jd *judge) arrived(at place, r int) (lengths []string) {
	for i := range jd.Ranks[r].Calls {
		if c := &jd.Ranks[r].Calls[i]; c.message() && c.State == Ended && jd.place(r, c) == at {
			lengths = append(lengths, sentBy(c))
		}
	}
	return lengths
}

// sentBy is the length of a message, "" if not known.
func sentBy(c *Call) string {
	n, text := c.Sizes.Out, c.Out
	if c.Send {
		n, text = c.Sizes.In, c.In
	}
	if n < 0 || text == "" {
		return ""
	}
	return sent(c, n, false)
}
