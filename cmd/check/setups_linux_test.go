package check

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/tier"
)

// A setup is a typical set-up of hosts, in network namespaces. Scripts are for the shell; HOST in them is a host's
// number, from 1.
type setup struct {
	name    string
	what    string // in a few words, for the table
	hosts   int
	ranks   int       // of each host, if not 1
	rails   int       // interfaces of each host, if not 1
	each    string    // on each host
	one     string    // on host c, or on the last
	fabric  string    // in the fabric, once
	port    string    // in the fabric for each host; PORT is the host's port there
	before  string    // before each rank, in mounts of its own
	before1 string    // before ranks of host c, or of the last
	rules   []labRule // of a switch that joins eth0 of the hosts in place of the fabric
	at      string    // where the ranks meet, if not at 10.77.0.1
	stages  string    // if empty: all that need no GPU, or for faulty set-ups host and network
	busy    bool      // other processes want the cores
	named   []string  // expected findings, by code and subject; none for a good set-up
	quick   bool      // in every part; without RINGO_TEST=full the first of them alone
}

// setupsEnv says which set-ups TestSetups builds: "all", or a number by which the part is chosen.
const setupsEnv = "RINGO_SETUPS"

// setupParts is how many runs with RINGO_TEST=full have all set-ups: each has a part by turns.
const setupParts = 4

// TestSetups: a good set-up has no findings, and a faulty one has findings about the fault alone.
func TestSetups(t *testing.T) {
	tier.Long(t)
	which, turn := os.Getenv(setupsEnv), time.Now().YearDay()
	if n, err := fmt.Sscan(which, &turn); tier.Full() && n == 0 && err != nil {
		t.Logf("%s=%d has the same set-ups, all has all", setupsEnv, turn)
	}
	for i, s := range slices.Concat(wellSetups, illSetups) {
		t.Run(s.name, func(t *testing.T) {
			ours := i == 0 || tier.Full() && (s.quick || !tier.Race && (i+turn)%setupParts == 0)
			if which != "all" && !ours {
				t.Skip("not in this part; " + setupsEnv + "=all has it")
			}
			t.Parallel()
			s.run(t)
		})
	}
}

// The tables in docs are those of the set-ups; what stands before them is written by hand.
func TestSetupsTable(t *testing.T) {
	const file, head = "../../docs/check.md", "## Healthy: no alarm\n"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	prose, _, found := strings.Cut(string(text), head)
	require.True(t, found)
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s\n| | set-up | hosts | each is, or has |\n|--:|---|--:|---|\n", prose, head)
	for i, s := range wellSetups {
		fmt.Fprintf(&b, "| %d | %s | %d | %s |\n", i+1, s.name, s.hosts, s.what)
	}
	fmt.Fprintf(&b, "\n## Faulty: what is named\n\nHosts are called a, b, c, …\n\n| | set-up | hosts | what is wrong | "+
		"what is named |\n|--:|---|--:|---|---|\n")
	for i, s := range illSetups {
		fmt.Fprintf(&b, "| %d | %s | %d | %s | %s |\n", i+1, s.name, s.hosts, s.what, strings.Join(s.named, "; "))
	}
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
		return
	}
	require.Equal(t, b.String(), string(text))
}

// build makes the hosts; a kernel that lacks the modules skips the test.
func (s *setup) build(t *testing.T) *lan {
	l := newLAN(t, s.hosts)
	has := func(err error) {
		if err != nil {
			t.Skip(err)
		}
	}
	for n := range max(s.rails, 1) {
		if n == 0 && s.rules != nil {
			l.join(0, s.rules)
		} else {
			l.rail(n)
		}
	}
	has(scriptIn(l.fabric, s.fabric))
	l.ranks = nil
	for h, ns := range l.hosts {
		fill := strings.NewReplacer("HOST", fmt.Sprint(h+1), "PORT", portName(h, 0))
		has(scriptIn(l.fabric, fill.Replace(s.port)))
		has(scriptIn(ns, fill.Replace(s.each)))
		before := s.before
		if h == min(2, s.hosts-1) {
			has(scriptIn(ns, s.one))
			before += s.before1
		}
		for range max(s.ranks, 1) {
			l.ranks = append(l.ranks, lanRank{h, fill.Replace(before)})
		}
	}
	return l
}

