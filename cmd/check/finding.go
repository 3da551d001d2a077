package check

import (
	"cmp"
	"fmt"
	"slices"
)

// A Severity says how bad a finding is. Its number is the exit status of "ringo check".
type Severity int

// The severities.
const (
	Well     Severity = iota // nothing is wrong; a finding of it is a remark
	Degraded                 // it works, but not as it should
	Broken                   // it does not work, or gives wrong data
	Unjudged                 // it could not be judged
)

var severities = []string{"well", "degraded", "broken", "could not be judged"}

func (s Severity) String() string {
	if s < 0 || int(s) >= len(severities) {
		return fmt.Sprintf("severity %d", int(s))
	}
	return severities[s]
}

// MarshalText and UnmarshalText are those of String.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s *Severity) UnmarshalText(b []byte) error {
	i := slices.Index(severities, string(b))
	if i < 0 {
		return fmt.Errorf("no severity: %q", b)
	}
	*s = Severity(i)
	return nil
}

// weight orders severities: broken, degraded, not judged, well.
func (s Severity) weight() int { return []int{0, 2, 3, 1}[s] }

// Worse says whether s is worse than o. What could not be judged is worse than what is well
// and not as bad as what is known to be wrong.
func (s Severity) Worse(o Severity) bool { return s.weight() > o.weight() }

// A Finding is one anomaly.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"` // one word for programs: "slow-pair", "clock-offset", …
	Stage    string   `json:"stage"`
	Subject  Subject  `json:"subject"`
	Quantity string   `json:"quantity,omitempty"` // of a pair: which heat map it is marked in; empty is all
	Text     string   `json:"text"`               // one sentence without the subject: what, cause, remedy
	// Weight orders findings of one severity, heaviest first: how many times worse than the others, say.
	Weight float64 `json:"weight,omitempty"`
	// Ways are the pairs that a finding about a host is made of.
	Ways  []Subject `json:"ways,omitempty"`
	again bool      // measuring again may show another value
}

// String is the sentence.
func (f Finding) String() string {
	if f.Subject == (Subject{}) {
		return f.Text
	}
	return f.Subject.String() + ": " + f.Text
}

// sortFindings puts the worst first. The order of stages breaks ties, for findings come in it.
func sortFindings(list []Finding) {
	slices.SortStableFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Severity.weight(), a.Severity.weight()), cmp.Compare(b.Weight, a.Weight))
	})
}
