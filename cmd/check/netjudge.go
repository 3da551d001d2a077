package check

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Bounds of good links between hosts.
const (
	lossBound  = 0.005 // part of small messages that were sent again
	leastLost  = 3
	slowFloor  = 0.2 // part of the others' bandwidth by which a link may be slower
	slowCap    = 0.6 // a link slower by this part is bad, however much the others differ
	lateFactor = 2   // times the others' latency, and
	lateFloor  = 50. // us more
)

// A way is one direction of a link between two components, with the best of what was measured.
type way struct {
	subject   subject
	bandwidth float64 // 0 if it was not measured
	many      float64 // bandwidth of several streams, of two hosts; 0 if it was not measured
	speed     float64 // of the interfaces; 0 if it is not known
	latency   float64
	network   int     // number of the network: ways with a common interface are of one
	lost      float64 // small messages lost, in both directions
	messages  float64
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
			w = &way{subject: m.Subject, latency: math.Inf(1)}
			at[m.Subject] = w
			list = append(list, w)
		}
		switch m.Quantity {
		case "bandwidth":
			w.bandwidth = max(w.bandwidth, m.Value)
			tried[m.Subject] = true
		case manyStreams:
			w.many = max(w.many, m.Value)
		case "interface":
			w.speed = m.Value
		case "latency":
			w.latency = min(w.latency, m.Value)
		case "sent again":
			var of float64
			fmt.Sscanf(m.Unit, "of %f", &of)
			w.lost += m.Value
			w.messages += of
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

// A netJudge names the ways that are bad, worst kind first, and no way twice.
type netJudge struct {
	findings
	ways     []*way
	blamed   map[subject]bool
	shared   bool // the ways are within one machine
	networks int  // number of networks
}

// A blame is a kind of fault that a way can have.
type blame struct {
	severity       severity
	code, quantity string
	whole          string                    // text about a host with mostly bad ways
	test           func(*way) (string, bool) // text about a way, and whether the way has the fault
	weight         func(*way) float64        // weight of a bad way
	again          bool                      // such ways are measured again before they are blamed
}

func judgeNetwork(r *report, cfg *config) []finding {
	ways := slices.DeleteFunc(waysOf(r, "network"),
		func(w *way) bool { return r.IsLost(w.subject.Host) || r.IsLost(w.subject.To.Host) })
	j := &netJudge{findings: findings{r: r}, ways: ways, blamed: map[subject]bool{}, shared: sharedMachine(cfg)}
	j.noNetworks()
	j.networks = networks(j.ways)
	j.idle()
	j.blame(&blame{broken, "corrupt-link", "", "it exchanges wrong data", func(w *way) (string, bool) {
		return fmt.Sprintf("%.0f blocks of 128 KiB came wrong, the %s", w.corrupt, w.wrong), w.corrupt > 0
	}, func(w *way) float64 { return 100 + w.corrupt }, false})
	j.blame(&blame{broken, "no-link", "", "it has no connection", func(w *way) (string, bool) {
		return "no data pass: " + firstLine(w.failed), w.failed != "" && math.IsInf(w.latency, 0)
	}, func(*way) float64 { return 50 }, true})
	j.gaps()
	j.loss()
	j.blame(&blame{broken, "no-stream", "bandwidth", "it exchanges small messages, and streams end",
		func(w *way) (string, bool) {
			return "small messages pass, and a stream does not: " + firstLine(w.failed), w.failed != ""
		}, func(*way) float64 { return 40 }, true})
	j.late()
	j.slow()
	return j.list
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

// loss blames ways that lose messages.
func (j *netJudge) loss() {
	bound := lossBound
	if j.shared { // a busy machine's kernel repeats segments that are acknowledged late
		bound = 0.01
	}
	j.blame(&blame{degraded, "loss", "bandwidth", "it loses packets", func(w *way) (string, bool) {
		return fmt.Sprintf("%.0f of %.0f small messages were lost and sent again", w.lost, w.messages),
			w.lost >= leastLost && w.lost/w.messages >= bound
	}, func(w *way) float64 { return 10 + w.lost/w.messages }, true})
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

// late blames ways whose latency is high.
func (j *netJudge) late() {
	typical := make([]float64, j.networks)
	for n := range typical {
		t, _ := typicalOf(j.of(n), func(w *way) float64 { return -w.latency })
		typical[n] = -t
	}
	j.blame(&blame{degraded, "late-link", "latency", "its latency is high", func(w *way) (string, bool) {
		usual := typical[w.network]
		bound := lateFactor*usual + lateFloor
		if j.shared {
			bound = 5*usual + 5000
		}
		return fmt.Sprintf("%s us of latency, the others typically %s", digits(w.latency), digits(usual)), usual != 0 &&
			w.latency > bound && !math.IsInf(w.latency, 0)
	}, func(w *way) float64 { return w.latency / typical[w.network] }, true})
}

// A pace is the bandwidth of a network's ways.
type pace struct{ best, least, low, high float64 } // least: the lowest good value; low, high: the range of good ones

func (j *netJudge) paceOf(ways []*way) (p pace) {
	best, spread := typicalOf(ways, func(w *way) float64 { return w.bandwidth })
	floor := min(slowCap, max(slowFloor, spread))
	if j.shared {
		floor = max(floor, 0.9)
	}
	p = pace{best: best, least: (1 - floor) * best, low: math.Inf(1)}
	for _, w := range ways {
		if w.bandwidth > 0 && w.bandwidth >= p.least {
			p.low, p.high = min(p.low, w.bandwidth), max(p.high, w.bandwidth)
		}
	}
	return p
}

// slow blames ways whose bandwidth is low.
func (j *netJudge) slow() {
	paces := make([]pace, j.networks)
	for n := range paces {
		paces[n] = j.paceOf(j.of(n))
	}
	j.blame(&blame{degraded, "slow-link", "bandwidth", "its links are slow", func(w *way) (string, bool) {
		p := paces[w.network]
		text := fmt.Sprintf("%s GB/s, the others %s", digits(w.bandwidth), span(p.low, p.high))
		if w.resent > 0.001 {
			text += fmt.Sprintf(", and %.1f %% of its segments were sent again", 100*w.resent)
		}
		return text, p.best > 0 && w.bandwidth > 0 && w.bandwidth < p.least
	}, func(w *way) float64 { return paces[w.network].best / w.bandwidth }, true})
	for n, p := range paces {
		if p.best == 0 {
			j.slowOfTwo(j.left(func(w *way) (string, bool) { return "", w.network == n }), j.of(n), j.shared)
		}
	}
}

// left are the ways that fail a test, with its text, without ways that were blamed before.
func (j *netJudge) left(test func(*way) (string, bool)) map[*way]string {
	bad := map[*way]string{}
	for _, w := range j.ways {
		if j.blamed[w.subject] {
			continue
		}
		if text, yes := test(w); yes {
			bad[w] = text
		}
	}
	return bad
}

// blame adds findings for bad ways, or for hosts with mostly bad ways.
func (j *netJudge) blame(b *blame) {
	bad := j.left(b.test)
	hosts := hostsToBlame(j.ways, bad)
	for _, h := range hosts {
		j.blameHost(h, bad, b)
	}
	for _, w := range j.ways {
		text, ok := bad[w]
		if !ok || j.blamed[w.subject] ||
			j.blamed[pairOf(w.subject.To, w.subject.component)] && b.code != "slow-link" && b.code != "corrupt-link" {
			continue
		}
		if slices.Contains(hosts, w.subject.Host) || slices.Contains(hosts, w.subject.To.Host) {
			continue
		}
		j.blamed[w.subject] = true
		j.add(b.severity, b.code, w.subject, b.weight(w), "%s: %s", text, remedies[b.code])
		last := &j.list[len(j.list)-1]
		last.Quantity, last.again = b.quantity, b.again
	}
}

// blameHost adds the finding for a host with mostly bad ways.
func (j *netJudge) blameHost(h string, bad map[*way]string, b *blame) {
	var parts []*way
	for w := range bad {
		if w.subject.Host == h || w.subject.To.Host == h {
			parts = append(parts, w)
			j.blamed[w.subject] = true
		}
	}
	worst := slices.MaxFunc(parts, func(x, y *way) int { return cmpWays(b.weight(x), b.weight(y), x, y) })
	j.add(b.severity, b.code, of(h, ""), b.weight(worst), "%s with %s: %s (worst: %s): %s", b.whole,
		count(peersOf(parts, h), "other host"), bad[worst], worst.subject, remedies[b.code])
	last := &j.list[len(j.list)-1]
	last.Quantity, last.again = b.quantity, b.again
	for _, w := range j.ways {
		if slices.Contains(parts, w) {
			last.Ways = append(last.Ways, w.subject)
		}
	}
}

var remedies = map[string]string{
	"corrupt-link": "bits are flipped where no checksum sees it: take the link out of use; replace card, cable or " +
		"switch port, or switch off what changes packets on the way",
	"no-link": "look at firewall, routes, address and cable",
	"no-stream": "does a switch or router on the way have a smaller MTU than the hosts, and is ICMP dropped? set the " +
		"same MTU everywhere",
	"loss":      "clean or replace cable and transceiver, and look at the error counters of the switch port",
	"late-link": "look for another route, a busy switch, traffic shaping or power saving of the card",
	"slow-link": "look at the negotiated speed, cable, switch port, traffic shaping and what else uses the link",
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

// typicalOf is the median of the hosts' best values, so that a host with only bad links neither counts as
// normal nor lowers the values of its peers. spread is the difference among values near the median, as a part of
// it. typical is 0 where fewer than three hosts were measured.
func typicalOf(ways []*way, value func(*way) float64) (typical, spread float64) {
	best := map[string]float64{}
	for _, w := range ways {
		v := value(w)
		if v == 0 || math.IsInf(v, 0) {
			continue
		}
		for _, h := range []string{w.subject.Host, w.subject.To.Host} {
			if old, ok := best[h]; !ok || v > old {
				best[h] = v
			}
		}
	}
	if len(best) < 3 {
		return 0, 0
	}
	var bests, off []float64
	for _, v := range best {
		bests = append(bests, v)
	}
	typical = median(bests)
	for _, w := range ways {
		if v := value(w); v > (1-slowCap)*typical {
			off = append(off, math.Abs(v-typical))
		}
	}
	return typical, 6 * 1.4826 * median(off) / math.Abs(typical)
}

// hostsToBlame are the hosts that explain most bad ways, worst first: their links are bad with most of their peers, and
// with two at least. A host whose bad links are explained by other hosts is left out.
func hostsToBlame(ways []*way, bad map[*way]string) []string {
	peers := map[string]map[string]bool{}
	for _, w := range ways {
		for _, p := range [][2]string{{w.subject.Host, w.subject.To.Host}, {w.subject.To.Host, w.subject.Host}} {
			if peers[p[0]] == nil {
				peers[p[0]] = map[string]bool{}
			}
			peers[p[0]][p[1]] = true
		}
	}
	var blamed []string
	for {
		ill := map[string]map[string]bool{}
		for w := range bad {
			a, b := w.subject.Host, w.subject.To.Host
			if slices.Contains(blamed, a) || slices.Contains(blamed, b) {
				continue
			}
			for _, p := range [][2]string{{a, b}, {b, a}} {
				if ill[p[0]] == nil {
					ill[p[0]] = map[string]bool{}
				}
				ill[p[0]][p[1]] = true
			}
		}
		worst := ""
		for h, of := range ill {
			if len(of) < 2 || 2*len(of) <= len(peers[h])-len(blamed) {
				continue
			}
			if worst == "" || len(of) > len(ill[worst]) || len(of) == len(ill[worst]) && h < worst {
				worst = h
			}
		}
		if worst == "" {
			return blamed
		}
		blamed = append(blamed, worst)
	}
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

// sharedMachine reports whether hosts of the job are one machine that pretends to be several. Their
// links share its cores, so that only large differences count.
func sharedMachine(cfg *config) bool { return cfg != nil && cfg.shared }
