package command

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// An emulateReport is the result of ringo emulate, printed as text or as JSON.
type emulateReport struct {
	Version      int             `json:"version"` // 1
	Program      []string        `json:"program"`
	GPUs         int             `json:"gpus"`
	Kind         string          `json:"kind,omitempty"`
	Seeds        int             `json:"seeds"`
	Ran          int             `json:"ran"`             // number of seeds
	Status       int             `json:"status"`          // the first exit status that is not 0
	Ended        string          `json:"ended,omitempty"` // how the program ended with that status
	Kernels      map[string]int  `json:"kernels"`
	NCCL         map[string]int  `json:"nccl,omitempty"`
	Instructions uint64          `json:"instructions"` // of all threads
	Findings     []*emulateFound `json:"findings"`
	Shrunk       []*shrunk       `json:"shrunk,omitempty"`
	Approximate  []string        `json:"approximate,omitempty"` // instructions and functions that ran, see approximated
	Opened       int             `json:"opened,omitempty"`      // how often a process has opened memory of another one
	Allowed      int             `json:"allowed,omitempty"`     // failed calls that -allow names
	Unfinished   bool            `json:"unfinished,omitempty"`  // a process ended before its end, such as by _exit or a signal
	Stopped      string          `json:"stopped,omitempty"`     // why ringo emulate has ended the program
	Notes        []string        `json:"notes,omitempty"`       // what libraries say to the author that is no finding

	allow     allowed
	late      bool // a run was ended as it took too long
	endedSeed uint64
	processes map[int]bool // that have called the driver
	threads   int          // that have called the driver, most of a process
	steps     []*emulateStep
}

// An emulateFound is a fault, with the number of times and the seeds at which it was found.
type emulateFound struct {
	Kind     string   `json:"kind"`            // "race", "out of bounds", "failed call", "leak"
	At       string   `json:"at,omitempty"`    // "sum.cu:17 in add", "cudaMemcpy at sum.cu:30", or a line of PTX
	Other    string   `json:"other,omitempty"` // of a race
	Text     string   `json:"text"`
	Times    int      `json:"times"`
	Followed int      `json:"followed,omitempty"` // calls that have failed because of it
	Seeds    []uint64 `json:"seeds"`
}

func newEmulateReport(e *emulation) *emulateReport {
	return &emulateReport{Version: 1, Program: e.program, GPUs: e.GPUs, Kind: e.Kind, Seeds: e.Seeds,
		Kernels: map[string]int{}, NCCL: map[string]int{},
		Findings: []*emulateFound{}, processes: map[int]bool{}, allow: e.allow}
}

// add counts a finding among those of the same kind and places, and returns the one that has it.
func (r *emulateReport) add(f emulateFound, seed uint64) *emulateFound {
	i := slices.IndexFunc(r.Findings, f.same)
	if i < 0 {
		f.Seeds = []uint64{seed}
		r.Findings = append(r.Findings, &f)
		return &f
	}
	have := r.Findings[i]
	have.Times += f.Times
	if !slices.Contains(have.Seeds, seed) {
		have.Seeds = append(have.Seeds, seed)
	}
	return have
}

// same reports whether two findings are one: of the same kind, at the same places. What is refused is so wherever it is
// used.
func (f *emulateFound) same(o *emulateFound) bool {
	switch {
	case o.Kind != f.Kind:
		return false
	case f.Kind == kindRefused:
		return f.Text == o.Text
	}
	return f.At == o.At && f.Other == o.Other && (f.At != "" || f.Text == o.Text)
}

// print prints the report for people.
func (r *emulateReport) print(w io.Writer) error {
	var b bytes.Buffer
	kind := cmp.Or(r.Kind, "small")
	fmt.Fprintf(&b, "\nringo emulate: %s on %s, %s\n", r.Program[0], many(r.GPUs, kind+" GPU"), many(r.Ran, "seed"))
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	counts := func(title string, m map[string]int) {
		if len(m) == 0 {
			return
		}
		fmt.Fprintf(t, "\n%s\n", title)
		for _, name := range slices.SortedFunc(maps.Keys(m),
			func(x, y string) int { return cmp.Or(m[y]-m[x], strings.Compare(x, y)) }) {
			fmt.Fprintf(t, "%d\t  %s\n", m[name], name)
		}
	}
	counts("kernels", r.Kernels)
	counts("calls of NCCL", r.NCCL)
	t.Flush()
	for _, f := range r.Findings {
		f.print(&b, r.Ran)
	}
	for _, x := range r.Shrunk {
		x.print(&b)
	}
	b.WriteByte('\n')
	r.notes(&b)
	r.verdict(&b)
	_, err := w.Write(b.Bytes())
	return err
}

// print prints a finding of a number of runs.
func (f *emulateFound) print(b *bytes.Buffer, ran int) {
	fmt.Fprintf(b, "\n%s", f.Kind)
	if f.At != "" {
		fmt.Fprintf(b, ": %s", f.At)
	}
	if f.Other != "" {
		fmt.Fprintf(b, " and %s", f.Other)
	}
	fmt.Fprintf(b, ", %s", many(f.Times, "time"))
	if ran > 1 {
		fmt.Fprintf(b, ", %d of %d seeds, the first is %d", len(f.Seeds), ran, f.Seeds[0])
	}
	fmt.Fprintf(b, "\n    %s\n", strings.ReplaceAll(f.Text, "\n\t", "\n    "))
	if f.Followed > 0 {
		fmt.Fprintf(b, "    %s failed because of it\n", many(f.Followed, "later call"))
	}
}

// notes prints what there is to know beside the findings.
func (r *emulateReport) notes(b *bytes.Buffer) {
	b.WriteString(r.approximate())
	for _, note := range r.Notes {
		b.WriteString(note + "\n")
	}
	if r.Opened > 0 {
		b.WriteString("its processes have opened memory of each other: fewer races are found between processes than within " +
			"one; run all ranks in one process to find more\n")
	}
	if r.Allowed > 0 {
		fmt.Fprintf(b, "%s failed as -allow says\n", many(r.Allowed, "call"))
	}
	if r.Unfinished {
		b.WriteString("a process did not come to its end (_exit, exec, a signal, or time ran out): what it left behind was not " +
			"looked for\n")
	}
	if r.Stopped != "" {
		fmt.Fprintf(b, "the program was ended: %s\n", r.Stopped)
	}
	if r.Ended != "" {
		fmt.Fprintf(b, "the program failed: %s\n", r.Ended)
	}
}

// verdict prints the last line.
func (r *emulateReport) verdict(b *bytes.Buffer) {
	if len(r.Findings) == 0 {
		const none = "no race, no bad access, no deadlock, no failed call"
		switch {
		case len(r.processes) == 0:
			b.WriteString("no process of the program has called the GPU's driver: is the runtime linked in? Relink it with " +
				"-cudart shared\n")
		case r.Stopped != "" || r.Ended != "":
			fmt.Fprintf(b, "nothing else was found: %s\n", none)
		case r.Unfinished:
			fmt.Fprintf(b, "nothing was found: %s\n", none)
		default:
			fmt.Fprintf(b, "nothing was found: %s, no leak\n", none)
		}
		return
	}
	kinds, words := map[string]int{}, []string{}
	for _, f := range r.Findings {
		kinds[f.Kind]++
	}
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		words = append(words, fmt.Sprintf("%d × %s", kinds[k], k))
	}
	fmt.Fprintf(b, "%s: %s\n", many(len(r.Findings), "finding"), strings.Join(words, ", "))
}

// many is "1 thing" or "2 things".
func many(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
