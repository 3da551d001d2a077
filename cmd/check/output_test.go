package check

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bench/meter"
	"github.com/ringo-go/ringo/internal/test/tier"
)

var rewrite = flag.Bool("rewrite", false, "write testdata anew")

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	name = "testdata/" + name
	if *rewrite {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(name, []byte(got), 0o644))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// aReport is by hand: a slow link, a rank that died, a remark, a stage that was left out.
func aReport() *report {
	r := &report{Schema: schema, Version: "0.0.0", Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Took: 3.25}
	names := []string{"alpha", "beta", "gamma<&>", "delta"}
	for i, name := range names {
		r.Hosts = append(r.Hosts, hostReport{Name: name, Ranks: []int{i}})
	}
	for i, a := range names {
		r.Measurements = append(r.Measurements, measurement{Stage: "host", Rank: i, Subject: of(a, ""), Quantity: "cores",
			Value: 64})
		for k, b := range names {
			s := pairOf(component{a, "eth0"}, component{b, "eth0"})
			if i == k {
				continue
			}
			m := measurement{Stage: "network", Rank: min(i, k), Subject: s, Quantity: "bandwidth", Value: 11.5 + float64(i+k)/10,
				Unit: "GB/s"}
			if i == 1 && k == 3 { // and so when it was measured again
				m.Value = 1.23
				r.Measurements = append(r.Measurements, m)
			}
			l := measurement{Stage: "network", Rank: min(i, k), Subject: s, Quantity: "latency", Value: 9.5 + float64(i*k)/10,
				Unit: "us"}
			r.Measurements = append(r.Measurements, m, l)
		}
	}
	r.Stages = []stageReport{{"host", "Is every host made and set up like the others?", 5, 0.02, ""},
		{"GPU", "Is every GPU well?", 10, 0, "no GPU here"},
		{"network", "Is every link between hosts as quick as the others?", 12, 2.5, ""}}
	for _, f := range judgeNetwork(r, &config{}) {
		f.Stage = "network"
		r.Findings = append(r.Findings, f)
	}
	r.Findings = append(r.Findings, finding{Severity: well, Code: "kernel-differs", Stage: "host",
		Subject: of("delta", ""), Text: "kernel 6.1, 6.8 on 3 of 4 hosts"},
		finding{Severity: broken, Code: "died", Stage: "network", Subject: of("gamma<&>", "rank 2"),
			Text: "died in stage network: its process has ended"})
	r.judged()
	return r
}

// TestOutput: all forms of a report are as in testdata, and their readers accept them.
func TestOutput(t *testing.T) {
	r := aReport()
	require.Equal(t, []string{"died host gamma<&>, rank 2", "slow-link host beta, eth0 to host delta, eth0",
		"kernel-differs host delta"}, codes(r))
	for _, c := range []struct {
		file  string
		write func(io.Writer) error
	}{{"report.txt", r.Print}, {"report.json", r.WriteJSON}, {"report.prom", r.WriteMetrics}, {"report.xml", r.WriteJUnit},
		{"report.svg", r.WriteSVG}, {"report.html", r.WriteHTML}} {
		var b bytes.Buffer
		require.NoError(t, c.write(&b))
		golden(t, c.file, b.String())
		switch c.file {
		case "report.json":
			back, err := readReport(&b)
			require.NoError(t, err)
			require.Equal(t, r.Measurements, back.Measurements)
			require.Equal(t, r.Verdict, back.Verdict)
			require.Equal(t, codes(r), codes(back))
		case "report.xml", "report.svg":
			d := xml.NewDecoder(&b)
			for {
				if _, err := d.Token(); err == io.EOF {
					break
				} else {
					require.NoError(t, err)
				}
			}
		case "report.prom":
			exposition(t, b.String())
		}
	}
	_, err := readReport(strings.NewReader(`{"schema": "ringo-check/9"}`))
	require.ErrorContains(t, err, "measure again")
}

