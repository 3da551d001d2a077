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
	hosts   int // 0: four
	rules   []labRule
	absent  int     // number of the host that never comes, from 1; 0 is none
	late    int     // of the host that comes some seconds after the others
	stopped int     // of the host whose process is stopped while links are measured
	twin    int     // of the host that has host b's address
	moved   bool    // the twin has no other
	cards   bool    // the fault shows by the speed of cards, which simulated ones tell
	speed   float64 // of the cards, if not the usual rate, as a part of that
	// blame has the expected findings: code and host, or code and the two hosts of a pair; separated by semicolons
	blame string
	says  string // expression for one more expected finding, as code, subject and sentence
	ill   string // hosts, or pairs as "b c", that findings may be about too, separated by semicolons
	quick bool   // in the default tier too
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
	flip     bool    // some bits change, where no checksum sees it
	swap     bool    // some large packets change places; real only
	cut      bool    // the rule counts from labCut on
	uplink   float64 // part of the usual rate that all ways of this rule share
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
	blackHole = `MTU: packets of more than 1400 bytes vanish`
	lostRank  = `^(stopped|absent|cut-off) .*(rank %d|host c:)`
	twins     = `address 10\.\d+\.0\.2`
)

// racks is an expression for a finding about what lies between two groups of hosts.
func racks(word, a, b string) string {
	names := func(hosts string) string { return "hosts " + strings.Join(strings.Split(hosts, ""), "(,| and) ") }
	return names(a) + `,? and ` + names(b) + `: .*` + word
}

