package check

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/internal/given"
	"github.com/ringo-go/ringo/internal/nccl"
)

// Help is the text of "ringo check -h", for cli.HelpError.
const Help = `usage: ringo check [flags]

Says whether every GPU, link and host is well, and if not, which one is not, in
a sentence each, worst first. Without a launcher it looks at this host; as ranks
of a launcher, one a host or more, at all of them and the links between them.

Examples
  ringo check
  ringo run -np 4 -hosts 2 -no-prefix -- ringo check
  ringo check -hostfile hosts.txt -html cluster.html
  srun -N 16 --ntasks-per-node 1 ringo check -full -json cluster.json

{quick full hostfile}
|{ssh remote address join-timeout}
|
|GPUs
{expect-gpus device}
|{g}
{nccl}
|
|Output
{json baseline metrics every junit}
{svg html}

Exit status: 0 all is well, 1 something is degraded, 2 broken, or the command
line is wrong, 3 it could not be judged. Rank 0 reports.
`

// commandFlags are the values of the command line's flags.
type commandFlags struct {
	cfg                         config
	quick                       bool
	join                        time.Duration
	device                      string
	gpus                        int
	json, baseline              string
	junit, svg, html            string
	metrics                     string // a file or an address
	every                       time.Duration
	hosts, ssh, remote, address string
	worker                      bool
	patience                    time.Duration // for the report of hosts, in tests; 0: config.Longest
}

func (f *commandFlags) register(fs *flag.FlagSet) {
	f.join, f.device, f.gpus = 20*time.Second, "auto", 4
	fs.BoolVar(&f.quick, "quick", false, "at most 30 s, with those in which ranks come (the default)")
	fs.BoolVar(&f.cfg.Full, "full", false, "at most 10 minutes")
	cli.Duration(fs, &f.join, cli.Moment, "join-timeout `D` how long ranks may take to come (default 20s)")
	cli.Int(fs, &f.cfg.ExpectGPUs, 0, mostGPUs, fmt.Sprintf("a number of GPUs, at most %d", mostGPUs),
		"expect-gpus `N` how many each host has; default: as many as most have")
	fs.BoolFunc("nccl", "repeat the collectives over the GPUs of each host with NCCL; -nccl=FILE is another than "+
		"libnccl.so.2. It tells NCCL's faults from the GPUs'", func(v string) error {
		if f.cfg.NCCL = v; v == "true" { // no file is named
			f.cfg.NCCL = nccl.Default
		}
		return nil
	})
	cli.Word(fs, &f.device, "device", []string{"auto", "host", "cuda", "emu"},
		"device `D` auto, host (no GPUs), cuda, or emu: GPUs that are emulated")
	cli.Int(fs, &f.gpus, 1, mostGPUs, fmt.Sprintf("a number of GPUs, 1 to %d", mostGPUs),
		"g `N` emu: how many each rank has (default 4)")
	fs.StringVar(&f.json, "json", "", "`FILE` the report, of schema ringo-check/1; - is standard output, which then has "+
		"nothing else")
	fs.StringVar(&f.baseline, "baseline", "", "`FILE` compare with such a report of an earlier run")
	fs.StringVar(&f.hosts, "hostfile", "", "`FILE` a rank on each host that the file names, a line each, by ssh; those "+
		"that do not answer are findings")
	fs.StringVar(&f.ssh, "ssh", "ssh -o BatchMode=yes -o ConnectTimeout=10",
		"`COMMAND` in place of ssh -o BatchMode=yes -o ConnectTimeout=10")
	fs.StringVar(&f.remote, "remote", "ringo", "`PATH` the command ringo there (default ringo)")
	cli.Var(fs, func(text string) (err error) { f.address, err = cli.Address(text); return err },
		func() string { return f.address },
		"address `ADDR` where those hosts reach this one, host:port with port 0 for any")
	fs.BoolVar(&f.worker, "worker", false, "")
	cli.Var(fs, f.setMetrics, func() string { return f.metrics }, "metrics `FILE` Prometheus text; with an address, such "+
		"as :9400, serve it there at /metrics until the process is ended")
	cli.Duration(fs, &f.every, cli.Moment, "every `D` check again every D")
	fs.StringVar(&f.junit, "junit", "", "`FILE` JUnit's XML")
	fs.StringVar(&f.svg, "svg", "", "`FILE` the heat maps of pairs")
	fs.StringVar(&f.html, "html", "", "`FILE` the report as a page")
}

// mostGPUs is the most GPUs of a host.
const mostGPUs = 64

// setMetrics takes a file or an address.
func (f *commandFlags) setMetrics(text string) error {
	if f.metrics = text; f.serves() {
		_, err := cli.Address(text)
		return err
	}
	return nil
}