// exposition fails the test unless the text is as Prometheus wants it: the lines of a metric together, after one HELP
// and one TYPE, names and labels of its letters, no series twice.
func exposition(t *testing.T, text string) {
	t.Helper()
	require.True(t, strings.HasSuffix(text, "\n"))
	require.True(t, utf8.ValidString(text))
	comment := regexp.MustCompile(`^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$`)
	sample := regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{([a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\[\\"n])*",?)*\})? ([-+]?[0-9].*|[-+]Inf|NaN)$`)
	family, seen := "", map[string]bool{}
	var kinds []string // of comments of the family
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if c := comment.FindStringSubmatch(line); c != nil {
			if c[2] != family {
				require.False(t, seen["family "+c[2]], "%s is in two places", c[2])
				family, kinds = c[2], nil
				seen["family "+family] = true
			}
			kinds = append(kinds, c[1])
			require.True(t, c[1] == "HELP" || c[3] == "gauge", line)
			continue
		}
		m := sample.FindStringSubmatch(line)
		require.NotNil(t, m, "%q", line)
		require.Equal(t, family, m[1], line)
		require.Equal(t, []string{"HELP", "TYPE"}, kinds, line)
		_, err := strconv.ParseFloat(m[5], 64)
		require.NoError(t, err, line)
		series := strings.TrimSuffix(line, " "+m[5])
		require.False(t, seen[series], "%s twice", series)
		seen[series] = true
	}
}

// TestOutputOfOddNames: names with any characters leave all forms well formed.
func TestOutputOfOddNames(t *testing.T) {
	r := aReport()
	odd := "a\"b\\c\nd\x00\xff{}é,=\t</svg>]]>"
	at := pairOf(component{odd, odd}, component{odd + "2", odd})
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1e-300} {
		r.Measurements = append(r.Measurements, measurement{Stage: "network", Subject: of(odd, fmt.Sprint(odd, v)),
			Quantity: "9 µ²/s", Value: v, Unit: odd})
	}
	r.Measurements = append(r.Measurements, measurement{Stage: "network", Subject: at, Quantity: "bandwidth", Value: 1,
		Unit: "GB/s"})
	r.Findings = append(r.Findings, finding{Severity: broken, Code: "odd", Stage: odd, Subject: at, Text: odd})
	var b bytes.Buffer
	require.NoError(t, r.WriteMetrics(&b))
	exposition(t, b.String())
	for _, write := range []func(io.Writer) error{r.WriteJUnit, r.WriteSVG} {
		b.Reset()
		require.NoError(t, write(&b))
		for d := xml.NewDecoder(&b); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else {
				require.NoError(t, err)
			}
		}
	}
	b.Reset()
	require.NoError(t, r.WriteHTML(&b))
	require.NotContains(t, b.String(), "d\x00\xff{}é,=\t</svg>]]>")
}

// TestLargeMap: the map of hundreds of hosts is drawn quickly, and the part shown has the pairs with findings.
func TestLargeMap(t *testing.T) {
	tier.Long(t)
	const n = 270
	r := &report{Stages: []stageReport{{Name: "network"}}}
	for i := range n {
		r.Hosts = append(r.Hosts, hostReport{Name: fmt.Sprint("h", i)})
		for k := range n {
			if i != k {
				r.Measurements = append(r.Measurements,
					measurement{Stage: "network", Subject: pairOf(component{Host: fmt.Sprint("h", i)},
						component{Host: fmt.Sprint("h", k)}), Quantity: "bandwidth", Value: float64(i + k), Unit: "GB/s"})
			}
		}
	}
	r.Findings = []finding{{Severity: degraded, Stage: "network",
		Subject: pairOf(component{Host: "h268"}, component{Host: "h247"})}}
	var b bytes.Buffer
	require.NoError(t, r.WriteHTML(&b))
	require.Equal(t, maxDrawn*(maxDrawn-1), strings.Count(b.String(), "<title>")-1)
	require.Contains(t, b.String(), "<title>h268 to h247: 515 GB/s</title>")
	b.Reset()
	require.NoError(t, r.Print(&b))
	require.Less(t, b.Len(), 10000)
	require.Contains(t, b.String(), "24 of 270, those with findings first")
	require.Contains(t, b.String(), "!515")
}

// TestBaselineOfAnother: a baseline of other hosts is not compared with, and a missing host is named once.
func TestBaselineOfAnother(t *testing.T) {
	base, r := aReport(), aReport()
	for i := range base.Hosts {
		base.Hosts[i].Name = fmt.Sprint("other", i)
	}
	f := r.compare(base, &config{})
	require.Len(t, f, 1)
	require.Equal(t, unjudged, f[0].Severity)
	require.Regexp(t, `^the baseline of 2026-01-02 03:04 is of other hosts \(other0, other1, other2, …\), so nothing is compared`, f[0].Text)
	base = aReport()
	r.Hosts = r.Hosts[:2]
	r.Findings = append(r.Findings, finding{Severity: broken, Code: "absent", Subject: of("delta", "rank 3")})
	var list []string
	for _, f := range r.compare(base, &config{}) {
		list = append(list, f.Code+" "+f.Subject.String())
	}
	require.Equal(t, []string{"baseline-host host gamma<&>"}, list)
}

// A run that is worse than the one before says so, though all links are alike, and what explains the ways that are.
func TestBaseline(t *testing.T) {
	between := func(hosts int, base *report, rate func(a, b byte) float64) (r *report) {
		synctest.Test(t, func(t *testing.T) {
			r, _ = runAll(t, fakeCluster(hosts, func(a, b byte) fakeLink {
				l := healthy(a, b)
				l.rate *= rate(a, b)
				return l
			}), config{Stages: []stage{networkStage()}, Baseline: base})
			time.Sleep(time.Minute)
		})
		return r
	}
	run := func(rate float64, hosts int, base *report) *report {
		return between(hosts, base, func(byte, byte) float64 { return rate })
	}
	base := run(1, 3, nil)
	require.Empty(t, base.Findings)
	require.Empty(t, run(0.95, 3, base).Findings)
	worse := run(0.5, 3, base)
	require.Equal(t, []string{"baseline-bandwidth the job"}, codes(worse), "%v", worse.Findings)
	require.Contains(t, worse.Findings[0].Text, "all ways between hosts")
	require.Contains(t, worse.Findings[0].Text, "of bandwidth, and 0.0")
	require.Equal(t, []string{"baseline-host host c"}, codes(run(1, 2, base)))

	pair := run(1, 2, nil)
	require.Empty(t, pair.Findings)
	require.Equal(t, []string{"baseline-bandwidth host a, eth0 to host b, eth0",
		"baseline-bandwidth host b, eth0 to host a, eth0"}, codes(run(0.65, 2, pair)), "which of two hosts nobody knows")
	racks := between(4, run(1, 4, nil), func(a, b byte) float64 {
		if a < 3 != (b < 3) {
			return 0.25
		}
		return 1
	})
	require.Equal(t, degraded, racks.Verdict)
	require.Contains(t, racks.Findings[0].Text, "hosts a, b and hosts c, d: the way between them: 0.003")
}

// Hosts with the same GPUs are one line.
func TestMachines(t *testing.T) {
	r := &report{}
	for i, model := range []string{"H200", "H200", "A100", ""} {
		host := string(rune('a' + i))
		r.Hosts = append(r.Hosts, hostReport{Name: host})
		if model == "" {
			continue
		}
		add := func(stage, quantity, text string) {
			r.Measurements = append(r.Measurements, measurement{Stage: stage, Subject: of(host, ""), Quantity: quantity,
				Text: text})
		}
		add("GPUs", "CUDA", "13.0")
		for range i + 1 {
			add("GPUs", "model", "A100")
		}
		for range 3 - i {
			add("GPUs", "model", model)
			add("GPU pairs", "link", "NVLink")
		}
	}
	require.Equal(t, []string{
		"host a: 1 x A100, 3 x H200, CUDA 13.0, joined by NVLink",
		"host b: 2 x A100, 2 x H200, CUDA 13.0, joined by NVLink",
		"host c: 4 x A100, CUDA 13.0, joined by NVLink",
	}, r.machines())
	r.Hosts = append(r.Hosts[:1], hostReport{Name: "z"})
	for _, m := range slices.Clone(r.Measurements) {
		if m.Subject.Host == "a" {
			m.Subject.Host = "z"
			r.Measurements = append(r.Measurements, m)
		}
	}
	require.Equal(t, []string{"host a and 1 more: 1 x A100, 3 x H200, CUDA 13.0, joined by NVLink"}, r.machines())
}

// All links repair errors; a GPU whose links repair far more than those of the others is named.
func TestRepairedErrors(t *testing.T) {
	judged := func(values ...float64) (codes []string) {
		r := &report{}
		for i, v := range values {
			r.Measurements = append(r.Measurements, measurement{Stage: "GPU state", Subject: of("a", fmt.Sprint("GPU ", i)),
				Quantity: "NVLink errors", Value: v, Text: ranges([]int{0, 1, 2, 7, 9, 10})})
		}
		f := &findings{r: r}
		f.repaired(r.Of("GPU state", "NVLink errors"))
		for _, x := range f.list {
			codes = append(codes, x.Subject.Part+": "+x.Text)
		}
		return codes
	}
	require.Empty(t, judged(90000))
	require.Empty(t, judged(7000, 6900))
	require.Empty(t, judged(900, 0, 0))
	require.Equal(t, []string{"GPU 1: 90000 errors were repaired on its NVLinks 0-2,7,9-10 since the driver was loaded, " +
		"6950 on the others'"}, judged(7000, 90000, 6900))
}

// A host whose links to most others have findings has a red name in the map, and no other; the page's first line says
// the verdict.
func TestMapMarksWhoIsBlamed(t *testing.T) {
	r := &report{Stages: []stageReport{{Name: "network"}}, Verdict: degraded}
	names := []string{"a", "b", "c", "d"}
	for _, from := range names {
		r.Hosts = append(r.Hosts, hostReport{Name: from})
		for _, to := range names {
			if from != to {
				r.Measurements = append(r.Measurements,
					measurement{Stage: "network", Subject: pairOf(component{Host: from}, component{Host: to}), Quantity: "bandwidth",
						Value: 1, Unit: "GB/s"})
			}
		}
	}
	slow := finding{Severity: degraded, Stage: "network", Subject: of("c", ""),
		Text: "its links are slow with 3 other hosts: look at the cable"}
	for _, to := range []string{"a", "b", "d"} {
		slow.Ways = append(slow.Ways, pairOf(component{Host: "c"}, component{Host: to}))
	}
	r.Findings = []finding{slow}
	var b bytes.Buffer
	require.NoError(t, r.WriteHTML(&b))
	require.Contains(t, b.String(), ">Degraded: host c: its links are slow with 3 other hosts</h1>")
	marked := regexp.MustCompile(`class="blamed"[^>]*>([^<]*)<`).FindAllStringSubmatch(b.String(), -1)
	require.Len(t, marked, 2, "at its row and at its column")
	for _, m := range marked {
		require.Equal(t, "c", m[1])
	}
	require.Contains(t, b.String(), "<summary>network: 12 measurements</summary>")
}

// TestHeatOfHosts: for pairs within hosts, text shows the hosts with a bad pair, or else the first host.
func TestHeatOfHosts(t *testing.T) {
	m := &heatMap{Title: "links", Unit: "GB/s", Low: true, Places: []string{"a/0", "a/1", "b/0", "b/1"},
		Values: map[[2]int]float64{{0, 1}: 5, {3, 2}: 7}, Bad: map[[2]int]bool{}}
	a := &heatMap{Title: "links, host a, the first of 2; -html has all", Unit: "GB/s", Low: true,
		Places: []string{"a/0", "a/1"},
		Values: map[[2]int]float64{{0, 1}: 5}, Bad: map[[2]int]bool{}}
	require.Equal(t, []*heatMap{a}, m.parts())

	m.Bad[[2]int{3, 2}] = true
	b := &heatMap{Title: "links, host b", Unit: "GB/s", Low: true, Places: []string{"b/0", "b/1"},
		Values: map[[2]int]float64{{1, 0}: 7}, Bad: map[[2]int]bool{{1, 0}: true}}
	require.Equal(t, []*heatMap{b}, m.parts())

	m.Values[[2]int{1, 2}] = 6
	require.Equal(t, []*heatMap{m}, m.parts(), "a pair of two hosts")
	one := &heatMap{Places: []string{"a/0", "a/1"}, Values: map[[2]int]float64{{0, 1}: 5}}
	require.Equal(t, []*heatMap{one}, one.parts(), "one host")
}

// Of many places those with a finding are shown, and the first others.
func TestHeatOfSome(t *testing.T) {
	m := &heatMap{Title: "links", Unit: "µs", Places: []string{"a", "b", "c", "d", "e"},
		Values: map[[2]int]float64{{0, 1}: 1, {0, 2}: 2, {3, 0}: 3, {4, 3}: 4}, Bad: map[[2]int]bool{{4, 3}: true}}
	require.Equal(t, &heatMap{Title: "links, 3 of 5, those with findings first; -json has all", Unit: "µs",
		Places: []string{"a", "d", "e"},
		Values: map[[2]int]float64{{1, 0}: 3, {2, 1}: 4}, Bad: map[[2]int]bool{{2, 1}: true}}, m.some(3))
	require.Same(t, m, m.some(5))
	require.Equal(t, []string{"e"}, (&heatMap{Places: m.Places, Bad: map[[2]int]bool{{4, 4}: true}}).some(1).Places)
}

// TestBadMemory: wrong words are listed by address, three at most, with bits that are always wrong in the same way.
func TestBadMemory(t *testing.T) {
	wrong := func(address, want, got uint64) meter.Wrong {
		return meter.Wrong{Address: address, Offset: address - 0x1000, Want: want, Got: got}
	}
	for want, list := range map[string][]meter.Wrong{
		"0x1040 (offset 0x40): bit 3 always 1": {wrong(0x1040, 0, 8),
			wrong(0x1040, 1, 9)},
		"0x1040 (offset 0x40): bit 0,2 always 0":                {wrong(0x1040, 5, 0)},
		"0x1040 (offset 0x40): bit 0 always 0, bit 63 always 1": {wrong(0x1040, 1, 1<<63)},
		"0x1040 (offset 0x40): changes": {wrong(0x1040, 0, 8),
			wrong(0x1040, 8, 0)},
		"0x1040 (offset 0x40): bit 0,1,2,3 always 1": {wrong(0x1040, 0, 15)},
		"0x1040 (offset 0x40): 5 bits always 1":      {wrong(0x1040, 0, 31)},
		"0x1008 (offset 0x8): bit 1 always 1; 0x1010 (offset 0x10): bit 0 always 1": {wrong(0x1010, 0, 1),
			wrong(0x1008, 0, 2)},
	} {
		require.Equal(t, want, badMemory(list))
	}
	var many []meter.Wrong
	for i := range uint64(5) {
		many = append(many, wrong(0x1000+8*i, 0, 1))
	}
	require.Equal(t, badMemory(many[:3])+"; and 2 more", badMemory(many), fmt.Sprint(many))
}
