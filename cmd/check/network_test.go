package check

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A cluster of four hosts, 1 to 4 or a to d, in which a link or a host is ill; it is named,
// and nothing else.
func TestNetworkFaults(t *testing.T) {
	// between changes what goes between two hosts, one way or both.
	between := func(x, y byte, both bool, change func(l *fakeLink)) func(a, b byte) fakeLink {
		return func(a, b byte) fakeLink {
			l := healthy(a, b)
			if a == x && b == y || both && a == y && b == x {
				change(&l)
			}
			return l
		}
	}
	host := func(x byte, change func(l *fakeLink)) func(a, b byte) fakeLink {
		return func(a, b byte) fakeLink {
			l := healthy(a, b)
			if a == x || b == x {
				change(&l)
			}
			return l
		}
	}
	for _, c := range []struct {
		name string
		link func(a, b byte) fakeLink
		want string // code and subject of each finding, but for interfaces
		says string
	}{
		{"nothing", healthy, "", ""},
		{"a slow link", between(2, 4, false, func(l *fakeLink) { l.rate /= 4 }), "slow-link host b to host d", "the others 0.0"},
		{"a slow link both ways", between(2, 4, true, func(l *fakeLink) { l.rate /= 4 }), "slow-link host b to host d, slow-link host d to host b", "GB/s, the others"},
		{"a slow host", host(3, func(l *fakeLink) { l.rate /= 4 }), "slow-link host c", "its links are slow with 3 other hosts"},
		{"a slow host of rank 0", host(1, func(l *fakeLink) { l.rate /= 4 }), "slow-link host a", "its links are slow with 3 other hosts"},
		{"a long way", between(1, 4, true, func(l *fakeLink) { l.delay = 20 * time.Millisecond }), "late-link host a to host d", "us of latency, the others typically 3"},
		{"a host that is far", host(4, func(l *fakeLink) { l.delay = 20 * time.Millisecond }), "late-link host d", "its latency is high with 3 other hosts"},
		{"a flipped bit", between(4, 1, false, func(l *fakeLink) { l.flip = true }), "corrupt-link host d to host a", "blocks of 128 KiB came wrong"},
		{"a host that flips bits", host(2, func(l *fakeLink) { l.flip = true }), "corrupt-link host b", "it exchanges wrong data with 3 other hosts"},
		{"no way", between(3, 4, true, func(l *fakeLink) { l.refused = true }), "no-link host c to host d", "no route to host"},
		{"a host that is cut off", host(4, func(l *fakeLink) { l.refused = true }), "no-link host d", "it has no connection with 3 other hosts"},
		{"a link that hangs", between(2, 3, true, func(l *fakeLink) { l.cut = 300_000 }), "no-stream host b to host c", "small messages pass, and a stream does not"},
		{"a link that hangs one way", between(3, 2, false, func(l *fakeLink) { l.cut = 300_000 }), "no-stream host c to host b", "small messages pass, and a stream does not"},
		{"all are far", func(a, b byte) fakeLink { return fakeLink{rate: 16e6, delay: 30 * time.Millisecond} }, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, errs := runAll(t, fakeCluster(4, c.link), config{Stages: []stage{networkStage()}})
				time.Sleep(time.Minute) // for what is still under way
				for _, err := range errs {
					require.NoError(t, err)
				}
				named := codes(r)
				slices.Sort(named)
				require.Equal(t, c.want, strings.ReplaceAll(strings.Join(named, ", "), ", eth0", ""), "%v", r.Findings)
				if c.says != "" {
					require.Contains(t, r.Findings[0].Text, c.says)
				}
				require.Len(t, r.Maps(), 2)
				require.Less(t, r.Took, 12.5)
			})
		})
	}
}

// Rails may differ; a host is compared with the others on the same one, whatever it calls its interfaces.
func TestRailsOfDifferentSpeed(t *testing.T) {
	ways := func(slow float64) *report {
		r := &report{}
		hosts := []string{"a", "b", "c", "d"}
		for i, h := range hosts {
			r.Hosts = append(r.Hosts, hostReport{Name: h})
			for k, o := range hosts {
				for _, rail := range []struct {
					name  string
					speed float64
				}{{"eth0", 20}, {"eth1", 1}} {
					from, to, speed := component{h, rail.name}, component{o, rail.name}, rail.speed
					if i == 2 { // host c has other names
						from.Part += "np0"
					}
					if k == 2 {
						to.Part += "np0"
					}
					if i == 2 && rail.name == "eth1" {
						speed *= slow
					}
					if i != k {
						r.Measurements = append(r.Measurements, measurement{Stage: "network", Subject: pairOf(from, to), Quantity: "bandwidth", Value: speed, Unit: "GB/s"})
					}
				}
			}
		}
		return r
	}
	require.Empty(t, judgeNetwork(ways(1), &config{}))
	found := judgeNetwork(ways(0.05), &config{})
	require.Len(t, found, 1)
	require.Equal(t, "slow-link host c", found[0].Code+" "+found[0].Subject.String())
	require.Contains(t, found[0].Text, "0.05 GB/s, the others 1.00")
}
