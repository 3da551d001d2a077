package command

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/ringo-go/ringo/internal/emu/weakmem"
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
	Opened       int             `json:"opened,omitempty"` // how often a process has opened memory of another one

	Notes []string `json:"notes,omitempty"` // what is no finding

	cut       bool // a process has ended without its last line
	used      bool // a process has called the driver
	late      bool // a run was ended as it took too long
	endedSeed uint64
	processes map[int]bool // that have called the driver
	threads   int          // that have called the driver, most of a process
	steps     []*emulateStep
}

// An emulateFound is a fault, with the number of times and the seeds at which it was found.
type emulateFound struct {
	Kind  string   `json:"kind"`            // "race", "out of bounds", "leak"
	At    string   `json:"at,omitempty"`    // "sum.cu:17 in add", or a line of PTX
	Other string   `json:"other,omitempty"` // of a race
	Text  string   `json:"text"`
	Times int      `json:"times"`
	Seeds []uint64 `json:"seeds"`
}

// An emulateLine is a line of RINGO_EMULATE_REPORT: see cmd/libcuda/report.go and cmd/libcudart/count.
type emulateLine struct {
	Process      int              `json:"process"`
	Fault        *weakmem.Fault   `json:"fault"`
	Ended        bool             `json:"ended"`
	Faults       []*weakmem.Fault `json:"faults"`
	Kernels      map[string]int   `json:"kernels"`
	Leaks        []string         `json:"leaks"`
	Instructions uint64           `json:"instructions"`
	Threads      int              `json:"threads"`
	Opened       int              `json:"opened"`
	Step         *emulateStep     `json:"step"`
	NCCL         map[string]int   `json:"nccl"`
}

func newEmulateReport(e *emulation) *emulateReport {
	return &emulateReport{Version: 1, Program: e.program, GPUs: e.GPUs, Kind: e.Kind, Seeds: e.Seeds,
		Kernels: map[string]int{}, NCCL: map[string]int{},
		Findings: []*emulateFound{}, processes: map[int]bool{}}
}

// reportLines scans the lines of a RINGO_EMULATE_REPORT file. Each line is one JSON value, of up to 64 MiB.
func reportLines(text []byte) *bufio.Scanner {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 64<<20)
	return lines
}

// read adds the lines that the processes of one run have written. Leaks count only if the run ended right.
func (r *emulateReport) read(file string, seed uint64, right bool) error {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the program has not used a GPU
	}
	if err != nil {
		return err
	}
	first := map[int][]*weakmem.Fault{} // by process, of processes that have not ended
	lines := reportLines(text)
	for lines.Scan() {
		var l emulateLine
		if json.Unmarshal(lines.Bytes(), &l) != nil {
			r.cut = true // a process that was killed while it wrote
			continue
		}
		r.used = r.used || l.Ended || l.Fault != nil
		if l.Fault != nil {
			first[l.Process] = append(first[l.Process], l.Fault)
		}
		if l.Ended || l.Fault != nil || l.Step != nil {
			r.processes[l.Process] = true
		}
		if l.Step != nil {
			r.steps = append(r.steps, l.Step)
		}
		r.Opened += l.Opened
		r.threads = max(r.threads, l.Threads)
		if l.Ended {
			delete(first, l.Process)
			for _, f := range l.Faults {
				r.fault(f, seed)
			}
		}
		if right {
			for _, leak := range l.Leaks {
				r.add(emulateFound{Kind: "leak", Text: leak, Times: 1}, seed)
			}
		}
		for name, n := range l.Kernels {
			r.Kernels[kernelName(name)] += n
		}
		for name, n := range l.NCCL {
			r.NCCL[name] += n
		}
		r.Instructions += l.Instructions
	}
	for _, faults := range first {
		r.cut = true
		for _, f := range faults {
			r.fault(f, seed)
		}
	}
	return lines.Err()
}

