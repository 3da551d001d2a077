package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap/launch"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cli"
)

// Run measures what cfg says and prints, saves and plots the result. It returns
// nil only if no rank failed and every element was right.
func Run(ctx context.Context, cfg *Config) error {
	switch {
	case len(cfg.From) > 0:
		return replot(cfg)
	case len(cfg.Peers) > 0 && cfg.Device == "host":
		return compare(ctx, cfg)
	case cfg.Processes == 0:
		return join(ctx, cfg)
	case cfg.Transport == "inproc" && cfg.Device == "host":
		// This transport connects goroutines, so all ranks are in one process.
		return local(ctx, cfg, cfg.Ranks())
	case cfg.Processes == 1:
		return local(ctx, cfg, cfg.PerProcess)
	}
	return launch.Run(ctx, launch.Config{
		N: cfg.Processes, Hosts: cfg.Hosts, Args: cfg.again("-np=0"), Stdout: cfg.Stdout, Stderr: cfg.Stderr, Prefix: true,
		Reporter: true,
	})
}

// again is this process's command line with flags added; the last flag of a name counts.
func (c *Config) again(flags ...string) []string {
	command := c.Command
	if command == nil {
		command = self()
	}
	return slices.Concat(command, flagsFirst(c.Args), flags)
}

// flagsFirst is args without "--", after which appended flags would be taken for arguments.
func flagsFirst(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(s string) bool { return s == "--" })
}

// options is the communicator's Config.
func (c *Config) options() ringo.Config {
	o := ringo.Config{Transport: c.Transport, Algo: c.Algo, Timeout: c.Timeout}
	if c.Deterministic {
		o.Deterministic = "rank order"
	}
	if c.traces != nil {
		o.Observer = c.traces
	}
	switch c.Transport {
	case "auto":
		o.Transport = ""
	case "tcp", "unix":
		o.Transport, o.SocketNetwork = "socket", c.Transport
	}
	return o
}

// local measures between goroutines of this process.
func local(ctx context.Context, cfg *Config, n int) error {
	return withGPUs(cfg, n, func(m *gpu.Machine) error {
		o := cfg.options()
		for r := range n {
			if m != nil {
				o.Devices = append(o.Devices, DeviceOf(m, r))
			}
		}
		meter, err := newCostMeter(DeviceOf(m, 0))
		if err != nil {
			return err
		}
		comms, err := ringo.OpenLocal(n, o)
		if err != nil {
			return err
		}
		return measureRanks(ctx, cfg, comms, 1, meter)
	})
}

// withGPUs calls f with the GPUs that cfg asks for; nil for host memory.
func withGPUs(cfg *Config, ranks int, f func(*gpu.Machine) error) error {
	m, err := cfg.gpus(ranks)
	if err != nil {
		return err
	}
	if m == nil {
		return f(nil)
	}
	return errors.Join(f(m), m.Close())
}

// join measures as one process of a job that a launcher has started.
func join(ctx context.Context, cfg *Config) error {
	o := cfg.options()
	if cfg.PerProcess > 1 {
		o.Observer = nil // this communicator is not the one that is measured
	}
	c, err := ringo.OpenEnv(ctx, o)
	if err != nil {
		return err
	}
	if cfg.PerProcess == 1 && cfg.Device == "host" {
		return measureRanks(ctx, cfg, []*ringo.Comm{c}, c.Size(), nil)
	}
	defer c.Close()
	return withGPUs(cfg, c.Size()*cfg.PerProcess, func(m *gpu.Machine) error {
		meter, err := newCostMeter(DeviceOf(m, c.Rank()*cfg.PerProcess))
		if err != nil {
			return err
		}
		comms, err := OpenMany(ctx, c, cfg.PerProcess, cfg.options(), m)
		if err != nil {
			return err
		}
		return measureRanks(ctx, cfg, comms, c.Size(), meter)
	})
}