// labFaults are planted faults.
var labFaults = []labCase{
	{name: "a host sends a tenth", rules: []labRule{{from: 3, rate: .1}}, blame: "slow-link c", quick: true},
	{name: "a host sends 30 %", rules: []labRule{{from: 3, rate: .3}}, blame: "slow-link c"},
	{name: "a host sends 50 %", rules: []labRule{{from: 3, rate: .5}}, blame: "slow-link c"},
	{name: "a host sends 75 %", rules: []labRule{{from: 3, rate: .75}}, blame: "slow-link c"},
	{name: "the first host sends a tenth", rules: []labRule{{from: 1, rate: .1}}, blame: "slow-link a"},
	{name: "two of four send a tenth", rules: []labRule{{from: 2, rate: .1}, {from: 3, rate: .1}},
		blame: "slow-link b; slow-link c"},
	{name: "half of two hosts", hosts: 2, rules: []labRule{{from: 2, rate: .5}}, blame: "slow-link b a", quick: true},
	{name: "half both ways of two hosts", hosts: 2, rules: []labRule{{rate: .5}}, cards: true, blame: "slow-link a b"},
	{name: "half both ways of three hosts", hosts: 3, rules: both(3, labRule{rate: .5}), blame: "slow-link c"},
	{name: "half both ways of four hosts", rules: both(3, labRule{rate: .5}), blame: "slow-link c"},
	{name: "45 % both ways of four hosts", rules: both(3, labRule{rate: .45}), blame: "slow-link c"},
	{name: "38 % both ways of four hosts", rules: both(3, labRule{rate: .38}), blame: "slow-link c"},
	{name: "half both ways of five hosts", hosts: 5, rules: both(3, labRule{rate: .5}), blame: "slow-link c"},
	{name: "two of six half both ways", hosts: 6, blame: "slow-link c; slow-link e",
		rules: slices.Concat(both(3, labRule{rate: .5}), both(5, labRule{rate: .5}))},
	{name: "a pair at half", rules: []labRule{{from: 2, to: 3, rate: .5}}, blame: "slow-link b c"},
	{name: "a slow pair and a lossy host", rules: []labRule{{from: 2, to: 3, rate: .1}, {to: 4, loss: .05}},
		blame: "slow-link b c; loss d"},

	{name: "loss of 1 % to a host", rules: []labRule{{to: 3, loss: .01}}, blame: "loss c", quick: true},
	{name: "loss of 0.2 % to a host", rules: []labRule{{to: 3, loss: .002}}, blame: "loss c"},
	{name: "loss of 2 % from a host", rules: []labRule{{from: 3, loss: .02}}, blame: "loss c"},
	{name: "loss of 30 % to a host", rules: []labRule{{to: 3, loss: .3}}, blame: "loss c"},
	{name: "loss of 10 % of a pair", rules: []labRule{{from: 2, to: 3, loss: .1}}, blame: "loss b c"},
	{name: "loss of 2 % to a host of eight", hosts: 8, rules: []labRule{{to: 3, loss: .02}}, blame: "loss c"},
	{name: "loss of 1 % of a pair of eight", hosts: 8, rules: []labRule{{from: 6, to: 3, loss: .01}}, blame: "loss c f"},
	{name: "loss of 0.5 % from a host of eight", hosts: 8, rules: []labRule{{from: 6, loss: .005}}, blame: "loss f"},
	{name: "loss of 3 % to the first host", rules: []labRule{{to: 1, loss: .03}}, blame: "loss a"},
	{name: "loss of 30 % to the first host", rules: []labRule{{to: 1, loss: .3}}, blame: "loss a", quick: true},
	{name: "loss of 3 % to the first host of eight", hosts: 8, rules: []labRule{{to: 1, loss: .03}}, blame: "loss a"},
	{name: "loss of 10 % to the first host of eight", hosts: 8, rules: []labRule{{to: 1, loss: .1}}, blame: "loss a"},
	{name: "loss of 30 % to the first host of eight", hosts: 8, rules: []labRule{{to: 1, loss: .3}}, blame: "loss a"},

	{name: "a black hole of a pair", rules: []labRule{{from: 2, to: 3, longest: 1400}}, says: blackHole, ill: "b c",
		quick: true},
	{name: "a black hole of what a host sends", rules: []labRule{{from: 3, longest: 1400}}, says: blackHole, ill: "c",
		quick: true},
	{name: "a black hole of what a host is sent", rules: []labRule{{to: 3, longest: 1400}}, says: blackHole, ill: "c"},
	{name: "a black hole of what the first host sends", rules: []labRule{{from: 1, longest: 1400}}, says: blackHole,
		ill: "a"},
	{name: "a black hole of all", rules: []labRule{{longest: 1400}}, says: blackHole},
	{name: "a black hole of two hosts", hosts: 2, rules: []labRule{{longest: 1400}}, says: blackHole, ill: "a b"},
	{name: "a black hole to the first host", hosts: 8, rules: []labRule{{from: 4, to: 1, longest: 1400}},
		says: blackHole, ill: "a d"},
	{name: "a black hole from the first host", hosts: 8, rules: []labRule{{from: 1, to: 4, longest: 1400}},
		says: blackHole, ill: "a d"},

	{name: "one way of a pair is blocked", rules: []labRule{{from: 2, to: 3, gone: true}}, blame: "no-link b c"},
	{name: "the way to the first host is blocked", rules: []labRule{{from: 4, to: 1, gone: true}},
		says: fmt.Sprintf(lostRank, 3), ill: "d"},
	{name: "the way from the first host is blocked", rules: []labRule{{from: 1, to: 4, gone: true}},
		says: fmt.Sprintf(lostRank, 3), ill: "d"},

	{name: "a late host", rules: []labRule{{from: 3, delay: 10 * time.Millisecond}}, blame: "late-link c"},
	{name: "a late pair", rules: []labRule{{from: 2, to: 3, delay: 30 * time.Millisecond}}, blame: "late-link b c",
		quick: true},
	{name: "jitter of a host", rules: []labRule{{from: 3, jitter: 20 * time.Millisecond}}, ill: "c",
		says: "^(late|slow)-link host c:"},
	{name: "a slow and a late host", hosts: 6, blame: "slow-link c; late-link d",
		rules: []labRule{{from: 3, rate: .1}, {from: 4, delay: 20 * time.Millisecond}}},

	{name: "two sites", rules: across(4, 2, labRule{delay: 2 * time.Millisecond}),
		says: racks("late", "ab", "cd")},
	{name: "slow racks 2+2", rules: across(4, 2, labRule{rate: .25}), says: racks("slow", "ab", "cd"),
		quick: true},
	{name: "slow racks 3+3", hosts: 6, rules: across(6, 3, labRule{rate: .25}),
		says: racks("slow", "abc", "def")},
	{name: "slow racks 4+4", hosts: 8, rules: across(8, 4, labRule{rate: .25}),
		says: racks("slow", "abcd", "efgh")},
	{name: "slow racks 5+3", hosts: 8, rules: across(8, 5, labRule{rate: .25}),
		says: racks("slow", "abcde", "fgh")},
	{name: "racks with a shared uplink", hosts: 8, rules: across(8, 4, labRule{uplink: .8}),
		says: racks("slow", "abcd", "efgh")},

	{name: "an address beside its own that another has", twin: 3, says: twins, ill: "b; c"},
	{name: "an address that another has", twin: 3, moved: true, says: twins, ill: "b; c"},
	{name: "a host that never comes", absent: 3, says: fmt.Sprintf(lostRank, 2), ill: "c"},
	{name: "a process that is stopped", stopped: 3, says: fmt.Sprintf(lostRank, 2), ill: "c", quick: true},
	{name: "a host that is cut off", rules: both(3, labRule{gone: true, cut: true}), says: fmt.Sprintf(lostRank, 2),
		ill: "c"},
}

