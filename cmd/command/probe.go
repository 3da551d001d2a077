package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench"
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

  -device D      cuda, or emu: an emulated GPU, on which results are real and
                 times mean nothing (default cuda)
  -gpu N         which one (default 0)

What
  -d TYPE,...    element types (default float32,bfloat16)
  -o OP,...      sum prod max min avg bitand bitor bitxor premulsum(NUMBER)
                 (default sum)
  -k N,...       how many sources, 1 to 8 (default 1,2,3,4,8)
  -b SIZE,...    bytes of each source (default 1G, 4K on emu)
  -first 0|1     measure first uses, in processes of their own (default 1; 0 on
                 emu)

How
  -reps N        repetitions; medians count (default 7)
  -launch-peer LIB
                 launch from C in turn with Go; LIB is made of
                 bench/device/testdata/launch.c, which says how
  -json FILE     save a report

Exit status: 0 if every result was right, 2 for a mistake in the command line, 1
otherwise.
`

func runProbe(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("probe")
	where, gpu := fs.String("device", "cuda", ""), fs.Int("gpu", 0, "")
	types, ops := fs.String("d", "float32,bfloat16", ""), fs.String("o", "sum", "")
	sources, sizes := fs.String("k", "1,2,3,4,8", ""), fs.String("b", "", "")
	first, reps := fs.String("first", "", ""), fs.Int("reps", 7, "")
	peer, file := fs.String("launch-peer", "", ""), fs.String("json", "", "")
	child := fs.Bool("first-use-of", false, "") // hidden: measures a first use; see device.Config.FirstUse
	names, err := cli.Parse(fs, args)
	if err != nil {
		return err
	}
	if *child && len(names) == 2 {
		return printFirstUse(*where, *gpu, names[0], names[1], stdout)
	}
	if len(names) > 0 {
		return cli.Usagef("unexpected argument %q", names[0])
	}
	cfg := device.Config{Ordinal: *gpu, Repetitions: *reps, LaunchPeer: *peer, Table: stdout}
	*sizes, *first = byDevice(*sizes, *where, "1G", "4K"), byDevice(*first, *where, "1", "0")
	if err := cli.Writable("-json", *file); err != nil {
		return err
	}
	for _, err := range []error{
		parseTypes(&cfg, *types), parseOps(&cfg, *ops), parseSources(&cfg, *sources), parseSizes(&cfg, *sizes),
	} {
		if err != nil {
			return err
		}
	}
	if *gpu < 0 {
		return cli.Usagef("-gpu %d: want 0 or more", *gpu)
	}
	if *reps < 1 {
		return cli.Usagef("-reps %d: want at least 1", *reps)
	}
	if err := cfg.Check(); err != nil {
		return cli.Usagef("%v", err)
	}
	if cfg.FirstUse, err = firstUse(*first, *where, *gpu); err != nil {
		return err
	}
	if cfg.Driver, err = openDriver(*where); err != nil {
		return err
	}
	report, err := device.Run(ctx, cfg)
	if report == nil {
		return err
	}
	report.Flags = args
	if *file != "" {
		if e := report.Save(*file); e != nil {
			err = errors.Join(err, fmt.Errorf("--json: %w", e))
		}
	}
	return err
}

// byDevice is a flag's value, or the device's default if that is "".
func byDevice(value, where, cuda, emu string) string {
	if where == "emu" {
		return cmp.Or(value, emu)
	}
	return cmp.Or(value, cuda)
}

// firstUse is the command line that measures the first use of a kernel; nil if -first is 0.
func firstUse(first, where string, gpu int) ([]string, error) {
	switch first {
	case "0":
		return nil, nil
	case "1":
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		return []string{self, "probe", "-first-use-of", "-device", where, "-gpu", strconv.Itoa(gpu)}, nil
	}
	return nil, cli.Usagef("-first %s: want 0 or 1", first)
}

// openDriver is the driver that -device names.
func openDriver(where string) (cuda.Driver, error) {
	switch where {
	case "emu":
		return cudaemu.New(cudaemu.Config{Plain: true, Lazy: true})
	case "cuda":
		cfg, err := ringo.Config{}.FromEnv()
		if err != nil {
			return nil, err
		}
		return cuda.Open(cfg.CUDALibrary)
	}
	return nil, cli.Unknown("device", where, []string{"cuda", "emu"})
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

func parseTypes(cfg *device.Config, s string) error {
	if s == "all" {
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

// parseType is the element type of a name. The error suggests a similar name among
// the types and others, the other words that may stand there.
func parseType(name string, others ...string) (kernels.DataType, error) {
	t, err := kernels.ParseType(name)
	if err == nil {
		return t, nil
	}
	var known []string
	for _, t := range kernels.Types() {
		known = append(known, t.String())
	}
	return t, cli.Unknown("type", name, append(known, others...))
}

func parseOps(cfg *device.Config, s string) error {
	if s == "all" {
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

func parseSources(cfg *device.Config, s string) error {
	for _, text := range strings.Split(s, ",") {
		k, err := strconv.Atoi(text)
		if err != nil {
			return cli.Usagef("-k %s: want numbers such as 1,2,8", s)
		}
		cfg.Sources = append(cfg.Sources, k)
	}
	return nil
}

func parseSizes(cfg *device.Config, s string) error {
	for _, text := range strings.Split(s, ",") {
		n, err := bench.ParseSize(text)
		if err != nil {
			return cli.Usagef("%v", err)
		}
		cfg.Sizes = append(cfg.Sizes, n)
	}
	return nil
}
