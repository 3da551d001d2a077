package check

import (
	"fmt"
	"io"
	"strings"
)

// WriteJUnit writes the report as JUnit's XML: a suite for each stage, a case for each finding,
// and one that passes where there is none.
func (r *report) WriteJUnit(w io.Writer) error {
	x := junit{at: map[string]*junitSuite{}}
	for _, s := range r.Stages {
		x.suite(s.Name, s.Took)
	}
	for _, f := range r.Findings {
		x.suite(f.Stage, 0).finding(f)
	}
	for _, s := range r.Stages {
		u, said := x.at[s.Name], ""
		if u.tests > 0 {
			continue
		}
		if s.Skipped != "" && len(r.Of(s.Name, "")) == 0 {
			said = fmt.Sprintf("<skipped message=\"%s\"></skipped>", escape(s.Skipped))
			u.skipped++
		}
		u.add(s.Asks, said)
	}
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n")
	for _, s := range x.all {
		fmt.Fprintf(&b, " <testsuite name=\"%s\" tests=\"%d\" failures=\"%d\" errors=\"%d\" skipped=\"%d\" "+
			"time=\"%v\">\n%s </testsuite>\n",
			escape(s.name), s.tests, s.failures, s.errors, s.skipped, s.took, s.cases.String())
	}
	b.WriteString("</testsuites>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// A junit is the suites of a report, in order and by name.
type junit struct {
	all []*junitSuite
	at  map[string]*junitSuite
}

// A junitSuite is the cases of one stage.
type junitSuite struct {
	name                             string
	tests, failures, errors, skipped int
	took                             float64
	cases                            strings.Builder
}

// suite is the suite of a stage, made if there is none.
func (x *junit) suite(name string, took float64) *junitSuite {
	if x.at[name] == nil {
		x.at[name] = &junitSuite{name: name, took: took}
		x.all = append(x.all, x.at[name])
	}
	return x.at[name]
}

// finding adds the case of a finding.
func (s *junitSuite) finding(f finding) {
	name, said, kind := f.Code+" "+f.Subject.String(), escape(f.String()), "failure"
	switch f.Severity {
	case well:
		s.add(name, "<system-out>"+said+"</system-out>")
		return
	case unjudged:
		kind = "error"
		s.errors++
	default:
		s.failures++
	}
	s.add(name, fmt.Sprintf("<%s message=\"%s\" type=\"%s\"></%s>", kind, said, f.Severity, kind))
}

// add adds a case with its text; an empty text is a case that passes.
func (s *junitSuite) add(name, said string) {
	s.tests++
	fmt.Fprintf(&s.cases, "  <testcase classname=\"%s\" name=\"%s\">", escape("ringo check."+s.name), escape(name))
	if said != "" {
		s.cases.WriteString("\n   " + said + "\n  ")
	}
	s.cases.WriteString("</testcase>\n")
}
