package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/sched"
)

const explainHelp = `usage: ringo explain COLLECTIVE [flags]

Says which algorithm would carry out a collective, why, what else could be asked
for, how many blocks of a GPU it takes, what it costs, and prints the steps of
every rank.

  -np N          ranks (default 4)
  --node N       ranks of a host, for more than one host (default: all)
  -s SIZE        bytes of the larger buffer of a rank (default 1M)
  -d TYPE        element type (default float32)
  -r ROOT        root of broadcast, reduce, gather, scatter (default 0)
  --algo A       this algorithm instead of the one that would be chosen
  -deterministic reductions in order of rank, of floats
  --steps W      print the steps: auto (up to 8 ranks), all, none, or a rank

On GPU memory, for which none is needed here
  --device D     host (default), cuda, or emu
  --gpu NAME     of all ranks (default "NVIDIA H200")
  --path P       between GPUs: p2p (default), pcie, "host memory", bridge
  --registered   the memory is registered
  --plan FILE    of ringo tune (default: the built-in one)
  --policy P     how many blocks of the GPU: default, efficiency, or zero
  --max-blocks N, --min-blocks N
                 what it may have at most (default 128), and at least

Examples
  ringo explain allreduce -np 8 -s 1M
  ringo explain allreduce -np 4 --algo tree
  ringo explain allreduce -np 8 --node 4 -s 16M
  ringo explain broadcast -np 64 --steps 17
  ringo explain allreduce -np 4 -s 1M --device cuda
  ringo explain allgather -np 2 -s 64M --device cuda --registered --policy zero
`

// A question is what explain and sim are asked about.
type question struct {
	bench.Collective
	ranks, root int
	node        int // ranks of a host, 0 for all
	typ         ringo.DataType
	algo        string
	order       string      // ringo.Config.Deterministic
	gpus        *ringo.GPUs // nil for host memory
	plan        string      // file
	policy      string      // ringo.Config.BlockPolicy
	most, least int         // MaxBlocks and MinBlocks
}

// choice answers for a size as bench counts it.
func (q question) choice(size int64) (ringo.Choice, error) {
	width := q.typ.Size()
	bytes, cfg := q.Count(size, q.ranks, width)*width, ringo.Config{
		Algo: q.algo, Plan: q.plan, Deterministic: q.order, BlockPolicy: q.policy, MaxBlocks: q.most, MinBlocks: q.least,
	}
	if q.gpus != nil {
		return ringo.ExplainDevice(q.Kind, q.ranks, q.node, bytes, q.root, *q.gpus, cfg)
	}
	return ringo.Explain(q.Kind, q.ranks, q.node, bytes, q.root, cfg)
}

// ask checks the parts of a question that explain and sim have in common.
func ask(names []string, ranks, root, node int, typ, algo string) (question, error) {
	q := question{ranks: ranks, root: root, node: node, algo: algo}
	if len(names) != 1 {
		return q, cli.Usagef("which collective? give one of %s", strings.Join(bench.Names(), ", "))
	}
	var err error
	if q.Collective, err = bench.Find(names[0]); err != nil {
		return q, err
	}
	if q.typ, err = parseType(typ); err != nil {
		return q, err
	}
	if algo == "auto" {
		q.algo = ""
	}
	switch known := ringo.Algorithms(); {
	case q.algo != "" && !slices.ContainsFunc(known, func(a string) bool { return strings.EqualFold(a, q.algo) }):
		return q, cli.Unknown("algorithm", algo, known)
	case q.Kind == ringo.KindSend:
		return q, cli.Usagef("sendrecv is one message to the next rank and has no algorithm")
	case ranks < 1:
		return q, cli.Usagef("-np %d: want at least 1", ranks)
	case node < 0:
		return q, cli.Usagef("--node %d: cannot be negative", node)
	case root < 0 || root >= ranks:
		return q, cli.Usagef("-r %d: the ranks are 0 to %d", root, ranks-1)
	}
	return q, nil
}

