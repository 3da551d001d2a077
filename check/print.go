package check

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// Print writes the report for people: the verdict, the findings, worst first, the stages, and
// heat maps of pairs.
func (r *Report) Print(w io.Writer) error {
	var b bytes.Buffer
	effort := "quick"
	if r.Full {
		effort = "full"
	}
	ranks := 0
	for _, h := range r.Hosts {
		ranks += len(h.Ranks)
	}
	fmt.Fprintf(&b, "ringo %s check, %s: %s, %s, %.1f s\n\n", r.Version, effort, count(len(r.Hosts), "host"), count(ranks, "rank"), r.Took)
	fmt.Fprintf(&b, "%s\n", strings.ToUpper(r.Verdict.String()))
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "  %-9s %s\n", label(f.Severity), f)
	}
	b.WriteString("\n")
	last := ""
	for i := range r.Stages {
		s := &r.Stages[i]
		text := s.result(r)
		if strings.HasPrefix(text, "left out") && text == last {
			text = "left out too"
		} else {
			last = text
		}
		fmt.Fprintf(&b, "  %-18s %5.1f s  %s\n", s.Name, s.Took, text)
	}
	for _, m := range r.Maps() {
		for _, part := range m.parts() {
			b.WriteString("\n")
			part.print(&b)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// label is a severity in a word.
func label(s Severity) string {
	if s == Unjudged {
		return "unjudged"
	}
	if s == Well {
		return "remark"
	}
	return s.String()
}

// result is what came of a stage, in few words.
func (s *StageReport) result(r *Report) string {
	worst, n := Well, 0
	for _, f := range r.Findings {
		if f.Stage != s.Name || f.Severity == Well {
			continue
		}
		n++
		if f.Severity.Worse(worst) {
			worst = f.Severity
		}
	}
	measured := len(r.Of(s.Name, ""))
	switch {
	case s.Skipped == noTime:
		return "left out: " + s.Skipped
	case n > 0:
		return fmt.Sprintf("%s: %s", worst, count(n, "finding"))
	case s.Skipped != "":
		return "left out: " + s.Skipped
	}
	return fmt.Sprintf("well: %s", count(measured, "measurement"))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprint(n, " ", what, "s")
}
