package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ringo-go/ringo/internal/cli"
)

// schema is the version of a report's JSON. Fields may be added under one number; a field that
// changes or is removed makes a new one.
const schema = "ringo-check/1"

// A report is the result of a check.
type report struct {
	Schema   string        `json:"schema"`
	Version  string        `json:"version"` // of ringo
	Started  time.Time     `json:"started"`
	Took     float64       `json:"took_s"`
	Full     bool          `json:"full"`
	Verdict  severity      `json:"verdict"`
	Hosts    []hostReport  `json:"hosts"`
	Stages   []stageReport `json:"stages"`
	Findings []finding     `json:"findings"` // worst first

	Measurements []measurement `json:"measurements"`
}

// A hostReport is a host of the job.
type hostReport struct {
	Name  string `json:"name"`
	Ranks []int  `json:"ranks"`
	Lost  []int  `json:"lost,omitempty"` // ranks that died or stopped during the check
}

// A stageReport is a stage that was carried out.
type stageReport struct {
	Name    string  `json:"name"`
	Asks    string  `json:"asks"`
	Limit   float64 `json:"limit_s"`
	Took    float64 `json:"took_s"`
	Skipped string  `json:"skipped,omitempty"` // why there was nothing to do on all ranks
}

// Of returns a stage's measurements of a quantity; of all quantities if that is empty.
func (r *report) Of(stage, quantity string) []measurement {
	var list []measurement
	for _, m := range r.Measurements {
		if m.Stage == stage && (quantity == "" || m.Quantity == quantity) {
			list = append(list, m)
		}
	}
	return list
}

// IsLost reports whether a host has a lost rank, which explains failures there.
func (r *report) IsLost(host string) bool {
	for _, h := range r.Hosts {
		if h.Name == host {
			return len(h.Lost) > 0
		}
	}
	return false
}

// judged sorts the findings and derives the verdict from them.
func (r *report) judged() {
	sortFindings(r.Findings)
	r.Verdict = well
	for _, f := range r.Findings {
		if f.Severity.Worse(r.Verdict) {
			r.Verdict = f.Severity
		}
	}
}

// WriteJSON writes the report under its schema.
func (r *report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(r)
}

// readReport reads what WriteJSON wrote.
func readReport(rd io.Reader) (*report, error) {
	r := new(report)
	if err := json.NewDecoder(rd).Decode(r); err != nil {
		return nil, fmt.Errorf("check: it is no report of \"ringo check -json\": %w", err)
	}
	if r.Schema != schema {
		return nil, fmt.Errorf("check: the report's schema is %q, and this program reads %q: measure again with this one",
			r.Schema, schema)
	}
	return r, nil
}

// write writes the report in all forms asked for. An error with one file does not keep it from writing the others.
func (f *commandFlags) write(r *report, stdout io.Writer) error {
	metrics := f.metrics
	if f.serves() {
		metrics = ""
	}
	text, errs := stdout, []error(nil)
	for _, out := range []struct {
		flag, file string
		write      func(io.Writer) error
	}{{"-json", f.json, r.WriteJSON}, {"-metrics", metrics, r.WriteMetrics}, {"-junit", f.junit, r.WriteJUnit},
		{"-svg", f.svg, r.WriteSVG}, {"-html", f.html, r.WriteHTML}} {
		errs = append(errs, cli.Save(out.flag, out.file, stdout, out.write))
		if out.file == "-" {
			text = io.Discard
		}
	}
	return errors.Join(append(errs, r.Print(text))...)
}
