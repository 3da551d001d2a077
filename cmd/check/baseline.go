package check

import (
	"fmt"
	"strings"
)

// A trend is a quantity that a baseline is compared by: how much worse it may be.
type trend struct {
	low   bool    // low is bad
	part  float64 // of the baseline's value, that it may be worse
	floor float64 // and by this much at least, in its unit
}

var trends = map[string]trend{
	"bandwidth": {low: true, part: 0.25},
	"latency":   {part: 1, floor: 50},
}

// compare finds what is worse than in the baseline, and what is missing: hosts, and the GPUs and
// links that were measured then. Hosts of one machine vary too much to be compared by time.
func (r *Report) compare(base *Report, cfg *Config) []Finding {
	f := &findings{r: r}
	have, common := map[string]bool{}, false
	for _, h := range r.Hosts {
		have[h.Name] = true
	}
	for _, h := range base.Hosts {
		common = common || have[h.Name]
	}
	if !common {
		return []Finding{{Severity: Unjudged, Code: "baseline-other", Stage: "baseline", Text: fmt.Sprintf(
			"the baseline of %s is of other hosts (%s), so nothing is compared: is it of this cluster, and have hosts been renamed since?", base.Started.Format("2006-01-02 15:04"), someHosts(base.Hosts))}}
	}
	for _, old := range r.Findings { // a host that did not come is known to be missing
		have[old.Subject.Host] = have[old.Subject.Host] || old.Code == "absent"
	}
	for _, h := range base.Hosts {
		if !have[h.Name] {
			f.add(Broken, "baseline-host", Of(h.Name, ""), 10, "it was there at %s and is not in this job: is it up?", base.Started.Format("2006-01-02 15:04"))
		}
	}
	type what struct {
		stage, quantity string
		s               Subject
	}
	best := func(of *Report) (map[what]Measurement, []what) {
		all, order := map[what]Measurement{}, []what(nil)
		for _, m := range of.Measurements {
			t, ok := trends[m.Quantity]
			if !ok || m.Value == 0 {
				continue
			}
			k := what{m.Stage, m.Quantity, m.Subject}
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
	now, order := best(r)
	then, _ := best(base)
	said := map[Subject]bool{}
	for _, old := range r.Findings {
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
			f.add(Degraded, "baseline-"+k.quantity, k.s, worse/old.Value, "%s of %s, and %s at %s: what has changed since? look at its link, clocks and cooling",
				spell(m.Value, m.Unit), k.quantity, spell(old.Value, old.Unit), base.Started.Format("2006-01-02 15:04"))
			f.list[len(f.list)-1].Quantity = k.quantity
		}
	}
	for i := range f.list {
		f.list[i].Stage = "baseline"
	}
	return f.list
}

// someHosts are the names of the first of them.
func someHosts(hosts []HostReport) string {
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
func (r *Report) String() string {
	return fmt.Sprintf("%s: %s on %s", r.Verdict, count(len(r.Findings), "finding"), count(len(r.Hosts), "host"))
}
