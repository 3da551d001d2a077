package bench

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/trace"
)

// A recorder takes the rows on rank 0: it prints them as they come, keeps them for the
// report and shows the progress of the run.
type recorder struct {
	cfg    *Config
	report *Report
	table  *printer
	trace  *trace.Trace // of all ranks, nil without -trace
	last   string       // collective of the row before
	bar    steps
}

func newRecorder(cfg *Config, report *Report, plan []series) *recorder {
	r := &recorder{cfg: cfg, report: report,
		table: &printer{w: cli.Text(cfg.Stdout), errors: cfg.Error, beside: cfg.Beside}}
	if cfg.Quiet {
		r.table.w = io.Discard
		return r
	}
	rows := 0
	for _, s := range plan {
		rows += len(s.counts)
	}
	if len(cfg.Peers) == 0 { // else all rows come at the end
		r.bar.begin(cfg.Stderr, "rows", rows)
	}
	r.preamble(measureTime(plan))
	return r
}

// steps shows on a terminal how many steps of a run are done. Its zero value shows nothing.
type steps struct {
	progress  *cli.Progress
	what      string
	done, all int
}

func (s *steps) begin(w io.Writer, what string, all int) {
	*s = steps{cli.NewProgress(w), what, 0, all}
	s.progress.Show(what, 0)
}

func (s *steps) next() {
	s.done++
	s.progress.Show(s.what, float64(s.done)/float64(max(1, s.all)))
}

// preamble prints the settings of the measurement.
func (r *recorder) preamble(atLeast time.Duration) {
	w, cfg, rep := r.table.w, r.cfg, r.report
	fmt.Fprintf(w, "# ringo %s: %d ranks in %d %s on %s (%d cores, %s), %s %s/%s\n", rep.Version, rep.Ranks,
		rep.Processes, plural(rep.Processes, "process", "processes"), rep.Host, rep.Cores, rep.CPU, runtime.Version(),
		rep.OS, rep.Arch)
	iterations := fmt.Sprintf("%d iterations", cfg.Iterations)
	if cfg.Iterations == 0 {
		iterations = fmt.Sprintf("iterations for at least %v and %d", atLeast, minIterations)
	}
	check := "every element verified"
	if !cfg.Check {
		check = "nothing verified"
	}
	step := fmt.Sprintf("steps of %s", FormatSize(cfg.Step))
	if cfg.Factor != 0 {
		step = fmt.Sprintf("factor %g", cfg.Factor)
	}
	fmt.Fprintf(w, "# sizes %s to %s, %s; %d warm-ups, %s; %s\n", FormatSize(cfg.Min), FormatSize(cfg.Max), step,
		cfg.Warmup, iterations, check)
	if cfg.Error {
		fmt.Fprintf(w, "# error: of sums of random numbers from 0 to 1, out of place, in units in the last place of the "+
			"exact sum\n")
	}
	for _, note := range rep.Notes {
		fmt.Fprintf(w, "# %s\n", note)
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// registered notes whether the memory is registered: reason says why it is not, "" if it is.
func (r *recorder) registered(reason string) {
	note := "memory registered"
	if r.report.Registered = reason == ""; reason != "" {
		note = "memory not registered: " + reason
	}
	r.report.Notes = append(r.report.Notes, note)
	fmt.Fprintf(r.table.w, "# %s\n", note)
}

// heading starts the table of a collective.
func (r *recorder) heading(name string) {
	if name == r.last {
		return
	}
	r.last = name
	fmt.Fprintf(r.table.w, "#\n# %s\n", name)
	r.table.header()
}

// add takes the next row, and the peers' rows beside it.
func (r *recorder) add(row Row, others map[string]*Row) {
	r.report.Rows = append(r.report.Rows, row)
	for _, name := range r.table.peers {
		if o := others[name]; o != nil {
			r.report.Rows = append(r.report.Rows, *o)
		}
	}
	r.bar.progress.Hide()
	r.heading(row.Collective)
	r.table.row(&row, others)
	r.bar.next()
}

// traced takes the trace of all ranks.
func (r *recorder) traced(t *trace.Trace) { r.trace = t }

// finish writes the last lines and the files that were asked for.
func (r *recorder) finish() error {
	r.bar.progress.Clear()
	if c := r.report.Cost; c != nil {
		fmt.Fprintf(r.table.w, "# %v\n", c)
	}
	r.table.footer(r.cfg.Check)
	if r.trace != nil && len(r.trace.Calls) > 0 {
		if err := cli.Save("-trace", r.cfg.Trace, r.cfg.output, r.trace.Write); err != nil {
			return err
		}
		fmt.Fprintf(r.table.w, "# %s\n# %v\n", describe(r.trace, r.cfg.Trace), r.trace.Arrivals(r.trace.Calls[0].Comm))
	}
	if err := cli.SaveJSON("-json", r.cfg.JSON, r.cfg.output, r.report); err != nil || r.cfg.Plot == "" {
		return err
	}
	return plot("-plot", r.cfg.Plot, r.cfg.output, "", r.report)
}

// ErrWrong is the error of Run when a run went through but results were wrong.
type ErrWrong struct{ Elements int64 }

func (e ErrWrong) Error() string {
	return fmt.Sprintf("%d %s wrong", e.Elements, plural(int(min(e.Elements, 2)), "element was", "elements were"))
}
