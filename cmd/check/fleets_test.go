package check

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/tier"
)

// A fleet is hosts with faults, and what a check of their links would measure.
type fleet struct {
	random  *rand.Rand
	hosts   int
	racks   []int // by host
	between [2]float64
	noise   float64
	planted []planted
}

// A planted fault is one of a host, of what it sends or receives, or of the way between two.
type planted struct {
	kind   string // slow, late, loss
	host   int
	to     int // -1: a fault of the host
	ending int // of a host: 0 both, 1 sends, 2 receives
	size   float64
}

func (p planted) String() string {
	at := "host " + name(p.host)
	if p.to >= 0 {
		at = fmt.Sprintf("host %s to host %s", name(p.host), name(p.to))
	}
	return fmt.Sprintf("%s %s, ending %d, of %.3g", p.kind, at, p.ending, p.size)
}

func name(host int) string { return string(rune('a' + host)) }

// on reports whether the fault concerns a way.
func (p planted) on(i, k int) bool {
	switch {
	case p.to >= 0 && p.kind == "late":
		return p.host == i && p.to == k || p.host == k && p.to == i
	case p.to >= 0:
		return p.host == i && p.to == k
	case p.kind == "late":
		return p.host == i || p.host == k
	}
	return p.host == i && p.ending != 2 || p.host == k && p.ending != 1
}

// meets reports whether two faults of pairs have a host in common.
func (p planted) meets(q planted) bool {
	return p.host == q.host || p.host == q.to || p.to == q.host || p.to == q.to
}

// explains reports whether a fault may have a finding: one about its host, its pair, or a pair with its host.
func (p planted) explains(f finding) bool {
	on := []string{f.Subject.Host}
	if f.Subject.IsPair() {
		on = append(on, f.Subject.To.Host)
	}
	if p.to < 0 {
		return slices.Contains(on, name(p.host))
	}
	return len(on) == 2 && slices.Contains(on, name(p.host)) && slices.Contains(on, name(p.to))
}

// report is what a check would measure, with turns of measurements.
func (f *fleet) report(turns int) *report {
	r := &report{}
	for i := range f.hosts {
		r.Hosts = append(r.Hosts, hostReport{Name: name(i)})
	}
	add := func(i, k int, quantity string, value float64, unit string) {
		r.Measurements = append(r.Measurements, measurement{Stage: "network", Quantity: quantity, Value: value, Unit: unit,
			Subject: pairOf(component{name(i), "eth0"}, component{name(k), "eth0"})})
	}
	for range turns {
		for i := range f.hosts {
			for k := range f.hosts {
				if i == k {
					continue
				}
				rate, latency, loss := 0.025, 300., 0.
				if f.racks[i] != f.racks[k] {
					rate, latency = rate/f.between[0], latency+f.between[1]
				}
				for _, p := range f.planted {
					if !p.on(i, k) {
						continue
					}
					switch p.kind {
					case "slow":
						rate = min(rate, 0.025*p.size)
					case "late":
						latency += p.size
					case "loss":
						loss += p.size
						rate /= 1 + 100*p.size
					}
				}
				add(i, k, "bandwidth", rate*(1-f.noise*f.random.Float64()), "GB/s")
				if i < k {
					us := latency * (1 + f.noise*f.random.Float64())
					add(i, k, "latency", us, "us")
					add(k, i, "latency", us, "us")
				}
				segments, lost := 1000, 0
				if turns > 1 {
					segments = 3000
				}
				for at := 0.; loss > 0; lost++ {
					if at += math.Ceil(math.Log(1-f.random.Float64()) / math.Log(1-loss)); at > float64(segments) {
						break
					}
				}
				add(i, k, lostSegments, float64(lost), fmt.Sprintf("of %d segments", segments))
			}
		}
	}
	return r
}

