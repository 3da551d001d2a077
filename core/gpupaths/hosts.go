package gpupaths

import (
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/sched"
)

// A seat is where a rank is: which host, in the order of the hosts' first ranks, and which of
// the host's ranks.
type seat struct{ host, number int }

// hosts is how the ranks lie on hosts. Queues of memory that GPUs share are for the ranks of one
// host alone, so boards are made for these, by number.
type hosts struct {
	seats   []seat
	ranks   [][]int // of each host
	parts   []int   // by rank: its part in schedules
	columns int     // ranks of each host that speak with other hosts in schedules with hierarchy, 1 without
}

func hostsOf(all []paths.Profile) hosts {
	h := hosts{}
	names := make([]string, len(all))
	index := map[string]int{}
	for r := range all {
		names[r] = all[r].Host
		k, ok := index[names[r]]
		if !ok {
			k = len(h.ranks)
			index[names[r]] = k
			h.ranks = append(h.ranks, nil)
		}
		h.seats = append(h.seats, seat{k, len(h.ranks[k])})
		h.ranks[k] = append(h.ranks[k], r)
	}
	topo := choice.TopologyOf(names)
	h.parts = make([]int, len(all))
	for i := range h.parts {
		r := i
		if topo.Order != nil {
			r = int(topo.Order[i])
		}
		h.parts[r] = i
	}
	h.columns = topo.Columns()
	return h
}

// of are the ranks of a rank's host.
func (h *hosts) of(rank int) []int { return h.ranks[h.seats[rank].host] }

// number is which of its host's ranks a rank is.
func (h *hosts) number(rank int) sched.Rank { return sched.Rank(h.seats[rank].number) }

// pick are the values of the ranks of one rank's host.
func pick[T any](h *hosts, rank int, all []T) (list []T) {
	for _, r := range h.of(rank) {
		list = append(list, all[r])
	}
	return list
}

// most and least are how many ranks a host has.
func (h *hosts) most() (n int) {
	for _, list := range h.ranks {
		n = max(n, len(list))
	}
	return n
}

func (h *hosts) least() int {
	n := len(h.seats)
	for _, list := range h.ranks {
		n = min(n, len(list))
	}
	return n
}

// hostLinks connect the ranks of a host by links of a board for these.
type hostLinks struct {
	grid.Links
	hosts *hosts
}

func (l hostLinks) Send(to sched.Rank) (grid.End, error) {
	return l.Links.Send(l.hosts.number(int(to)))
}

func (l hostLinks) Recv(from sched.Rank) (grid.End, error) {
	return l.Links.Recv(l.hosts.number(int(from)))
}

// close reports whether two ranks of different hosts are neighbours in rings, trees or log-step algorithms over the
// hosts: they follow each other, or are in the same column on hosts that are a power of two apart.
func (h *hosts) close(a, b int) bool {
	p, q, n := h.parts[a], h.parts[b], len(h.parts)
	if d := (q - p + n) % n; d == 1 || d == n-1 {
		return true
	}
	one, other := h.seats[a], h.seats[b]
	d := max(one.host-other.host, other.host-one.host)
	d = min(d, len(h.ranks)-d)
	return one.number == other.number && one.number < h.columns && d&(d-1) == 0
}

// across is the most ranks of other hosts that a rank is close to, and the most that there are.
func (h *hosts) across() (closest, others int) {
	n := len(h.parts)
	others = n - h.least()
	alike := h.most() == h.least()
	for r := range n {
		if alike && h.parts[r] >= 2*h.columns { // hosts of one size are alike: two of them tell
			continue
		}
		k := 0
		for p := range n {
			if h.seats[p].host != h.seats[r].host && h.close(r, p) {
				k++
			}
		}
		closest = max(closest, k)
	}
	return closest, others
}
