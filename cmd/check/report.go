package check

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Schema is the version of a report's JSON. Fields may be added under one number; what
// changes or goes away makes another.
const Schema = "ringo-check/1"

// A Report is what a check has found out.
type Report struct {
	Schema   string        `json:"schema"`
	Version  string        `json:"version"` // of ringo
	Started  time.Time     `json:"started"`
	Took     float64       `json:"took_s"`
	Full     bool          `json:"full"`
	Verdict  Severity      `json:"verdict"`
	Hosts    []HostReport  `json:"hosts"`
	Stages   []StageReport `json:"stages"`
	Findings []Finding     `json:"findings"` // worst first

	Measurements []Measurement `json:"measurements"`
}

// A HostReport is a host of the job.
type HostReport struct {
	Name  string `json:"name"`
	Ranks []int  `json:"ranks"`
	Lost  []int  `json:"lost,omitempty"` // ranks that died or stopped during the check
}

// A StageReport is a stage that was carried out.
type StageReport struct {
	Name    string  `json:"name"`
	Asks    string  `json:"asks"`
	Limit   float64 `json:"limit_s"`
	Took    float64 `json:"took_s"`
	Skipped string  `json:"skipped,omitempty"` // why there was nothing to do on all ranks
}

// Of are the measurements of a quantity by a stage; an empty quantity is every one.
func (r *Report) Of(stage, quantity string) []Measurement {
	var list []Measurement
	for _, m := range r.Measurements {
		if m.Stage == stage && (quantity == "" || m.Quantity == quantity) {
			list = append(list, m)
		}
	}
	return list
}

// IsLost says whether a host has a rank that was lost, which explains what failed there.
func (r *Report) IsLost(host string) bool {
	for _, h := range r.Hosts {
		if h.Name == host {
			return len(h.Lost) > 0
		}
	}
	return false
}

// judged sorts the findings and makes the verdict of them.
func (r *Report) judged() {
	sortFindings(r.Findings)
	r.Verdict = Well
	for _, f := range r.Findings {
		if f.Severity.Worse(r.Verdict) {
			r.Verdict = f.Severity
		}
	}
}

// WriteJSON writes the report under its schema.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(r)
}

// ReadJSON reads what WriteJSON wrote.
func ReadJSON(rd io.Reader) (*Report, error) {
	r := new(Report)
	if err := json.NewDecoder(rd).Decode(r); err != nil {
		return nil, fmt.Errorf("check: it is no report of \"ringo check -json\": %w", err)
	}
	if r.Schema != Schema {
		return nil, fmt.Errorf("check: the report's schema is %q, and this program reads %q: measure again with this one", r.Schema, Schema)
	}
	return r, nil
}
