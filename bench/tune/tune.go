// Package tune measures, size by size, which algorithm is the quickest for a
// collective on GPU memory, and makes a ringo.Plan of the result. The command
// "ringo tune" runs it; nothing here is promised to other modules.
//
// The trap: a plan holds for the machine, the number of ranks and the path between
// them that it was measured on.
package tune

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/bootstrap/launch"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/internal/given"
)

// A Config says what to measure. Ranks are as for package bench: Processes of
// PerProcess goroutines, 0 processes to be one of a job that a launcher started.
type Config struct {
	Collectives           []bench.Collective
	Processes, PerProcess int
	bench.Sweep
	Type      ringo.DataType
	Device    string // "cuda" or "emu"
	Transport string
	Unchecked bool          // emulator: without looking for races
	Graph     int           // operations of a graph at most
	Blocks    []int         // numbers to try besides as many as there is work for, from few to many
	Time      time.Duration // of the measurements in all, about
	Out       string        // the file, "" for none

	Command        []string // starts this program's tune again, for more processes
	Stdout, Stderr io.Writer
	Table          io.Writer // gets what people read
}

// Run measures and writes the plan.
func Run(ctx context.Context, cfg *Config) error {
	if cfg.Table == nil {
		cfg.Table = cfg.Stdout
	}
	cfg.Table = cli.Text(cfg.Table)
	if _, err := cfg.before(); err != nil { // a file that is in the way is found before all the work
		return err
	}
	if cfg.Processes > 1 {
		return launch.Run(ctx, launch.Config{N: cfg.Processes, Args: append(slices.Clone(cfg.Command), "-np=0"),
			Stdout: cfg.Stdout, Stderr: cfg.Stderr, Prefix: true, Reporter: true})
	}
	if cfg.Processes == 1 {
		return cfg.with(cfg.PerProcess, func(m *gpu.Machine) error {
			return cfg.tune(ctx, m, 0, cfg.PerProcess, func(o ringo.Config) ([]*ringo.Comm, error) {
				for r := range cfg.PerProcess {
					o.Devices = append(o.Devices, bench.DeviceOf(m, r))
				}
				return ringo.OpenLocal(cfg.PerProcess, o)
			})
		})
	}
	world, err := ringo.OpenEnv(ctx, ringo.Config{})
	if err != nil {
		return err
	}
	defer world.Close()
	g := cfg.PerProcess
	return cfg.with(world.Size()*g, func(m *gpu.Machine) error {
		return cfg.tune(ctx, m, world.Rank()*g, world.Size()*g, func(o ringo.Config) ([]*ringo.Comm, error) {
			return bench.OpenMany(ctx, world, g, o, m)
		})
	})
}

// with calls f with GPUs for that many ranks.
func (c *Config) with(ranks int, f func(*gpu.Machine) error) error {
	o := gpu.Options{Emulate: min(ranks, 64), Unchecked: c.Unchecked}
	if c.Device == "cuda" {
		full, err := ringo.Config{}.FromEnv()
		if err != nil {
			return err
		}
		o = gpu.Options{Library: full.CUDALibrary}
	}
	m, err := gpu.Open(o)
	if err != nil {
		return err
	}
	return errors.Join(f(m), m.Close())
}

// tune measures with the ranks of this process, first and those after it; ranks is
// how many there are in all. open makes a communicator for them: each algorithm
// has its own.
func (c *Config) tune(ctx context.Context, m *gpu.Machine, first, ranks int,
	open func(ringo.Config) ([]*ringo.Comm, error)) (err error) {
	sizes, err := c.Sizes()
	if err != nil {
		return err
	}
	t := &tuning{cfg: c, ranks: ranks}
	for i := range c.PerProcess {
		h, err := newBuffers(bench.DeviceOf(m, first+i), int(slices.Max(sizes))+ranks*c.Type.Size())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, h.close()) }()
		t.buffers = append(t.buffers, h)
	}
	err = with(ctx, open, c.options("", 0), func(comms []*ringo.Comm) error { return t.ask(comms[0], sizes) })
	if err != nil {
		return err
	}
	var failed []error // what has been measured counts nevertheless
	var bar *cli.Progress
	if first == 0 {
		bar = cli.NewProgress(c.Stderr)
	}
	defer bar.Clear()
	for i, name := range t.algorithms() {
		bar.Hide()
		if first == 0 {
			fmt.Fprintf(c.Stderr, "# %s\n", name)
		}
		bar.Show("algorithms", float64(i)/float64(len(t.algorithms())))
		err := with(ctx, open, c.options(name, 0), func(comms []*ringo.Comm) error { return t.measure(comms, name, -1) })
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	bar.Clear()
	if ctx.Err() == nil {
		say := io.Discard
		if first == 0 {
			say = c.Stderr
		}
		failed = append(failed, t.fewer(ctx, open, say))
	}
	if first == 0 {
		t.print()
	}
	if first == 0 && ctx.Err() == nil {
		failed = append(failed, t.write())
	}
	return errors.Join(failed...)
}

