package check

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A labCase is hosts a, b, c … and their network, simulated or real, with a fault or without.
type labCase struct {
	name    string
	hosts   int
	rules   []labRule
	absent  int      // number of the host that never comes, from 1; 0 is none
	late    int      // of the host that comes some seconds after the others
	stopped int      // of the host whose process is stopped while links are measured
	twin    int      // of the host that has host b's address
	moved   bool     // the twin has no other
	cards   bool     // the fault shows by the speed of cards, which simulated ones tell
	speed   float64  // of the cards, if not the usual rate, as a part of that
	named   []string // expressions for findings, as code, subject and sentence; none for a healthy case
	ill     []string // what findings may be about: a host, or a pair as "b c"
	quick   bool     // in the default tier too
}

// A labRule is about what one host sends to another; 0 is any. Later rules add to earlier ones.
type labRule struct {
	from, to int
	rate     float64 // part of the usual rate
	delay    time.Duration
	jitter   time.Duration
	busy     time.Duration // simulated only
	loss     float64
	twice    float64
	longest  int
	gone     bool
	flip     bool          // some bits change, where no checksum sees it
	swap     bool          // some large packets change places; real only
	after    time.Duration // from the start
	uplink   float64       // part of the usual rate that all ways of this rule share
}

func (r *labRule) covers(from, to int) bool {
	return (r.from == 0 || r.from == from) && (r.to == 0 || r.to == to)
}

// and is what two rules say together.
func (r labRule) and(o labRule) labRule {
	r.rate, r.uplink, r.longest = cmp.Or(o.rate, r.rate), cmp.Or(o.uplink, r.uplink), cmp.Or(o.longest, r.longest)
	r.delay, r.jitter, r.busy = r.delay+o.delay, r.jitter+o.jitter, r.busy+o.busy
	r.loss, r.twice = max(r.loss, o.loss), max(r.twice, o.twice)
	r.gone, r.flip, r.swap = r.gone || o.gone, r.flip || o.flip, r.swap || o.swap
	return r
}

// across are rules for what hosts up to n and the others send to each other.
func across(hosts, n int, r labRule) (rules []labRule) {
	for i := range hosts {
		for k := range hosts {
			if i < n != (k < n) {
				r.from, r.to = i+1, k+1
				rules = append(rules, r)
			}
		}
	}
	return rules
}

// both are rules for what a host sends and is sent.
func both(host int, r labRule) []labRule {
	there, back := r, r
	there.from, back.to = host, host
	return []labRule{there, back}
}

// Expressions for findings.
const (
	slowRacks = `(?s)^slow.*hosts %s and (hosts )?%s`
	lateRacks = `(?s)^late.*hosts %s and (hosts )?%s`
	blackHole = `MTU: packets of more than 1400 bytes vanish`
)

