package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ringo-go/ringo/check"
	"github.com/ringo-go/ringo/internal/cli"
)

const checkHelp = `usage: ringo check [flags]

Says whether every GPU, link and host is well, and if not, which one is not, in
a sentence each, worst first. Without a launcher it looks at this host; as ranks
of "ringo run", torchrun, srun, mpirun or a Kubernetes indexed job, one a host
or more, at all of them and at the links between them. Rank 0 reports.

  -quick         at most 30 s (the default)
  -full          at most 10 minutes
  -join-timeout D
                 how long ranks may take to come (default 20s); then the others
                 go on without them

GPUs
  -expect-gpus N how many each host has; default: as many as most have
  -device D      auto, host (no GPUs), cuda, or emu: GPUs that are emulated
  -g N           emu: how many each rank has (default 4)

Output
  -json FILE     the report, of schema ringo-check/1; - is standard output,
                 which then has nothing else
  -baseline FILE compare with such a report of an earlier run

The exit status is 0 if all is well, 1 if something is degraded, 2 if something
is broken or the command line is wrong, 3 if it could not be judged.

Examples
  ringo check
  ringo run -np 4 --hosts 2 -- ringo check
  srun -N 16 --ntasks-per-node 1 ringo check -full -json cluster.json
`

// An exitStatus is the error of a command that has said all and ends with that status.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprint("exit status ", int(e)) }

// checkFlags are what the command line says.
type checkFlags struct {
	cfg            check.Config
	quick          bool
	join           time.Duration
	device         string
	gpus           int
	json, baseline string
}

func (f *checkFlags) register(fs *flag.FlagSet) {
	fs.BoolVar(&f.quick, "quick", false, "")
	fs.BoolVar(&f.cfg.Full, "full", false, "")
	fs.DurationVar(&f.join, "join-timeout", 20*time.Second, "")
	fs.IntVar(&f.cfg.ExpectGPUs, "expect-gpus", 0, "")
	fs.StringVar(&f.device, "device", "auto", "")
	fs.IntVar(&f.gpus, "g", 4, "")
	fs.StringVar(&f.json, "json", "", "")
	fs.StringVar(&f.baseline, "baseline", "", "")
}

// complete refuses what cannot be.
func (f *checkFlags) complete() error {
	switch {
	case f.quick && f.cfg.Full:
		return cli.Usagef("-quick and -full: which of them?")
	case f.join <= 0:
		return cli.Usagef("-join-timeout %v: want more than 0", f.join)
	case f.cfg.ExpectGPUs < 0 || f.gpus < 1:
		return cli.Usagef("-expect-gpus %d, -g %d: want a number of GPUs", f.cfg.ExpectGPUs, f.gpus)
	}
	switch f.device {
	case "auto", "cuda":
	case "emu":
		f.cfg.GPU.Emulate = f.gpus
	case "host":
		f.cfg.NoGPUs = true
	default:
		return cli.Unknown("device", f.device, []string{"auto", "host", "cuda", "emu"})
	}
	if f.device == "cuda" && f.cfg.ExpectGPUs == 0 {
		f.cfg.ExpectGPUs = 1
	}
	if f.baseline != "" {
		file, err := os.Open(f.baseline)
		if err != nil {
			return cli.Usagef("-baseline: %v", err)
		}
		defer file.Close()
		if f.cfg.Baseline, err = check.ReadJSON(file); err != nil {
			return cli.Usagef("-baseline %s: %v", f.baseline, err)
		}
	}
	if f.json == "-" {
		return nil
	}
	return cli.Writable("-json", f.json)
}

func runCheck(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var f checkFlags
	fs := flags("check")
	f.register(fs)
	if rest, err := cli.Parse(fs, args); err != nil {
		return err
	} else if len(rest) > 0 {
		return cli.Usagef("%q: there are no arguments", rest)
	}
	if err := f.complete(); err != nil {
		return err
	}
	job, err := check.Join(ctx, check.JoinOptions{Timeout: f.join})
	if err != nil {
		fmt.Fprintf(stderr, "ringo check: could not be judged: %v\n", err)
		return exitStatus(check.Unjudged)
	}
	defer job.Close()
	report, err := check.Run(ctx, job, f.cfg)
	switch {
	case report != nil:
		if err := f.write(report, stdout); err != nil {
			return err
		}
		return verdictOf(report)
	case err != nil:
		fmt.Fprintf(stderr, "ringo check: rank %d: %v\n", job.Rank(), err)
		return exitStatus(check.Unjudged)
	}
	return nil
}

// verdictOf is the error of a report whose exit status is not 0.
func verdictOf(r *check.Report) error {
	if r.Verdict == check.Well {
		return nil
	}
	return exitStatus(r.Verdict)
}

// write writes what was asked for.
func (f *checkFlags) write(r *check.Report, stdout io.Writer) error {
	if f.json == "-" {
		return r.WriteJSON(stdout)
	}
	return errors.Join(r.Print(stdout), writeFile(f.json, r.WriteJSON))
}

// writeFile has a file written, if it has a name.
func writeFile(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}
