package command

import (
	"cmp"
	"context"
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
  -np N          processes to start (default 1); 0: be one of a job that "ringo
                 run", mpirun, torchrun or srun has started
  -g N           ranks of each process, a GPU each (default all there are, 4
                 emulated)
  -b SIZE        first size, of the larger buffer of a rank (default 8)
  -e SIZE        last size (default 1G; 4K emulated)
  -f FACTOR      each size is FACTOR times the one before (default 2)
  -d TYPE        element type (default bfloat16)
  -device D      cuda, or emu: GPUs that are emulated, whose times mean nothing
                 (default cuda)
  -transport T   as for ringo bench
  -G N           operations of a graph, at most (default 20; 1 emulated)
  -blocks N,...  blocks of the GPU that are tried where there is work for more
                 (default 8,16,24,32,48,64,96; 2 emulated); 0: none. A row holds
                 the fewest that lose at most 3 % of the bandwidth at all of its
                 sizes, and those that lose 10 %, for the policy efficiency
  -time D        of all measurements, about (default 1m)
  -unchecked     emu: faster, without looking for races
  -o FILE        write the plan; rows that the file has for other numbers of
                 ranks and other collectives are kept

In the table, * is chosen for memory as it comes, + for registered memory where
that is another. Another algorithm counts as quicker from 3 % on, of operations
that take 500 us from 1 %.

Exit status: 0 if all went well, 2 for a mistake in the command line, 1
otherwise.
`

func runTune(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("tune")
	cfg := &tune.Config{Stdout: stdout, Stderr: stderr}
	fs.IntVar(&cfg.Processes, "np", 1, "")
	fs.IntVar(&cfg.PerProcess, "g", 0, "")
	first, last, typ := fs.String("b", "8", ""), fs.String("e", "", ""), fs.String("d", "bfloat16", "")
	fs.Float64Var(&cfg.Factor, "f", 2, "")
	fs.StringVar(&cfg.Device, "device", "cuda", "")
	fs.StringVar(&cfg.Transport, "transport", "auto", "")
	fs.IntVar(&cfg.Graph, "G", 0, "")
	blocks := fs.String("blocks", "", "")
	fs.DurationVar(&cfg.Time, "time", time.Minute, "")
	fs.BoolVar(&cfg.Unchecked, "unchecked", false, "")
	fs.StringVar(&cfg.Out, "o", "", "")
	names, err := cli.Parse(fs, args)
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return tuneDevice(cfg, last) },
		func() error { return tuneBlocks(cfg, *blocks) },
		func() error { return tuneCollectives(cfg, names) },
		func() error { return tuneSizes(cfg, *first, *last) },
		func() error { return tuneType(cfg, *typ) },
		func() error { return tuneNumbers(cfg) },
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

// tuneDevice checks the device and sets the defaults that depend on it.
func tuneDevice(cfg *tune.Config, last *string) error {
	most, graph := "1G", 20
	switch cfg.Device {
	case "cuda":
	case "emu":
		most, graph = "4K", 1
	case "host":
		return cli.Usagef("-device host: a plan is for GPU memory")
	default:
		return cli.Unknown("device", cfg.Device, []string{"cuda", "emu"})
	}
	*last = cmp.Or(*last, most)
	cfg.Graph = cmp.Or(cfg.Graph, graph)
	return nil
}

// tuneBlocks parses the numbers of blocks to try: "" for the device's default, "0" for none.
func tuneBlocks(cfg *tune.Config, list string) error {
	if list == "" {
		if list = "8,16,24,32,48,64,96"; cfg.Device == "emu" {
			list = "2"
		}
	}
	if list == "0" {
		return nil
	}
	for _, s := range strings.Split(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 128 {
			return cli.Usagef("-blocks %s: want numbers from 1 to 128, or 0 for none", list)
		}
		cfg.Blocks = append(cfg.Blocks, n)
	}
	slices.Sort(cfg.Blocks)
	cfg.Blocks = slices.Compact(cfg.Blocks)
	return nil
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

func tuneSizes(cfg *tune.Config, first, last string) (err error) {
	if cfg.Min, err = bench.ParseSize(first); err == nil {
		cfg.Max, err = bench.ParseSize(last)
	}
	if err == nil && cfg.Factor == 0 {
		return cli.Usagef("-f 0: the factor must be above 1")
	}
	if err == nil {
		_, err = cfg.Sizes()
	}
	if err != nil {
		return cli.Usagef("%v", err)
	}
	return nil
}

func tuneType(cfg *tune.Config, name string) (err error) {
	cfg.Type, err = parseType(name)
	return err
}

func tuneNumbers(cfg *tune.Config) error {
	switch {
	case cfg.Processes < 0 || cfg.Processes > 1024:
		return cli.Usagef("-np %d: want 1 to 1024 processes, or 0 to join a job that a launcher has started", cfg.Processes)
	case cfg.PerProcess < 0 || cfg.PerProcess > 1024:
		return cli.Usagef("-g %d: want 1 to 1024 ranks a process", cfg.PerProcess)
	case cfg.Graph < 0 || cfg.Graph > 10000:
		return cli.Usagef("-G %d: want 1 to 10000 operations in a graph", cfg.Graph)
	case cfg.Time <= 0:
		return cli.Usagef("-time %v: want more than 0", cfg.Time)
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
	if cfg.Processes*cfg.PerProcess == 1 {
		return cli.Usagef("one rank has nothing to choose: give -g or -np")
	}
	return nil
}