// labFaults are planted faults.
var labFaults = slices.Concat([]labCase{
	{name: "a host sends a tenth", hosts: 4, rules: []labRule{{from: 3, rate: .1}}, named: []string{"^slow-link host c:"},
		ill: []string{"c"}, quick: true},
	{name: "a host sends 30 %", hosts: 4, rules: []labRule{{from: 3, rate: .3}}, named: []string{"^slow-link host c:"},
		ill: []string{"c"}},
	{name: "a host sends 50 %", hosts: 4, rules: []labRule{{from: 3, rate: .5}}, named: []string{"^slow-link host c:"},
		ill: []string{"c"}},
	{name: "a host sends 75 %", hosts: 4, rules: []labRule{{from: 3, rate: .75}}, named: []string{"^slow-link host c:"},
		ill: []string{"c"}},
	{name: "the first host sends a tenth", hosts: 4, rules: []labRule{{from: 1, rate: .1}},
		named: []string{"^slow-link host a:"}, ill: []string{"a"}},
	{name: "two of four send a tenth", hosts: 4, rules: []labRule{{from: 2, rate: .1}, {from: 3, rate: .1}},
		named: []string{"^slow-link host b:", "^slow-link host c:"}, ill: []string{"b", "c"}},
	{name: "half of two hosts", hosts: 2, rules: []labRule{{from: 2, rate: .5}},
		named: []string{"^slow-link host b, eth0 to host a"}, ill: []string{"b a"}, quick: true},
	{name: "half both ways of two hosts", hosts: 2, rules: []labRule{{rate: .5}}, cards: true,
		named: []string{"^slow-link host a, eth0 to host b"}, ill: []string{"a b"}},
	{name: "half both ways of three hosts", hosts: 3, rules: both(3, labRule{rate: .5}),
		named: []string{"^slow-link host c:"}, ill: []string{"c"}},
	{name: "half both ways of four hosts", hosts: 4, rules: both(3, labRule{rate: .5}),
		named: []string{"^slow-link host c:"}, ill: []string{"c"}},
	{name: "45 % both ways of four hosts", hosts: 4, rules: both(3, labRule{rate: .45}),
		named: []string{"^slow-link host c:"}, ill: []string{"c"}},
	{name: "38 % both ways of four hosts", hosts: 4, rules: both(3, labRule{rate: .38}),
		named: []string{"^slow-link host c:"}, ill: []string{"c"}},
	{name: "half both ways of five hosts", hosts: 5, rules: both(3, labRule{rate: .5}),
		named: []string{"^slow-link host c:"}, ill: []string{"c"}},
	{name: "two of six half both ways", hosts: 6, rules: slices.Concat(both(3, labRule{rate: .5}),
		both(5, labRule{rate: .5})), named: []string{"^slow-link host c:", "^slow-link host e:"}, ill: []string{"c", "e"}},
	{name: "a pair at half", hosts: 4, rules: []labRule{{from: 2, to: 3, rate: .5}},
		named: []string{"^slow-link host b, eth0 to host c"}, ill: []string{"b c"}},
	{name: "a slow pair and a lossy host", hosts: 4, rules: []labRule{{from: 2, to: 3, rate: .1}, {to: 4, loss: .05}},
		named: []string{"^slow-link host b, eth0 to host c", "^loss host d:"}, ill: []string{"b c", "d"}},

	{name: "loss of 1 % to a host", hosts: 4, rules: []labRule{{to: 3, loss: .01}}, named: []string{"^loss host c:"},
		ill: []string{"c"}, quick: true},
	{name: "loss of 0.2 % to a host", hosts: 4, rules: []labRule{{to: 3, loss: .002}}, named: []string{"^loss host c"},
		ill: []string{"c"}},
	{name: "loss of 2 % from a host", hosts: 4, rules: []labRule{{from: 3, loss: .02}}, named: []string{"^loss host c:"},
		ill: []string{"c"}},
	{name: "loss of 30 % to a host", hosts: 4, rules: []labRule{{to: 3, loss: .3}}, named: []string{"^loss host c:"},
		ill: []string{"c"}},
	{name: "loss of 10 % of a pair", hosts: 4, rules: []labRule{{from: 2, to: 3, loss: .1}},
		named: []string{"^loss host b, eth0 to host c"}, ill: []string{"b c"}},
	{name: "loss of 2 % to a host of eight", hosts: 8, rules: []labRule{{to: 3, loss: .02}},
		named: []string{"^loss host c:"}, ill: []string{"c"}},
	{name: "loss of 1 % of a pair of eight", hosts: 8, rules: []labRule{{from: 6, to: 3, loss: .01}},
		named: []string{"^loss host (c, eth0 to host f|f, eth0 to host c)"}, ill: []string{"c f"}},
	{name: "loss of 0.5 % from a host of eight", hosts: 8, rules: []labRule{{from: 6, loss: .005}},
		named: []string{"^loss host f:"}, ill: []string{"f"}},
	{name: "loss of 3 % to the first host", hosts: 4, rules: []labRule{{to: 1, loss: .03}},
		named: []string{"^loss host a:"}, ill: []string{"a"}},
	{name: "loss of 30 % to the first host", hosts: 4, rules: []labRule{{to: 1, loss: .3}},
		named: []string{"^loss host a:"}, ill: []string{"a"}, quick: true},
	{name: "loss of 3 % to the first host of eight", hosts: 8, rules: []labRule{{to: 1, loss: .03}},
		named: []string{"^loss host a:"}, ill: []string{"a"}},
	{name: "loss of 10 % to the first host of eight", hosts: 8, rules: []labRule{{to: 1, loss: .1}},
		named: []string{"^loss host a:"}, ill: []string{"a"}},
	{name: "loss of 30 % to the first host of eight", hosts: 8, rules: []labRule{{to: 1, loss: .3}},
		named: []string{"^loss host a:"}, ill: []string{"a"}},

	{name: "a black hole of a pair", hosts: 4, rules: []labRule{{from: 2, to: 3, longest: 1400}},
		named: []string{blackHole}, ill: []string{"b c"}, quick: true},
	{name: "a black hole of what a host sends", hosts: 4, rules: []labRule{{from: 3, longest: 1400}},
		named: []string{blackHole}, ill: []string{"c"}, quick: true},
	{name: "a black hole of what a host is sent", hosts: 4, rules: []labRule{{to: 3, longest: 1400}},
		named: []string{blackHole}, ill: []string{"c"}},
	{name: "a black hole of what the first host sends", hosts: 4, rules: []labRule{{from: 1, longest: 1400}},
		named: []string{blackHole}, ill: []string{"a"}},
	{name: "a black hole of all", hosts: 4, rules: []labRule{{longest: 1400}}, named: []string{blackHole}},
	{name: "a black hole of two hosts", hosts: 2, rules: []labRule{{longest: 1400}}, named: []string{blackHole},
		ill: []string{"a b"}},
	{name: "a black hole to the first host", hosts: 8, rules: []labRule{{from: 4, to: 1, longest: 1400}},
		named: []string{blackHole}, ill: []string{"a d"}},
	{name: "a black hole from the first host", hosts: 8, rules: []labRule{{from: 1, to: 4, longest: 1400}},
		named: []string{blackHole}, ill: []string{"a d"}},

	{name: "one way of a pair is blocked", hosts: 4, rules: []labRule{{from: 2, to: 3, gone: true}},
		named: []string{"^no-link host b, eth0 to host c"}, ill: []string{"b c"}},
	{name: "the way to the first host is blocked", hosts: 4, rules: []labRule{{from: 4, to: 1, gone: true}},
		named: []string{"^(absent|stopped) .*rank 3"}, ill: []string{"d"}},
	{name: "the way from the first host is blocked", hosts: 4, rules: []labRule{{from: 1, to: 4, gone: true}},
		named: []string{"^(absent|stopped) .*rank 3"}, ill: []string{"d"}},

	{name: "a late host", hosts: 4, rules: []labRule{{from: 3, delay: 10 * time.Millisecond}},
		named: []string{"^late-link host c:"}, ill: []string{"c"}},
	{name: "a late pair", hosts: 4, rules: []labRule{{from: 2, to: 3, delay: 30 * time.Millisecond}},
		named: []string{"^late-link host b, eth0 to host c"}, ill: []string{"b c"}},
	{name: "jitter of a host", hosts: 4, rules: []labRule{{from: 3, jitter: 20 * time.Millisecond}},
		named: []string{"^(late|slow)-link host c:"}, ill: []string{"c"}},
	{name: "a slow and a late host", hosts: 6, rules: []labRule{{from: 3, rate: .1}, {from: 4, delay: 20 *
		time.Millisecond}}, named: []string{"^slow-link host c:", "^late-link host d:"}, ill: []string{"c", "d"}},

	{name: "two sites", hosts: 4, rules: across(4, 2, labRule{delay: 2 * time.Millisecond}),
		named: []string{fmt.Sprintf(lateRacks, "a, b", "c, d")}},
	{name: "slow racks 2+2", hosts: 4, rules: across(4, 2, labRule{rate: .25}),
		named: []string{fmt.Sprintf(slowRacks, "a, b", "c, d")}, quick: true},
	{name: "slow racks 3+3", hosts: 6, rules: across(6, 3, labRule{rate: .25}),
		named: []string{fmt.Sprintf(slowRacks, "a, b, c", "d, e, f")}},
	{name: "slow racks 4+4", hosts: 8, rules: across(8, 4, labRule{rate: .25}),
		named: []string{fmt.Sprintf(slowRacks, "a, b, c, d", "e, f, g, h")}},
	{name: "slow racks 5+3", hosts: 8, rules: across(8, 5, labRule{rate: .25}),
		named: []string{fmt.Sprintf(slowRacks, "a, b, c, d, e", "f, g, h")}},
	{name: "racks with a shared uplink", hosts: 8, rules: across(8, 4, labRule{uplink: .8}),
		named: []string{fmt.Sprintf(slowRacks, "a, b, c, d", "e, f, g, h")}},

	{name: "an address beside its own that another has", hosts: 4, twin: 3, named: []string{"^duplicate-address .*10\\.\\d+\\.0\\.2"},
		ill: []string{"b", "c"}},
	{name: "an address that another has", hosts: 4, twin: 3, moved: true,
		named: []string{"(duplicate-address|two hosts|both).*10\\.\\d+\\.0\\.2"}, ill: []string{"b", "c"}},
	{name: "a host that never comes", hosts: 4, absent: 3, named: []string{"^absent .*rank 2"}, ill: []string{"c"}},
	{name: "a process that is stopped", hosts: 4, stopped: 3, named: []string{"^(stopped|absent) .*rank 2"}, ill: []string{"c"},
		quick: true},
	{name: "a host that is cut off", hosts: 4, rules: both(3, labRule{gone: true, after: labCut}),
		named: []string{"^(stopped|absent) .*rank 2"}, ill: []string{"c"}},
})

