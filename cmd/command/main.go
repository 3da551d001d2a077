// Package command is the command ringo: it measures, explains and simulates collective
// communication, and starts programs that use it. "ringo help" says how.
//
// It is a package so that a program may define algorithms of its own (ringo.Define) and then
// be the command for them: see examples/schedule. The trap: "ringo bench" starts the program
// again for each rank, so each of these processes must define the algorithms, before Main.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap/launch"
	"github.com/ringo-go/ringo/cmd/check"
	"github.com/ringo-go/ringo/internal/cli"
)

// A command is a subcommand. Its help is a text for cli.HelpError. run gets the arguments after its name.
type command struct {
	name, what, help string
	run              func(ctx context.Context, args []string, stdout, stderr io.Writer) error
	raw              bool // other programs write to its outputs, or it draws on a terminal
}

// commands is filled by init to let help refer to it.
var commands []command

func init() {
	commands = []command{
		{"bench", "measure collectives and verify every element", benchHelp, runBench, true},
		{"run", "start a program as several ranks on this machine", runHelp, runRun, true},
		{"why", "say why ranks hang or have failed, from what they have written", whyHelp, runWhy, true},
		{"check", "say whether GPUs, links and hosts are well", check.Help, check.Command, false},
		{"info", "say what this machine has and what would be used", infoHelp, runInfo, false},
		{"explain", "say how a collective would be carried out, and why", explainHelp, runExplain, false},
		{"sim", "time a collective on paper, for up to a million ranks", simHelp, runSim, false},
		{"play", "play schedules step by step on a page for the browser", playHelp, runPlay, false},
		{"probe", "measure a GPU: copies, combines, launches", probeHelp, runProbe, false},
		{"tune", "measure which algorithm is best, and write a plan", tuneHelp, runTune, true},
		{"ptx", "find races and other faults of kernels in PTX, without a GPU", ptxHelp, runPTX, false},
		{"emulate", "run a CUDA program on emulated GPUs, and say what is wrong with it", emulateHelp, runEmulate, true},
		{"swap", "run a program of NCCL with this library in its place", swapHelp, runSwap, true},
		{"plot", "draw reports that bench has saved", plotHelp, runPlot, false},
		{"completion", "print a script for a shell's completion", completionHelp, runCompletion, false},
	}
}

// Main carries out the command line of the process, and exits. It does not return.
func Main() {
	os.Exit(ringoMain(untilInterrupted(), os.Args[1:], os.Stdout, os.Stderr))
}

// sameSignal is how long a second signal counts as the first: timeout(1) sends its to the process and to the group.
const sameSignal = 300 * time.Millisecond

// untilInterrupted is a context that the first SIGINT or SIGTERM ends. The second signal ends the process at once.
func untilInterrupted() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { time.AfterFunc(sameSignal, stop) })
	return ctx
}

// ringoMain carries out a command line and returns the exit status: 0 if all
// went well, 2 for a mistake in the command line, 1 otherwise.
func ringoMain(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, overview())
		return 2
	}
	name, args := args[0], args[1:]
	switch name {
	case "help", "-h", "-help", "--help":
		if len(args) == 0 {
			fmt.Fprint(stdout, overview())
			return 0
		}
		if len(args) == 2 && args[1] == "all" {
			return helpAll(args[0], stdout, stderr)
		}
		name, args = args[0], []string{"-h"}
	case completeCommand:
		complete(stdout, args)
		return 0
	case "version", "-version", "--version":
		fmt.Fprintln(stdout, "ringo", ringo.Version)
		return 0
	}
	c, err := commandOf(name)
	if err != nil {
		return noCommand(err, stderr)
	}
	if !c.raw {
		stdout, stderr = cli.Text(stdout), cli.Text(stderr)
	}
	return report(c, c.run(ctx, args, stdout, stderr), stdout, cli.Text(stderr))
}

// commandOf is the command of that name.
func commandOf(name string) (command, error) {
	for _, c := range commands {
		if c.name == name {
			return c, nil
		}
	}
	return command{}, cli.Unknown("command", name, append(commandNames(), "help", "version"))
}

// noCommand prints the error of commandOf and returns the exit status.
func noCommand(err error, stderr io.Writer) int {
	fmt.Fprintf(cli.Text(stderr), "ringo: %v\nringo help lists the commands\n", err)
	return 2
}

// helpAll prints the whole help of a command.
func helpAll(name string, stdout, stderr io.Writer) int {
	c, err := commandOf(name)
	if err != nil {
		return noCommand(err, stderr)
	}
	fmt.Fprint(stdout, c.whole())
	return 0
}

// whole returns the whole help of the command.
func (c command) whole() string { return c.asked().Help(c.help, false) }

// asked returns the flags that the command defines, as when help is asked for.
func (c command) asked() *cli.HelpError {
	asked, _ := errors.AsType[*cli.HelpError](c.run(context.Background(), []string{"-h"}, io.Discard, io.Discard))
	return asked
}

// flags returns the flags that the command explains, each with its dash.
func (c command) flags() (names []string) {
	c.asked().Flags.VisitAll(func(f *flag.Flag) {
		if f.Usage != "" {
			names = append(names, "-"+f.Name)
		}
	})
	return names
}

// mostHelp is the most lines that a command prints for -h: a screen.
const mostHelp = 40

// brief returns what the command prints for -h.
func (c command) brief() string {
	whole := c.whole()
	if strings.Count(whole, "\n") <= mostHelp {
		return whole
	}
	return c.asked().Help(c.help, true) + fmt.Sprintf("\"ringo help %s all\" says more.\n", c.name)
}

// report turns the error of a command into its message and exit status.
func report(c command, err error, stdout, stderr io.Writer) int {
	var usage *cli.UsageError
	var ended *launch.Error
	var status cli.ExitStatus
	switch {
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, c.brief())
		return 0
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "ringo %s: %v\nringo %s -h explains\n", c.name, err, c.name)
		return 2
	case errors.As(err, &status):
		return int(status)
	}
	fmt.Fprintf(stderr, "ringo %s: %v\n", c.name, err)
	if errors.As(err, &ended) {
		return ended.ExitStatus()
	}
	return 1
}

func overview() string {
	text := `Ringo: collective communication in Go.

usage: ringo COMMAND [flags] [arguments]

`
	for _, c := range commands {
		text += fmt.Sprintf("  %-11s%s\n", c.name, c.what)
	}
	return text + `  version    print the version
  help       print this, or the flags of a command: ringo help COMMAND
Try:
  ringo bench allreduce -np 4             four processes all-reduce, verified and timed
  ringo explain allreduce -np 4 -s 1M     which algorithm, why, and its steps
  ringo COMMAND -h                        flags and examples

Exit status: 0 well, 1 it failed, 2 a mistake in the command line. docs/command.md
has those of check, why and run.
`
}

// programName is the name by which this program was started.
func programName() string {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	if name == "" || name == "." {
		return "ringo"
	}
	return name
}
