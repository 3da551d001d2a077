// Command mutants measures whether tests notice faults. It plants one small fault at a time, at random lines of the
// whole product, and runs the tests of the package that has it: a mutant whose tests pass lives. Faults reach the
// compiler by an overlay, so the tree stays as it is. See scripts/mutants.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

func main() {
	n := flag.Int("n", 200, "`mutants` that count: they build, and to other code")
	seed := flag.Uint64("seed", 1, "of the choice")
	skip := flag.Int("skip", 0, "leaves out the first `mutants` of the choice, which an earlier run has judged")
	j := flag.Int("j", max(1, runtime.NumCPU()/2), "mutants at once")
	short := flag.Bool("short", false, "run tests with -short")
	list := flag.Bool("list", false, "only list the first n mutants")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: scripts/mutants [flags] [package...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *n, *seed, *skip, *j, *short, *list, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, n int, seed uint64, skip, j int, short, list bool, patterns []string) error {
	packages, err := product(ctx, patterns)
	if err != nil {
		return err
	}
	mutants, err := mutantsOf(packages, rand.New(rand.NewPCG(seed, 0)))
	if err != nil {
		return err
	}
	mutants = mutants[min(skip, len(mutants)):]
	if list {
		for _, m := range mutants[:min(n, len(mutants))] {
			fmt.Println(m)
		}
		return nil
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	h := &hunt{dir: dir, short: short, bases: map[string]*base{}, log: os.Stderr}
	judged := h.judge(ctx, mutants, n, j)
	report(os.Stdout, judged, seed, skip)
	return context.Cause(ctx)
}