// complete refuses wrong values and combinations of flags, and fills in the config.
func (f *commandFlags) complete() error {
	if f.quick && f.cfg.Full {
		return cli.Usagef("-quick and -full: which of them?")
	}
	switch f.device {
	case "emu":
		f.cfg.GPU.Emulate = f.gpus
	case "host":
		f.cfg.NoGPUs = true
	}
	if f.device == "host" && (f.cfg.ExpectGPUs > 0 || f.cfg.NCCL != "") {
		return cli.Usagef("-device host leaves GPUs alone: without -expect-gpus and -nccl")
	}
	if f.device == "cuda" && f.cfg.ExpectGPUs == 0 {
		f.cfg.ExpectGPUs = 1
	}
	if f.baseline != "" {
		text, err := given.Read(f.baseline)
		if err != nil {
			return cli.Usagef("-baseline: %v", err)
		}
		if f.cfg.Baseline, err = readReport(bytes.NewReader(text)); err != nil {
			return cli.Usagef("-baseline %s: %v", f.baseline, err)
		}
	}
	outputs := []cli.Output{{Flag: "-json", File: f.json}, {Flag: "-junit", File: f.junit},
		{Flag: "-svg", File: f.svg, Ends: []string{".svg"}}, {Flag: "-html", File: f.html, Ends: []string{".html", ".htm"}}}
	if !f.serves() {
		outputs = append(outputs, cli.Output{Flag: "-metrics", File: f.metrics})
	}
	_, err := cli.Outputs(nil, outputs...)
	return err
}

// serves reports whether -metrics is an address and not a file.
func (f *commandFlags) serves() bool {
	_, port, err := net.SplitHostPort(f.metrics)
	return err == nil && port != "" && !strings.Contains(f.metrics, "/")
}

// Command carries out the command line after "ringo check". The error is a *cli.UsageError, flag.ErrHelp, or, when the
// report or the reason was already printed, a cli.ExitStatus.
func Command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var f commandFlags
	fs := flag.NewFlagSet("check", flag.ContinueOnError)
	f.register(fs)
	if rest, err := cli.Parse(fs, args); err != nil {
		return err
	} else if len(rest) > 0 {
		return cli.Usagef("%q: it takes flags and no arguments", strings.Join(rest, " "))
	}
	if err := f.complete(); err != nil {
		return err
	}
	started := time.Now()
	err := f.check(ctx, stdout, stderr)
	_, usage := errors.AsType[*cli.UsageError](err)
	_, status := errors.AsType[cli.ExitStatus](err)
	if err == nil || usage || status {
		return err
	}
	return f.noReport(ctx, started, err, stdout, stderr)
}

// check carries out the check that the flags ask for.
func (f *commandFlags) check(ctx context.Context, stdout, stderr io.Writer) error {
	switch {
	case f.worker:
		return work(ctx, os.Stdin, stdout, stderr)
	case f.hosts != "" && (f.every > 0 || f.serves()):
		return cli.Usagef("-hostfile goes with neither -every nor an address of -metrics")
	case f.hosts != "" && strings.TrimSpace(f.ssh) == "":
		return cli.Usagef("-ssh: no command")
	case f.hosts != "":
		return f.overHosts(ctx, stdout, stderr)
	}
	job, err := join(ctx, joinOptions{Timeout: f.join})
	if err != nil {
		return err
	}
	defer job.Close()
	return f.carryOut(ctx, job, stdout, stderr)
}

// carryOut checks, once or periodically, and writes the report in the forms asked for.
func (f *commandFlags) carryOut(ctx context.Context, job *job, stdout, stderr io.Writer) error {
	serving := new(metricsServer)
	if f.serves() && job.First() {
		if err := serving.listen(ctx, f.metrics); err != nil {
			return err
		}
		defer serving.close()
		fmt.Fprintf(stderr, "metrics at http://%s/metrics\n", serving.ln.Addr())
	}
	unwritten := false
	for {
		start := time.Now()
		bar := cli.NewProgress(stderr)
		f.cfg.Progress = func(_ string, share float64) { bar.Show("checking", share) }
		report, err := run(ctx, job, f.cfg)
		bar.Clear()
		if err != nil && report == nil {
			return f.noReport(ctx, start, err, stdout, stderr)
		}
		if report != nil {
			serving.report.Store(report)
			if err := f.write(report, stdout); err != nil {
				fmt.Fprintf(stderr, "ringo check: %v\n", err)
				unwritten = true
			} else {
				unwritten = false
			}
		}
		var again <-chan time.Time
		if f.every > 0 {
			again = time.After(time.Until(start.Add(f.every)))
		} else if serving.ln == nil {
			return verdictOf(report, unwritten)
		}
		select {
		case <-again:
		case <-ctx.Done():
			return verdictOf(report, unwritten)
		}
	}
}

// verdictOf is the error with a report's exit status: nil for a good report, unless it could not be written.
func verdictOf(r *report, unwritten bool) error {
	switch {
	case r == nil:
		return nil
	case r.Verdict != well:
		return cli.ExitStatus(r.Verdict)
	case unwritten:
		return cli.ExitStatus(unjudged)
	}
	return nil
}
