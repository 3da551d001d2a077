package check

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
