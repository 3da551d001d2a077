package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/metrics"
	"slices"
	"strings"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sched/sim"
)

// simHelp is what "ringo sim -h" prints.
const simHelp = `usage: ringo sim COLLECTIVE [flags]
       ringo sim -net list

Times a collective on paper: every step of every rank under a model of links
and cores. A hundred thousand ranks take seconds. Data is moved piece by piece.
Where all pieces would take more than 20 million steps only the first are
carried out, at least 8, and a line says so. Ctrl-C ends it.

Examples
  ringo sim allreduce -np 10240 -s 1G -algo ring -net nvlink
  ringo sim allreduce -np 8 -s 8,64K,1M,64M -algo all -net shm
  ringo sim allreduce -np 512 -bw 400G -latency 1us -cards 4 -net nvlink
  ringo sim allreduce -np 4 -s 1M -net shm -trace both.json -over steps.json

{np s d r algo parts exact timeout json trace over plot}

Links
{net node bw cards latency weak}
`

func runSim(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("sim")
	run := simulation{ctx: ctx, free: freeMemory(), progress: cli.NewProgress(stderr), sizes: []int64{1 << 30}}
	ranks, root, typ, timeout := 1024, 0, ringo.Float32, time.Duration(0)
	net := netFlags{net: "ndr"}
	paperRanks(fs, &ranks, &root, &net.node, "ranks of a node (default: the net's own)")
	sizesFlag(fs, &run.sizes, "s `SIZE,...` bytes of the larger buffer of a rank (default 1G)")
	typeFlag(fs, &typ, "d `TYPE` element type (default float32)")
	words := append([]string{"all"}, ringo.Algorithms()...)
	cli.List(fs, &run.algos, func(word string) (string, error) { return cli.OneOf("algorithm", word, words) },
		func(word string) string { return word }, "algo `A,...` algorithms to compare; all for every one (default: the "+
			"one that takes the least time in this model)")
	fs.BoolVar(&run.parts, "parts", false, "what the time is made of (ten runs more)")
	fs.BoolVar(&run.exact, "exact", false, "carry out all steps, however many")
	cli.Duration(fs, &timeout, 0, "timeout `D` give up after this time, such as 30s (default: never)")
	file := fs.String("json", "", "`FILE` save the rows and the model; - writes them here instead of text")
	plot := fs.String("plot", "", "`FILE` draw time, bandwidth and ratios: .svg")
	traced := fs.String("trace", "", "`FILE` save when each rank does each step, as bench -trace does")
	over := fs.String("over", "", "`TRACE` lay that over a trace of bench: it begins where the last call of the same "+
		"collective, algorithm and size does")
	net.register(fs)
	names, err := cli.Parse(fs, args)
	if err != nil {
		return err
	}
	if net.net == "list" {
		return listNets(stdout)
	}
	if run.q, err = ask(names, ranks, root, net.node, typ, ""); err != nil {
		return err
	}
	if run.model, err = net.model(ranks); err != nil {
		return err
	}
	run.q.node = run.model.NodeRanks // the net's own without -node
	run.text, err = cli.Outputs(stdout, cli.Output{Flag: "-json", File: *file}, cli.Output{Flag: "-trace", File: *traced},
		cli.Output{Flag: "-plot", File: *plot, Ends: []string{".svg"}})
	if err != nil {
		return err
	}
	if run.report, err = newSimReport(run.q, run.model); err != nil {
		return err
	}
	if run.trace, err = newSimTrace(*traced, *over); err != nil {
		return err
	}
	if err := run.check(); err != nil {
		return err
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		run.ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("took longer than %v (-timeout)", timeout))
		defer cancel()
	}
	if err := run.all(); err != nil {
		return err
	}
	return run.save(*traced, *plot, *file, stdout)
}

// save has the trace, the plot and the report written, as far as there are files for them.
func (x *simulation) save(traced, plot, file string, stdout io.Writer) error {
	if x.trace != nil {
		if err := cli.Save("-trace", traced, stdout, x.trace.whole.Write); err != nil {
			return err
		}
	}
	drawn := func(w io.Writer) error { return x.report.plot(w, x.model.Name) }
	if err := cli.Save("-plot", plot, stdout, drawn); err != nil {
		return err
	}
	return cli.SaveJSON("-json", file, stdout, x.report)
}

// mostPieces is the most pieces that -exact carries out: the time of each is kept.
const mostPieces = 1 << 24

// simBytes is the memory that a simulation takes for a rank, with what compares algorithms, about.
const simBytes = 4 << 10

