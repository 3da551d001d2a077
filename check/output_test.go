package check

import (
	"bytes"
	"encoding/xml"
	"flag"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
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
func aReport() *Report {
	r := &Report{Schema: Schema, Version: "0.0.0", Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Took: 3.25}
	names := []string{"alpha", "beta", "gamma<&>", "delta"}
	for i, name := range names {
		r.Hosts = append(r.Hosts, HostReport{Name: name, Ranks: []int{i}})
	}
	for i, a := range names {
		r.Measurements = append(r.Measurements, Measurement{Stage: "host", Rank: i, Subject: Of(a, ""), Quantity: "cores", Value: 64})
		for k, b := range names {
			s := Between(Place{a, "eth0"}, Place{b, "eth0"})
			if i == k {
				continue
			}
			m := Measurement{Stage: "network", Rank: min(i, k), Subject: s, Quantity: "bandwidth", Value: 11.5 + float64(i+k)/10, Unit: "GB/s"}
			if i == 1 && k == 3 {
				m.Value = 1.23
			}
			l := Measurement{Stage: "network", Rank: min(i, k), Subject: s, Quantity: "latency", Value: 9.5 + float64(i*k)/10, Unit: "us"}
			r.Measurements = append(r.Measurements, m, l)
		}
	}
	r.Stages = []StageReport{{"host", "Is every host made and set up like the others?", 5, 0.02, ""},
		{"GPU", "Is every GPU well?", 10, 0, "no GPU here"}, {"network", "Is every link between hosts as quick as the others?", 12, 2.5, ""}}
	for _, f := range judgeNetwork(r, &Config{}) {
		f.Stage = "network"
		r.Findings = append(r.Findings, f)
	}
	r.Findings = append(r.Findings, Finding{Severity: Well, Code: "kernel-differs", Stage: "host", Subject: Of("delta", ""), Text: "kernel 6.1, 6.8 on 3 of 4 hosts"},
		Finding{Severity: Broken, Code: "died", Stage: "network", Subject: Of("gamma<&>", "rank 2"), Text: "died in stage network: its process has ended"})
	r.judged()
	return r
}

// What is written is as it was, and what reads it understands it.
func TestOutput(t *testing.T) {
	r := aReport()
	require.Equal(t, []string{"died host gamma<&>, rank 2", "slow-link host beta, eth0 to host delta, eth0", "kernel-differs host delta"}, codes(r))
	for _, c := range []struct {
		file  string
		write func(io.Writer) error
	}{{"report.txt", r.Print}, {"report.json", r.WriteJSON}, {"report.prom", r.WriteMetrics}, {"report.xml", r.WriteJUnit}, {"report.svg", r.WriteSVG}, {"report.html", r.WriteHTML}} {
		var b bytes.Buffer
		require.NoError(t, c.write(&b))
		golden(t, c.file, b.String())
		switch c.file {
		case "report.json":
			back, err := ReadJSON(&b)
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
			line := regexp.MustCompile(`^[a-z_0-9]+(\{([a-z_]+="([^"\\]|\\.)*",?)+\})? [-+0-9.e]+$`)
			seen := map[string]bool{}
			for _, l := range strings.Split(strings.TrimSpace(b.String()), "\n") {
				if strings.HasPrefix(l, "# ") {
					continue
				}
				require.Regexp(t, line, l)
				name := l[:strings.LastIndexByte(l, ' ')]
				require.False(t, seen[name], "%s twice", name)
				seen[name] = true
			}
		}
	}
	_, err := ReadJSON(strings.NewReader(`{"schema": "ringo-check/9"}`))
	require.ErrorContains(t, err, "measure again")
}

// A run that is worse than the one before says so, though all links are alike.
func TestBaseline(t *testing.T) {
	run := func(rate float64, hosts int, base *Report) (r *Report) {
		synctest.Test(t, func(t *testing.T) {
			r, _ = runAll(t, fakeCluster(hosts, func(a, b byte) fakeLink {
				l := well(a, b)
				l.rate *= rate
				return l
			}), Config{Stages: []Stage{networkStage()}, Baseline: base})
			time.Sleep(time.Minute)
		})
		return r
	}
	base := run(1, 3, nil)
	require.Empty(t, base.Findings)
	require.Empty(t, run(0.95, 3, base).Findings)
	worse := run(0.5, 3, base)
	require.Len(t, worse.Findings, 6)
	require.Equal(t, "baseline-bandwidth", worse.Findings[0].Code)
	require.Contains(t, worse.Findings[0].Text, "of bandwidth, and 0.0")
	require.Equal(t, []string{"baseline-host host c"}, codes(run(1, 2, base)))
}
