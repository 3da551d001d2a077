package check

import (
	"cmp"
	"fmt"
	"slices"
)

// A severity is how bad a finding is. Its number is the exit status of "ringo check".
type severity int

// The severities.
const (
	well     severity = iota // nothing is wrong; such a finding is a remark
	degraded                 // works, but not as it should
	broken                   // does not work, or gives wrong data
	unjudged                 // could not be judged
)

var severities = []string{"well", "degraded", "broken", "could not be judged"}

func (s severity) String() string {
	if s < 0 || int(s) >= len(severities) {
		return fmt.Sprintf("severity %d", int(s))
	}
	return severities[s]
}

// MarshalText and UnmarshalText write and read the text of String.
func (s severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s *severity) UnmarshalText(b []byte) error {
	i := slices.Index(severities, string(b))
	if i < 0 {
		return fmt.Errorf("no severity: %q", b)
	}
	*s = severity(i)
	return nil
}

// weight orders severities: broken, degraded, not judged, well.
func (s severity) weight() int { return []int{0, 2, 3, 1}[s] }

// Worse reports whether s is worse than o. Unjudged is worse than well and better than
// degraded.
func (s severity) Worse(o severity) bool { return s.weight() > o.weight() }

// A finding is one anomaly.
type finding struct {
	Severity severity `json:"severity"`
	Code     string   `json:"code"` // one word for programs: "slow-pair", "clock-offset", …
	Stage    string   `json:"stage"`
	Subject  subject  `json:"subject"`
	Quantity string   `json:"quantity,omitempty"` // of a pair: the heat map that marks it; empty is all
	Text     string   `json:"text"`               // one sentence without the subject: fault, cause, remedy
	// Weight orders findings of one severity, heaviest first: how many times worse than the others, say.
	Weight float64 `json:"weight,omitempty"`
	// Ways are the pairs on which a finding about a host rests.
	Ways  []subject `json:"ways,omitempty"`
	again []subject // ways of which measuring again may show another value
}

// String is the sentence.
func (f finding) String() string {
	if f.Subject == (subject{}) {
		return f.Text
	}
	return f.Subject.String() + ": " + f.Text
}

// sortFindings puts the worst first. The order of stages breaks ties, for findings come in it.
func sortFindings(list []finding) {
	slices.SortStableFunc(list, func(a, b finding) int {
		return cmp.Or(cmp.Compare(b.Severity.weight(), a.Severity.weight()), cmp.Compare(b.Weight, a.Weight))
	})
}
