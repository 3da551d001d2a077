package check

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/internal/given"
)

// Print writes the report for people: the verdict, the findings, worst first, the stages, and
// heat maps of pairs. What a terminal would not print is quoted: names are those of others.
func (r *report) Print(w io.Writer) error {
	var b bytes.Buffer
	effort := "quick"
	if r.Full {
		effort = "full"
	}
	ranks := 0
	for _, h := range r.Hosts {
		ranks += len(h.Ranks)
	}
	fmt.Fprintf(&b, "ringo %s check, %s: %s, %s, %.1f s\n\n", r.Version, effort, count(len(r.Hosts), "host"),
		count(ranks, "rank"), r.Took)
	if lines := r.machines(); len(lines) > 0 {
		fmt.Fprintf(&b, "%s\n\n", strings.Join(lines, "\n"))
	}
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
	for line := range strings.Lines(b.String()) {
		text, end, _ := strings.Cut(line, "\n")
		if _, err := io.WriteString(w, given.Printable(text)+"\n"+end); err != nil {
			return err
		}
	}
	return nil
}

// machines lists the GPUs: a line for all hosts that have the same.
func (r *report) machines() (lines []string) {
	type machine struct{ models, links, about []string }
	at := map[string]*machine{}
	for _, h := range r.Hosts {
		at[h.Name] = new(machine)
	}
	for _, m := range r.Measurements {
		x := at[m.Subject.Host]
		if x == nil {
			continue
		}
		switch m.Stage + ", " + m.Quantity {
		case "GPUs, model":
			x.models = append(x.models, m.Text)
		case "GPUs, driver", "GPUs, CUDA":
			x.about = append(x.about, m.Quantity+" "+m.Text)
		case "GPU pairs, link":
			if !slices.Contains(x.links, m.Text) {
				x.links = append(x.links, m.Text)
			}
		}
	}
	alike := map[string][]string{} // hosts by text
	var order []string
	for _, h := range r.Hosts {
		x := at[h.Name]
		if len(x.models) == 0 {
			continue
		}
		slices.Sort(x.models)
		var words []string
		for i, n := 0, 0; i < len(x.models); i += n {
			for n = 1; i+n < len(x.models) && x.models[i+n] == x.models[i]; n++ {
			}
			words = append(words, fmt.Sprintf("%d x %s", n, x.models[i]))
		}
		text := strings.Join(append(words, x.about...), ", ")
		if len(x.links) > 0 {
			text += ", joined by " + strings.Join(x.links, " and ")
		}
		if alike[text] == nil {
			order = append(order, text)
		}
		alike[text] = append(alike[text], h.Name)
	}
	for _, text := range order {
		who := "host " + alike[text][0]
		if n := len(alike[text]); n > 1 {
			who += fmt.Sprintf(" and %d more", n-1)
		}
		lines = append(lines, who+": "+text)
	}
	return lines
}

// label is a severity in a word.
func label(s severity) string {
	if s == unjudged {
		return "unjudged"
	}
	if s == well {
		return "remark"
	}
	return s.String()
}

// result is the result of a stage in few words.
func (s *stageReport) result(r *report) string {
	worst, n := well, 0
	for _, f := range r.Findings {
		if f.Stage != s.Name || f.Severity == well {
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
