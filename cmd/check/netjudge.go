package check

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Bounds of good links between hosts.
const (
	slowFloor   = 0.2  // part of the others' bandwidth by which a link may be slower
	slowCap     = 0.6  // a link slower by this part is bad, however much the others differ
	slowShared  = 0.9  // slowCap of hosts that are one machine, whose links share its cores
	lateFactor  = 2    // times the others' latency, and
	lateFloor   = 50.  // us more, and what latencies differ by,
	lateCap     = 5e3  // us, at most
	lossUsual   = 5e-4 // part of the segments that any link may lose
	lossChance  = 1e-3 // chance that of all good ways one is blamed for its loss
	lossLeast   = 3    // segments
	againPerOne = 8    // ways that are measured again for a finding
)

// A way is one direction of a link between two components, with the best of what was measured.
type way struct {
	subject   subject
	bandwidth float64 // 0 if it was not measured
	second    float64 // the second best bandwidth
	many      float64 // bandwidth of several streams, of two hosts; 0 if it was not measured
	speed     float64 // of the interfaces; 0 if it is not known
	latency   float64
	later     float64 // the second best latency
	network   int     // number of the network: ways with a common interface are of one
	lost      float64 // segments of small messages, with no stream beside them
	segments  float64
	resent    float64 // part of a stream's segments that were sent again
	corrupt   float64
	wrong     string // where the data were wrong
	gap       gap
	failed    string // why every connection failed or ended; empty once one did well
}

// waysOf are the ways that a stage has measured, in order.
func waysOf(r *report, stage string) []*way {
	at := map[subject]*way{}
	var list []*way
	tried := map[subject]bool{}
	for _, m := range r.Of(stage, "") {
		if !m.Subject.IsPair() {
			continue
		}
		w := at[m.Subject]
		if w == nil {
			w = &way{subject: m.Subject, latency: math.Inf(1), later: math.Inf(1)}
			at[m.Subject] = w
			list = append(list, w)
		}
		switch m.Quantity {
		case "bandwidth":
			w.bandwidth, w.second = max(w.bandwidth, m.Value), max(w.second, min(w.bandwidth, m.Value))
			tried[m.Subject] = true
		case manyStreams:
			w.many = max(w.many, m.Value)
		case "interface":
			w.speed = m.Value
		case "latency":
			w.latency, w.later = min(w.latency, m.Value), min(w.later, max(w.latency, m.Value))
		case lostSegments:
			var of float64
			fmt.Sscanf(m.Unit, "of %f", &of)
			w.lost += m.Value
			w.segments += of
		case "retransmits":
			w.resent = max(w.resent, m.Value)
		case "corrupt":
			w.corrupt += m.Value
			w.wrong = m.Text
		case largestPacket:
			w.gap = gap{Passes: int(m.Value)}
			fmt.Sscanf(m.Text, "of %d vanish", &w.gap.Vanishes)
		case "no connection", "cut short":
			w.failed = m.Text
		}
	}
	for _, w := range list {
		if tried[w.subject] {
			w.failed, w.gap = "", gap{}
		}
	}
	return list
}

// A netJudge names what is bad about ways, worst kind first, and no way twice.
type netJudge struct {
	findings
	ways     []*way
	blamed   map[*way]bool
	shared   bool      // hosts of the job are one machine that pretends to be several
	networks int       // number of networks
	suspects []subject // ways to measure again that no finding is about yet
}

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

func judgeNetwork(r *report, cfg *config) []finding { return judgeWays(r, cfg).list }

// again are the ways of which measuring again may show more.
func (j *netJudge) again() []subject {
	list := j.suspects
	for _, f := range j.list {
		list = append(list, f.again...)
	}
	return list
}

func judgeWays(r *report, cfg *config) *netJudge {
	ways := slices.DeleteFunc(waysOf(r, "network"),
		func(w *way) bool { return r.IsLost(w.subject.Host) || r.IsLost(w.subject.To.Host) })
	j := &netJudge{findings: findings{r: r}, ways: ways, blamed: map[*way]bool{}, shared: cfg != nil && cfg.shared}
	j.noNetworks()
	j.networks = networks(j.ways)
	j.idle()
	j.plain(&fault{severity: broken, code: "corrupt-link", whole: "it exchanges wrong data", each: true,
		weight: func(w *way) float64 { return 100 + w.corrupt },
		text: func(w *way, _ *cause) string {
			return fmt.Sprintf("%.0f blocks of 128 KiB came wrong, the %s", w.corrupt, w.wrong)
		}}, func(w *way) bool { return w.corrupt > 0 })
	j.plain(&fault{severity: broken, code: "no-link", whole: "it has no connection", twoWay: true, again: true,
		weight: func(*way) float64 { return 50 },
		text:   func(w *way, _ *cause) string { return "no data pass: " + firstLine(w.failed) },
	}, func(w *way) bool { return w.failed != "" && math.IsInf(w.latency, 0) && w.lost == 0 })
	j.gaps()
	j.loss()
	j.plain(&fault{severity: broken, code: "no-stream", quantity: "bandwidth",
		whole: "it exchanges small messages, and streams end", again: true,
		weight: func(*way) float64 { return 40 },
		text: func(w *way, _ *cause) string {
			return "small messages pass, and a stream does not: " + firstLine(w.failed)
		}}, func(w *way) bool { return w.failed != "" })
	j.late()
	j.slow()
	return j
}