func runExplain(_ context.Context, args []string, stdout, _ io.Writer) error {
	fs := flags("explain")
	ranks, root := fs.Int("np", 4, ""), fs.Int("r", 0, "")
	size, typ := fs.String("s", "1M", ""), fs.String("d", "float32", "")
	algo, steps := fs.String("algo", "", ""), fs.String("steps", "auto", "")
	node := fs.Int("node", 0, "")
	device, plan := fs.String("device", "host", ""), fs.String("plan", "", "")
	ordered := fs.Bool("deterministic", false, "")
	policy, most, least := fs.String("policy", "", ""), fs.Int("max-blocks", 0, ""), fs.Int("min-blocks", 0, "")
	var gpus ringo.GPUs
	fs.StringVar(&gpus.Name, "gpu", "", "")
	fs.StringVar(&gpus.Path, "path", "", "")
	fs.BoolVar(&gpus.Registered, "registered", false, "")
	names, err := cli.Parse(fs, args)
	if err != nil {
		return err
	}
	q, err := ask(names, *ranks, *root, *node, *typ, *algo)
	if err != nil {
		return err
	}
	q.policy, q.most, q.least = *policy, *most, *least
	if *ordered {
		q.order = "rank order"
	}
	switch *device {
	case "cuda", "emu":
		if q.gpus, q.plan = &gpus, *plan; gpus.Name == "" && *device == "emu" {
			gpus.Name = "Emulated GPU"
		}
	case "host", "auto":
		if gpus != (ringo.GPUs{}) || *plan != "" || *policy != "" || *most != 0 || *least != 0 {
			return cli.Usagef("--gpu, --path, --registered, --plan, --policy and numbers of blocks are for GPU memory: give --device cuda")
		}
	default:
		return cli.Unknown("device", *device, []string{"host", "cuda", "emu"})
	}
	bytes, err := bench.ParseSize(*size)
	if err != nil {
		return cli.Usagef("%v", err)
	}
	which, err := parseSteps(*steps, *ranks)
	if err != nil {
		return err
	}
	ch, err := q.choice(bytes)
	if err != nil {
		return cli.Usagef("%v", err)
	}
	where := "one host"
	if *node > 0 && *node < *ranks {
		where = fmt.Sprintf("hosts of %d", *node)
	}
	if q.gpus != nil {
		where += ", GPU memory"
	}
	fmt.Fprintf(stdout, "%s of %s (%d %v a block) on %d ranks of %s\n", q.Name, bench.FormatSize(bytes), q.Count(bytes, *ranks, q.typ.Size()), q.typ, *ranks, where)
	fmt.Fprintf(stdout, "algorithm: %s\nbecause:   %s\n", ch.Algo, ch.Reason)
	if ch.Blocks > 0 {
		fmt.Fprintf(stdout, "blocks:    up to %d of a GPU: %s\n", ch.Blocks, ch.WhyBlocks)
		if ch.Bulk {
			fmt.Fprintln(stdout, "moves:     by bulk copies, on GPUs of compute capability 9.0 or newer")
		}
	}
	if len(ch.Others) > 0 {
		fmt.Fprintf(stdout, "others:    %s (--algo)\n", strings.Join(ch.Others, ", "))
	}
	if ch.Schedule == nil {
		fmt.Fprintln(stdout, "steps:     none; one kernel or copy engines do it at once")
		return nil
	}
	printCost(stdout, ch.Schedule, bytes)
	which(stdout, ch.Schedule)
	if ch.Then != nil {
		fmt.Fprintln(stdout, "\nthen:      what was combined is gathered")
		printCost(stdout, ch.Then, bytes)
		which(stdout, ch.Then)
	}
	return nil
}

// costRanks bounds the ranks for which the cost is counted, which takes time and
// memory by step.
const costRanks = 4096

func printCost(w io.Writer, s sched.Schedule, bytes int64) {
	shape := s.Shape()
	if shape.Ranks > costRanks {
		return
	}
	c, err := sched.CostOf(s, 8)
	if err != nil {
		fmt.Fprintf(w, "cost:      %v\n", err)
		return
	}
	chunk := float64(bytes) / float64(max(shape.In, shape.Out, 1))
	amount := func(chunks int) string { return bench.FormatSize(int64(float64(chunks)*chunk + 0.5)) }
	fmt.Fprintf(w, "cost:      %d messages one after another; the busiest rank has %d steps, sends %s, receives %s, combines %s\n",
		c.Hops, c.Steps, amount(c.Sent), amount(c.Received), amount(c.Reduced))
}

// parseSteps turns --steps into what prints the tables.
func parseSteps(s string, ranks int) (func(io.Writer, sched.Schedule), error) {
	all := func(w io.Writer, s sched.Schedule) { fmt.Fprintf(w, "\n%s", sched.Format(s)) }
	none := func(io.Writer, sched.Schedule) {}
	switch s {
	case "all":
		return all, nil
	case "none":
		return none, nil
	case "auto":
		if ranks <= 8 {
			return all, nil
		}
		return func(w io.Writer, _ sched.Schedule) {
			fmt.Fprintf(w, "steps:     of %d ranks: see them with --steps all, or --steps RANK\n", ranks)
		}, nil
	}
	var r int
	if _, err := fmt.Sscanf(s, "%d", &r); err != nil || r < 0 || r >= ranks {
		return nil, cli.Usagef("--steps %s: want auto, all, none, or a rank from 0 to %d", s, ranks-1)
	}
	return func(w io.Writer, s sched.Schedule) {
		fmt.Fprintf(w, "\nrank %d\n", r)
		for i := range s.Len(sched.Rank(r)) {
			fmt.Fprintf(w, "%5d  %v\n", i, s.At(sched.Rank(r), i))
		}
	}, nil
}
