package bootstrap

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
)

// starts are the messages that begin the group, by rank.
func (l *joinSet) starts(fresh [32]byte, hosts []int) []rendezvous.Start {
	all := make([]rendezvous.Start, l.size)
	first := map[string]int{} // by machine
	for r := range all {
		all[r] = rendezvous.Start{Salt: fresh, Hosts: hosts, Head: -1}
		s := l.slots[r]
		if s.Machine == "" || l.size < headedRanks {
			continue
		}
		machine, _, _ := strings.Cut(s.Machine, containers)
		h, known := first[machine]
		if !known {
			first[machine] = r
			continue
		}
		all[r].Head = h
		all[h].Takers++
		all[h].Apart = all[h].Apart || s.Pid != l.slots[h].Pid || s.Machine != l.slots[h].Machine
	}
	return all
}

// successors are the first ranks with a port at which others meet if the hub's process has died: at the first that
// lives. The port is open since the rank joined, and serves nobody as long as the hub lives.
func (l *joinSet) successors() (all []rendezvous.RankAddr) {
	for r := 0; r < l.size && len(all) < rendezvous.MaxSuccessors; r++ {
		s := l.slots[r]
		host, _, err := net.SplitHostPort(s.from)
		if s.Port > 0 && err == nil {
			all = append(all, rendezvous.RankAddr{Rank: r, Addr: net.JoinHostPort(host, strconv.Itoa(s.Port))})
		}
	}
	return all
}

// appointWitnesses fills in who is a witness: the first rank with such a port of each host but the hub's, and for whom:
// all others there.
func (l *joinSet) appointWitnesses(land *rendezvous.Land, starts []rendezvous.Start) {
	if !land.Several() {
		return
	}
	var all []rendezvous.RankAddr
	at := map[int][]int{} // by place, the lowest maxNamed ranks
	for rank, p := range land.Places {
		if s := l.slots[rank]; p != land.Hub && s.Witness > 0 && len(all) < rendezvous.MaxWitnesses &&
			!slices.ContainsFunc(all, func(h rendezvous.RankAddr) bool { return land.Places[h.Rank] == p }) {
			host, _, _ := net.SplitHostPort(s.from)
			all = append(all, rendezvous.RankAddr{Rank: rank, Addr: net.JoinHostPort(host, strconv.Itoa(s.Witness))})
			starts[rank].Witness = true
		}
		if len(at[p]) < maxNamed {
			at[p] = append(at[p], rank)
		}
	}
	for rank, p := range land.Places {
		starts[rank].Here, starts[rank].There = at[p], at[land.Hub]
		for _, h := range all {
			if p != land.Hub && h.Rank != rank {
				starts[rank].Witnesses = append(starts[rank].Witnesses, h)
			}
		}
	}
}

// land is where the join set's ranks are, and the place of the hub's process by the name of its machine.
func (l *joinSet) land(machine string) rendezvous.Land {
	g := rendezvous.Land{Places: make([]int, l.size), Hub: -1, Addresses: make([]string, l.size),
		Silence: explain(syscall.ETIMEDOUT)}
	known := map[string]int{}
	for r := range l.size {
		s := l.slots[r]
		name, _, _ := strings.Cut(s.Machine, containers)
		if name == "" {
			host, _, _ := net.SplitHostPort(s.from)
			name = s.Host + " " + host
		}
		if _, ok := known[name]; !ok {
			known[name] = len(known)
		}
		g.Places[r], g.Addresses[r] = known[name], s.address()
		if s.Hosts && g.Hub < 0 {
			g.Hub = g.Places[r]
		}
	}
	machine, _, _ = strings.Cut(machine, containers)
	for r := 0; r < l.size && machine == "" && g.Hub < 0; r++ {
		if l.slots[r].Host == hostname() {
			g.Hub = g.Places[r]
		}
	}
	if place, ok := known[machine]; ok && g.Hub < 0 {
		g.Hub = place
	}
	return g
}

// address is where the rank's host is reached, "" if there is no such port.
func (s *slot) address() string {
	host, _, err := net.SplitHostPort(s.from)
	if port := cmp.Or(s.Port, s.Witness); err == nil && port > 0 {
		return net.JoinHostPort(host, strconv.Itoa(port))
	}
	return ""
}

// homes are the names of the ranks' machines, and of their processes.
func (l *joinSet) homes() [][]string {
	machines, processes := make([]string, l.size), make([]string, l.size)
	for r, s := range l.slots {
		machines[r], _, _ = strings.Cut(s.Machine, containers)
		processes[r] = fmt.Sprint(s.Pid, s.Host, s.Machine)
	}
	return [][]string{machines, processes}
}

// allHere reports whether all ranks are here that can come.
func (l *joinSet) allHere(ended map[int]string) bool {
	for r := range l.size {
		if _, gone := ended[r]; !gone && l.slots[r] == nil {
			return false
		}
	}
	return len(l.slots) > 0
}

// settle numbers the ranks of a partial join set anew, and returns their roster; nil if the join set is not partial.
func (l *joinSet) settle(ended map[int]string) *rendezvous.Roster {
	if !l.partial {
		return nil
	}
	r := &rendezvous.Roster{Came: slices.Sorted(maps.Keys(l.slots)), Away: map[int]string{}}
	for rank := range l.size {
		if l.slots[rank] != nil {
			continue
		}
		r.Away[rank] = l.away[rank]
		if why, gone := ended[rank]; gone {
			r.Away[rank] = "its process has ended: " + why
		}
	}
	slots := map[int]*slot{}
	for i, rank := range r.Came {
		s := l.slots[rank]
		r.Cards = append(r.Cards, s.Card)
		s.Rank, s.Size, slots[i] = i, len(r.Came), s
	}
	l.came, l.size, l.slots = r.Came, len(r.Came), slots
	return r
}
