// Train is data-parallel training of a small classifier of pictures, written
// with nothing but package ringo and the standard library:
//
//	go run ./examples/train -np 4
//
// Every rank holds all weights and takes a share of each batch; after each
// layer's gradient an all-reduce sums the shares. See README.md.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"sync"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap/launch"
)

const usage = `train trains a small classifier of pictures on several ranks.

  go run ./examples/train                          4 processes, data made up
  go run ./examples/train -np 2 -overlap           reduce one layer while computing the next
  go run ./examples/train -images train-images-idx3-ubyte.gz -labels train-labels-idx1-ubyte.gz
  ringo run -np 4 -- train -np 0                   ranks of ringo run, torchrun, mpirun, srun …

Flags:
`

// options are the flags.
type options struct {
	np                     int
	steps, batch, hidden   int
	rate, momentum         float64
	seed                   uint64
	images, labels         string
	testImages, testLabels string
	transport              string
	overlap                bool
	report, check          int
}

func (o *options) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("train", flag.ContinueOnError)
	fs.IntVar(&o.np, "np", 4,
		"ranks to start, each a `process` of this machine; 0: be one rank that a launcher has started")
	fs.IntVar(&o.steps, "steps", 500, "batches to learn from")
	fs.IntVar(&o.batch, "batch", 128, "samples of a batch, in all; the ranks divide them")
	fs.IntVar(&o.hidden, "hidden", 64, "width of the hidden layer")
	fs.Float64Var(&o.rate, "lr", 0.05, "learning `rate`")
	fs.Float64Var(&o.momentum, "momentum", 0.9, "momentum of gradient descent, 0…1")
	fs.Uint64Var(&o.seed, "seed", 1, "of weights, order and made-up data")
	fs.StringVar(&o.images, "images", "", "IDX `file` of pictures, also .gz (default made-up digits)")
	fs.StringVar(&o.labels, "labels", "", "IDX `file` of their labels")
	fs.StringVar(&o.testImages, "test-images", "",
		"IDX `file` of pictures to test with (default the last seventh of those given)")
	fs.StringVar(&o.testLabels, "test-labels", "", "IDX `file` of their labels")
	fs.StringVar(&o.transport, "transport", "",
		"auto, shm, socket, or inproc: ranks as goroutines of one process (default $RINGO_TRANSPORT, or the best that works)")
	fs.BoolVar(&o.overlap, "overlap", false, "sum one layer's gradients while the next layer's are computed")
	fs.IntVar(&o.report, "report", 50, "steps between lines")
	fs.IntVar(&o.check, "check", 10, "steps between checks that all ranks hold the same weights")
	return fs
}

// parse reads and judges the command line.
func parse(args []string) (o options, err error) {
	fs := o.flags()
	fs.SetOutput(io.Discard)
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	switch {
	case fs.NArg() > 0:
		err = fmt.Errorf("%q is not a flag; files are given with -images and -labels", fs.Arg(0))
	case o.np < 0 || o.np > 1024:
		err = fmt.Errorf("-np is %d, want 1…1024, or 0 under a launcher", o.np)
	case o.steps < 1 || o.batch < 1 || o.hidden < 1 || o.report < 1 || o.check < 1:
		err = errors.New("-steps, -batch, -hidden, -report and -check must be 1 or more")
	case o.batch > 1<<20 || o.hidden > 1<<16:
		err = fmt.Errorf("-batch is %d and -hidden %d, want %d and %d at most", o.batch, o.hidden, 1<<20, 1<<16)
	case !(o.rate > 0):
		err = fmt.Errorf("-lr is %v, want more than 0, for example 0.05", o.rate)
	case !(o.momentum >= 0 && o.momentum < 1):
		err = fmt.Errorf("-momentum is %v, want 0 or more and less than 1", o.momentum)
	case (o.images == "") != (o.labels == ""), (o.testImages == "") != (o.testLabels == ""):
		err = errors.New("pictures and labels come together: give both -images and -labels (or -test-images and " +
			"-test-labels) or neither")
	case o.images == "" && o.testImages != "":
		err = errors.New("-test-images needs -images and -labels to train with")
	}
	return o, err
}

// fingerprint is a hash of the flags that must be the same on all ranks.
func (o options) fingerprint() uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, o.steps, o.batch, o.hidden, o.rate, o.momentum, o.seed, o.overlap, o.report, o.check)
	return h.Sum64()
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run carries out the command line and returns the exit status: 2 for a wrong command
// line, 128 plus the signal's number if a signal has killed a rank, 1 for other failures.
func run(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		fs := o.flags()
		fs.SetOutput(stdout)
		fs.PrintDefaults()
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "train: %v (train -h lists all flags)\n", err)
		return 2
	}
	switch {
	case o.np == 0:
		err = rank(o, stdout)
	case o.transport == "inproc":
		err = goroutines(o, stdout)
	default:
		err = processes(o.np, args, stdout, stderr)
	}
	if err == nil {
		return 0
	}
	status := 1
	var e *launch.Error
	if errors.As(err, &e) {
		status = e.ExitStatus()
		if e.Err == nil && e.Signal == 0 {
			return status // the rank has printed its error
		}
	}
	fmt.Fprintf(stderr, "train: %v\n", err)
	return status
}

// processes starts this program again as np ranks.
func processes(np int, args []string, stdout, stderr io.Writer) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	command := append([]string{exe}, args...)
	return launch.Run(context.Background(), launch.Config{
		N: np, Args: append(command, "-np=0"), Stdout: stdout, Stderr: stderr, Prefix: true, Reporter: true,
	})
}

// rank runs one rank of a job that a launcher has started.
func rank(o options, stdout io.Writer) error {
	c, err := ringo.OpenEnv(context.Background(), ringo.Config{Transport: o.transport})
	if err != nil {
		return err
	}
	return member(c, o, stdout)
}

// goroutines runs all ranks in this process.
func goroutines(o options, stdout io.Writer) error {
	comms, err := ringo.OpenLocal(o.np, ringo.Config{Transport: o.transport})
	if err != nil {
		return err
	}
	errs := make([]error, len(comms))
	var wg sync.WaitGroup
	for i, c := range comms {
		wg.Go(func() { errs[i] = member(c, o, stdout) })
	}
	wg.Wait()
	return cmp.Or(errs...)
}

// member trains as a rank of c and closes c. A failure ends all other ranks.
func member(c *ringo.Comm, o options, stdout io.Writer) (err error) {
	defer func() {
		if err != nil {
			c.Abort(err)
		}
		err = errors.Join(err, c.Close())
	}()
	var mine corpus
	if c.Rank() == 0 {
		if mine, err = load(o); err != nil {
			return err
		}
	}
	_, err = train(c, o, mine, stdout)
	return err
}
