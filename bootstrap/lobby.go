package bootstrap

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
)

// A lobby is where ranks wait until all are here. It knows no network.
type lobby struct {
	size  int
	first int           // the rank that came first and set size
	seats map[int]*seat // by rank

	partial bool           // the group may begin without ranks that do not come, as the first rank has said
	came    []int          // with partial, once it has begun: by new rank, the number that Meet was called with
	away    map[int]string // with partial: by rank that was here, why it is not any more
}

type seat struct {
	rendezvous.Claim
	from string // address of the connection
	link *link

	sealed bool // its connection goes over TLS

	ear   func(message) // of a rank in the hub's process, in place of the link; under the lock of the coordinator
	moved *member       // the member of that rank, nil before it has moved; under mu of the hub
	risen sync.Once
}

func (s *seat) String() string {
	return fmt.Sprintf("process %d on %s (%s)", s.Pid, s.Host, s.from)
}

// sit gives s its seat, or returns why s cannot have one.
func (l *lobby) sit(s *seat) *rendezvous.Refusal {
	if l.seats == nil {
		l.size, l.first, l.seats = s.Size, s.Rank, map[int]*seat{}
		l.partial, l.away = s.Partial, map[int]string{}
	}
	if s.Size != l.size {
		return conflict("rank %d, %v, says there are %d ranks, but rank %d, %v, says %d: start all with one RINGO_SIZE",
			s.Rank, s, s.Size, l.first, l.seats[l.first], l.size)
	}
	if first := l.seats[l.first]; first != nil && first.sealed != s.sealed {
		with, without := s, first
		if first.sealed {
			with, without = first, s
		}
		return conflict("rank %d, %v, asks for TLS and rank %d, %v, does not: set RINGO_TLS, and RINGO_TLS_CERT, _KEY and "+
			"_CA if it is by certificates, for all ranks or for none",
			with.Rank, with, without.Rank, without)
	}
	if s.Partial != l.partial {
		return conflict("of ranks %d, %v, and %d one goes on without ranks that do not come and one does not: start the "+
			"same program on all", s.Rank, s, l.first)
	}
	switch other := l.seats[s.Rank]; {
	case other == nil:
	case other.Pid == s.Pid && other.Host == s.Host:
		return conflict("process %d on %s joins as rank %d again (%s, then %s): it must Close the first group before, or "+
			"have another ID",
			s.Pid, s.Host, s.Rank, other.from, s.from)
	default:
		return conflict("two processes claim rank %d: %v and %v: give each its own RINGO_RANK, "+
			"or if they are two jobs, each job its own address", s.Rank, other, s)
	}
	l.seats[s.Rank] = s
	return nil
}

func conflict(format string, args ...any) *rendezvous.Refusal {
	return &rendezvous.Refusal{Cause: rendezvous.Conflict, Rank: -1, Reason: fmt.Sprintf(format, args...)}
}

func (l *lobby) full() bool { return l.seats != nil && len(l.seats) == l.size }

// gaveUp is the refusal for all when a rank stops waiting.
func (l *lobby) gaveUp(rank int, g *rendezvous.GiveUp, strangers string) *rendezvous.Refusal {
	if len(g.Dead) > 0 {
		return &rendezvous.Refusal{Cause: rendezvous.Dead, Rank: g.Dead[0],
			Reason: fmt.Sprintf("rank %d will not come: %s", g.Dead[0], g.Reason)}
	}
	if !g.Timeout {
		return &rendezvous.Refusal{Cause: rendezvous.Cancelled, Rank: rank,
			Reason: fmt.Sprintf("rank %d, %v, was cancelled while it waited for the others", rank, l.seats[rank])}
	}
	var here, missing []int
	for r := range l.size {
		if l.seats[r] == nil {
			missing = append(missing, r)
		} else {
			here = append(here, r)
		}
	}
	return &rendezvous.Refusal{Cause: rendezvous.Timeout, Rank: -1,
		Missing: missing[:min(len(missing), rendezvous.MaxListed)],
		Reason: fmt.Sprintf("%d of %d ranks did not come within %s: %s (joined: %s)%s; start them or raise "+
			"RINGO_JOIN_TIMEOUT",
			len(missing), l.size, rendezvous.Spell(g.Waited), rendezvous.Ranges(missing), rendezvous.Ranges(here), strangers)}
}

func (l *lobby) died(rank int, why string) *rendezvous.Refusal {
	return &rendezvous.Refusal{Cause: rendezvous.Dead, Rank: rank,
		Reason: fmt.Sprintf("rank %d, %v, died while it waited for the others: %s", rank, l.seats[rank], why)}
}

// ended is the refusal for all when a rank cannot come any more.
func (l *lobby) ended(rank int, why string) *rendezvous.Refusal {
	return &rendezvous.Refusal{Cause: rendezvous.Dead, Rank: rank,
		Reason: fmt.Sprintf("rank %d will not come, for its process has ended: %s", rank, why)}
}

// busy is the refusal of a rank that comes for the next group, before all others have left
// this one.
func busy(here []int) *rendezvous.Refusal {
	return &rendezvous.Refusal{Cause: rendezvous.Busy, Rank: -1,
		Reason: fmt.Sprintf("the group before has not ended, rank %s is in it", rendezvous.Ranges(here))}
}

// hosts are the ranks in the hub's process.
func (l *lobby) hosts() (h []int) {
	for r := range l.size {
		if s := l.seats[r]; s != nil && s.Hosts {
			h = append(h, r)
		}
	}
	return h
}

// land is where the lobby's ranks are, and the place of the hub's process by the name of its machine.
func (l *lobby) land(machine string) rendezvous.Land {
	g := rendezvous.Land{Places: make([]int, l.size), Hub: -1, Addresses: make([]string, l.size),
		Silence: explain(syscall.ETIMEDOUT)}
	known := map[string]int{}
	for r := range l.size {
		s := l.seats[r]
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
		if l.seats[r].Host == hostname() {
			g.Hub = g.Places[r]
		}
	}
	if place, ok := known[machine]; ok && g.Hub < 0 {
		g.Hub = place
	}
	return g
}

// address is where the rank's host is reached, "" if there is no such port.
func (s *seat) address() string {
	host, _, err := net.SplitHostPort(s.from)
	if port := cmp.Or(s.Port, s.Witness); err == nil && port > 0 {
		return net.JoinHostPort(host, strconv.Itoa(port))
	}
	return ""
}

// homes are the names of the ranks' machines, and of their processes.
func (l *lobby) homes() [][]string {
	machines, processes := make([]string, l.size), make([]string, l.size)
	for r, s := range l.seats {
		machines[r], _, _ = strings.Cut(s.Machine, containers)
		processes[r] = fmt.Sprint(s.Pid, s.Host, s.Machine)
	}
	return [][]string{machines, processes}
}
