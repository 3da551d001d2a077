package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/sched"
)

// explainHelp is what "ringo explain -h" prints.
const explainHelp = `usage: ringo explain COLLECTIVE [flags]

Says which algorithm would carry out a collective, why, what every other one
would take by the same model, at which sizes that model would choose otherwise,
how many blocks of a GPU it takes, what it costs, and shows the messages and the
steps of every rank.

Examples
  ringo explain allreduce -np 8 -s 1M
  ringo explain allreduce -np 4 -algo tree
  ringo explain allreduce -np 8 -node 4 -s 16M
  ringo explain broadcast -np 64 -steps 17 -o broadcast.svg
  ringo explain allreduce -np 4 -s 1M -device cuda
  ringo explain allgather -np 2 -s 64M -device cuda -registered -policy zero

{np node host-mbps s d r algo deterministic steps picture o json}

On GPU memory, for which none is needed here
{device gpu path registered row plan policy max-blocks min-blocks}
`

func runExplain(ctx context.Context, args []string, stdout, _ io.Writer) error {
	f := newExplainFlags()
	fs := flags("explain")
	f.register(fs)
	names, err := cli.Parse(fs, args)
	if err != nil {
		return err
	}
	q, err := f.question(names)
	if err != nil {
		return err
	}
	which, err := parseSteps(f.steps, f.ranks)
	if err != nil {
		return err
	}
	out, err := f.outputs(stdout)
	if err != nil {
		return err
	}
	ch, err := q.choice(f.size)
	if err != nil {
		return cli.Usagef("%v", err)
	}
	switch {
	case q.algo == "":
	case strings.HasPrefix(ch.Reason, "asked for"):
		ch.Reason = "asked for by -algo"
	case !strings.EqualFold(ch.Algo, q.algo):
		ch.Reason += "; -algo " + q.algo + " does not apply to this call"
		q.algo = ""
	}
	var text strings.Builder
	e := &explanation{q: q, ch: &ch, bytes: f.size, w: &text, steps: which, drawn: f.drawn, auto: f.steps == "auto"}
	return f.say(ctx, e, &text, out, stdout)
}

