package rendezvous

import "slices"

// ranks is what a machine knows of each rank.
type ranks struct {
	size    int
	here    int
	hosts   []int  // whose process serves the hub
	gone    []bool // by rank: left or died
	left    []bool // by rank: left in order
	failing []bool // by rank: has called Fail
	quit    []bool // by rank: has called Fail and blames nobody else
	told    []bool // by rank: knows of a failure that is not its own
}

func newRanks(size int, hosts []int) ranks {
	flags := func() []bool { return make([]bool, size) }
	return ranks{size: size, here: size, hosts: hosts, gone: flags(), left: flags(), failing: flags(), quit: flags(),
		told: flags()}
}

// others are the ranks that are here, without rank.
func (r *ranks) others(rank int) []int {
	all := make([]int, 0, r.here)
	for q := range r.size {
		if q != rank && !r.gone[q] {
			all = append(all, q)
		}
	}
	return all
}

// all are the ranks that are here.
func (r *ranks) all() []int { return r.others(-1) }

// audience are the ranks that are here and do not know of a failure.
func (r *ranks) audience() []int {
	return slices.DeleteFunc(r.all(), func(q int) bool { return r.told[q] })
}

// allKnow reports whether no rank is here that does not know of a failure.
func (r *ranks) allKnow() bool {
	for q := range r.size {
		if !r.gone[q] && !r.told[q] {
			return false
		}
	}
	return true
}
