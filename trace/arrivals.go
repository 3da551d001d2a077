package trace

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Arrivals says which ranks came last to collectives.
type Arrivals struct {
	Calls int             // collectives of which the calls of all ranks are known
	Last  []int           // by rank: to how many of them it came last
	Late  []time.Duration // by rank: how long after the first rank it then came, in the median
}

// Arrivals looks at the collectives of one communicator of which the Trace has the calls of all ranks.
// A rank comes to a call on a GPU when it queues the call.
func (t *Trace) Arrivals(comm string) Arrivals {
	calls := map[uint32][]*Call{}
	size := 0
	for i := range t.Calls {
		if c := &t.Calls[i]; c.Comm == comm && c.Number > 0 && !c.Model {
			calls[c.Number] = append(calls[c.Number], c)
			size = max(size, c.Size)
		}
	}
	a := Arrivals{Last: make([]int, size), Late: make([]time.Duration, size)}
	late := make([][]time.Duration, size)
	for _, list := range calls {
		if len(list) != size || size < 2 {
			continue
		}
		slices.SortFunc(list, func(x, y *Call) int { return x.Rank - y.Rank })
		first, last := list[0], list[0]
		for _, c := range list[1:] {
			if c.first() < first.first() {
				first = c
			}
			if c.first() > last.first() {
				last = c
			}
		}
		a.Calls++
		a.Last[last.Rank]++
		late[last.Rank] = append(late[last.Rank], time.Duration(last.first()-first.first()))
	}
	for r, l := range late {
		if len(l) > 0 {
			slices.Sort(l)
			a.Late[r] = l[len(l)/2]
		}
	}
	return a
}

// String is one line: "rank 2 came last to 61 % of 40 calls, 8.1µs after the first; rank 0 to 39 %, 1.2µs".
func (a Arrivals) String() string {
	if a.Calls == 0 {
		return "no call is known of all ranks"
	}
	order := make([]int, len(a.Last))
	for r := range order {
		order[r] = r
	}
	slices.SortStableFunc(order, func(x, y int) int { return a.Last[y] - a.Last[x] })
	var words []string
	for i, r := range order {
		share := float64(a.Last[r]) / float64(a.Calls) * 100
		switch {
		case a.Last[r] == 0:
		case i == 0:
			words = append(words, fmt.Sprintf("rank %d came last to %.0f %% of %d calls, %v after the first", r, share, a.Calls,
				spell(a.Late[r])))
		case i < 8:
			words = append(words, fmt.Sprintf("rank %d to %.0f %%, %v", r, share, spell(a.Late[r])))
		}
	}
	return strings.Join(words, "; ")
}

// spell rounds d to three digits.
func spell(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// Of is a copy of the calls of one rank of a communicator.
func (t *Trace) Of(comm string, rank int) *Trace {
	part := &Trace{}
	for _, c := range t.Calls {
		if c.Comm == comm && c.Rank == rank {
			c.Steps = slices.Clone(c.Steps)
			part.Calls = append(part.Calls, c)
		}
	}
	return part
}

// Shift puts the Trace onto another clock: by(t) is that clock's reading when the Trace's clock reads t.
func (t *Trace) Shift(by func(at int64) int64) {
	for i := range t.Calls {
		c := &t.Calls[i]
		c.Start, c.End = by(c.Start), by(c.End)
		if c.Queued != 0 {
			c.Queued, c.Issued = by(c.Queued), by(c.Issued)
		}
		for j := range c.Steps {
			s := &c.Steps[j]
			s.Start, s.End = by(s.Start), by(s.End)
		}
	}
}