// say prints the explanation, and saves and draws it where flags ask for that.
func (f *explainFlags) say(ctx context.Context, e *explanation, text *strings.Builder, out, stdout io.Writer) error {
	var report *explainReport
	work := func() error {
		if f.json != "" {
			report = e.report()
		}
		return e.print()
	}
	if err := interruptible(ctx, work); err != nil {
		return err
	}
	var picture bytes.Buffer
	if f.out != "" {
		if err := e.draw(&picture, f.out); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(out, text.String()); err != nil {
		return err
	}
	err := cli.Save("-o", f.out, stdout, func(w io.Writer) error { _, err := picture.WriteTo(w); return err })
	if err != nil {
		return err
	}
	return cli.SaveJSON("-json", f.json, stdout, report)
}

// interruptible does work until ctx ends. Then it returns at once; work, which only computes, goes on
// and its result is dropped.
func interruptible(ctx context.Context, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// An explanation prints a choice and its reasons.
type explanation struct {
	q     question
	ch    *ringo.Choice
	bytes int64 // of the larger buffer of a rank
	w     io.Writer
	steps func(io.Writer, sched.Schedule)
	drawn bool // -picture asks for a picture
	auto  bool // print steps and picture only where they are short
}

func (e *explanation) where() string {
	where := "one host"
	if e.q.node > 0 && e.q.node < e.q.ranks {
		where = fmt.Sprintf("hosts of %d", e.q.node)
	}
	if e.q.gpus != nil {
		where += ", GPU memory"
	}
	return where
}

func (e *explanation) print() error {
	w, ch, q := e.w, e.ch, e.q
	fmt.Fprintf(w, "%s of %s (%d %v a block) on %d ranks of %s\n", q.Name, bench.FormatSize(e.bytes),
		q.Count(e.bytes, q.ranks, q.typ.Size()), q.typ, q.ranks, e.where())
	fmt.Fprintf(w, "algorithm: %s\nbecause:   %s\n", ch.Algo, ch.Reason)
	if ch.Blocks > 0 {
		fmt.Fprintf(w, "blocks:    up to %d of a GPU: %s\n", ch.Blocks, ch.WhyBlocks)
	}
	switch {
	case ch.Lingers:
		fmt.Fprintln(w, "moves:     by bulk copies, in a kernel that it shares with calls just before and after")
	case ch.Bulk:
		fmt.Fprintln(w, "moves:     by bulk copies")
	}
	if ch.Phases > 0 {
		fmt.Fprintf(w, "phases:    %d kernels one after the other, inside hosts and across\n", ch.Phases)
	}
	if len(ch.Others) > 0 {
		fmt.Fprintf(w, "others:    %s (-algo)\n", strings.Join(ch.Others, ", "))
	}
	e.alternatives()
	if ch.Schedule == nil {
		fmt.Fprintf(w, "steps:     none, but: %s\n", ch.Carrier)
		return nil
	}
	if err := e.schedule(ch.Schedule); err != nil || ch.Then == nil {
		return err
	}
	fmt.Fprintln(w, "\nthen:      what was combined is gathered")
	return e.schedule(ch.Then)
}

func (e *explanation) schedule(s sched.Schedule) error {
	printCost(e.w, s, e.bytes)
	if e.drawn || e.auto {
		if err := printPicture(e.w, s, e.drawn); err != nil {
			return err
		}
	}
	e.steps(e.w, s)
	return nil
}

// alternatives prints the time of all algorithms under the model, and the sizes at which the model would choose
// another one.
func (e *explanation) alternatives() {
	list := e.ch.Alternatives()
	if len(list) == 0 || list[0].Time == 0 {
		return
	}
	fmt.Fprintf(e.w, "model:     %s", e.ch.Model())
	switch at := e.ch.Modelled; {
	case at > 0 && at != e.ch.Bytes:
		fmt.Fprintf(e.w, ", at %s", e.size(at))
	case at == 0 && e.ch.Algo != e.q.algo:
		fmt.Fprint(e.w, "; the choice is by measurement, which goes before")
	}
	fmt.Fprintln(e.w)
	var took float64
	for _, a := range list {
		if a.Chosen {
			took = a.Time
		}
	}
	for _, a := range list {
		mark := ""
		switch {
		case a.Chosen && a.Algo == e.q.algo:
			mark = "   <- asked for"
		case a.Chosen:
			mark = "   <- chosen"
		case a.Time > 0 && took > 0:
			mark = fmt.Sprintf("   %.3g times as long", a.Time/took)
		}
		if a.Time == 0 {
			fmt.Fprintf(e.w, "           %-10s    not timed%s\n", a.Algo, mark)
			continue
		}
		fmt.Fprintf(e.w, "           %-10s %12.2f us%s\n", a.Algo, a.Time*1e6, mark)
	}
	if e.q.algo != "" {
		return // -algo has chosen: there is no choice to compare
	}
	for i, d := range e.ch.Differences() {
		head := ""
		if i == 0 {
			head = "differ:"
		}
		at, upTo := e.size(d.From), ""
		if d.To != d.From {
			at, upTo = at+" to "+e.size(d.To), "up to "
		}
		fmt.Fprintf(e.w, "%-10s at %s %s is chosen, where by the model %s takes %s%.0f %% less\n", head, at, d.Chosen,
			d.Model, upTo, 100*d.Less)
	}
}

// size prints the size of a rank's larger buffer, where Count elements are block bytes.
func (e *explanation) size(block int) string {
	return bench.FormatSize(int64(block) * int64(e.q.Kind.Shares(e.q.ranks)))
}

// draw writes the picture of the schedule for a file, and of the second schedule below if there is one.
func (e *explanation) draw(w io.Writer, file string) error {
	if e.ch.Schedule == nil {
		return cli.Usagef("-o %s: %s is one kernel or copy and has no steps to draw; -algo names another algorithm",
			file, e.ch.Algo)
	}
	s := e.ch.Schedule
	if e.ch.Then != nil {
		s = sched.Then(s, e.ch.Then)
	}
	p, err := newPicture(s)
	if err != nil {
		return cli.Usagef("-o %s: %v", file, err)
	}
	title := fmt.Sprintf("%s by %s, %d ranks of %s", e.q.Name, e.ch.Algo, e.q.ranks, e.where())
	return p.svg(w, title)
}
