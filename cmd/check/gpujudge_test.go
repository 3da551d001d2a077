package check

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// eight adds the measurements of a host of 8 good H200s, which vary by 2 %.
func eight(r *report, host string, rng *rand.Rand) {
	add := func(stage string, at subject, quantity string, v float64, unit, text string) {
		if unit != "" {
			v *= 1 + 0.04*(rng.Float64()-0.5)
		}
		r.Measurements = append(r.Measurements, measurement{Stage: stage, Subject: at, Quantity: quantity, Value: v,
			Unit: unit, Text: text})
	}
	add("GPUs", of(host, ""), "GPUs", 8, "", "")
	for i := range 8 {
		at := of(host, gpuName(i))
		add("GPUs", at, "model", 0, "", "NVIDIA H200")
		add("GPU state", at, "NVLinks to switches", 18, "", "")
		add("GPU state", at, "greatest PCIe width", 16, "", "")
		add("GPU state", at, "greatest PCIe generation", 5, "", "")
		add("GPU memory", at, "bandwidth", 4200, "GB/s", "")
		add("GPU memory", at, "to host", 55, "GB/s", "")
		add("GPU memory", at, "from host", 54, "GB/s", "")
		for k := range 8 {
			if i == k {
				continue
			}
			way := pairOf(at.component, component{host, gpuName(k)})
			add("GPU pairs", way, "link", 0, "", "NVLink")
			add("GPU pairs", way, "bandwidth", 360, "GB/s", "")
			add("GPU pairs", way, "latency", 1.1, "us", "")
		}
	}
}

// change sets a measurement.
func (r *report) change(t *testing.T, stage string, at subject, quantity string, v float64) {
	t.Helper()
	for i := range r.Measurements {
		if m := &r.Measurements[i]; m.Stage == stage && m.Subject == at && m.Quantity == quantity {
			m.Value = v
			return
		}
	}
	t.Fatal("there is no such measurement")
}

func judged(r *report, cfg config) (list []finding) {
	for _, s := range gpuStages() {
		list = append(list, s.Judge(r, &cfg)...)
	}
	sortFindings(list)
	return list
}

func TestJudgeOfRealGPUs(t *testing.T) {
	gpu := func(host string, i int) subject { return of(host, gpuName(i)) }
	way := func(host string, i, k int) subject { return pairOf(gpu(host, i).component, gpu(host, k).component) }
	for _, c := range []struct {
		name   string
		hosts  int
		change func(r *report)
		want   string // the finding, up to its remedy; empty for none
	}{
		{"all well", 3, func(*report) {}, ""},
		{"one host, all well", 1, func(*report) {}, ""},
		{"a slow way", 3, func(r *report) { r.change(t, "GPU pairs", way("b", 3, 5), "bandwidth", 41) },
			`host b, GPU 3 to GPU 5: 41 GB/s over NVLink, the others 35\d to 36\d GB/s: link or switch port`},
		{"a GPU's links are slow", 3, func(r *report) {
			for k := range 8 {
				if k != 3 {
					r.change(t, "GPU pairs", way("b", 3, k), "bandwidth", 150)
					r.change(t, "GPU pairs", way("b", k, 3), "bandwidth", 150)
				}
			}
		}, `host b, GPU 3: 14 of its 14 ways to and from other GPUs are slow, 150 GB/s, and the others' 35\d to 36\d GB/s`},
		{"NVLink is slow all over", 1, func(r *report) {
			for i := range r.Measurements {
				if m := &r.Measurements[i]; m.Stage == "GPU pairs" && m.Quantity == "bandwidth" {
					m.Value /= 3
				}
			}
		}, `host a: 56 of 56 ways between its GPUs are slow: 1\d\d GB/s over NVLink, which is made for 450 GB/s each way on a NVIDIA H200`},
		{"a late way", 3, func(r *report) { r.change(t, "GPU pairs", way("c", 0, 7), "latency", 2.6) },
			`host c, GPU 0 to GPU 7: a load takes 2.60 us over NVLink`},
		{"slow memory", 3, func(r *report) { r.change(t, "GPU memory", gpu("a", 2), "bandwidth", 3100) },
			`host a, GPU 2: its memory moves 3100 GB/s, the others' 41\d\d to 42\d\d GB/s`},
		{"slow PCIe", 3, func(r *report) { r.change(t, "GPU memory", gpu("a", 2), "to host", 6.5) },
			`host a, GPU 2: copies to the host reach 6.50 GB/s, the others'`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &report{}
			rng := rand.New(rand.NewPCG(1, 2))
			for _, h := range []string{"a", "b", "c"}[:c.hosts] {
				eight(r, h, rng)
			}
			c.change(r)
			list := judged(r, config{})
			if c.want == "" {
				require.Empty(t, list)
				return
			}
			require.Len(t, list, 1)
			require.Regexp(t, "^"+c.want, list[0].String())
			require.Equal(t, degraded, list[0].Severity)
		})
	}
}

