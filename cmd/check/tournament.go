package check

import "time"

// A tournament is a plan in which each of n hosts is measured with each other one once, in
// rounds of pairs that have no host in common: so no link carries two measurements.
type tournament struct {
	Hosts  int
	Rounds int
	Slot   time.Duration // the most that a round may take
}

// Bounds of a slot. With less than the least, a handshake and a few round trips to the other end of
// the world do not fit.
const (
	leastSlot = 100 * time.Millisecond
	mostSlot  = 3 * time.Second
)

// planTournament divides time among the rounds of n hosts.
func planTournament(n int, limit time.Duration) tournament {
	t := tournament{Hosts: n, Rounds: n - 1 + n%2}
	if n < 2 {
		t.Rounds = 0
		return t
	}
	t.Slot = min(mostSlot, max(leastSlot, limit/time.Duration(t.Rounds)))
	return t
}

// Peer is the host with which a host is measured in a round; -1 is none. By the circle method, the last
// of an even number of hosts stays, and the others move on by one each round.
func (t tournament) Peer(host, round int) int {
	m := t.Rounds // that move: an odd number
	even := t.Hosts%2 == 0
	if even && host == t.Hosts-1 {
		// i meets itself in the circle when 2i = round (mod m).
		return round * (m + 1) / 2 % m
	}
	peer := ((round-host)%m + m) % m
	switch {
	case peer != host:
		return peer
	case even:
		return t.Hosts - 1
	}
	return -1
}