func (r *emulateReport) fault(f *weakmem.Fault, seed uint64) {
	text := *f
	text.Count = 1 // Times has the count of all that are joined
	found := emulateFound{Kind: f.Kind.String(), At: place(f.Device, f.Kernel, f.Source, f.For, f.Line),
		Text: text.Error(), Times: f.Count}
	if o := f.Other; o != nil {
		found.Other = place(o.Device, o.Kernel, o.Source, o.For, o.Line)
		if found.Other < found.At { // the emulator may find either access first
			found.At, found.Other = found.Other, found.At
		}
	}
	r.add(found, seed)
}

// add counts a finding among those of the same kind and places.
func (r *emulateReport) add(f emulateFound, seed uint64) {
	i := slices.IndexFunc(r.Findings, f.same)
	if i < 0 {
		f.Seeds = []uint64{seed}
		r.Findings = append(r.Findings, &f)
		return
	}
	have := r.Findings[i]
	have.Times += f.Times
	if !slices.Contains(have.Seeds, seed) {
		have.Seeds = append(have.Seeds, seed)
	}
}

// same reports whether two findings are one: of the same kind, at the same places.
func (f *emulateFound) same(o *emulateFound) bool {
	return o.Kind == f.Kind && f.At == o.At && f.Other == o.Other && (f.At != "" || f.Text == o.Text)
}

// place is where an access was made, in words.
func place(device int, kernel, source, call string, line int) string {
	switch {
	case call != "":
		return call
	case device < 0:
		return kernel + " of the host"
	case source != "":
		return source + " in " + kernelName(kernel)
	}
	return fmt.Sprintf("line %d of the PTX of %s", line, kernelName(kernel))
}

// kernelName is the C++ name of a mangled function without its types, such as "ns::add". A name that is not easily
// read stays as it is.
func kernelName(linked string) string {
	rest, ok := strings.CutPrefix(linked, "_Z")
	if !ok {
		return linked
	}
	rest = strings.TrimPrefix(rest, "N")
	var parts []string
	for {
		rest = strings.TrimPrefix(rest, "L") // of a static function
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.Atoi(rest[:digits])
		if err != nil || n > len(rest)-digits {
			break
		}
		if part := rest[digits : digits+n]; part != "_GLOBAL__N_1" {
			parts = append(parts, part)
		}
		rest = rest[digits+n:]
	}
	if len(parts) == 0 {
		return linked
	}
	return strings.Join(parts, "::")
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
	kinds := map[string]int{}
	for _, f := range r.Findings {
		kinds[f.Kind]++
		fmt.Fprintf(&b, "\n%s", f.Kind)
		if f.At != "" {
			fmt.Fprintf(&b, ": %s", f.At)
		}
		if f.Other != "" {
			fmt.Fprintf(&b, " and %s", f.Other)
		}
		fmt.Fprintf(&b, ", %s", many(f.Times, "time"))
		if r.Ran > 1 {
			fmt.Fprintf(&b, ", %d of %d seeds, the first is %d", len(f.Seeds), r.Ran, f.Seeds[0])
		}
		fmt.Fprintf(&b, "\n    %s\n", strings.ReplaceAll(f.Text, "\n\t", "\n    "))
	}
	for _, x := range r.Shrunk {
		x.print(&b)
	}
	b.WriteByte('\n')
	for _, note := range r.Notes {
		b.WriteString(note + "\n")
	}
	if r.Opened > 0 {
		b.WriteString("its processes have opened memory of each other: fewer races are found between processes than within " +
			"one; run all ranks in one process to find more\n")
	}
	if r.cut {
		b.WriteString("a process ended without saying what it had launched and what it leaked\n")
	}
	if r.Ended != "" {
		fmt.Fprintf(&b, "the program failed: %s\n", r.Ended)
	}
	switch {
	case !r.used:
		b.WriteString("no process of the program has called the GPU's driver: is the runtime linked in? Relink it with " +
			"-cudart shared\n")
	case len(r.Findings) == 0:
		b.WriteString("nothing was found: no race, no bad access, no deadlock, no leak\n")
	default:
		var words []string
		for _, k := range slices.Sorted(maps.Keys(kinds)) {
			words = append(words, fmt.Sprintf("%d × %s", kinds[k], k))
		}
		fmt.Fprintf(&b, "%s: %s\n", many(len(r.Findings), "finding"), strings.Join(words, ", "))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// many is "1 thing" or "2 things".
func many(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