// labCut is when a host's process is stopped or its cable is cut, after the start.
const labCut = 700 * time.Millisecond

// labHealthy are cases in which nothing is wrong.
var labHealthy = func() (list []labCase) {
	add := func(name string, hosts []int, rules func(n int) []labRule) {
		for _, n := range hosts {
			list = append(list, labCase{name: fmt.Sprintf("%s, %d hosts", name, n), hosts: n, rules: rules(n),
				quick: n == hosts[0]})
		}
	}
	all := func(r labRule) func(int) []labRule { return func(int) []labRule { return []labRule{r} } }
	add("plain", []int{2, 3, 4, 5, 6, 7, 8}, func(int) []labRule { return nil })
	add("20 ms each way", []int{2, 4, 8}, all(labRule{delay: 20 * time.Millisecond}))
	add("40 ms each way", []int{4}, all(labRule{delay: 40 * time.Millisecond}))
	add("jitter of 3 ms", []int{2, 4, 8}, all(labRule{jitter: 3 * time.Millisecond}))
	add("jitter of 5 ms", []int{4}, all(labRule{jitter: 5 * time.Millisecond}))
	add("a fifth of the packets twice", []int{4, 8}, all(labRule{twice: .2}))
	add("two racks", []int{4, 6, 8}, func(n int) []labRule {
		return across(n, n/2, labRule{delay: 100 * time.Microsecond})
	})
	add("racks of five and three", []int{8}, func(n int) []labRule {
		return across(n, 5, labRule{delay: 100 * time.Microsecond})
	})
	for _, n := range []int{2, 4} {
		list = append(list, labCase{name: fmt.Sprintf("an old network, %d hosts", n), hosts: n, speed: .1,
			rules: []labRule{{rate: .1}}})
	}
	add("busy hosts", []int{3, 8}, all(labRule{busy: 2 * time.Millisecond}))
	add("loss of a few", []int{4, 8}, all(labRule{loss: 1e-4}))
	add("an uplink that suffices", []int{8}, func(n int) []labRule { return across(n, n/2, labRule{uplink: 4}) })
	for _, n := range []int{3, 6} {
		list = append(list, labCase{name: fmt.Sprintf("a host comes late, %d hosts", n), hosts: n, late: 2})
	}
	return list
}()

