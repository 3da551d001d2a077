package bootstrap

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
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
	claim
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
func (l *lobby) sit(s *seat) *refusal {
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

func conflict(format string, args ...any) *refusal {
	return &refusal{Cause: causeConflict, Rank: -1, Reason: fmt.Sprintf(format, args...)}
}

func (l *lobby) full() bool { return l.seats != nil && len(l.seats) == l.size }

// gaveUp is the refusal for all when a rank stops waiting.
func (l *lobby) gaveUp(rank int, g *giveUp, strangers string) *refusal {
	if len(g.Dead) > 0 {
		return &refusal{Cause: causeDied, Rank: g.Dead[0],
			Reason: fmt.Sprintf("rank %d will not come: %s", g.Dead[0], g.Reason)}
	}
	if !g.Timeout {
		return &refusal{Cause: causeCancelled, Rank: rank,
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
	return &refusal{Cause: causeTimeout, Rank: -1, Missing: missing[:min(len(missing), maxListed)],
		Reason: fmt.Sprintf("%d of %d ranks did not come within %s: %s (joined: %s)%s; start them or raise "+
			"RINGO_JOIN_TIMEOUT",
			len(missing), l.size, spell(g.Waited), ranges(missing), ranges(here), strangers)}
}

// maxListed is the most ranks that a message lists as missing.
const maxListed = 1024

func (l *lobby) died(rank int, why string) *refusal {
	return &refusal{Cause: causeDied, Rank: rank,
		Reason: fmt.Sprintf("rank %d, %v, died while it waited for the others: %s", rank, l.seats[rank], why)}
}

// ended is the refusal for all when a rank cannot come any more.
func (l *lobby) ended(rank int, why string) *refusal {
	return &refusal{Cause: causeDied, Rank: rank,
		Reason: fmt.Sprintf("rank %d will not come, for its process has ended: %s", rank, why)}
}

// busy is the refusal of a rank that comes for the next group, before all others have left
// this one.
func busy(here []int) *refusal {
	return &refusal{Cause: causeBusy, Rank: -1,
		Reason: fmt.Sprintf("the group before has not ended, rank %s is in it", ranges(here))}
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

// ranges writes ascending ranks as "0-2, 5".
func ranges(ranks []int) string {
	var b strings.Builder
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteString(", ")
		}
		if b.Len() > maxText/4 {
			b.WriteString("…")
			break
		}
		b.WriteString(strconv.Itoa(ranks[i]))
		if j > i {
			sep := "-"
			if j == i+1 {
				sep = ", "
			}
			b.WriteString(sep + strconv.Itoa(ranks[j]))
		}
		i = j + 1
	}
	return b.String()
}

// spell writes a waiting time as people do: 60s, 1.5s, 200ms.
func spell(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return strconv.Itoa(int(d.Round(time.Second)/time.Second)) + "s"
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}
