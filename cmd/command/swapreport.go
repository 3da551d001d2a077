package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A swapReport is the reports of a program's processes on their NCCL calls, in the order in which they ended.
type swapReport struct {
	status    int
	took      time.Duration
	processes []swapProcess
	calls     map[string]*swapCalls
	uncounted error // why the library that counts was not loaded
}

// A swapProcess is the report of a process that has loaded an NCCL: see cmd/libcudart/count.
type swapProcess struct {
	Process int                   `json:"process"`
	Program string                `json:"program"`
	Library string                `json:"library"`
	Version int                   `json:"version"`
	NCCL    map[string]int        `json:"nccl"`
	Calls   map[string]*swapCalls `json:"calls"`
}

// swapCalls sums the calls of one function. The time of calls in a group is in ncclGroupEnd.
type swapCalls struct {
	times   int
	Bytes   int64 `json:"bytes"` // count times the size of an element
	Ns      int64 `json:"ns"`    // time within the calls; on a GPU these only queue work
	Failed  int   `json:"failed"`
	Missing int   `json:"missing"` // of Failed: the library has no such function or feature
}

// read adds what the processes of a run have written.
func (r *swapReport) read(file string) error {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lines := reportLines(text)
	for lines.Scan() {
		var p swapProcess
		if json.Unmarshal(lines.Bytes(), &p) != nil || p.Library == "" {
			continue
		}
		r.processes = append(r.processes, p)
		for name, c := range p.Calls {
			sum := r.calls[name]
			if sum == nil {
				sum = new(swapCalls)
				r.calls[name] = sum
			}
			sum.times += p.NCCL[name]
			sum.Bytes += c.Bytes
			sum.Ns += c.Ns
			sum.Failed += c.Failed
			sum.Missing += c.Missing
		}
	}
	return lines.Err()
}

// inCalls is the time within all calls of all processes.
func (r *swapReport) inCalls() (t time.Duration) {
	for _, c := range r.calls {
		t += time.Duration(c.Ns)
	}
	return t
}