// noNetworks leaves out ways that are over no network: the interfaces at both ends have passed no data to any host, and
// other interfaces join the two hosts. Examples are a VPN whose members do not see each other, and addresses of
// containers and guests. A remark lists addresses that were left out.
func (j *netJudge) noNetworks() {
	carries, joined := map[component]bool{}, map[[2]string]bool{}
	for _, w := range j.ways {
		if w.failed == "" {
			a, b := w.subject.component, w.subject.To
			carries[a], carries[b], joined[[2]string{a.Host, b.Host}], joined[[2]string{b.Host, a.Host}] = true, true, true, true
		}
	}
	var none []component
	j.ways = slices.DeleteFunc(j.ways, func(w *way) bool {
		a, b := w.subject.component, w.subject.To
		no := !carries[a] && !carries[b] && joined[[2]string{a.Host, b.Host}]
		if no && !slices.Contains(none, a) {
			none = append(none, a)
		}
		return no
	})
	for _, c := range none {
		j.add(well, "no-network", subject{component: c}, 0,
			"no data have passed over it to any host, and others join the hosts: it counts as no network")
	}
	said := map[string]bool{}
	for _, m := range j.r.Of("network", sharedAddress) {
		if !said[m.Text] && !j.r.duplicate(m.Text) {
			said[m.Text] = true
			j.add(well, "shared-address", subject{}, 0,
				"several hosts have the address %s (%s), so it leads to none of them and was left out", m.Text, m.Subject.Part)
		}
	}
}

// idle names an interface that nobody reaches, if interfaces of its name pass data between most hosts, and nothing else
// joins its host to that network. Cards that are down are left out, as the stage "host" has named them.
func (j *netJudge) idle() {
	for _, m := range j.r.Of("network", idleInterface) {
		if state, ok := hostOf(j.r.Of("host", "state"), m.Subject.Host, m.Subject.Part); ok && state.Text != "up" {
			continue
		}
		for n := range j.networks {
			on, joined := map[string]bool{}, false
			for _, w := range j.of(n) {
				for _, c := range []component{w.subject.component, w.subject.To} {
					joined = joined || c.Host == m.Subject.Host
					if c.Part == m.Subject.Part && w.failed == "" {
						on[c.Host] = true
					}
				}
			}
			if !joined && 2*len(on) > len(j.r.Hosts) {
				j.add(broken, "idle-interface", m.Subject, 50,
					"%s, and data pass over %s between %d of %d hosts: look at its cable, its address and what sets it up",
					m.Text, m.Subject.Part, len(on), len(j.r.Hosts))
			}
		}
	}
}

// networks numbers the ways' networks. Only ways of one network are compared, since rails may differ in speed; names of
// interfaces do not count, since hosts may name them differently.
func networks(ways []*way) (count int) {
	at := map[component]int{} // of an interface, from 1
	for _, w := range ways {
		a, b := w.subject.component, w.subject.To
		switch {
		case at[a] == 0 && at[b] == 0:
			count++
			at[a], at[b] = count, count
		case at[a] == 0:
			at[a] = at[b]
		case at[b] == 0:
			at[b] = at[a]
		case at[a] != at[b]:
			old, now := max(at[a], at[b]), min(at[a], at[b])
			for c, n := range at {
				if n == old {
					at[c] = now
				}
			}
		}
	}
	for _, w := range ways {
		w.network = at[w.subject.component] - 1
	}
	return count
}

// of returns the ways of a network.
func (j *netJudge) of(network int) (list []*way) {
	for _, w := range j.ways {
		if w.network == network {
			list = append(list, w)
		}
	}
	return list
}

// left are the ways of a network that were not blamed.
func (j *netJudge) left(network int) []*way {
	return slices.DeleteFunc(j.of(network), func(w *way) bool { return j.blamed[w] })
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
		j.blame(f, explain(ways, marks, f.twoWay, nil))
	}
}

