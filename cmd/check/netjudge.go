package check

import (
	"fmt"
	"math"
	"slices"
)

// Bounds of good links between hosts.
const (
	slowFloor   = 0.2  // part of the others' bandwidth by which a link may be slower
	slowFar     = 0.6  // slowFloor where most ways are longer than farAway: windows grow by doubling, and not for all alike
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
	j.gaps()
	j.loss()
	j.plain(&fault{severity: broken, code: "no-link", whole: "it has no connection", twoWay: true, again: true,
		weight: func(*way) float64 { return 50 },
		text:   func(w *way, _ *cause) string { return "no data pass: " + firstLine(w.failed) },
	}, func(w *way) bool { return w.failed != "" && math.IsInf(w.latency, 0) })
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