// labRuns is how often a fault is tried.
const labRuns = 3

// labCut is when a host's process is stopped or its cable is cut, after the start.
const labCut = 700 * time.Millisecond

// labHealthy are cases in which nothing is wrong.
var labHealthy = func() (list []labCase) {
	add := func(name string, hosts []int, rules func(n int) []labRule) {
		for _, n := range hosts {
			list = append(list, labCase{name: fmt.Sprintf("%s, %d hosts", name, n), hosts: n, rules: rules(n),
				quick: n == hosts[0] && len(hosts) > 2})
		}
	}
	all := func(r labRule) func(int) []labRule { return func(int) []labRule { return []labRule{r} } }
	add("plain", []int{2, 3, 4, 5, 6, 7, 8}, func(int) []labRule { return nil })
	add("20 ms each way", []int{2, 4, 8}, all(labRule{delay: 20 * time.Millisecond}))
	add("40 ms each way", []int{4}, all(labRule{delay: 40 * time.Millisecond}))
	add("20 ms each way and busy hosts", []int{4, 8},
		all(labRule{delay: 20 * time.Millisecond, busy: 5 * time.Millisecond}))
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

func (c *labCase) size() int { return cmp.Or(c.hosts, 4) }

// faulty reports whether something is wrong.
func (c *labCase) faulty() bool { return c.blame != "" || c.says != "" }

// judge returns the expected findings that a report lacks, and the findings that accuse an innocent.
func (c *labCase) judge(r *report) (missing, wrong []string) {
	var said, wanted []string
	ill := list(c.ill)
	for _, b := range list(c.blame) {
		code, who, _ := strings.Cut(b, " ")
		ill, wanted = append(ill, who), append(wanted, "^"+code+" host "+who+":")
		if a, b, pair := strings.Cut(who, " "); pair {
			wanted[len(wanted)-1] = fmt.Sprintf(`^%s host (%s, eth0 to host %s|%s, eth0 to host %s)`, code, a, b, b, a)
		}
	}
	if c.says != "" {
		wanted = append(wanted, c.says)
	}
	for _, f := range r.Findings {
		text := fmt.Sprintf("%s %s: %s", f.Code, f.Subject, f.Text)
		said = append(said, text)
		if f.Severity != well && !slices.Contains(ofThisMachine, f.Code) && (!c.faulty() || f.Severity != unjudged &&
			f.Subject != (subject{}) && !about(f.Subject, ill)) { // who could not be judged is not accused
			wrong = append(wrong, text)
		}
	}
	for _, want := range wanted {
		if !slices.ContainsFunc(said, regexp.MustCompile(want).MatchString) {
			missing = append(missing, want)
		}
	}
	return missing, wrong
}

// list splits at semicolons.
func list(s string) []string {
	return strings.FieldsFunc(strings.ReplaceAll(s, "; ", ";"), func(r rune) bool { return r == ';' })
}

// about reports whether a finding's subject is among the ill: has a host, or both hosts of a pair.
func about(s subject, ill []string) bool {
	var hosts []string
	for _, h := range []component{s.component, s.To} {
		var rank int
		if n, _ := fmt.Sscanf(h.Part, "rank %d", &rank); h.Host == "" && n == 1 { // absent, so nobody knows its host
			h.Host = string(rune('a' + rank))
		}
		hosts = append(hosts, h.Host)
	}
	return slices.ContainsFunc(ill, func(ill string) bool {
		return !slices.ContainsFunc(strings.Fields(ill), func(h string) bool { return !slices.Contains(hosts, h) })
	})
}

// ofThisMachine are codes of findings about the machine that has the namespaces.
var ofThisMachine = []string{"shm-full", "low-nofile", "low-nproc", "no-memory", "cpu-capped", "memory-errors",
	"memory-repairs"}
