// Fifo-leak runs the two programs that make the work FIFO of other libraries stall, and shows
// that Ringo's has nothing to leak:
//
//	go run ./bench/fifo-leak                                  emulated GPUs, scaled down
//	go run ./bench/fifo-leak -device cuda -peer nccl          real ones, NCCL beside it
//
// See README.md for the programs and what they find.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ringo-go/ringo/internal/nccl"
)

const usage = `fifo-leak runs NVIDIA/nccl #1251's program, and a group of thousands of all-reduces.

  go run ./bench/fifo-leak                            2 emulated GPUs, scaled down
  go run ./bench/fifo-leak -device cuda               2 real ones, at full length
  go run ./bench/fifo-leak -device cuda -peer nccl    NCCL beside it, killed at the limit

Flags:
`

// options are the flags.
type options struct {
	device, peer, library string
	rings, programs       string
	gpus, calls, group    int
	limit                 time.Duration

	child string // of a child: the library that it uses
}

// The lengths of the programs: those of the reports, and what the emulator carries out in some seconds.
const (
	fullCalls, fullGroup = 100_000, 12_000
	emuCalls, emuGroup   = 50, 2_000
)

func parse(args []string) (o options, err error) {
	fs := flag.NewFlagSet("fifo-leak", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.device, "device", "emu", "emu: emulated GPUs, or cuda: the machine's")
	fs.IntVar(&o.gpus, "g", 2, "GPUs")
	fs.IntVar(&o.calls, "n", 0, fmt.Sprintf("eager `calls` after the capture (default %d, %d on emulated GPUs)",
		fullCalls, emuCalls))
	fs.IntVar(&o.group, "group", 0, fmt.Sprintf("all-reduces in one `group` (default %d, %d on emulated GPUs)",
		fullGroup, emuGroup))
	fs.StringVar(&o.programs, "program", "leak,group", "which of leak and group")
	fs.StringVar(&o.rings, "ring", "default,smallest",
		"the FIFO's length: default, smallest, or a number of bytes; a list")
	fs.StringVar(&o.peer, "peer", "", "nccl: run the same with NCCL; its stall is shown and is no failure")
	fs.StringVar(&o.library, "nccl", nccl.Default, "NCCL's `file`")
	fs.DurationVar(&o.limit, "limit", 5*time.Minute, "a run that takes longer is killed")
	fs.StringVar(&o.child, "child", "", "carry out one run of this library; for fifo-leak itself")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Print(usage)
			fs.SetOutput(os.Stdout)
			fs.PrintDefaults()
		}
		return o, err
	}
	emu := o.device == "emu"
	if o.calls == 0 {
		o.calls = pick(emu, emuCalls, fullCalls)
	}
	if o.group == 0 {
		o.group = pick(emu, emuGroup, fullGroup)
	}
	switch {
	case fs.NArg() > 0:
		err = fmt.Errorf("%q is not a flag", fs.Arg(0))
	case !emu && o.device != "cuda":
		err = fmt.Errorf("-device is %q, want emu or cuda", o.device)
	case o.peer != "" && o.peer != "nccl":
		err = fmt.Errorf("-peer is %q, want nccl or nothing", o.peer)
	case o.peer != "" && emu:
		err = errors.New("-peer nccl needs real GPUs: give -device cuda")
	case o.gpus < 1 || o.calls < 0 || o.group < 1 || o.limit <= 0:
		err = errors.New("-g, -n, -group and -limit must be positive")
	}
	for _, p := range strings.Split(o.programs, ",") {
		if !slices.Contains([]string{"leak", "group"}, p) && err == nil {
			err = fmt.Errorf("-program is %q, want leak, group or both", o.programs)
		}
	}
	for _, r := range strings.Split(o.rings, ",") {
		if _, wrong := ringEnv("ringo", r); wrong != nil && err == nil {
			err = wrong
		}
	}
	return o, err
}

func pick[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}

func main() {
	o, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
	case o.child != "":
		err = child(&o, os.Stdout)
	default:
		err = all(&o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fifo-leak:", err)
		os.Exit(1)
	}
}
