package ptxcheck

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Version is the version of a Report's JSON form. It grows when a field changes its meaning or is removed.
const Version = 1

// A Report is the result of a Run.
type Report struct {
	Version  int       `json:"version"`
	File     string    `json:"file"`
	GPUs     int       `json:"gpus"`
	Link     string    `json:"link"`
	First    uint64    `json:"first_seed"`
	Seeds    int       `json:"seeds"` // asked for
	Ran      int       `json:"ran"`   // carried out to the end
	Halts    int       `json:"halts"` // runs that ended in a deadlock or had no end: after three a Run stops
	Findings []Finding `json:"findings"`
}

// report makes the schedules of the findings short, unless the context has ended.
func (s *search) report(ctx context.Context) *Report {
	r := &Report{Version: Version, File: s.plan.Name, GPUs: s.plan.GPUs, Link: s.plan.Link, First: s.plan.First,
		Seeds: s.plan.Seeds, Ran: s.ran, Halts: s.halts, Findings: []Finding{}}
	hits := slices.SortedFunc(maps.Values(s.found), func(a, b *hit) int { return cmp.Compare(a.order, b.order) })
	for _, h := range hits {
		r.Findings = append(r.Findings, s.finding(ctx, h, len(r.Findings) < shrunk))
	}
	return r
}

// Err is an error with the whole report as its text, for tests; nil if nothing was found.
func (r *Report) Err() error {
	if len(r.Findings) == 0 {
		return nil
	}
	var b strings.Builder
	if err := r.Print(&b); err != nil {
		return err
	}
	return fmt.Errorf("%s: %s\n%s", r.File, plural(len(r.Findings), "finding"), b.String())
}

// shrunk is the number of findings, from the first, whose schedules are made short.
const shrunk = 10

const printed = 20

// Print writes the report for people, the first 20 findings.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	for i := range r.Findings {
		f := &r.Findings[i]
		if i == printed {
			fmt.Fprintf(&b, "and %d more\n", len(r.Findings)-i)
			break
		}
		fmt.Fprintf(&b, "%d. %s", i+1, f.Kind)
		if f.Across != "" {
			fmt.Fprintf(&b, " between %s", f.Across)
		}
		fmt.Fprintf(&b, ", found under %d of %d seeds\n", f.Seeds, r.Ran)
		f.Access.print(&b, r.GPUs)
		f.Other.print(&b, r.GPUs)
		for line := range strings.Lines(f.Detail) {
			fmt.Fprintf(&b, "   %s\n", strings.TrimRight(strings.ReplaceAll(line, "\t", "   "), " \n"))
		}
		f.Schedule.print(&b, r.GPUs)
		b.WriteString("\n")
	}
	if r.Halts == enoughHalts && r.Ran < r.Seeds {
		fmt.Fprintf(&b, "%d of %d seeds were enough: %d runs came to a halt\n", r.Ran, r.Seeds, r.Halts)
	}
	if len(r.Findings) == 0 {
		fmt.Fprintf(&b, "nothing found under %s\n", plural(r.Ran, "seed"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// print is two lines: what, and who and where.
func (a *Access) print(b *strings.Builder, gpus int) {
	if a == nil {
		return
	}
	if a.Bytes > 0 {
		does, way := "load", "from"
		if a.Write {
			does, way = "store", "to"
		}
		fmt.Fprintf(b, "   %s of %s %s %s\n  ", does, plural(a.Bytes, "byte"), way, a.Address)
	}
	fmt.Fprintf(b, "   %skernel %s, block %s, thread %s, %s", on(a.GPU, gpus), a.Kernel, triple(a.Block), triple(a.Thread),
		location(a.Line, a.Source))
	if a.Instruction != "" {
		fmt.Fprintf(b, ": %s", a.Instruction)
	}
	b.WriteString("\n")
}

func on(gpu, gpus int) string {
	if gpus == 1 {
		return ""
	}
	return fmt.Sprintf("GPU %d, ", gpu)
}

func triple(v [3]int) string { return fmt.Sprintf("(%d,%d,%d)", v[0], v[1], v[2]) }

func location(line int, source string) string {
	if source == "" {
		return fmt.Sprintf("line %d", line)
	}
	return fmt.Sprintf("%s, line %d", source, line)
}

func (s *Schedule) print(b *strings.Builder, gpus int) {
	switch {
	case s == nil:
		return
	case len(s.Turns) == 0:
		fmt.Fprintf(b, "   shortest schedule: seed %d, all warps in rotation\n", s.Seed)
		return
	}
	fmt.Fprintf(b, "   shortest schedule: seed %d, %s of %s\n", s.Seed, plural(len(s.Turns), "turn"),
		plural(s.Steps, "instruction"))
	for _, t := range s.Turns {
		fmt.Fprintf(b, "     %s%s, block %s, warp %d: %s, to %s\n", on(t.GPU, gpus), t.Kernel, triple(t.Block), t.Warp,
			plural(t.Instructions, "instruction"), location(t.Line, t.Source))
	}
}
