package check

import (
	"fmt"
	"slices"
	"strings"
)

// A trend says how much worse a quantity may be than in a baseline. Both bounds must be exceeded.
type trend struct {
	low   bool    // low values are bad, else high ones
	part  float64 // allowed change, as a part of the baseline's value
	floor float64 // allowed change, in the quantity's unit
}

var trends = map[string]trend{
	"bandwidth": {low: true, part: 0.25},
	"latency":   {part: 1, floor: 50},
}

// compare finds quantities that are worse than in the baseline, and hosts, GPUs and links that are
// missing. Times of hosts that are one machine vary too much to be compared.
func (r *report) compare(base *report, cfg *config) []finding {
	if !r.shares(base) {
		return []finding{{Severity: unjudged, Code: "baseline-other", Stage: "baseline", Text: fmt.Sprintf(
			"the baseline of %s is of other hosts (%s), so nothing is compared: is it of this cluster, and have hosts been "+
				"renamed since?", base.Started.Format("2006-01-02 15:04"), someHosts(base.Hosts))}}
	}
	f := &findings{r: r}
	f.missing(base)
	f.slower(base, cfg)
	for i := range f.list {
		f.list[i].Stage = "baseline"
	}
	return f.list
}

// shares reports whether a host of the baseline is in the report.
func (r *report) shares(base *report) bool {
	return slices.ContainsFunc(base.Hosts, func(then hostReport) bool {
		return slices.ContainsFunc(r.Hosts, func(now hostReport) bool { return now.Name == then.Name })
	})
}

// missing finds hosts of the baseline that are not in the report, unless a finding already says that they did not come.
func (f *findings) missing(base *report) {
	have := map[string]bool{}
	for _, h := range f.r.Hosts {
		have[h.Name] = true
	}
	for _, old := range f.r.Findings {
		have[old.Subject.Host] = have[old.Subject.Host] || old.Code == "absent"
	}
	for _, h := range base.Hosts {
		if !have[h.Name] {
			f.add(broken, "baseline-host", of(h.Name, ""), 10, "it was there at %s and is not in this job: is it up?",
				base.Started.Format("2006-01-02 15:04"))
		}
	}
}

// A trendKey identifies a quantity of a stage and a subject.
type trendKey struct {
	stage, quantity string
	s               subject
}

// best is the best measurement of each quantity that has a trend, and their order in the report.
func (r *report) best() (map[trendKey]measurement, []trendKey) {
	all, order := map[trendKey]measurement{}, []trendKey(nil)
	for _, m := range r.Measurements {
		t, ok := trends[m.Quantity]
		if !ok || m.Value == 0 {
			continue
		}
		k := trendKey{m.Stage, m.Quantity, m.Subject}
		old, ok := all[k]
		if !ok {
			order = append(order, k)
		}
		if !ok || t.low && m.Value > old.Value || !t.low && m.Value < old.Value {
			all[k] = m
		}
	}
	return all, order
}

// slower finds quantities that were better in the baseline, of subjects without another finding.
func (f *findings) slower(base *report, cfg *config) {
	now, order := f.r.best()
	then, _ := base.best()
	said := map[subject]bool{}
	for _, old := range f.r.Findings {
		said[old.Subject] = true
	}
	for _, k := range order {
		m, t := now[k], trends[k.quantity]
		old, ok := then[k]
		if !ok || said[k.s] || cfg.shared && k.stage == "network" {
			continue
		}
		worse := m.Value - old.Value
		if t.low {
			worse = -worse
		}
		if worse > max(t.part*old.Value, t.floor) {
			said[k.s] = true
			f.add(degraded, "baseline-"+k.quantity, k.s, worse/old.Value,
				"%s of %s, and %s at %s: what has changed since? look at its link, clocks and cooling",
				spell(m.Value, m.Unit), k.quantity, spell(old.Value, old.Unit), base.Started.Format("2006-01-02 15:04"))
			f.list[len(f.list)-1].Quantity = k.quantity
		}
	}
}

// someHosts are the names of the first three hosts.
func someHosts(hosts []hostReport) string {
	var names []string
	for _, h := range hosts[:min(len(hosts), 3)] {
		names = append(names, h.Name)
	}
	if len(hosts) > 3 {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

// String names the report in a line.
func (r *report) String() string {
	return fmt.Sprintf("%s: %s on %s", r.Verdict, count(len(r.Findings), "finding"), count(len(r.Hosts), "host"))
}
