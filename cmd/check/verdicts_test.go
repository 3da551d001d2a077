package check

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ringo-go/ringo/cmd/check/nvml"
	"github.com/ringo-go/ringo/internal/cuda"
)

// by are measurements of one quantity on hosts a, b, c …: numbers in a unit, or words. A quantity may begin with a part
// of the host: "eth0: MTU".
func by(stage, quantity, unit string, values ...any) (list []measurement) {
	part, name, ok := strings.Cut(quantity, ": ")
	if !ok {
		part, name = "", quantity
	}
	for i, v := range values {
		m := measurement{Stage: stage, Subject: of(string(rune('a'+i)), part), Quantity: name, Unit: unit}
		switch v := v.(type) {
		case string:
			m.Text = v
		case int:
			m.Value = float64(v)
		case float64:
			m.Value = v
		case nil:
			continue
		}
		list = append(list, m)
	}
	return list
}

// along is a measurement of a way between GPUs of host a, or between hosts where the names are no numbers.
func along(stage, from, to, quantity string, value float64, unit, text string) measurement {
	end := func(name string) component {
		if len(name) == 1 && name[0] < 'a' {
			return component{"a", "GPU " + name}
		}
		return component{name, "eth0"}
	}
	return measurement{Stage: stage, Subject: pairOf(end(from), end(to)), Quantity: quantity, Value: value, Unit: unit,
		Text: text}
}