// print prints the report for people. ours is the path of Ringo's library.
func (r *swapReport) print(w io.Writer, ours string) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "\nringo swap: %v, exit status %d\n", r.took.Round(10*time.Millisecond), r.status)
	switch {
	case r.uncounted != nil:
		fmt.Fprintf(&b, "calls were not counted: %v\n", r.uncounted)
	case len(r.processes) == 0:
		b.WriteString("no process that has ended by itself has loaded an NCCL: is it linked in statically, or does the " +
			"program not use it?\n")
	default:
		r.libraries(&b, ours)
		r.table(&b)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// libraries prints which libraries the processes have used.
func (r *swapReport) libraries(b *bytes.Buffer, ours string) {
	type used struct{ library, version string }
	counts := map[used]int{}
	for _, p := range r.processes {
		v := fmt.Sprintf("%d.%d.%d", p.Version/10000, p.Version/100%100, p.Version%100)
		counts[used{p.Library, v}]++
	}
	for _, u := range slices.SortedFunc(maps.Keys(counts),
		func(x, y used) int { return cmp.Or(counts[y]-counts[x], strings.Compare(x.library, y.library)) }) {
		whose := "another NCCL"
		library := u.library
		if sameFile(u.library, ours) {
			library = ours // it may be by a link
			whose = "Ringo's, which answers as NCCL"
		}
		fmt.Fprintf(b, "%s: %s %s (processes: %d)\n", library, whose, u.version, counts[u])
	}
}

// table prints the calls, most time first.
func (r *swapReport) table(b *bytes.Buffer) {
	if len(r.calls) == 0 {
		b.WriteString("no call was seen: the program does not use NCCL, or asks the library for its functions by itself\n")
		return
	}
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\ncalls\tMB\tin calls\teach\tfailed\t  \n")
	var missing []string
	for _, name := range slices.SortedFunc(maps.Keys(r.calls), func(x, y string) int {
		return cmp.Or(cmp.Compare(r.calls[y].Ns, r.calls[x].Ns), strings.Compare(x, y))
	}) {
		c := r.calls[name]
		size, failed := "", ""
		if c.Bytes > 0 {
			size = fmt.Sprintf("%.4g", float64(c.Bytes)/1e6)
		}
		if c.Failed > 0 {
			failed = fmt.Sprint(c.Failed)
		}
		if c.Missing > 0 {
			missing = append(missing, fmt.Sprintf("%s (%s)", name, many(c.Missing, "time")))
		}
		each := time.Duration(c.Ns / int64(max(c.times, 1)))
		fmt.Fprintf(t, "%d\t%s\t%v\t%v\t%s\t  %s\n", c.times, size, rough(time.Duration(c.Ns)), rough(each), failed, name)
	}
	t.Flush()
	if missing != nil {
		fmt.Fprintf(b, "answered by \"not there\": %s\n", strings.Join(missing, ", "))
	} else {
		b.WriteString("no call was answered by \"not there\"\n")
	}
}

// rough is d rounded to three digits.
func rough(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// step is the median time between lines that a program prints, without the first tenth of them; 0 if there are too few.
func (l *lineTimes) step() time.Duration {
	var gaps []time.Duration
	for i := len(l.at)/10 + 1; i < len(l.at); i++ {
		gaps = append(gaps, l.at[i]-l.at[i-1])
	}
	if len(gaps) < 3 {
		return 0
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}

// firstDifference is the number, from 1 on, of the first line in which a and b differ, without the parts that match
// ignore; 0 if there is none.
func firstDifference(a, b []string, ignore *regexp.Regexp) int {
	plain := func(s string) string {
		if ignore != nil {
			s = ignore.ReplaceAllString(s, "")
		}
		return s
	}
	for i := range min(len(a), len(b)) {
		if plain(a[i]) != plain(b[i]) {
			return i + 1
		}
	}
	if len(a) != len(b) {
		return min(len(a), len(b)) + 1
	}
	return 0
}

// printComparison prints two runs side by side, and reports whether they ended alike and printed the same.
func printComparison(w io.Writer, ours string, runs [2]*swapReport, printed *[2]lineTimes,
	ignore *regexp.Regexp) (same bool, err error) {
	var b bytes.Buffer
	for i, r := range runs {
		fmt.Fprintf(&b, "\n== %s\n", [...]string{"the program's own NCCL", "Ringo"}[i])
		if err := r.print(&b, ours); err != nil {
			return false, err
		}
	}
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(what string, value func(i int) any) { fmt.Fprintf(t, "%s\t%v\t%v\t\n", what, value(0), value(1)) }
	fmt.Fprintf(t, "\n\tNCCL\tRingo\t\n")
	row("exit status", func(i int) any { return runs[i].status })
	row("time", func(i int) any { return rough(runs[i].took) })
	row("between lines", func(i int) any {
		if s := printed[i].step(); s > 0 {
			return rough(s)
		}
		return "-"
	})
	row("in calls of NCCL", func(i int) any { return rough(runs[i].inCalls()) })
	row("lines printed", func(i int) any { return len(printed[i].lines) })
	t.Flush()
	n := firstDifference(printed[0].lines, printed[1].lines, ignore)
	if n == 0 {
		b.WriteString("both printed the same\n")
	} else {
		fmt.Fprintf(&b, "the first difference is in line %d:\n", n)
		for i, name := range []string{"NCCL", "Ringo"} {
			line := "(nothing any more)"
			if n <= len(printed[i].lines) {
				line = printed[i].lines[n-1]
			}
			fmt.Fprintf(&b, "  %-5s  %s\n", name, line)
		}
	}
	_, err = w.Write(b.Bytes())
	return n == 0 && runs[0].status == runs[1].status, err
}