// freeMemory is cli.Free. Tests change it.
var freeMemory = cli.Free

// memory is the bytes that this process has from the system.
func memory() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}

// check refuses what this machine has no memory for, and algorithms that the collective does not have.
func (x *simulation) check() error {
	if err := cli.Fits(int64(x.q.ranks)*simBytes, "-np %d", x.q.ranks); err != nil {
		return err
	}
	for _, bytes := range x.sizes {
		if n := bytes / x.piece(); x.exact && n > mostPieces {
			return cli.Usagef("-exact: %s are %d pieces, and at most %d are carried out: leave it out or give a smaller -s",
				bench.FormatSize(bytes), n, mostPieces)
		}
		ch, err := x.q.choice(bytes)
		if err != nil {
			return cli.Usagef("%v", err)
		}
		for _, a := range x.algos {
			if known := append([]string{ch.Algo}, ch.Others...); a != "auto" && a != "all" && !slices.Contains(known, a) {
				return cli.Usagef("-algo: %v", cli.Unknown("algorithm of "+x.q.Name, a, known))
			}
		}
	}
	return nil
}

// A simulation times algorithms at sizes: it prints a row for each, and adds the row to its report.
type simulation struct {
	ctx          context.Context
	q            question
	model        sim.Model
	sizes        []int64
	algos        []string // those of -algo; none for the one with the least time
	parts, exact bool
	free         int64 // bytes of memory, as the simulation began
	text         io.Writer
	progress     *cli.Progress
	report       *simReport
	trace        *simTrace // nil without -trace
}

func (x *simulation) heading() {
	fmt.Fprintf(x.text, "# %s on %d ranks, %s", x.q.Name, x.q.ranks, x.model.Name)
	if n := x.model.NodeRanks; n > 0 && n < x.q.ranks {
		fmt.Fprintf(x.text, ", nodes of %d", n)
		if x.model.Inside != "" {
			fmt.Fprintf(x.text, " (inside: %s)", x.model.Inside)
		}
	}
	fmt.Fprintf(x.text, "\n#%11s  %-9s %12s %8s %8s %12s %11s %11s %9s\n", "size (B)", "algorithm", "time (us)", "algbw",
		"busbw", "messages", "intra (GB)", "inter (GB)", "took")
}

// all prints the heading, and times the algorithms at each size.
func (x *simulation) all() error {
	x.heading()
	for _, bytes := range x.sizes {
		if err := x.size(bytes); err != nil {
			return err
		}
	}
	return nil
}

// size times the algorithms at one size. The one with the least time is chosen.
func (x *simulation) size(bytes int64) error {
	ch, err := x.q.choice(bytes)
	if err != nil {
		return err
	}
	known := append([]string{ch.Algo}, ch.Others...)
	rows, auto := map[string]*simRow{}, len(x.algos) == 0
	for _, word := range x.algos {
		algos := []string{word}
		switch word {
		case "auto":
			algos, auto = nil, true
		case "all":
			algos = known
		}
		for _, a := range algos {
			if rows[a] != nil {
				continue
			}
			if rows[a], err = x.row(a, bytes); err != nil {
				return err
			}
		}
	}
	chosen, err := x.least(known, rows, bytes)
	if err == nil && auto && rows[chosen] == nil {
		rows[chosen], err = x.row(chosen, bytes)
	}
	if err == nil && rows[chosen] != nil {
		rows[chosen].Chosen = true
	}
	return err
}

// simSteps is the most steps that a row simulates, unless 8 pieces take more. So many
// take some seconds. Tests change it.
var simSteps = 20_000_000

// stepsOf is the number of steps of all ranks together.
func stepsOf(s sched.Schedule) (steps int) {
	for r := range s.Shape().Ranks {
		steps += s.Len(sched.Rank(r))
	}
	return steps
}

// rounds is how many pieces a row carries out.
func (x *simulation) rounds(s sched.Schedule) int {
	if x.exact {
		return 0
	}
	return max(1, simSteps/max(1, stepsOf(s)))
}

// run is one simulation of a choice's schedule.
func (x *simulation) run(ch *ringo.Choice, bytes int64, o sim.Options) (res sim.Result, err error) {
	err = x.watched(ch, bytes, &o, func(ctx context.Context) error {
		res, err = sim.Run(ctx, ch.Schedule, x.model, bytes, o)
		return err
	})
	return res, err
}