// Values that vary by 2 % never make a finding.
func TestJudgeRaisesNoFalseAlarm(t *testing.T) {
	for seed := range uint64(50) {
		r := &report{}
		for i := range 1 + int(seed%4) {
			eight(r, fmt.Sprint("host", i), rand.New(rand.NewPCG(seed, uint64(i))))
		}
		require.Empty(t, judged(r, config{}), "seed %d", seed)
	}
}

// TestJudgeByDataSheets: two GPUs have no others to compare with, and are judged by their data sheets.
func TestJudgeByDataSheets(t *testing.T) {
	r := &report{Measurements: []measurement{}}
	add := func(stage string, at subject, quantity string, v float64, text string) {
		r.Measurements = append(r.Measurements, measurement{Stage: stage, Subject: at, Quantity: quantity, Value: v,
			Unit: "GB/s", Text: text})
	}
	a, b := of("h", "GPU 0"), of("h", "GPU 1")
	for _, at := range []subject{a, b} {
		add("GPUs", at, "model", 0, "NVIDIA H100 80GB HBM3")
		add("GPU state", at, "NVLinks to switches", 18, "")
		add("GPU state", at, "greatest PCIe width", 16, "")
		add("GPU state", at, "greatest PCIe generation", 5, "")
	}
	add("GPU memory", a, "bandwidth", 2900, "")
	add("GPU memory", b, "bandwidth", 1500, "")
	add("GPU memory", a, "to host", 55, "")
	add("GPU memory", b, "to host", 12, "")
	for _, at := range []subject{pairOf(a.component, b.component), pairOf(b.component, a.component)} {
		add("GPU pairs", at, "link", 0, "NVLink")
	}
	add("GPU pairs", pairOf(a.component, b.component), "bandwidth", 380, "")
	add("GPU pairs", pairOf(b.component, a.component), "bandwidth", 200, "")
	var got []string
	for _, f := range judged(r, config{ExpectGPUs: 0}) {
		got = append(got, f.Code+" "+f.Subject.String())
	}
	require.ElementsMatch(t, []string{"slow-memory host h, GPU 1", "slow-host-link host h, GPU 1",
		"slow-pair host h, GPU 1 to GPU 0"}, got)
}

func TestKnownModel(t *testing.T) {
	for name, want := range map[string]float64{
		"NVIDIA H200": 4800, "NVIDIA H200 NVL": 4800, "NVIDIA L4": 300, "NVIDIA L40": 864, "NVIDIA L40S": 864,
		"NVIDIA A100-SXM4-80GB": 2039,
		"NVIDIA B200":           8000, "NVIDIA H100 PCIe": 2000, "Emulated GPU": 0, "NVIDIA H2000": 0,
	} {
		m, ok := knownModel(name)
		require.Equal(t, want != 0, ok, name)
		require.Equal(t, want, m.memory, name)
	}
}