// measureRanks measures with the ranks of this process and closes them. The meter
// was started before they were opened; it is nil on host memory.
func measureRanks(ctx context.Context, cfg *Config, comms []*ringo.Comm, processes int, m *costMeter) error {
	if m != nil {
		m.opened()
	}
	n := comms[0].Size()
	if cfg.Root >= n {
		return errors.Join(fmt.Errorf("-r %d: the ranks are 0 to %d", cfg.Root, n-1), closeAll(comms))
	}
	defer context.AfterFunc(ctx, func() {
		for _, c := range comms {
			c.Abort(context.Cause(ctx))
		}
	})()
	plan := cfg.plan(n)
	var rec *recorder
	workers, errs := make([]*worker, len(comms)), make([]error, len(comms))
	for i, c := range comms {
		workers[i] = newWorker(cfg, c)
		if c.Rank() == 0 {
			report, err := newReport(cfg, c, processes, plan)
			if err != nil {
				return errors.Join(err, closeAll(comms))
			}
			rec = newRecorder(cfg, report, plan)
			if slices.Contains(cfg.Peers, "nccl") {
				rec.table.peers = []string{"nccl"}
			}
			workers[i].record, workers[i].registered, workers[i].meter = rec.add, rec.registered, m
			workers[i].traced = rec.traced
		}
	}
	var wg sync.WaitGroup
	for i, w := range workers {
		wg.Go(func() {
			errs[i] = w.run(plan, w.comm.Device())
			errs[i] = errors.Join(errs[i], w.comm.Close())
		})
	}
	wg.Wait()
	err := errors.Join(errs...)
	if err == nil && rec != nil {
		if cfg.Device != "host" {
			rec.report.Cost = &m.cost
		}
		err = rec.finish()
	}
	var wrong int64
	for _, w := range workers {
		wrong += w.wrong
	}
	if wrong > 0 {
		err = errors.Join(err, ErrWrong{wrong})
	}
	return err
}

// closeAll closes communicators that have measured nothing.
func closeAll(comms []*ringo.Comm) error {
	errs := make([]error, len(comms))
	var wg sync.WaitGroup
	for i, c := range comms {
		wg.Go(func() { errs[i] = c.Close() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// newReport is the report before the first measurement, from rank 0's communicator.
func newReport(cfg *Config, c *ringo.Comm, processes int, plan []series) (*Report, error) {
	r := &Report{Header: NewHeader(Schema, cfg.Args), Ranks: c.Size(), Processes: processes, Rows: []Row{}}
	r.Transport, r.Notes = transportOf(cfg, c), pathsOf(c)
	if cfg.Deterministic {
		r.Notes = append(r.Notes, "reductions of floats in order of rank")
	}
	if cfg.Beside {
		r.Notes = append(r.Notes, besideNote(cfg))
	}
	if cfg.Group > 1 {
		r.Notes = append(r.Notes, fmt.Sprintf("groups of %d operations; times are of one", cfg.Group))
	}
	if cfg.Row > 0 {
		r.Notes = append(r.Notes, normNote(cfg))
	} else if c.Device() != nil {
		r.Notes = append(r.Notes, chosen(c, plan, cfg.Registered)...)
	}
	return r, r.ofGPU(cfg, c.Device())
}

// transportOf names the transport to the neighbour, "inproc" for a rank alone.
func transportOf(cfg *Config, c *ringo.Comm) string {
	if c.Size() == 1 {
		return "inproc"
	}
	next := (c.Rank() + 1) % c.Size()
	if cfg.Device != "host" {
		return strings.Replace(c.DeviceTransport(next), "socket", network(cfg), 1)
	}
	via := c.Transport(next)
	if via == "socket" {
		return network(cfg)
	}
	return via
}

// network is the name of sockets: "socket" unless one kind is asked for.
func network(cfg *Config) string {
	if cfg.Transport == "tcp" || cfg.Transport == "unix" {
		return cfg.Transport
	}
	return "socket"
}

// pathsOf says which transports are used and why not better ones, with one peer
// as the example for each.
func pathsOf(c *ringo.Comm) []string {
	seen := map[string]bool{}
	var notes []string
	for _, p := range c.Paths() {
		if strings.HasPrefix(p, "GPU memory: ") {
			notes = append(notes, p)
			continue
		}
		name, _, _ := strings.Cut(p, ";")
		if !seen[name] {
			seen[name] = true
			notes = append(notes, "transport "+p)
		}
	}
	return notes
}

// replot makes a plot of reports that were saved before.
func replot(cfg *Config) error {
	var reports []*Report
	for _, file := range cfg.From {
		r, err := Load(file)
		if err != nil {
			return cli.Usagef("-from: %v", err)
		}
		reports = append(reports, r)
	}
	if err := plot("-plot", cfg.Plot, cfg.output, "", reports...); err != nil {
		return err
	}
	fmt.Fprintf(cfg.Stdout, "# %s from %d %s\n", cfg.Plot, len(reports), plural(len(reports), "report", "reports"))
	return nil
}

// self is the command that starts this program's bench again.
func self() []string {
	exe, err := os.Executable()
	if err != nil {
		exe = os.Args[0]
	}
	return []string{exe, "bench"}
}

// child measures our side in a job of its own, quietly, and reads its report.
func child(ctx context.Context, cfg *Config, file string) (*Report, error) {
	args := cfg.again("-np="+strconv.Itoa(cfg.Processes), "-peer=", "-plot=", "-json="+file, "-quiet")
	err := launch.Run(ctx, launch.Config{N: 1, Args: args, Stdout: cfg.Stdout, Stderr: cfg.Stderr})
	if err != nil {
		return nil, err
	}
	return Load(file)
}
