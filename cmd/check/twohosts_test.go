package check

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Two hosts, which no third is compared with, are judged by their two directions and by the interfaces.
func TestTwoHosts(t *testing.T) {
	slow := func(a, b byte) fakeLink {
		l := healthy(a, b)
		if a == 1 {
			l.rate /= 8
		}
		return l
	}
	for _, c := range []struct {
		name  string
		link  func(a, b byte) fakeLink
		speed string // of the interfaces, in Mbit/s
		want  string
		says  string
	}{
		{"well", healthy, "100\n", "", ""},
		{"an interface that does not say", healthy, "-1\n", "", ""},
		{"a slow way", slow, "", "slow-link host a, eth0 to host b, eth0", "by 4 streams at most, the other way 0.0"},
		{"slow both ways", healthy, "10000\n",
			"slow-link host a, eth0 to host b, eth0, slow-link host b, eth0 to host a, eth0", "its interfaces are set to 1.25"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				jobs := fakeCluster(2, c.link)
				for i, j := range jobs {
					h := newFakeHost(i)
					h.files["sys/class/net/eth0/speed"] = c.speed
					m := h.machine()
					j.machine.FS = m.FS
				}
				r, errs := runAll(t, jobs, config{Stages: []stage{networkStage()}})
				time.Sleep(time.Minute) // for what is still under way
				require.Equal(t, []error{nil, nil}, errs)
				named := codes(r)
				slices.Sort(named)
				require.Equal(t, c.want, strings.Join(named, ", "), "%v", r.Findings)
				if c.says != "" {
					require.Contains(t, r.Findings[0].Text, c.says)
					require.Equal(t, degraded, r.Verdict)
				}
				require.Len(t, r.Maps(), 2)
				require.Less(t, r.Took, 12.5)
			})
		})
	}
}

// TestTwoHostsJudged: a slow single stream is no finding if several streams are quick, nor is the speed that a virtual
// interface claims.
func TestTwoHostsJudged(t *testing.T) {
	there := pairOf(component{"a", "eth0"}, component{"b", "eth0"})
	back := pairOf(there.To, there.component)
	for _, c := range []struct {
		name                string
		one, many, other, s float64
		want                []string
	}{
		{"fast", 11, 0, 11, 12.5, nil},
		{"much faster than TCP is", 2, 0, 2, 50, nil},
		{"one stream", 1, 0, 11, 0, []string{"slow-stream host a, eth0 to host b, eth0"}},
		{"several are well", 1, 9, 11, 12.5, nil},
		{"several are slow", 1, 2, 11, 0, []string{"slow-link host a, eth0 to host b, eth0"}},
		{"a third is well", 4, 0, 11, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &report{Hosts: []hostReport{{Name: "a"}, {Name: "b"}}}
			add := func(s subject, q string, v float64) {
				if v > 0 {
					r.Measurements = append(r.Measurements, measurement{Stage: "network", Subject: s, Quantity: q, Value: v,
						Unit: "GB/s"})
				}
			}
			add(there, "bandwidth", c.one)
			add(there, manyStreams, c.many)
			add(back, "bandwidth", c.other)
			add(there, "interface", c.s)
			r.Findings = judgeNetwork(r, &config{})
			require.Equal(t, c.want, codes(r))
		})
	}
	h := newFakeHost(0)
	require.Equal(t, 25., h.machine().speed("eth0"))
	h.files["sys/class/net/veth1/speed"] = "10000\n"
	require.Zero(t, h.machine().speed("veth1"))
	require.Zero(t, h.machine().speed("lo"))
}
