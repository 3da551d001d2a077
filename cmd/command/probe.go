package command

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench/device"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/kernels"
)

// probeHelp is what "ringo probe -h" prints.
const probeHelp = `usage: ringo probe [flags]

Measures one GPU as Ringo uses it: bandwidth of copies and of combining several
sources, checked against the Go arithmetic; what a launch costs; how long the
first use of a kernel takes. Bandwidths count all bytes read and written.

Examples
  ringo probe
  ringo probe -d all -o sum,max -k 2,8 -b 64M,1G -json h200.json
  ringo probe -device emu -d all -o all

{device gpu}

What
{d o k b first}

How
{reps launch-peer json}

Exit status: 0 if every result was right, 2 for a mistake in the command line, 1
otherwise.
`

func runProbe(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("probe")
	cfg := device.Config{Repetitions: 7, Types: []kernels.DataType{kernels.Float32, kernels.BFloat16},
		Ops: []kernels.RedOp{kernels.Sum}, Sources: []int{1, 2, 3, 4, 8}}
	where, first := "cuda", ""
	cli.Word(fs, &where, "device", []string{"cuda", "emu"}, "device `D` cuda, or emu: an emulated GPU, on "+
		"which results are real and times mean nothing (default cuda)")
	cli.Int(fs, &cfg.Ordinal, 0, 1023, "the number of a GPU, from 0 on", "gpu `N` which one (default 0)")
	cli.Var(fs, func(s string) error { return probeTypes(&cfg, s) }, func() string { return "" },
		"d `TYPE,...` element types (default float32,bfloat16)")
	cli.Var(fs, func(s string) error { return parseOps(&cfg, s) }, func() string { return "" },
		"o `OP,...` sum prod max min avg bitand bitor bitxor premulsum(NUMBER) (default sum)")
	cli.List(fs, &cfg.Sources, func(text string) (int, error) {
		k, err := strconv.Atoi(text)
		if err != nil || k < 1 || k > 8 {
			return 0, errors.New("want numbers from 1 to 8, such as 1,2,8")
		}
		return k, nil
	}, strconv.Itoa, "k `N,...` how many sources, 1 to 8 (default 1,2,3,4,8)")
	sizesFlag(fs, &cfg.Sizes, "b `SIZE,...` bytes of each source (default 1G, 4K on emu)")
	cli.Word(fs, &first, "value", []string{"0", "1"}, "first `0|1` measure first uses, in processes of "+
		"their own (default 1; 0 on emu)")
	cli.Int(fs, &cfg.Repetitions, 1, 10_000, "1 to 10000 repetitions", "reps `N` repetitions; medians count "+
		"(default 7)")
	fs.StringVar(&cfg.LaunchPeer, "launch-peer", "", "`LIB` launch from C in turn with Go; LIB is made of "+
		"bench/device/testdata/launch.c, which says how")
	file := fs.String("json", "", "`FILE` save a report")
	child := fs.Bool("first-use-of", false, "") // hidden: measures a first use; see device.Config.FirstUse
	names, err := cli.Parse(fs, args)
	if err != nil {
		return err
	}
	if *child && len(names) == 2 {
		return printFirstUse(where, cfg.Ordinal, names[0], names[1], stdout)
	}
	if len(names) > 0 {
		return cli.Usagef("unexpected argument %q", names[0])
	}
	if cfg.Table, err = cli.Outputs(stdout, cli.Output{Flag: "-json", File: *file}); err != nil {
		return err
	}
	if cfg.Sizes == nil {
		cfg.Sizes = []int64{1 << 30}
		if where == "emu" {
			cfg.Sizes = []int64{4 << 10}
		}
	}
	if err := cfg.Check(); err != nil {
		return cli.Usagef("%v", err)
	}
	if first == "1" || first == "" && where == "cuda" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		cfg.FirstUse = []string{self, "probe", "-first-use-of", "-device", where, "-gpu", strconv.Itoa(cfg.Ordinal)}
	}
	if cfg.Driver, err = openDriver(where); err != nil {
		return err
	}
	report, err := device.Run(ctx, cfg)
	if report == nil {
		return err
	}
	report.Flags = args
	return errors.Join(err, cli.SaveJSON("-json", *file, stdout, report))
}

// openDriver is the driver that -device names.
func openDriver(where string) (cuda.Driver, error) {
	if where == "emu" {
		return cudaemu.New(cudaemu.Config{Plain: true, Lazy: true})
	}
	cfg, err := ringo.Config{}.FromEnv()
	if err != nil {
		return nil, err
	}
	return cuda.Open(cfg.CUDALibrary)
}

func printFirstUse(where string, gpu int, typ, op string, stdout io.Writer) error {
	t, err := kernels.ParseType(typ)
	if err != nil {
		return cli.Usagef("%v", err)
	}
	o, err := kernels.ParseOp(op)
	if err != nil {
		return cli.Usagef("%v", err)
	}
	d, err := openDriver(where)
	if err != nil {
		return err
	}
	u, err := device.MeasureFirstUse(d, gpu, t, o)
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(u)
}

// probeTypes reads -d.
func probeTypes(cfg *device.Config, s string) error {
	if cfg.Types = nil; s == "all" {
		cfg.Types = kernels.Types()
		return nil
	}
	for _, name := range strings.Split(s, ",") {
		t, err := parseType(name, "all")
		if err != nil {
			return err
		}
		cfg.Types = append(cfg.Types, t)
	}
	return nil
}

// parseOps reads -o.
func parseOps(cfg *device.Config, s string) error {
	if cfg.Ops = nil; s == "all" {
		s = "sum,prod,max,min,avg,premulsum(2),bitand,bitor,bitxor"
	}
	for _, name := range strings.Split(s, ",") {
		op, err := kernels.ParseOp(name)
		if err != nil {
			return cli.Unknown("operator", name, []string{"sum", "prod", "max", "min", "avg", "bitand", "bitor", "bitxor",
				"premulsum(2)", "all"})
		}
		cfg.Ops = append(cfg.Ops, op)
	}
	return nil
}
