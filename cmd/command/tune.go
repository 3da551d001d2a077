package command

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/bench/tune"
	"github.com/ringo-go/ringo/internal/cli"
)

// tuneHelp is what "ringo tune -h" prints.
const tuneHelp = `usage: ringo tune [COLLECTIVE...] [flags]

Measures every algorithm that can carry out a collective on GPU memory, at every
size, and writes a plan: a table that says up to which size each one is chosen.
RINGO_PLAN=FILE or Config.Plan uses it; rank 0's plan counts for all ranks.

Examples
  ringo tune -o h200.plan
  ringo tune allreduce -g 2 -e 64M -f 4
  ringo tune -device emu -g 2 allreduce

  COLLECTIVE     allreduce allgather reducescatter broadcast reduce alltoall
                 gather scatter, or all (default all)
{np g b e f d device transport G blocks time unchecked o}

In the table, * is chosen for memory as it comes, + for registered memory where
that is another. Another algorithm counts as quicker from 3 % on, of operations
that take 500 us from 1 %.

Exit status: 0 if all went well, 2 for a mistake in the command line, 1
otherwise.
`

func runTune(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("tune")
	cfg := &tune.Config{Processes: 1, Device: "cuda", Transport: "auto", Time: time.Minute, Type: ringo.BFloat16,
		Sweep: bench.Sweep{Min: 8, Factor: 2}, Stdout: stdout, Stderr: stderr}
	cli.Int(fs, &cfg.Processes, 0, 1024, "1 to 1024 processes, or 0 to join a job that a launcher has started",
		"np `N` processes to start (default 1); 0: be one of a job that \"ringo run\", mpirun, torchrun or srun has "+
			"started")
	cli.Int(fs, &cfg.PerProcess, 1, 1024, "1 to 1024 ranks a process", "g `N` ranks of each process, a GPU "+
		"each (default all there are, 4 emulated)")
	sizeFlag(fs, &cfg.Min, "b `SIZE` first size, of the larger buffer of a rank (default 8)")
	sizeFlag(fs, &cfg.Max, "e `SIZE` last size (default 1G; 4K emulated)")
	typeFlag(fs, &cfg.Type, "d `TYPE` element type (default bfloat16)")
	cli.Float(fs, &cfg.Factor, func(x float64) bool { return x > 1 && x < 1e9 }, "a factor, which must be above 1",
		"f `FACTOR` each size is FACTOR times the one before (default 2)")
	cli.Word(fs, &cfg.Device, "device", []string{"cuda", "emu"}, "device `D` cuda, or emu: GPUs that are "+
		"emulated, whose times mean nothing (default cuda)")
	cli.Var(fs, func(list string) error {
		for _, name := range strings.Split(list, ",") {
			if _, err := cli.OneOf("transport", name, values("tune", "transport")); err != nil {
				return err
			}
		}
		cfg.Transport = list
		return nil
	}, func() string { return cfg.Transport }, "transport `T` as for ringo bench")
	cli.Int(fs, &cfg.Graph, 1, 10000, "1 to 10000 operations in a graph", "G `N` operations of a graph, at "+
		"most (default 20; 1 emulated)")
	blocks := []int(nil)
	cli.Var(fs, func(text string) (err error) { blocks, err = tuneBlocks(text); return err },
		func() string { return "" }, "blocks `N,...` blocks of the GPU that are tried where there is work "+
			"for more (default 8,16,24,32,48,64,96; 2 emulated); 0: none. A row holds the fewest that lose at most 3 % "+
			"of the bandwidth at all of its sizes, and those that lose 10 %, for the policy efficiency")
	cli.Duration(fs, &cfg.Time, cli.Moment, "time `D` of all measurements, about (default 1m)")
	fs.BoolVar(&cfg.Unchecked, "unchecked", false, "emu: faster, without looking for races")
	fs.StringVar(&cfg.Out, "o", "", "`FILE` write the plan; rows that the file has for other numbers of ranks "+
		"and other collectives are kept")
	names, err := cli.Parse(fs, args)
	if err != nil {
		return err
	}
	cfg.Blocks = blocks
	if cfg.Table, err = cli.Outputs(stdout, cli.Output{Flag: "-o", File: cfg.Out}); err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return tuneCollectives(cfg, names) },
		func() error { return tuneSizes(cfg, cli.Given(fs, "e")) },
		func() error { return tuneRanks(cfg) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	again := slices.DeleteFunc(slices.Clone(args), func(s string) bool { return s == "--" })
	cfg.Command = append([]string{self, "tune"}, again...)
	return tune.Run(ctx, cfg)
}

// tuneBlocks parses the numbers of blocks to try, "0" for none.
func tuneBlocks(list string) (blocks []int, err error) {
	if list == "0" {
		return []int{}, nil
	}
	for _, s := range strings.Split(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > mostBlocks {
			return nil, errors.New("want numbers from 1 to 128, or 0 for none")
		}
		blocks = append(blocks, n)
	}
	slices.Sort(blocks)
	return slices.Compact(blocks), nil
}

func tuneCollectives(cfg *tune.Config, names []string) error {
	if len(names) == 0 {
		names = []string{"all"}
	}
	for _, name := range names {
		if strings.EqualFold(name, "all") {
			cfg.Collectives = slices.DeleteFunc(slices.Clone(bench.Collectives),
				func(c bench.Collective) bool { return c.Kind == ringo.KindSend })
			return nil
		}
		coll, err := bench.Find(name)
		if err != nil {
			return err
		}
		if coll.Kind == ringo.KindSend {
			return cli.Usagef("sendrecv has one algorithm")
		}
		if !slices.ContainsFunc(cfg.Collectives, func(c bench.Collective) bool { return c.Kind == coll.Kind }) {
			cfg.Collectives = append(cfg.Collectives, coll)
		}
	}
	return nil
}

// tuneSizes sets the defaults that depend on the device, and checks the sizes.
func tuneSizes(cfg *tune.Config, last bool) error {
	most, graph, blocks := int64(1<<30), 20, []int{8, 16, 24, 32, 48, 64, 96}
	if cfg.Device == "emu" {
		most, graph, blocks = 4<<10, 1, []int{2}
	}
	if cfg.Blocks == nil {
		cfg.Blocks = blocks
	}
	if cfg.Graph = cmp.Or(cfg.Graph, graph); !last {
		cfg.Max = max(most, cfg.Min)
	}
	if _, err := cfg.Sizes(); err != nil {
		return cli.Usagef("%v", err)
	}
	return nil
}

// tuneRanks sets the GPUs of a process where -g does not: one if there are several processes, else all.
func tuneRanks(cfg *tune.Config) (err error) {
	switch {
	case cfg.PerProcess > 0:
	case cfg.Processes != 1:
		cfg.PerProcess = 1
	default:
		if cfg.PerProcess, err = tune.GPUs(cfg.Device); err != nil {
			return err
		}
	}
	if n := cfg.Processes * cfg.PerProcess; n > 4096 {
		return cli.Usagef("-np %d with -g %d: %d ranks, want at most 4096 on a machine", cfg.Processes, cfg.PerProcess, n)
	}
	if cfg.Processes*cfg.PerProcess == 1 {
		return cli.Usagef("one rank has nothing to choose: give -g or -np")
	}
	return nil
}