// judge returns the expected findings that a report lacks, and the findings that accuse an innocent.
func (c *labCase) judge(r *report) (missing, wrong []string) {
	var said, remarks []string
	for _, f := range r.Findings {
		if f.Severity == well {
			remarks = append(remarks, fmt.Sprintf("%s %s: %s", f.Code, f.Subject, f.Text))
		}
		if f.Severity == well || slices.Contains(ofThisMachine, f.Code) {
			continue
		}
		text := fmt.Sprintf("%s %s: %s", f.Code, f.Subject, f.Text)
		if said = append(said, text); f.Subject != (subject{}) && !c.mayBe(f.Subject) {
			wrong = append(wrong, text)
		}
	}
	for _, want := range c.named {
		if !slices.ContainsFunc(slices.Concat(said, remarks), regexp.MustCompile(want).MatchString) {
			missing = append(missing, want)
		}
	}
	if c.named == nil {
		wrong = said
	}
	return missing, wrong
}

// mayBe reports whether a finding about a subject is about what is ill: a host, or both hosts of a pair.
func (c *labCase) mayBe(s subject) bool {
	var hosts []string
	for _, h := range []component{s.component, s.To} {
		if rank := 0; h.Host == "" {
			if n, _ := fmt.Sscanf(h.Part, "rank %d", &rank); n == 1 { // of an absent rank whose host nobody knows
				h.Host = string(rune('a' + rank))
			}
		}
		hosts = append(hosts, h.Host)
	}
	return slices.ContainsFunc(c.ill, func(ill string) bool {
		return !slices.ContainsFunc(strings.Fields(ill), func(h string) bool { return !slices.Contains(hosts, h) })
	})
}

// ofThisMachine are codes of findings about the machine that has the namespaces.
var ofThisMachine = []string{"shm-full", "low-nofile", "low-nproc", "no-memory", "cpu-capped", "memory-errors",
	"memory-repairs"}
