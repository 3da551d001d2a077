package command

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sim"
)

const simHelp = `usage: ringo sim COLLECTIVE [flags]

Times a collective on paper: every step of every rank under a model of links
and cores. A hundred thousand ranks take seconds. Data is moved piece by piece.
Where all pieces would take more than 20 million steps only the first are
carried out, at least 8, and a line says so.

  -np N          ranks (default 1024)
  -s SIZE,...    bytes of the larger buffer of a rank (default 1G)
  -d TYPE        element type (default float32)
  -r ROOT        root of broadcast, reduce, gather, scatter (default 0)
  --algo A,...   algorithms to compare; all for every one (default: the one that
                 would be chosen)
  --net NET      shm, tcp, ethernet25, ethernet100, ndr, nvlink (default ndr)
  --node N       ranks of a node (default: the net's own)
  --weak R,..:F  ports of these ranks between nodes are F times slower: 5:10 is
                 a slow link, 0,1:2 a dead card whose rank shares another's
  --parts        what the time is made of (ten runs more)
  --exact        carry out all steps, however many
  --timeout D    give up after this time, such as 30s (default: never)

Examples
  ringo sim allreduce -np 10240 -s 1G --algo ring --net nvlink
  ringo sim allreduce -np 8 -s 8,64K,1M,64M --algo all --net shm
  ringo sim broadcast -np 100000 -s 1K --algo tree
`