// watched calls f, which simulates with o, shows how far it is, and ends it when the machine is short of memory.
func (x *simulation) watched(ch *ringo.Choice, bytes int64, o *sim.Options, f func(context.Context) error) error {
	ctx, end := context.WithCancelCause(x.ctx)
	defer end(nil)
	what := fmt.Sprintf("%s of %s", ch.Algo, bench.FormatSize(bytes))
	o.Progress = func(share float64) {
		if used := memory(); x.free > 0 && used > x.free/2 { // what grows is copied
			end(cli.Usagef("-np %d: the pairs of ranks that talk have taken %d MiB of memory, and do not fit into what is free",
				x.q.ranks, used>>20))
		}
		x.progress.Show(what, share)
	}
	defer x.progress.Clear()
	if err := f(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// row times one algorithm at one size.
func (x *simulation) row(algo string, bytes int64) (*simRow, error) {
	q := x.q
	q.algo = algo
	ch, err := q.choice(bytes)
	if err != nil {
		return nil, err
	}
	o := sim.Options{MaxRounds: x.rounds(ch.Schedule)}
	var traced *modelled
	traced, o.Step = x.trace.begin(q, ch.Algo, bytes, ch.Schedule)
	start := time.Now()
	res, err := x.run(&ch, bytes, o)
	if err != nil {
		return nil, err
	}
	took := time.Since(start).Round(time.Millisecond)
	x.trace.end(traced)
	row := x.report.add(q, ch.Algo, bytes, &res)
	fmt.Fprintf(x.text, "%12d  %-9s %12.2f %8.2f %8.2f %12d %11.4g %11.4g %9v\n", bytes, ch.Algo, row.Time, row.AlgBW,
		row.BusBW,
		res.Messages, float64(res.IntraBytes)/1e9, float64(res.InterBytes)/1e9, took)
	if row.PiecesRun < row.Pieces {
		fmt.Fprintf(x.text, "#            from the first %d of %d pieces of the data; -exact carries out all\n",
			row.PiecesRun, row.Pieces)
	}
	if !x.parts {
		return row, nil
	}
	o.Step = nil
	var p sim.Parts
	err = x.watched(&ch, bytes, &o, func(ctx context.Context) error {
		p, err = sim.Decompose(ctx, ch.Schedule, x.model, bytes, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	row.Parts = &simParts{p.Latency * 1e6, p.Overhead * 1e6, p.Wire * 1e6, p.Shared * 1e6, p.Compute * 1e6}
	fmt.Fprintf(x.text, "#            of which: latency %.2f, overhead %.2f, wire %.2f, shared %.2f, compute %.2f us\n",
		row.Parts.Latency, row.Parts.Overhead, row.Parts.Wire, row.Parts.Shared, row.Parts.Compute)
	return row, nil
}

// An algorithm that no row is for is timed as a row is, of comparePieces pieces where that takes more than compareSteps
// steps, a second of simulation, and not at all where these take more.
const (
	compareSteps  = 5_000_000
	comparePieces = 8
)

// piece is the bytes of a piece.
func (x *simulation) piece() int64 {
	return max(1, int64(cmp.Or(x.model.SlotBytes, sim.DefaultSlotBytes)*(cmp.Or(x.model.Slots, sim.DefaultSlots)/2)))
}

// least is the known algorithm with the least time in this model, where rows are of some.
func (x *simulation) least(known []string, rows map[string]*simRow, bytes int64) (string, error) {
	best, least, skipped := known[0], math.Inf(1), []string(nil)
	if len(known) == 1 {
		return best, nil
	}
	for _, a := range known {
		t := 0.0
		if rows[a] != nil {
			t = rows[a].Time
		} else {
			q := x.q
			q.algo = a
			ch, err := q.choice(bytes)
			if err != nil {
				return "", err
			}
			res, err := x.run(&ch, bytes, sim.Options{MaxRounds: x.rounds(ch.Schedule), MaxSteps: compareSteps})
			if errors.Is(err, sim.ErrSteps) {
				res, err = x.run(&ch, bytes, sim.Options{MaxRounds: comparePieces, MaxSteps: compareSteps})
			}
			switch t = res.Time * 1e6; {
			case errors.Is(err, sim.ErrSteps):
				skipped = append(skipped, a)
				continue
			case err != nil:
				return "", err
			}
		}
		if t < least {
			best, least = a, t
		}
	}
	if len(skipped) > 0 {
		fmt.Fprintf(x.text, "#            not compared, for they have very many steps: %s (-algo %s)\n",
			strings.Join(skipped, ", "), skipped[0])
	}
	return best, nil
}
