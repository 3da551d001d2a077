package rendezvous

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ringo-go/ringo/trace/history"
)

// Paths are pairs of homes, each pair sorted.
type Paths map[[2]string]bool

// cuts is what a machine knows of paths between ranks that live.
type cuts struct {
	ranks  *ranks
	homes  [][]string   // by rank, twice: the names of its machine and of its process, "" if not known
	failed Paths        // failed once, in this group or one before it
	out    map[int]bool // ranks that are left out of all later groups
	why    string       // why out
}

// cut leaves out the ranks at one end of a path, if the failure is that of a path and both its ends want to go on. A
// connection may break although its path is well, so that counts the second time. The end with the hub's process goes
// on, else that with the lowest rank. The result is who is left out.
func (c *cuts) cut(f *Failure, comes func(rank int) bool) (out []int) {
	if !f.OfPath() {
		return nil
	}
	a, b := f.Culprits[0], f.Culprits[1]
	if !comes(a) || !comes(b) {
		return nil
	}
	names := c.apart(a, b)
	path := [2]string{min(names[a], names[b]), max(names[a], names[b])}
	what := "nothing moves between ranks %d and %d"
	if f.Late == nil {
		if !c.failed[path] {
			if c.failed == nil {
				c.failed = Paths{}
			}
			c.failed[path] = true
			return nil
		}
		what = "ranks %d and %d have failed with each other again"
	}
	first := func(q int) int {
		if slices.ContainsFunc(c.ranks.hosts, func(host int) bool { return names[host] == names[q] }) {
			return -1
		}
		return slices.Index(names, names[q])
	}
	if first(b) < first(a) {
		a, b = b, a
	}
	if c.out == nil {
		c.out = map[int]bool{}
	}
	for q, name := range names {
		if name == names[b] {
			out, c.out[q] = append(out, q), true
		}
	}
	c.why = fmt.Sprintf(what+", so the others leave out %s: mend the network between the two (ringo check), then open "+
		"again, or Grow", f.Culprits[0], f.Culprits[1], history.Ranks(out))
	return out
}

// apart are names by rank that differ for two ranks: of machines, else of processes, else numbers.
func (c *cuts) apart(a, b int) []string {
	for _, names := range c.homes {
		if names[a] != "" && names[b] != "" && names[a] != names[b] {
			return names
		}
	}
	numbers := make([]string, c.ranks.size)
	for q := range numbers {
		numbers[q] = strconv.Itoa(q)
	}
	return numbers
}