// operationTimeout ends an operation that hangs.
const operationTimeout = 30 * time.Second

// options are the Config of a communicator whose kernels have at most blocks thread blocks, unless that is 0.
func (c *Config) options(algo string, blocks int) ringo.Config {
	o := ringo.Config{Algo: algo, Transport: c.Transport, Timeout: operationTimeout, BlockPolicy: "latency"}
	if blocks > 0 {
		o.MaxBlocks, o.MinBlocks = blocks, 1
	}
	if o.Transport == "auto" {
		o.Transport = ""
	}
	return o
}

// with calls f with the ranks of a communicator of its own.
func with(ctx context.Context, open func(ringo.Config) ([]*ringo.Comm, error), o ringo.Config,
	f func([]*ringo.Comm) error) error {
	comms, err := open(o)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() {
		for _, c := range comms {
			c.Abort(context.Cause(ctx))
		}
	})()
	err = f(comms)
	errs := make([]error, len(comms))
	var wg sync.WaitGroup
	for i, c := range comms {
		wg.Go(func() { errs[i] = c.Close() })
	}
	wg.Wait()
	return errors.Join(append(errs, err)...)
}

// before is the plan that Out holds already: rows of other numbers of ranks and of
// other collectives are kept. nil if there is no such file.
func (c *Config) before() (*ringo.Plan, error) {
	if c.Out == "" || c.Out == "-" {
		return nil, nil
	}
	text, err := given.Read(c.Out)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, cli.Usagef("-o: %v", err)
	}
	p, err := ringo.ParsePlan(c.Out, string(text))
	if err != nil {
		var wrong *ringo.PlanError
		errors.As(err, &wrong)
		return nil, cli.Usagef("-o %s: the file is there, but is no plan (line %d: %s): name another one", c.Out,
			wrong.Line, wrong.Reason)
	}
	return p, nil
}

// print writes the tables.
func (t *tuning) print() {
	for i := range t.curves {
		t.curves[i].print(t.cfg.Table, t.cfg)
		t.curves[i].printBlocks(t.cfg.Table, t.cfg)
	}
}

// write writes the plan.
func (t *tuning) write() error {
	c := t.cfg
	p := t.plan()
	old, err := c.before()
	if err != nil {
		return err
	}
	if old != nil {
		if !slices.Equal(old.GPUs, p.GPUs) || old.Path != p.Path {
			return cli.Usagef("-o %s: the file is for %s, but this is %s: name another one", c.Out, old.Scope(), p.Scope())
		}
		p.Rows = append(slices.DeleteFunc(old.Rows, func(r ringo.PlanRow) bool {
			return r.From == t.ranks && r.To == t.ranks &&
				slices.ContainsFunc(c.Collectives, func(k bench.Collective) bool { return k.Kind == r.Kind })
		}), p.Rows...)
		p.Sort()
	}
	if c.Out == "" {
		fmt.Fprintf(c.Table, "\n%s\n# -o FILE writes this plan, RINGO_PLAN=FILE or Config.Plan uses it\n", p)
		return nil
	}
	write := func(w io.Writer) error { _, err := io.WriteString(w, p.String()); return err }
	if err := cli.Save("-o", c.Out, c.Stdout, write); err != nil {
		return err
	}
	fmt.Fprintf(c.Table, "\n# %s: %d rows; RINGO_PLAN=%s or Config.Plan uses them\n", c.Out, len(p.Rows), c.Out)
	return nil
}

// emulated is how many GPUs the emulator has by default.
const emulated = 4

// GPUs is the number of GPUs that a Device has.
func GPUs(device string) (n int, err error) {
	if device == "emu" {
		return emulated, nil
	}
	err = (&Config{Device: device}).with(0, func(m *gpu.Machine) error {
		n = m.Count()
		return nil
	})
	return n, err
}