// TestVerdicts compares the judges' findings, for measurements at their bounds and beyond, with testdata: severity,
// code, weight and sentence. Read the difference before -rewrite.
func TestVerdicts(t *testing.T) {
	var b strings.Builder
	say := func(name string, judge func(*report, *config) []finding, cfg config, lists ...[]measurement) {
		r := &report{}
		hosts := map[string]bool{}
		for _, list := range lists {
			for _, m := range list {
				for _, h := range []string{m.Subject.Host, m.Subject.To.Host} {
					if h != "" && !hosts[h] {
						hosts[h] = true
						r.Hosts = append(r.Hosts, hostReport{Name: h})
					}
				}
			}
			r.Measurements = append(r.Measurements, list...)
		}
		fmt.Fprintf(&b, "# %s\n", name)
		for _, f := range judge(r, &cfg) {
			fmt.Fprintf(&b, "%v, %s, %.3g, %s%v, again %v\n", f.Severity, f.Code, f.Weight, f.Quantity, f.Ways, f.again != nil)
			fmt.Fprintf(&b, "    %v\n", f)
		}
	}
	one := func(m ...measurement) []measurement { return m }

	host := func(name string, lists ...[]measurement) { say("host: "+name, judgeHost, config{}, lists...) }
	host("clocks", by("host", "clock offset", "s", 0, 0.1001, -0.1001, 0.0999, 0.0))
	host("clocks of two", by("host", "clock offset", "s", 0, 0.2))
	host("unsure clocks", by("host", "clock offset", "s", 0, 0.19, 0, 0.21),
		by("host", "clock uncertainty", "s", 0, 0.1, 0, 0.1))
	for _, q := range []string{"cores", "GPUs on PCIe", "bridges with ACS"} {
		host(q, by("host", q, "", 8, 8, 0, 8))
	}
	host("none but one", by("host", "GPUs on PCIe", "", 0, 2, 0))
	host("words", by("host", "IOMMU", "", "on", "off", "on"), by("host", "kernel", "", "6.1", "6.1", "6.8"))
	host("memory", by("host", "memory", "B", 100<<30, 100<<30, 95<<30, 94<<30, 100<<30),
		by("host", "memory available", "B", 256<<20, 256<<20-1))
	host("ECC", by("host", "mc0: ue", "", 0, 1), by("host", "mc0: ce", "", 999, 1000))
	host("shm", by("host", "cores", "", 1, 1, 1), by("host", "/dev/shm: size", "B", 64<<20, 64<<20, nil),
		by("host", "/dev/shm: free", "B", 16<<20, 16<<20-1))
	host("nowhere shm", by("host", "cores", "", 1, 1, 1))
	host("caps", by("host", "clock cap", "", 0.95, 0.94), by("host", "card x: PCIe width", "", 16, 4),
		by("host", "card x: PCIe width greatest", "", 16, 16))
	host("limits", by("host", "limit nofile: limit", "", 4096, 4095), by("host", "limit nproc: limit", "", 1024, 1023),
		by("host", "limit memlock: limit", "", 64<<20, 64<<20-1, 64<<20-1),
		by("host", "mlx5_0:1: RDMA state", "", "ACTIVE", "ACTIVE"))
	host("interfaces", by("host", "eth0: state", "", "up", "up", "down", "lowerlayerdown", "up", "unknown", "up"),
		by("host", "eth0: speed", "Gbit/s", 100, 100, 25, 100))
	host("MTU", by("host", "eth0: MTU", "B", 1500, 1500, 1400), by("host", "eth1: MTU", "B", 9000, 9000, 9000))
	host("MTU of other names", by("host", "eth0: MTU", "B", 1500, nil, nil), by("host", "eth1: MTU", "B", nil, 1500, nil),
		by("host", "eth2: MTU", "B", nil, nil, 9000))
	host("RDMA", by("host", "m:1: RDMA state", "", "ACTIVE", "ACTIVE", "DOWN", "INIT", "INIT", "ACTIVE", "ACTIVE",
		"ACTIVE"), by("host", "m:1: RDMA physical state", "", "LinkUp", "LinkUp", "Polling", "LinkUp", "Polling"),
		by("host", "m:1: RDMA rate", "Gbit/s", 400, 400, 100, 100, 400, 200, 400, 400))
	host("RDMA that is down everywhere", by("host", "m:1: RDMA state", "", "DOWN", "DOWN"))
	host("counters", by("host", "m:1: RDMA symbol_error", "", 1000, 999),
		by("host", "m:1: RDMA local_link_integrity_errors", "", 1, 0), by("host", "m:1: RDMA link_downed", "", 10, 9))
	host("a card is missing", by("host", "m:1: RDMA state", "", "ACTIVE", "ACTIVE", "ACTIVE"),
		by("host", "n:1: RDMA state", "", "ACTIVE", nil, "ACTIVE"))
	host("errors", by("host", "error", "", "its interfaces cannot be listed"))

	gpus := func(name string, cfg config, lists ...[]measurement) { say("GPUs: "+name, judgeGPUs, cfg, lists...) }
	gpus("fewer", config{}, by("GPUs", "GPUs", "", 8, 8, 7, 0))
	gpus("fewer than expected", config{ExpectGPUs: 9}, by("GPUs", "GPUs", "", 8, 9))
	gpus("as many votes", config{}, by("GPUs", "GPUs", "", 2, 4))
	gpus("nowhere", config{}, by("GPUs", "GPUs", "", "no driver", "none"))
	gpus("nowhere, and cards", config{}, by("GPUs", "GPUs", "", "no driver", "none"), by("host", "GPUs on PCIe", "", 0, 2))
	gpus("hidden", config{}, by("GPUs", "GPUs", "", 4, 4), by("GPUs", "GPUs in all", "", 8, 4))
	gpus("unlike", config{}, by("GPUs", "driver", "", "1", "1", "2"), by("GPUs", "CUDA", "", "13.0", "12.9", "13.0"),
		by("GPUs", "GPU 0: model", "", "H", "H", "L"), by("GPUs", "GPU 0: size", "B", 1<<30, 1<<30, 1<<29))
	gpus("failures", config{}, by("GPUs", "GPU 0: hang", "", "a copy"), by("GPUs", "GPU 0: busy", "", "b"),
		by("GPUs", "GPU 0: error", "", "c"))

	healthy := func() *nvml.State { return &newNVML(1).states[0] }
	states := func(name string, change ...func(s *nvml.State)) {
		var list []measurement
		for i := range 4 {
			s := healthy()
			if i == 1 {
				for _, c := range change {
					c(s)
				}
			}
			for _, m := range measured(of("a", gpuName(i)), s) {
				m.Stage = "GPU state"
				list = append(list, m)
			}
		}
		say("state: "+name, judgeState, config{}, list)
	}
	states("well")
	states("memory", func(s *nvml.State) {
		s.Uncorrected, s.NoSpare, s.Rows.Pending, s.Pages.Pending, s.MIG = 1, nvml.On, nvml.On, nvml.On, nvml.On
	})
	states("slowed", func(s *nvml.State) {
		s.Slowed = nvml.HWSlowdown | nvml.HWThermal | nvml.SWThermal | nvml.PowerBrake | 0x10 // of which the last is no fault
	})
	states("settings", func(s *nvml.State) { s.ECC, s.Persistence = nvml.Off, nvml.Off })
	states("unknown", func(s *nvml.State) {
		s.ECC, s.Persistence, s.Uncorrected, s.PCIe.Width = nvml.Unknown, nvml.Unknown, -1, -1
	})
	states("links", func(s *nvml.State) {
		s.Links[3].Active, s.Links[3].Recovery = false, 2
		s.Links[0].Errors, s.Links[1].Errors, s.Links[5].Errors = 900, 50, 50
	})
	states("links that repair less", func(s *nvml.State) { s.Links[0].Errors = 999 })
	states("PCIe", func(s *nvml.State) { s.PCIe.Width, s.PCIe.GenerationMax = 8, 3 })
	say("state: lost", judgeState, config{}, by("GPU state", "GPU 1: lost", "", "fallen"))
	say("state: links of a board that uses 12", judgeState, config{}, by("GPU state", "GPU 0: NVLinks", "", 18, 18),
		by("GPU state", "GPU 0: NVLinks up", "", 12, 12))
	say("state: no link", judgeState, config{}, by("GPU state", "GPU 0: NVLinks", "", 18, 18),
		by("GPU state", "GPU 0: NVLinks up", "", 0, 0))
	for _, m := range measured(of("a", "GPU 0"), healthy()) {
		fmt.Fprintf(&b, "%s = %g %s%s\n", m.Quantity, m.Value, m.Unit, m.Text)
	}

	memory := func(name string, lists ...[]measurement) { say("memory: "+name, judgeMemory, config{}, lists...) }
	memory("wrong", by("GPU memory", "GPU 0: wrong words", "", 0, 3))
	memory("slow", by("GPU memory", "GPU 0: bandwidth", "GB/s", 100, 101, 89, 99),
		by("GPU memory", "GPU 0: to host", "GB/s", 50, 51, 24, 50),
		by("GPU memory", "GPU 0: from host", "GB/s", 50, 51, 26, 24))
	memory("of a model", by("GPUs", "GPU 0: model", "", "NVIDIA H200", "NVIDIA H200"),
		by("GPU memory", "GPU 0: bandwidth", "GB/s", 4200, 2900))
	memory("PCIe", by("GPU memory", "GPU 0: to host", "GB/s", 40, 20),
		by("GPU state", "GPU 0: greatest PCIe width", "", 16, 16),
		by("GPU state", "GPU 0: greatest PCIe generation", "", 5, 5))

	pairs := func(name string, lists ...[]measurement) { say("pairs: "+name, judgePairs, config{}, lists...) }
	link := func(a, b string, kind cuda.Link) []measurement {
		return one(along("GPU pairs", a, b, "link", 0, "", string(kind)),
			along("GPU pairs", b, a, "link", 0, "", string(kind)))
	}
	pairs("wrong", link("0", "1", cuda.NVLink), link("0", "2", cuda.PCIe),
		one(along("GPU pairs", "0", "1", "wrong words", 2, "", ""), along("GPU pairs", "0", "1", "torn lines", 3, "", "at 5"),
			along("GPU pairs", "0", "2", "torn lines", 3, "", "")))
	pairs("one way", link("0", "1", cuda.NVLink),
		one(along("GPU pairs", "0", "1", "bandwidth", 69, "GB/s", ""),
			along("GPU pairs", "1", "0", "bandwidth", 100, "GB/s", "")))
	pairs("nearly alike", link("0", "1", cuda.NVLink),
		one(along("GPU pairs", "0", "1", "bandwidth", 71, "GB/s", ""),
			along("GPU pairs", "1", "0", "bandwidth", 100, "GB/s", "")))
	pairs("no access", one(along("GPU pairs", "0", "1", "link", 0, "", "none"),
		along("GPU pairs", "1", "0", "link", 0, "", "PCIe")))
	pairs("another link", link("0", "1", cuda.NVLink), link("0", "2", cuda.PCIe), link("1", "2", cuda.NVLink))

	between := func(stage, quantity, unit string, values map[string]float64) (list []measurement) {
		for _, at := range []string{"ab", "ba", "ac", "ca", "bc", "cb", "ad", "da", "bd", "db", "cd", "dc"} {
			if v, ok := values[at]; ok {
				list = append(list, along(stage, at[:1], at[1:], quantity, v, unit, ""))
			}
		}
		return list
	}
	all := func(v float64, but map[string]float64) map[string]float64 {
		values := map[string]float64{}
		for _, at := range []string{"ab", "ba", "ac", "ca", "bc", "cb", "ad", "da", "bd", "db", "cd", "dc"} {
			values[at] = v
		}
		for at, v := range but {
			values[at] = v
		}
		return values
	}
	network := func(name string, cfg config, lists ...[]measurement) {
		lists = append(lists, lists[0]) // all is measured twice
		say("network: "+name, judgeNetwork, cfg, lists...)
	}
	network("slow", config{}, between("network", "bandwidth", "GB/s",
		all(10, map[string]float64{"bc": 7.9, "cb": 8.1, "ad": 4})))
	network("a slow host", config{}, between("network", "bandwidth", "GB/s",
		all(10, map[string]float64{"ca": 2, "cb": 2.5, "cd": 3, "ac": 9.9})),
		one(along("network", "c", "a", "retransmits", 0.0123, "", "")))
	far := between("network", "latency", "us", all(20e3, nil))
	network("windows of far hosts", config{}, between("network", "bandwidth", "GB/s",
		all(10, map[string]float64{"ba": 5.1, "bc": 5, "bd": 5.2})), far)
	network("a slow host among far ones", config{}, between("network", "bandwidth", "GB/s",
		all(10, map[string]float64{"ba": 3.1, "bc": 3, "bd": 3.2})), far)
	network("late", config{}, between("network", "latency", "us", all(100, map[string]float64{"bc": 251, "cb": 249})))
	network("late on one machine", config{shared: true},
		between("network", "latency", "us", all(100, map[string]float64{"bc": 5501, "cb": 5499})))
	lost := func(from, to string, n float64, of int) measurement {
		return along("network", from, to, lostSegments, n, fmt.Sprintf("of %d segments", of), "")
	}
	network("loss", config{}, one(lost("a", "b", 7, 1000), lost("a", "c", 5, 1000), lost("b", "c", 0, 1000)))
	network("loss of a host", config{}, one(lost("a", "b", 4, 1000), lost("a", "c", 6, 1000), lost("b", "c", 0, 1000)))
	network("loss of all", config{}, one(lost("a", "b", 20, 1000), lost("a", "c", 9, 1000), lost("b", "c", 10, 1000)))
	network("two racks", config{}, between("network", "bandwidth", "GB/s",
		all(1, map[string]float64{"ab": 3.9, "ba": 4, "cd": 4.1, "dc": 4})))
	network("two sites", config{}, between("network", "latency", "us",
		all(2000, map[string]float64{"ab": 50, "ba": 50, "cd": 40, "dc": 40})))
	network("partition", config{}, between("network", "bandwidth", "GB/s", map[string]float64{"ab": 1, "cd": 1}),
		one(along("network", "a", "c", "no connection", 0, "", "refused"),
			along("network", "a", "d", "no connection", 0, "", "refused"),
			along("network", "b", "c", "no connection", 0, "", "refused"),
			along("network", "b", "d", "no connection", 0, "", "refused")))
	network("corrupt", config{}, one(along("network", "a", "b", "corrupt", 2, "blocks", "first at byte 7"),
		along("network", "b", "a", "corrupt", 1, "blocks", "first at byte 9")))
	network("no link", config{}, between("network", "bandwidth", "GB/s", all(10, nil)),
		one(along("network", "a", "b", "no connection", 0, "", "refused\nmore")))
	network("cut off", config{}, one(along("network", "a", "c", "no connection", 0, "", "refused"),
		along("network", "b", "c", "no connection", 0, "", "refused"),
		along("network", "a", "b", "bandwidth", 1, "GB/s", "")))
	network("no stream", config{}, one(along("network", "a", "b", "latency", 9, "us", ""),
		along("network", "a", "b", "cut short", 0, "", "time-out"), along("network", "a", "c", "bandwidth", 1, "GB/s", ""),
		along("network", "b", "c", "bandwidth", 1, "GB/s", "")))
	golden(t, "verdicts.txt", b.String())
}
