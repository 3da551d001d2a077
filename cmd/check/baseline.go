package check

import (
	"fmt"
	"math"
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
	f.slower(base)
	if !cfg.shared {
		f.slowerWays(base)
	}
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

// worse is by how much a value is worse than before, and by how much it may be.
func (t trend) worse(now, then float64) (by, bound float64) {
	by = now - then
	if t.low {
		by = -by
	}
	return by, max(t.part*then, t.floor)
}

const sinceWhen = "%s%s of %s, and %s at %s: what has changed since? look at its link, clocks and cooling"

// slower finds quantities that were better in the baseline, of subjects without another finding.
func (f *findings) slower(base *report) {
	now, order := f.r.best()
	then, _ := base.best()
	said := map[subject]bool{}
	for _, old := range f.r.Findings {
		said[old.Subject] = true
	}
	for _, k := range order {
		m, t := now[k], trends[k.quantity]
		old, ok := then[k]
		if !ok || said[k.s] || k.stage == "network" {
			continue
		}
		if by, bound := t.worse(m.Value, old.Value); by > bound {
			said[k.s] = true
			f.add(degraded, "baseline-"+k.quantity, k.s, by/old.Value, sinceWhen, "", spell(m.Value, m.Unit), k.quantity,
				spell(old.Value, old.Unit), base.Started.Format("2006-01-02 15:04"))
			f.list[len(f.list)-1].Quantity = k.quantity
		}
	}
}

// slowerWays finds ways between hosts that were better in the baseline, and what explains them, but for ways with
// another finding.
func (f *findings) slowerWays(base *report) {
	was, found := map[subject]*way{}, map[subject]bool{}
	for _, w := range waysOf(base, "network") {
		was[w.subject] = w
	}
	for _, old := range f.r.Findings {
		for _, s := range append(old.Ways, old.Subject) {
			found[s] = found[s] || old.Severity != well
		}
	}
	for _, q := range []struct {
		quantity, unit string
		value          func(*way) float64
	}{{"bandwidth", "GB/s", func(w *way) float64 { return w.bandwidth }},
		{"latency", "us", func(w *way) float64 { return w.latency }}} {
		ways, marks := waysOf(f.r, "network"), map[*way]mark{}
		weight := func(w *way) float64 {
			by, _ := trends[q.quantity].worse(q.value(w), q.value(was[w.subject]))
			return by / q.value(was[w.subject])
		}
		for _, w := range ways {
			old, now := was[w.subject], q.value(w)
			if old == nil || now == 0 || q.value(old) == 0 || math.IsInf(now, 0) || math.IsInf(q.value(old), 0) {
				continue
			}
			switch by, bound := trends[q.quantity].worse(now, q.value(old)); {
			case by > bound && found[w.subject]:
				marks[w] = known
			case by > bound:
				marks[w] = bad
			case by < bound/2:
				marks[w] = good
			}
		}
		for _, c := range explain(ways, marks, false) {
			worst := slices.MaxFunc(c.ways, func(x, y *way) int { return cmpWays(weight(x), weight(y), x, y) })
			at, who := subject{}, c.parties()+": the way between them: "
			switch {
			case c.all:
				who = "all ways between hosts: "
			case c.host != "":
				at, who = of(c.host, ""), fmt.Sprintf("with %s: ", count(peersOf(c.ways, c.host), "other host"))
			case c.groups == nil:
				at, who = worst.subject, ""
			}
			if found[at] {
				continue
			}
			found[at] = at != subject{}
			f.add(degraded, "baseline-"+q.quantity, at, weight(worst), sinceWhen, who, spell(q.value(worst), q.unit), q.quantity,
				spell(q.value(was[worst.subject]), q.unit), base.Started.Format("2006-01-02 15:04"))
			last := &f.list[len(f.list)-1]
			last.Quantity = q.quantity
			if c.host != "" {
				for _, w := range c.ways {
					last.Ways = append(last.Ways, w.subject)
				}
			}
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
