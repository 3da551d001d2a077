package check

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// labEnv says what TestLabReal runs: "all" is all cases, faults labRuns times; a number chooses the part of the full
// tier.
const labEnv = "RINGO_LAB"

// What a run of the full tier has of the laboratory: so many cases by turns, as long as there is time.
const (
	labCases = 6
	labTime  = 25 * time.Second
)

// TestLabReal has "ringo check" judge the cases of TestLab in network namespaces, which a switch in this process joins.
// Hosts have kernels of their own, by what a process sees of them.
func TestLabReal(t *testing.T) {
	tier.Heavy(t)
	if tier.Race {
		t.Skip("the switch is too slow with the race detector")
	}
	need.Tool(t, "unshare")
	which, turn := os.Getenv(labEnv), time.Now().YearDay()
	if n, err := fmt.Sscan(which, &turn); n == 0 && err != nil && which != "all" {
		t.Logf("%s=%d has the same cases, all has all", labEnv, turn)
	}
	var cases []*labCase
	for i := range labFaults {
		for range labRuns {
			cases = append(cases, &labFaults[i])
		}
	}
	for i := range labHealthy {
		cases = append(cases, &labHealthy[i])
	}
	cases = slices.DeleteFunc(cases, (*labCase).simulatedOnly)
	if which == "all" {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.real(t, time.Time{})
			})
		}
		return
	}
	end := time.Now().Add(labTime)
	for i := 0; i < labCases && time.Now().Before(end); i++ {
		c := cases[(turn*labCases+i*len(cases)/labCases)%len(cases)]
		t.Run(c.name, func(t *testing.T) { c.real(t, end) })
	}
}

// simulatedOnly reports whether a case is about what the namespaces do not have.
func (c *labCase) simulatedOnly() bool {
	for _, r := range c.rules {
		if r.busy > 0 {
			return true
		}
	}
	return c.cards
}

// labBusy is how many processes may want a core of the machine, beyond which a part of the laboratory judges nothing.
const labBusy = 4

// real carries out checks in namespaces until one is right, once where the machine has time, and judges the last. After
// end, if that is not zero, there is no more.
func (c *labCase) real(t *testing.T, end time.Time) {
	var missing, wrong []string
	var said string
	for range labRuns {
		l := c.lan(t)
		began := time.Now()
		var r *report
		r, said = l.check("10.77.0.1:29717", "")
		missing, wrong = c.judge(r)
		load, _ := thisMachine("/").number("proc/loadavg")
		t.Logf("%v, load %.1f, lacks %q, accuses %q", time.Since(began).Round(100*time.Millisecond), load, missing, wrong)
		if len(missing)+len(wrong) == 0 || load < float64(runtime.NumCPU()) {
			break
		}
		if over := !end.IsZero() && time.Now().After(end); over && load > labBusy*float64(runtime.NumCPU()) {
			t.Log("not judged: the machine has no time for it")
			return
		} else if over {
			break
		}
	}
	require.Empty(t, wrong, said)
	require.Empty(t, missing, said)
}

// lan makes a case's hosts and network.
func (c *labCase) lan(t *testing.T) *lan {
	l := newLAN(t, c.size())
	l.join(labRate, c.rules)
	l.args = []string{"check", "-device", "host", "-json", "-"}
	for h, ns := range l.hosts {
		boot := t.TempDir() + "/boot_id"
		require.NoError(t, os.WriteFile(boot, fmt.Appendf(nil, "00000000-0000-0000-0000-0000000000%02d\n", h), 0o644))
		before := fmt.Sprintf("hostname node%d; mount --bind %s /proc/sys/kernel/random/boot_id; mount -t tmpfs x /dev/shm", h,
			boot)
		switch h + 1 {
		case c.absent:
			before = "exit 0"
		case c.late:
			before += "; sleep 5"
		case c.twin:
			l.need(ns, "ip addr add 10.77.0.2/24 dev eth0")
			if c.moved {
				l.need(ns, "ip addr flush dev eth0; ip addr add 10.77.0.2/24 dev eth0")
			}
		}
		l.ranks[h].before = before
	}
	l.begun = func(cmds []*exec.Cmd) {
		l.net.start()
		if c.stopped > 0 {
			time.AfterFunc(labCut, func() { _ = cmds[c.stopped-1].Process.Signal(unix.SIGSTOP) })
		}
	}
	return l
}
