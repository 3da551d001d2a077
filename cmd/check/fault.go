package check

import (
	"fmt"
	"slices"
	"strings"
)

// A fault is a kind of fault that ways can have.
type fault struct {
	severity       severity
	code, quantity string
	whole          string             // about a host whose ways have it
	twoWay         bool               // it has no direction, and who calls, the first host of two, sees it
	each           bool               // the two ways of a pair are two findings
	weight         func(*way) float64 // of a way
	text           func(worst *way, c *cause) string
	again          bool // such ways are measured again before they are blamed
}

// plain blames ways for a fault that each has or has not.
func (j *netJudge) plain(f *fault, has func(*way) bool) {
	at := map[string]int{}
	for i, h := range j.r.Hosts {
		at[h.Name] = i
	}
	for n := range j.networks {
		ways, marks := j.left(n), map[*way]mark{}
		for _, w := range ways {
			if has(w) {
				marks[w] = bad
			} else if w.bandwidth > 0 && (!f.twoWay || at[w.subject.Host] < at[w.subject.To.Host]) {
				marks[w] = good
			}
		}
		j.blame(f, explain(ways, marks, f.twoWay))
	}
}

// parties are the groups of a cause in words.
func (c *cause) parties() string {
	if c.groups == nil {
		return ""
	}
	var groups []string
	const most = 6
	for _, g := range c.groups[:min(len(c.groups), most)] {
		groups = append(groups, namesOf(g))
	}
	if n := len(c.groups) - most; n > 0 {
		groups = append(groups, fmt.Sprintf("%d more groups", n))
	}
	if c.oneWay {
		return groups[0] + " to " + groups[1]
	}
	return strings.Join(groups, " and ")
}

// namesOf lists hosts: "host a", "hosts a, b".
func namesOf(hosts []string) string {
	const most = 8
	switch n := len(hosts); {
	case n == 1:
		return "host " + hosts[0]
	case n > most:
		return fmt.Sprintf("hosts %s and %d more", strings.Join(hosts[:most], ", "), n-most)
	}
	return "hosts " + strings.Join(hosts, ", ")
}

// last completes the last finding: the ways on which it rests, some of which are measured again.
func (j *netJudge) last(quantity string, ways []*way, again bool) *finding {
	f := &j.list[len(j.list)-1]
	f.Quantity = quantity
	for _, w := range ways[:min(len(ways), againPerOne)] {
		if again {
			f.again = append(f.again, w.subject)
		}
	}
	return f
}

// blame adds a finding for each cause. The ways that a cause covers, and their ways back, are not blamed for anything
// else, but for flipped bits.
func (j *netJudge) blame(f *fault, causes []cause) {
	back := map[subject]bool{} // pairs that are named
	for i := range causes {
		c := &causes[i]
		worst := slices.MaxFunc(c.ways, func(x, y *way) int { return cmpWays(f.weight(x), f.weight(y), x, y) })
		for _, w := range j.ways {
			if w.network == worst.network && f.code != "corrupt-link" && c.concerns(w) {
				j.blamed[w] = true
			}
		}
		text, remedy := f.text(worst, c), remedies[f.code]
		switch {
		case c.all:
			j.add(f.severity, f.code, subject{}, f.weight(worst), "all ways between hosts: %s (worst: %s): look at what all "+
				"share, such as the switch; %s", text, worst.subject, remedy)
		case c.groups != nil:
			j.add(f.severity, f.code, subject{}, f.weight(worst), "%s: between them, and not within, %s (worst: %s): look at "+
				"the switches, routers and uplinks that join the groups; no host is at fault", c.parties(), text, worst.subject)
		case c.host != "":
			if at := of(c.host, ""); slices.ContainsFunc(j.list, func(o finding) bool {
				return o.Code == f.code && o.Subject == at
			}) {
				continue // over another network
			}
			j.add(f.severity, f.code, of(c.host, ""), f.weight(worst), "%s %s %s: %s (worst: %s): %s", f.whole, c.way(f),
				count(peersOf(c.ways, c.host), "other host"), text, worst.subject, remedy)
			for _, w := range c.ways {
				j.list[len(j.list)-1].Ways = append(j.list[len(j.list)-1].Ways, w.subject)
			}
		case !f.each && back[worst.subject]:
			continue
		default:
			back[pairOf(worst.subject.To, worst.subject.component)] = true
			j.add(f.severity, f.code, worst.subject, f.weight(worst), "%s: %s", text, remedy)
		}
		j.last(f.quantity, c.ways, f.again)
	}
}

// way says in which direction a host's ways are bad.
func (c *cause) way(f *fault) string {
	switch {
	case f.twoWay || c.sends && c.receives:
		return "with"
	case c.sends:
		return "in what it sends to"
	}
	return "in what it receives from"
}

var remedies = map[string]string{
	"corrupt-link": "bits are flipped where no checksum sees it: take the link out of use; replace card, cable or " +
		"switch port, or switch off what changes packets on the way",
	"no-link": "look at firewall, routes, address and cable",
	"no-stream": "does a switch or router on the way have a smaller MTU than the hosts, and is ICMP dropped? set the " +
		"same MTU everywhere",
	"black-hole": "give interfaces, switches, routers and tunnels on the way one MTU, or have ICMP pass",
	"loss":       "clean or replace cable and transceiver, and look at the error counters of the switch port",
	"late-link":  "look for another route, a busy switch, traffic shaping or power saving of the card",
	"slow-link":  "look at the negotiated speed, cable, switch port, traffic shaping and what else uses the link",
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func cmpWays(x, y float64, a, b *way) int {
	if x != y {
		if x < y {
			return -1
		}
		return 1
	}
	return strings.Compare(b.subject.String(), a.subject.String())
}

// peersOf is how many other hosts ways join a host with.
func peersOf(ways []*way, host string) int {
	peers := map[string]bool{}
	for _, w := range ways {
		for _, h := range []string{w.subject.Host, w.subject.To.Host} {
			if h != host {
				peers[h] = true
			}
		}
	}
	return len(peers)
}