func runSim(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("sim")
	ranks, root := fs.Int("np", 1024, ""), fs.Int("r", 0, "")
	sizes, typ := fs.String("s", "1G", ""), fs.String("d", "float32", "")
	algo, net := fs.String("algo", "", ""), fs.String("net", "ndr", "")
	node, parts := fs.Int("node", 0, ""), fs.Bool("parts", false, "")
	weak := fs.String("weak", "", "")
	exact, timeout := fs.Bool("exact", false, ""), fs.Duration("timeout", 0, "")
	names, err := cli.Parse(fs, args)
	if err != nil {
		return err
	}
	model, ok := sim.Presets[*net]
	if !ok {
		return cli.Unknown("net", *net, slices.Sorted(maps.Keys(sim.Presets)))
	}
	if *node > 0 {
		model.NodeRanks = *node
	}
	if *weak != "" {
		if model.Weak, model.WeakBy, err = weakRanks(*weak, *ranks); err != nil {
			return err
		}
	}
	if *timeout < 0 {
		return cli.Usagef("--timeout %v: cannot be negative", *timeout)
	}
	if *timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, *timeout, fmt.Errorf("took longer than %v (--timeout)", *timeout))
		defer cancel()
	}
	q, err := ask(names, *ranks, *root, *node, *typ, "")
	if err != nil {
		return err
	}
	q.node = model.NodeRanks // the net's own, where the flag says nothing
	fmt.Fprintf(stdout, "# %s on %d ranks, %s", q.Name, *ranks, model.Name)
	if n := model.NodeRanks; n > 0 && n < *ranks {
		fmt.Fprintf(stdout, ", nodes of %d", n)
	}
	fmt.Fprintf(stdout, "\n#%11s  %-9s %12s %8s %8s %12s %11s %11s %9s\n", "size (B)", "algorithm", "time (us)", "algbw", "busbw", "messages", "intra (GB)", "inter (GB)", "took")
	run := simulation{ctx: ctx, model: model, parts: *parts, exact: *exact, stdout: stdout, progress: newProgress(stderr)}
	for _, text := range strings.Split(*sizes, ",") {
		bytes, err := bench.ParseSize(text)
		if err != nil {
			return cli.Usagef("%v", err)
		}
		algos, err := q.algorithms(*algo, bytes, model)
		if err != nil {
			return err
		}
		for _, a := range algos {
			if err := run.row(q, a, bytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// weakRanks reads --weak.
func weakRanks(text string, ranks int) (list []int, by float64, err error) {
	names, factor, _ := strings.Cut(text, ":")
	if by, err = strconv.ParseFloat(factor, 64); err != nil || !(by >= 1) {
		return nil, 0, cli.Usagef("--weak %s: want ranks and how many times slower they are, such as 0,1:2", text)
	}
	for _, name := range strings.Split(names, ",") {
		r, err := strconv.Atoi(name)
		if err != nil || r < 0 || r >= ranks {
			return nil, 0, cli.Usagef("--weak %s: %q is no rank of %d", text, name, ranks)
		}
		list = append(list, r)
	}
	return list, by, nil
}

// algorithms lists what --algo asks for, for one size.
func (q question) algorithms(list string, bytes int64, model sim.Model) ([]string, error) {
	ch, err := q.choice(bytes)
	if err != nil {
		return nil, cli.Usagef("%v", err)
	}
	switch list {
	case "", "auto":
		return q.quickest(ch, bytes, model)
	case "all":
		return append([]string{ch.Algo}, ch.Others...), nil
	}
	algos := strings.Split(list, ",")
	for _, a := range algos {
		if known := append([]string{ch.Algo}, ch.Others...); !slices.Contains(known, a) {
			return nil, cli.Unknown("algorithm of "+q.Name, a, known)
		}
	}
	return algos, nil
}

// quickest is what would be chosen: on several nodes of at most 64 ranks in all the algorithm
// that takes the least time under the model, as a communicator chooses by the model of its own
// network.
func (q question) quickest(ch ringo.Choice, bytes int64, model sim.Model) ([]string, error) {
	best, least := ch.Algo, math.Inf(1)
	if model.NodeRanks > 0 && model.NodeRanks < q.ranks && q.ranks <= 64 {
		for _, q.algo = range append([]string{ch.Algo}, ch.Others...) {
			one, err := q.choice(bytes)
			if err != nil {
				return nil, err
			}
			t, err := sim.Estimate(one.Schedule, model, bytes)
			if err != nil {
				return nil, err
			}
			if t < 0.99*least {
				best, least = q.algo, t
			}
		}
	}
	return []string{best}, nil
}

// A simulation prints rows.
type simulation struct {
	ctx          context.Context
	model        sim.Model
	parts, exact bool
	stdout       io.Writer
	progress     *progress
}

// simSteps is how many steps a row takes at most, unless 8 pieces take more: some
// seconds. Tests change it.
var simSteps = 20_000_000

// row times one algorithm at one size.
func (x *simulation) row(q question, algo string, bytes int64) error {
	q.algo = algo
	ch, err := q.choice(bytes)
	if err != nil {
		return err
	}
	o := sim.Options{Progress: func(share float64) { x.progress.show(fmt.Sprintf("%s of %s", ch.Algo, bench.FormatSize(bytes)), share) }}
	defer x.progress.clear()
	if !x.exact {
		steps := 0
		for r := range q.ranks {
			steps += ch.Schedule.Len(sched.Rank(r))
		}
		o.MaxRounds = max(1, simSteps/max(1, steps))
	}
	start := time.Now()
	res, err := sim.Run(x.ctx, ch.Schedule, x.model, bytes, o)
	if err != nil {
		return fmt.Errorf("%s of %s: %w", ch.Algo, bench.FormatSize(bytes), err)
	}
	took := time.Since(start).Round(time.Millisecond)
	bw := 0.0
	if res.Time > 0 {
		bw = float64(bytes) / res.Time / 1e9
	}
	x.progress.clear()
	fmt.Fprintf(x.stdout, "%12d  %-9s %12.2f %8.2f %8.2f %12d %11.4g %11.4g %9v\n", bytes, ch.Algo, res.Time*1e6, bw, bw*q.Bus(q.ranks),
		res.Messages, float64(res.IntraBytes)/1e9, float64(res.InterBytes)/1e9, took)
	if n := len(res.Ends); n < res.Rounds {
		fmt.Fprintf(x.stdout, "#            from the first %d of %d pieces of the data; --exact carries out all\n", n, res.Rounds)
	}
	if !x.parts {
		return nil
	}
	p, err := sim.Decompose(x.ctx, ch.Schedule, x.model, bytes, o)
	if err != nil {
		return fmt.Errorf("%s of %s: %w", ch.Algo, bench.FormatSize(bytes), err)
	}
	x.progress.clear()
	fmt.Fprintf(x.stdout, "#            of which: latency %.2f, overhead %.2f, wire %.2f, shared %.2f, compute %.2f us\n",
		p.Latency*1e6, p.Overhead*1e6, p.Wire*1e6, p.Shared*1e6, p.Compute*1e6)
	return nil
}
