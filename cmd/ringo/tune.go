package main

import (
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/bench/tune"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/kernels"
)

const tuneHelp = `usage: ringo tune [COLLECTIVE...] [flags]

Measures every algorithm that can carry out a collective on GPU memory, at every
size, and writes a plan: a table that says up to which size each one is chosen.
RINGO_PLAN=FILE or Config.Plan uses it; rank 0's plan counts for all ranks.

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
  --device D     cuda, or emu: GPUs that are emulated, whose times mean nothing
                 (default cuda)
  --transport T  as for ringo bench
  -G N           operations of a graph, at most (default 20; 1 emulated)
  --time D       of all measurements, about (default 1m)
  -unchecked     emu: faster, without looking for races
  -o FILE        write the plan; rows that the file has for other numbers of
                 ranks and other collectives are kept

In the table, * is chosen for memory as it comes, + for registered memory where
that is another. Another algorithm counts as quicker from 3 % on.

Exit status: 0 if all went well, 2 for a mistake in the command line, 1
otherwise.

Examples
  ringo tune -o h200.plan
  ringo tune allreduce -g 2 -e 64M -f 4
  ringo tune --device emu -g 2 allreduce
`

func runTune(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("tune")
	cfg := &tune.Config{Sweep: bench.Sweep{Factor: 2}, Stdout: stdout, Stderr: stderr}
	fs.IntVar(&cfg.Processes, "np", 1, "")
	fs.IntVar(&cfg.PerProcess, "g", 0, "")
	first, last, factor := fs.String("b", "8", ""), fs.String("e", "", ""), fs.Float64("f", 2, "")
	typ := fs.String("d", "bfloat16", "")
	fs.StringVar(&cfg.Device, "device", "cuda", "")
	fs.StringVar(&cfg.Transport, "transport", "auto", "")
	fs.IntVar(&cfg.Graph, "G", 0, "")
	fs.DurationVar(&cfg.Time, "time", time.Minute, "")
	fs.BoolVar(&cfg.Unchecked, "unchecked", false, "")
	fs.StringVar(&cfg.Out, "o", "", "")
	names, err := cli.Parse(fs, args)
	if err != nil {
		return err
	}
	if err := tuned(cfg, names); err != nil {
		return err
	}
	// The emulator has other defaults.
	most, graph := "1G", 20
	if cfg.Device == "emu" {
		most, graph = "4K", 1
	}
	if *last == "" {
		*last = most
	}
	if cfg.Graph == 0 {
		cfg.Graph = graph
	}
	cfg.Factor = *factor
	for _, s := range []struct {
		text string
		to   *int64
	}{{*first, &cfg.Min}, {*last, &cfg.Max}} {
		if *s.to, err = bench.ParseSize(s.text); err != nil {
			return cli.Usagef("%v", err)
		}
	}
	if cfg.Type, err = kernels.ParseType(*typ); err != nil {
		return cli.Usagef("%v", err)
	}
	if cfg.Factor == 0 {
		return cli.Usagef("-f 0: the factor must be above 1")
	}
	if _, err := cfg.Sizes(); err != nil {
		return cli.Usagef("%v", err)
	}
	switch {
	case cfg.Processes < 0 || cfg.Processes > 1024:
		return cli.Usagef("-np %d: want 1 to 1024 processes, or 0 to join a job that a launcher has started", cfg.Processes)
	case cfg.PerProcess < 0 || cfg.PerProcess > 1024:
		return cli.Usagef("-g %d: want 1 to 1024 ranks a process", cfg.PerProcess)
	case cfg.Graph < 0 || cfg.Graph > 10000:
		return cli.Usagef("-G %d: want 1 to 10000 operations in a graph", cfg.Graph)
	case cfg.Time <= 0:
		return cli.Usagef("--time %v: want more than 0", cfg.Time)
	}
	if cfg.PerProcess == 0 {
		if cfg.PerProcess, err = tune.GPUs(cfg.Device); err != nil {
			return err
		}
		if cfg.Processes != 1 {
			cfg.PerProcess = 1
		}
	}
	if cfg.Processes*cfg.PerProcess == 1 {
		return cli.Usagef("one rank has nothing to choose: give -g or -np")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cfg.Command = append([]string{self, "tune"}, args...)
	return tune.Run(ctx, cfg)
}

// tuned takes over the collectives and the device.
func tuned(cfg *tune.Config, names []string) error {
	if cfg.Device != "cuda" && cfg.Device != "emu" {
		if cfg.Device == "host" {
			return cli.Usagef("--device host: a plan is for GPU memory")
		}
		return cli.Unknown("device", cfg.Device, []string{"cuda", "emu"})
	}
	if len(names) == 0 {
		names = []string{"all"}
	}
	for _, name := range names {
		if strings.EqualFold(name, "all") {
			for _, coll := range bench.Collectives {
				if coll.Kind != ringo.KindSend {
					cfg.Collectives = append(cfg.Collectives, coll)
				}
			}
			continue
		}
		coll, err := bench.Find(name)
		if err != nil {
			return err
		}
		if coll.Kind == ringo.KindSend {
			return cli.Usagef("sendrecv has one algorithm")
		}
		cfg.Collectives = append(cfg.Collectives, coll)
	}
	return nil
}