// fault plants a random fault that is large enough to be found for certain.
func (f *fleet) fault() planted {
	p := planted{kind: []string{"slow", "late", "loss"}[f.random.IntN(3)], host: f.random.IntN(f.hosts), to: -1,
		ending: f.random.IntN(3)}
	if f.random.IntN(3) == 0 {
		p.to, p.ending = (p.host+1+f.random.IntN(f.hosts-1))%f.hosts, 1
	}
	switch p.kind {
	case "slow":
		p.size = 0.05 + 0.5*f.random.Float64()
	case "late":
		p.size = 1500 * (1 + 9*f.random.Float64())
	case "loss":
		p.size = 0.003 * math.Pow(100, f.random.Float64())
	}
	return p
}

// hides reports whether a fault is as bad as the way between groups, by chance: then it cannot be told from one.
func (f *fleet) hides(p planted) bool {
	between := map[string]float64{"slow": 1 / f.between[0], "late": f.between[1]}[p.kind]
	return between > 0 && p.size < 1.3*between && p.size > between/1.3
}

// TestFleets: whatever is planted in a fleet, no innocent is named, a fault beyond the bounds is, and groups of hosts
// with a slow or late way between are no fault.
func TestFleets(t *testing.T) {
	for seed := range tier.Count(150, 10000) {
		f := &fleet{random: rand.New(rand.NewPCG(uint64(seed), 1)), between: [2]float64{1, 0}}
		f.hosts, f.noise = 2+f.random.IntN(7), 0.07*f.random.Float64()
		f.racks = make([]int, f.hosts)
		apart := f.hosts > 3 && f.random.IntN(3) == 0
		if apart {
			racks := min(f.hosts/2, 2+f.random.IntN(2))
			for i := range f.racks {
				f.racks[i] = i * racks / f.hosts
			}
			f.between = [2]float64{1.5 + 6*f.random.Float64(), 0}
			if f.random.IntN(2) == 0 {
				f.between = [2]float64{1, 2000 * (1 + 9*f.random.Float64())}
			}
		}
		for range f.random.IntN(3) {
			if p := f.fault(); !f.hides(p) {
				f.planted = append(f.planted, p)
			}
		}
		if len(f.planted) == 2 && f.planted[0].to >= 0 && f.planted[1].to >= 0 && f.planted[0].meets(f.planted[1]) {
			f.planted = f.planted[:1] // the two may be a host's
		}
		list := judgeNetwork(f.report(3), &config{shared: seed%2 == 0})
		about := fmt.Sprintf("seed %d: %d hosts in racks %v, %.3g times slower and %.4g us later between, noise %.2g; "+
			"planted %v\nfound %v", seed, f.hosts, f.racks, f.between[0], f.between[1], f.noise, f.planted, list)
		var blamed []finding
		said := false
		for _, x := range list {
			switch {
			case strings.HasSuffix(x.Code, "-between"):
				require.Equal(t, well, x.Severity, about)
				said = true
			case x.Severity != well && x.Subject != subject{}:
				blamed = append(blamed, x)
			}
		}
		for _, x := range blamed {
			require.True(t, slices.ContainsFunc(f.planted, func(p planted) bool { return p.explains(x) }), "%s\ninnocent: %v",
				about, x)
		}
		if len(f.planted) == 0 {
			require.Equal(t, apart, said, about)
		}
		if len(f.planted) == 1 && f.hosts > 2 {
			f.mustFind(t, blamed, apart, about)
		}
	}
}

// mustFind requires that the one fault is named, and as what it is.
func (f *fleet) mustFind(t *testing.T, blamed []finding, apart bool, about string) {
	p := f.planted[0]
	code := map[string]string{"slow": "slow-link", "late": "late-link", "loss": "loss"}[p.kind]
	if apart && p.kind != "loss" { // it may be no slower than the way between the groups
		return
	}
	require.NotEmpty(t, blamed, about)
	require.Equal(t, code, blamed[0].Code, about)
	if p.to < 0 {
		require.Len(t, blamed, 1, about)
		require.Equal(t, of(name(p.host), ""), blamed[0].Subject, about)
	} else {
		require.True(t, blamed[0].Subject.IsPair(), about)
	}
}