func (s *setup) run(t *testing.T) {
	l := s.build(t)
	if s.busy {
		var stop atomic.Bool
		defer stop.Store(true)
		for range 4 {
			go func() {
				for !stop.Load() {
					runtime.Gosched()
				}
			}()
		}
	}
	at, stages := s.at, s.stages
	if at == "" {
		at = "10.77.0.1:29717"
	}
	if stages == "" && s.named == nil {
		stages = "host network collectives"
	} else if stages == "" {
		stages = "host network"
	}
	var wrong, named []string
	var said string
	for try := range 3 { // the machine may have stopped for a while
		if try > 0 {
			t.Logf("again, after %v", named)
		}
		r, printed := l.check(at, stages)
		if s.quick {
			require.Len(t, r.Of("collectives", "all-reduce of 1 MiB"), 1)
		}
		wrong, named, said = s.judge(r, printed)
		if len(wrong) == 0 && !slices.ContainsFunc(s.named, func(n string) bool { return !slices.Contains(named, n) }) {
			return
		}
	}
	require.Empty(t, wrong, said)
	require.Subset(t, named, s.named, said)
}

// judge returns the findings that no fault of the set-up explains, and all findings.
func (s *setup) judge(r *report, said string) (wrong, named []string, _ string) {
	for _, f := range r.Findings {
		ofMachine := slices.Contains(ofThisMachine, f.Code) &&
			!slices.ContainsFunc(s.named, func(n string) bool { return strings.HasPrefix(n, f.Code) })
		if f.Severity != well && !ofMachine {
			about := f.Code + " " + f.Subject.String()
			if named = append(named, about); !s.covers(about) {
				wrong = append(wrong, about)
			}
		}
	}
	return wrong, named, said
}

var hostNames = regexp.MustCompile(`(?:host|rank) \w+`)

// covers reports whether a finding is about a faulty part: the host, or both hosts of the pair.
func (s *setup) covers(found string) bool {
	_, about, _ := strings.Cut(found, " ")
	hosts := hostNames.FindAllString(about, -1)
	return slices.ContainsFunc(s.named, func(n string) bool {
		_, ill, _ := strings.Cut(n, " ")
		if !strings.Contains(ill, " to ") {
			return slices.Contains(hosts, hostNames.FindString(ill)) || ill == about
		}
		for _, h := range hostNames.FindAllString(ill, -1) {
			if strings.HasPrefix(h, "host") && !slices.Contains(hosts, h) {
				return false
			}
		}
		return true
	})
}

// slowly is a script that limits the rate at which an interface sends.
func slowly(dev, rate string) string {
	return "tc qdisc add dev " + dev + " root tbf rate " + rate + " burst 32kb latency 50ms; "
}

// firewall is a script with a rule for packets that a host receives.
func firewall(rule string) string {
	return "nft 'add table inet f; add chain inet f in { type filter hook input priority 0; }; add rule inet f in " +
		rule + "'; "
}

// switches is a script with a rule for frames that the fabric forwards.
func switches(rule string) string {
	return "nft 'add table bridge f; add chain bridge f on { type filter hook forward priority 0; }; add rule bridge f " +
		"on " + rule + "'; "
}

// bridge is a script that makes an interface with addresses.
func bridge(name string, addresses ...string) string {
	script := "ip link add name " + name + " type bridge; ip link set " + name + " up; "
	for _, a := range addresses {
		script += "ip addr add " + a + " dev " + name + "; "
	}
	return script
}
