package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// largestPacket is the quantity of a gap: the largest size that passes, and the smallest that vanishes as text.
const largestPacket = "largest packet"

// gaps blames black holes: on the network, if no way passes large packets; on a host, if none does of the ways that lead
// from it or to it; on the way between two groups of hosts; on pairs.
func (j *netJudge) gaps() {
	for n := range j.networks {
		ways := slices.DeleteFunc(j.of(n), func(w *way) bool { return w.gap == gap{} && w.bandwidth == 0 })
		left := slices.DeleteFunc(slices.Clone(ways), func(w *way) bool { return !w.gap.ill() })
		hosts := hostsOf(ways)
		if len(left) == len(ways) && len(hosts) > 2 {
			j.gap(subject{}, "between all hosts", left)
			continue
		}
		left = j.gapsOfHosts(ways, left)
		if groups := groupsWithout(hostsOf(left), left); len(left) > 2 && len(groups) == 2 {
			j.gap(subject{}, fmt.Sprintf("between %s and %s", namesOf(groups[0]), namesOf(groups[1])), left)
			continue
		}
		for i, w := range left {
			back := slices.IndexFunc(left, func(o *way) bool { return o.subject == pairOf(w.subject.To, w.subject.component) })
			switch {
			case back < 0:
				j.gap(w.subject, "on this way", []*way{w})
			case back > i:
				j.gap(w.subject, "between these two", []*way{w, left[back]})
			}
		}
	}
}

// gapsOfHosts blames the hosts that explain two ways or more, those that explain most first, and returns the other ways.
func (j *netJudge) gapsOfHosts(ways, left []*way) []*way {
	type end struct {
		host     string
		receives bool
	}
	at := func(w *way, e end) bool {
		return e.receives && w.subject.To.Host == e.host || !e.receives && w.subject.Host == e.host
	}
	blamed := map[string][]end{}
	bad := map[string][]*way{}
	for {
		var worst end
		most := 1
		for _, h := range hostsOf(ways) {
			for _, e := range []end{{h, false}, {h, true}} {
				well := slices.ContainsFunc(ways, func(w *way) bool { return at(w, e) && !w.gap.ill() })
				n := 0
				for _, w := range left {
					if at(w, e) {
						n++
					}
				}
				if !well && n > most {
					worst, most = e, n
				}
			}
		}
		if most == 1 {
			break
		}
		blamed[worst.host] = append(blamed[worst.host], worst)
		left = slices.DeleteFunc(slices.Clone(left), func(w *way) bool {
			if at(w, worst) {
				bad[worst.host] = append(bad[worst.host], w)
			}
			return at(w, worst)
		})
	}
	for _, h := range slices.Sorted(maps.Keys(blamed)) {
		text := "that it sends"
		switch ends := blamed[h]; {
		case len(ends) == 2:
			text = "that it sends and is sent"
		case ends[0].receives:
			text = "that it is sent"
		}
		j.gap(of(h, ""), text, bad[h])
	}
	return left
}

// gap adds the finding about black holes.
func (j *netJudge) gap(s subject, where string, bad []*way) {
	worst := slices.MinFunc(bad, func(a, b *way) int { return cmp.Compare(a.gap.Passes, b.gap.Passes) })
	j.add(broken, "black-hole", s, 45, "MTU: packets of more than %d bytes vanish %s (those of %d do), and smaller ones "+
		"pass: give interfaces, switches, routers and tunnels on the way one MTU, or have ICMP pass",
		worst.gap.Passes, where, worst.gap.Vanishes)
	last := &j.list[len(j.list)-1]
	last.Quantity, last.again = "bandwidth", true
	for _, w := range bad {
		j.blamed[w.subject] = true
		if !s.IsPair() {
			last.Ways = append(last.Ways, w.subject)
		}
	}
}

// hostsOf are the hosts that ways join, in order.
func hostsOf(ways []*way) (hosts []string) {
	for _, w := range ways {
		for _, h := range []string{w.subject.Host, w.subject.To.Host} {
			if !slices.Contains(hosts, h) {
				hosts = append(hosts, h)
			}
		}
	}
	slices.Sort(hosts)
	return hosts
}

// groupsWithout are the groups of hosts within which none of the ways lies, such that each host of a group has one of
// them to all hosts of all others; nil if there are no such groups.
func groupsWithout(hosts []string, ways []*way) (groups [][]string) {
	joined := func(a, b string) bool {
		return slices.ContainsFunc(ways, func(w *way) bool {
			return w.subject.Host == a && w.subject.To.Host == b || w.subject.Host == b && w.subject.To.Host == a
		})
	}
	for _, h := range hosts {
		i := slices.IndexFunc(groups, func(g []string) bool { return !joined(g[0], h) })
		if i < 0 {
			groups = append(groups, []string{h})
			continue
		}
		groups[i] = append(groups[i], h)
	}
	for i, g := range groups {
		for k, o := range groups {
			for _, a := range g {
				for _, b := range o {
					if joined(a, b) != (i != k) {
						return nil
					}
				}
			}
		}
	}
	return groups
}

// namesOf lists hosts: "host a", "hosts a, b".
func namesOf(hosts []string) string {
	if len(hosts) == 1 {
		return "host " + hosts[0]
	}
	return "hosts " + strings.Join(hosts, ", ")
}