// late blames ways whose latency is high.
func (j *netJudge) late() {
	s := &scale{
		cost:  func(w *way) float64 { return w.latency },
		again: func(w *way) float64 { return w.later },
		bound: func(us, noise float64) float64 { return lateFactor*us + lateFloor + min(noise*us, lateCap) },
	}
	for n := range j.networks {
		c := s.compare(j.of(n), j.blamed)
		if c == nil {
			continue
		}
		f := &fault{severity: degraded, code: "late-link", quantity: "latency", whole: "its latency is high", twoWay: true,
			weight: func(w *way) float64 { return w.latency / c.expected[w] },
			text: func(w *way, _ *cause) string {
				return fmt.Sprintf("%s us of latency, the others typically %s", digits(w.latency), digits(c.expected[w]))
			}, again: true}
		j.apart(s, c, "late-between", "latency", "later", func(us float64) string { return digits(us) + " us" })
		j.blame(f, c.causes)
	}
}

// slow blames ways whose bandwidth is low.
func (j *netJudge) slow() {
	most := slowCap
	if j.shared {
		most = slowShared
	}
	s := &scale{
		cost:  func(w *way) float64 { return 1 / w.bandwidth },
		again: func(w *way) float64 { return 1 / w.second },
		bound: func(cost, noise float64) float64 { return cost / (1 - min(most, max(slowFloor, noise))) },
	}
	for n := range j.networks {
		c := s.compare(j.of(n), j.blamed)
		if c == nil {
			j.slowOfTwo(j.left(n))
			continue
		}
		bad := map[*way]bool{}
		for _, x := range c.causes {
			for _, w := range x.ways {
				bad[w] = true
			}
		}
		f := &fault{severity: degraded, code: "slow-link", quantity: "bandwidth", whole: "its links are slow", each: true,
			weight: func(w *way) float64 { return 1 / (w.bandwidth * c.expected[w]) },
			text: func(w *way, _ *cause) string {
				low, high := math.Inf(1), 0.
				for o, e := range c.expected {
					if !bad[o] && e == c.expected[w] {
						low, high = min(low, o.bandwidth), max(high, o.bandwidth)
					}
				}
				text := fmt.Sprintf("%s GB/s, the others %s", digits(w.bandwidth), span(low, high))
				if w.resent > 0.001 {
					text += fmt.Sprintf(", and %.1f %% of its segments were sent again", 100*w.resent)
				}
				return text
			}, again: true}
		j.apart(s, c, "slow-between", "bandwidth", "slower", func(cost float64) string { return digits(1/cost) + " GB/s" })
		j.blame(f, c.causes)
	}
}

// apart adds a remark about groups of hosts that are far from each other: nothing is broken.
func (j *netJudge) apart(s *scale, c *comparison, code, quantity, word string, say func(float64) string) {
	for _, x := range c.between {
		var within, times []float64
		for w, e := range c.expected {
			from, ok := x.in[w.subject.Host]
			if to, too := x.in[w.subject.To.Host]; ok && too && from == to {
				within = append(within, s.cost(w))
			} else if x.covers(w) {
				times = append(times, e)
			}
		}
		if len(within) == 0 || len(times) == 0 {
			continue
		}
		usual, least, most := median(within), slices.Min(times), slices.Max(times)
		range_, values := digits(least/usual), say(least)
		if digits(most/usual) != range_ {
			range_, values = range_+" to "+digits(most/usual), values+" to "+say(most)
		}
		j.add(well, code, subject{}, most/usual, "%s: the way between them is %s times %s than the ways within (%s, and %s), as "+
			"between racks or sites with a shared uplink: no host is at fault, and collectives over all of them go at its pace",
			x.parties(), range_, word, values, say(usual))
		j.last(quantity, x.ways, true)
	}
}

// parties are the groups of a cause in words.
func (c *cause) parties() string {
	if c.groups == nil {
		return ""
	}
	var groups []string
	for _, g := range c.groups {
		groups = append(groups, namesOf(g))
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
	at := map[subject]*way{}
	for _, w := range j.ways {
		at[w.subject] = w
	}
	for i := range causes {
		c := &causes[i]
		worst := slices.MaxFunc(c.ways, func(x, y *way) int { return cmpWays(f.weight(x), f.weight(y), x, y) })
		for _, w := range j.ways {
			if b := at[pairOf(w.subject.To, w.subject.component)]; w.network == worst.network && f.code != "corrupt-link" &&
				(c.covers(w) || b != nil && c.covers(b)) {
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
			if k := slices.IndexFunc(j.list, func(o finding) bool { return o.Code == f.code && o.Subject == of(c.host, "") }); k >= 0 {
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

// span writes the range of good values.
func span(low, high float64) string {
	if math.IsInf(low, 0) {
		return "more"
	}
	if a, b := digits(low), digits(high); a != b {
		return a + "–" + b
	}
	return digits(low)
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
