package check

import (
	"cmp"
	"slices"
	"strings"
)

// A mark is what measurements say about a way.
type mark int

// The marks. A way of which too little is known is open. One that is known is bad for another reason too.
const (
	open mark = iota
	good
	bad
	known
)

// A cause is the simplest explanation of bad ways: a host, what lies between groups of hosts, everything, or a pair.
type cause struct {
	host            string // empty of other causes
	sends, receives bool   // of a host: which of its ways are bad
	groups          [][]string
	in              map[string]int // index of a host's group
	oneWay          bool           // from the first group to the second alone
	all             bool
	ways            []*way // bad ones that it explains, in order
}

// covers reports whether a cause is about a way, bad or not.
func (c *cause) covers(w *way) bool {
	a, b := w.subject.Host, w.subject.To.Host
	switch {
	case c.all:
		return true
	case c.host != "":
		return c.sends && a == c.host || c.receives && b == c.host
	case c.groups != nil:
		from, ok := c.in[a]
		to, too := c.in[b]
		return ok && too && from != to && (!c.oneWay || from == 0)
	}
	return c.ways[0].subject == w.subject
}

// concerns reports whether a cause is about a way or the way back.
func (c *cause) concerns(w *way) bool {
	return c.covers(w) || c.covers(&way{subject: pairOf(w.subject.To, w.subject.component)})
}

// join adds a group of hosts, unless the group is there.
func (c *cause) join(hosts ...string) {
	if _, ok := c.in[hosts[0]]; ok {
		return
	}
	if c.in == nil {
		c.in = map[string]int{}
	}
	for _, h := range hosts {
		c.in[h] = len(c.groups)
	}
	c.groups = append(c.groups, hosts)
}

// Bounds of explanations. A cause may cover a few ways that look good, since measurements vary.
const (
	nearlyAll = 0.9 // part of the ways between groups that is bad
	most      = 6   // of a host: so many times more bad ways than good ones
)

// A tally counts the ways between hosts from an i to a k by their marks.
type tally struct{ good, bad, known int }

// An explainer looks for causes of the bad ways of one network.
type explainer struct {
	hosts  []string
	index  map[string]int
	ways   []*way
	marks  map[*way]mark
	twoWay bool
	cells  []tally // by from and to
	causes []cause
	left   []*way // bad ones without a cause
}

// explain returns the causes that explain all bad ways, and no more good ones than can be chance. With twoWay the fault
// has no direction, and of some pairs one way alone was measured.
//
// The explanation with the fewest causes wins. Groups go first: one slow uplink makes the ways of many hosts bad, and
// two hosts that have a good way between themselves are not both at fault. Hosts come next, with the most bad ways
// first.
func explain(ways []*way, marks map[*way]mark, twoWay bool) []cause {
	e := &explainer{ways: ways, marks: marks, index: map[string]int{}, twoWay: twoWay}
	for _, w := range ways {
		if marks[w] == bad {
			e.left = append(e.left, w)
		}
		for _, h := range []string{w.subject.Host, w.subject.To.Host} {
			if _, ok := e.index[h]; !ok {
				e.index[h] = 0
				e.hosts = append(e.hosts, h)
			}
		}
	}
	if len(e.left) == 0 {
		return nil
	}
	slices.SortFunc(e.hosts, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) }) // n2, n10
	for i, h := range e.hosts {
		e.index[h] = i
	}
	if len(e.hosts) > 2 && len(ways) > 2 && float64(len(e.left)) >= nearlyAll*float64(len(ways)) && !e.oneHost() &&
		!slices.ContainsFunc(ways, func(w *way) bool { return marks[w] == good }) {
		return []cause{{all: true, ways: e.left}}
	}
	e.cells = make([]tally, len(e.hosts)*len(e.hosts))
	for _, w := range ways {
		c := e.cell(e.index[w.subject.Host], e.index[w.subject.To.Host])
		switch marks[w] {
		case good:
			c.good++
		case bad:
			c.bad++
		case known:
			c.known++
		}
	}
	var simplest []cause
	for i, groups := range [][][]int{e.groups(), nil} {
		t := *e
		t.cells, t.left = slices.Clone(e.cells), slices.Clone(e.left)
		if causes := t.causesOf(groups); i == 0 || len(causes) < len(simplest) {
			simplest = causes
		}
	}
	return simplest
}

// causesOf explains the bad ways by what is between groups, then by hosts, and last by pairs.
func (e *explainer) causesOf(groups [][]int) []cause {
	for _, c := range e.apart(groups) {
		e.add(c)
	}
	for len(e.left) > 0 && e.worstHost() {
	}
	for _, w := range e.left {
		e.causes = append(e.causes, cause{ways: []*way{w}})
	}
	return e.causes
}

func (e *explainer) cell(from, to int) *tally { return &e.cells[from*len(e.hosts)+to] }

// across is what is known of the way between hosts of two groups: of both directions if the fault has none.
func (e *explainer) across(from, to int) tally {
	t := *e.cell(from, to)
	if back := e.cell(to, from); e.twoWay {
		t = tally{t.good + back.good, t.bad + back.bad, t.known + back.known}
	}
	return t
}

// oneHost reports whether all ways are those of one host: others were not measured.
func (e *explainer) oneHost() bool {
	return slices.ContainsFunc(e.hosts, func(h string) bool {
		return !slices.ContainsFunc(e.ways, func(w *way) bool { return w.subject.Host != h && w.subject.To.Host != h })
	})
}

