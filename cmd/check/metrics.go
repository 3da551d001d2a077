package check

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

var notName = regexp.MustCompile(`[^a-z0-9]+`)

// WriteMetrics writes the report as Prometheus text: the verdict, the number of findings by
// severity, each finding, and all numbers measured.
func (r *Report) WriteMetrics(w io.Writer) error {
	var b bytes.Buffer
	b.WriteString("# HELP ringo_check_status 0 well, 1 degraded, 2 broken, 3 could not be judged.\n# TYPE ringo_check_status gauge\n")
	fmt.Fprintf(&b, "ringo_check_status %d\n", int(r.Verdict))
	b.WriteString("# HELP ringo_check_time_seconds When the check began.\n# TYPE ringo_check_time_seconds gauge\n")
	fmt.Fprintf(&b, "ringo_check_time_seconds %d\n", r.Started.Unix())
	b.WriteString("# HELP ringo_check_duration_seconds How long it took.\n# TYPE ringo_check_duration_seconds gauge\n")
	fmt.Fprintf(&b, "ringo_check_duration_seconds %g\n", r.Took)
	b.WriteString("# HELP ringo_check_findings Anomalies by severity.\n# TYPE ringo_check_findings gauge\n")
	for s := Well; s <= Unjudged; s++ {
		n := 0
		for _, f := range r.Findings {
			if f.Severity == s {
				n++
			}
		}
		fmt.Fprintf(&b, "ringo_check_findings{severity=%s} %d\n", quote(s.String()), n)
	}
	b.WriteString("# HELP ringo_check_finding An anomaly.\n# TYPE ringo_check_finding gauge\n")
	seen := map[string]bool{}
	for _, f := range r.Findings {
		line := fmt.Sprintf("ringo_check_finding{severity=%s,code=%s,stage=%s,%s} 1\n", quote(f.Severity.String()), quote(f.Code), quote(f.Stage), f.Subject.labels())
		if !seen[line] {
			seen[line] = true
			b.WriteString(line)
		}
	}
	// A metric's lines stand together.
	byName := map[string][]string{}
	for _, m := range r.Measurements {
		if m.Text != "" && m.Value == 0 {
			continue
		}
		name := "ringo_check_" + strings.Trim(notName.ReplaceAllString(strings.ToLower(m.Stage+"_"+m.Quantity), "_"), "_")
		byName[name] = append(byName[name], fmt.Sprintf("%s{%s,rank=\"%d\",unit=%s} %g\n", name, m.Subject.labels(), m.Rank, quote(m.Unit), m.Value))
	}
	names := make([]string, 0, len(byName))
	for name := range byName {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "# HELP %s Measured by ringo check, in the unit of the label.\n# TYPE %s gauge\n", name, name)
		last := map[string]string{} // of what was measured again the last counts: labels must differ
		var order []string
		for _, line := range byName[name] {
			at := strings.LastIndexByte(line, ' ')
			if _, ok := last[line[:at]]; !ok {
				order = append(order, line[:at])
			}
			last[line[:at]] = line[at:]
		}
		for _, labels := range order {
			b.WriteString(labels + last[labels])
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// labels are those of Prometheus for a subject.
func (s Subject) labels() string {
	text := fmt.Sprintf("host=%s,part=%s", quote(s.Host), quote(s.Part))
	if s.IsPair() {
		text += fmt.Sprintf(",to_host=%s,to_part=%s", quote(s.To.Host), quote(s.To.Part))
	}
	return text
}

// quote writes a label's value.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(s, "\uFFFD")) + `"`
}

// WriteJUnit writes the report as JUnit's XML: a suite for each stage, a case for each finding,
// and one that passes where there is none.
func (r *Report) WriteJUnit(w io.Writer) error {
	type failure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
	}
	type skipped struct {
		Message string `xml:"message,attr"`
	}
	type testcase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Failure *failure `xml:"failure"`
		Error   *failure `xml:"error"`
		Skipped *skipped `xml:"skipped"`
		Output  string   `xml:"system-out,omitempty"`
	}
	type suite struct {
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Time     float64    `xml:"time,attr"`
		Cases    []testcase `xml:"testcase"`
	}
	var all struct {
		XMLName xml.Name `xml:"testsuites"`
		Suites  []*suite `xml:"testsuite"`
	}
	at := map[string]*suite{}
	add := func(name string, took float64) *suite {
		if at[name] == nil {
			at[name] = &suite{Name: name, Time: took}
			all.Suites = append(all.Suites, at[name])
		}
		return at[name]
	}
	for _, s := range r.Stages {
		add(s.Name, s.Took)
	}
	for _, f := range r.Findings {
		s := add(f.Stage, 0)
		c := testcase{Class: "ringo check." + f.Stage, Name: f.Code + " " + f.Subject.String()}
		switch f.Severity {
		case Well:
			c.Output = f.String()
		case Unjudged:
			c.Error = &failure{f.String(), f.Severity.String()}
			s.Errors++
		default:
			c.Failure = &failure{f.String(), f.Severity.String()}
			s.Failures++
		}
		s.Cases = append(s.Cases, c)
	}
	for _, s := range r.Stages {
		u := at[s.Name]
		if len(u.Cases) == 0 {
			c := testcase{Class: "ringo check." + s.Name, Name: s.Asks}
			if s.Skipped != "" && len(r.Of(s.Name, "")) == 0 {
				c.Skipped = &skipped{s.Skipped}
				u.Skipped++
			}
			u.Cases = append(u.Cases, c)
		}
	}
	for _, s := range all.Suites {
		s.Tests = len(s.Cases)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", " ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