// near is 1 for two hosts that a good way joins, -1 for two that a bad one does, and 0 if nothing is known. Another
// fault may hide how near they are, so one good direction is enough.
func (e *explainer) near(i, k int) int {
	there, back := e.cell(i, k), e.cell(k, i)
	switch {
	case there.good > 0 || back.good > 0:
		return 1
	case there.bad > 0 || back.bad > 0:
		return -1
	}
	return 0
}

// groups puts each host to those with half of which, at least, it has good ways.
func (e *explainer) groups() [][]int {
	in := make([]int, len(e.hosts))
	for i := range in {
		in[i] = -1
	}
	count := 0
	for range 2 { // the second time, to all hosts and not only to those before
		for i := range e.hosts {
			well, all := make([]int, count), make([]int, count)
			for k, g := range in {
				if p := e.near(i, k); g >= 0 && k != i && p != 0 {
					all[g]++
					well[g] += max(p, 0)
				}
			}
			chosen := -1
			for g := range count {
				if well[g] > 0 && 2*well[g] >= all[g] && (chosen < 0 || well[g]*all[chosen] > well[chosen]*all[g]) {
					chosen = g
				}
			}
			if chosen < 0 && in[i] < 0 {
				chosen = count
				count++
			}
			if chosen >= 0 {
				in[i] = chosen
			}
		}
	}
	groups := make([][]int, count)
	for i, g := range in {
		groups[g] = append(groups[g], i)
	}
	return groups
}

// apart returns causes for groups between which nearly all ways are bad.
func (e *explainer) apart(groups [][]int) (causes []cause) {
	groups = slices.DeleteFunc(groups, func(g []int) bool { return len(g) < 2 })
	slow := func(from, to []int) bool {
		var sum tally
		for _, i := range from {
			for _, k := range to {
				c := e.across(i, k)
				sum.good, sum.bad = sum.good+min(c.good, 1), sum.bad+min(c.bad+c.known, 1)
			}
		}
		return sum.bad > 3 && float64(sum.bad) >= nearlyAll*float64(sum.good+sum.bad)
	}
	names := func(g []int) (list []string) {
		for _, i := range g {
			list = append(list, e.hosts[i])
		}
		return list
	}
	both := cause{}
	for i, a := range groups {
		for k, b := range groups {
			switch {
			case i == k || !slow(a, b):
			case !slow(b, a):
				c := cause{oneWay: true}
				c.join(names(a)...)
				c.join(names(b)...)
				causes = append(causes, c)
			case i < k:
				both.join(names(a)...)
				both.join(names(b)...)
			}
		}
	}
	if both.groups != nil {
		causes = append(causes, both)
	}
	return causes
}

// ends counts the hosts to which each host sends well and badly, and from which each receives so.
func (e *explainer) ends() (sends, receives []tally) {
	sends, receives = make([]tally, len(e.hosts)), make([]tally, len(e.hosts))
	count := func(sum *tally, c *tally) {
		if c.bad > 0 {
			sum.bad++
		} else if c.good > 0 {
			sum.good++
		}
	}
	for i := range e.hosts {
		for k := range e.hosts {
			count(&sends[i], e.cell(i, k))
			count(&receives[i], e.cell(k, i))
		}
	}
	return sends, receives
}

// worstHost adds the host that explains the most of the bad ways left, if one does.
func (e *explainer) worstHost() bool {
	sends, receives := e.ends()
	ill := func(t tally) bool { return t.bad > 1 && t.bad >= most*t.good }
	all := func(t tally) bool { return t.bad > 0 && t.good == 0 }
	var worst []cause // equally many bad ways
	n := 0
	for i, h := range e.hosts {
		s, r := ill(sends[i]), ill(receives[i])
		c := cause{host: h, sends: s || r && all(sends[i]), receives: r || s && all(receives[i])}
		bad := 0
		if c.sends {
			bad += sends[i].bad
		}
		if c.receives {
			bad += receives[i].bad
		}
		if bad > n {
			worst, n = nil, bad
		}
		if bad > 0 && bad == n {
			worst = append(worst, c)
		}
	}
	if n == 0 {
		return false
	}
	for _, c := range worst[1:] {
		if e.compete(&worst[0], &c) {
			return false // either may be it
		}
	}
	return e.add(worst[0])
}

// compete reports whether either of two hosts explains nearly all that the other does.
func (e *explainer) compete(a, b *cause) bool {
	rest := 0
	return !slices.ContainsFunc(e.left, func(w *way) bool {
		if a.covers(w) && !b.covers(w) {
			rest++
		}
		return rest > 1
	})
}

// add adds a cause with the bad ways that it explains, which count no longer.
func (e *explainer) add(c cause) bool {
	e.left = slices.DeleteFunc(e.left, func(w *way) bool {
		if c.covers(w) {
			c.ways = append(c.ways, w)
			return true
		}
		return false
	})
	for i, a := range e.hosts {
		for k, b := range e.hosts {
			if c.covers(&way{subject: pairOf(component{Host: a}, component{Host: b})}) {
				*e.cell(i, k) = tally{}
			}
		}
	}
	if len(c.ways) > 0 {
		e.causes = append(e.causes, c)
	}
	return len(c.ways) > 0
}
