package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// counted are the packages whose executed files are compared with a walk: all that carry out
// calls, without the emulator. The program itself has to be among them.
const counted = "./core/... ./engine/... ./fifo/... ./kernels/... ./mem ./ring/... ./sched/... ./trace/... " +
	"./transport/... ./bootstrap/... " +
	"./gpu ./internal/cuda . ./internal/test/walked"

// executed compares the files that an AllReduce executes with each walk: the walk has to name all
// of these, and no others, "at times" and "at first" aside.
func executed(root string, walks []walk) (text string, err error) {
	dir, err := os.MkdirTemp("", "walk")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "walked")
	run := func(name string, args ...string) error {
		c := exec.Command(name, args...)
		c.Dir, c.Stderr = root, os.Stderr
		c.Env = append(os.Environ(), "GOCOVERDIR="+dir) // for the coverage of the walked program
		if err := c.Run(); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(c.Args, " "), err)
		}
		return nil
	}
	packages := strings.ReplaceAll(counted, " ", ",")
	if err := run("go", "build", "-cover", "-covermode=atomic", "-coverpkg="+packages, "-o", program,
		"./internal/test/walked"); err != nil {
		return "", err
	}
	var b strings.Builder
	var errs []error
	for _, w := range walks {
		counts := filepath.Join(dir, w.name)
		profile := counts + ".txt"
		if err := os.Mkdir(counts, 0o755); err != nil {
			return "", err
		}
		if err := errors.Join(run(program, w.name, counts),
			run("go", "tool", "covdata", "textfmt", "-i="+counts, "-o="+profile)); err != nil {
			return "", err
		}
		lines, err := os.ReadFile(profile)
		if err != nil {
			return "", err
		}
		files := filesOf(string(lines))
		fmt.Fprintf(&b, "an AllReduce on %s executes %d files\n", w.on, len(files))
		errs = append(errs, w.compare(files)...)
	}
	return b.String(), errors.Join(errs...)
}

// filesOf are the files with executed lines in a coverage profile, without those of the program
// itself.
func filesOf(profile string) []string {
	files := map[string]bool{}
	for _, line := range strings.Split(profile, "\n") {
		name, rest, _ := strings.Cut(line, ":")
		_, file, ok := strings.Cut(name, "/ringo-go/ringo/")
		if ok && !strings.HasSuffix(rest, " 0") && !under(file, "internal/test") {
			files[file] = true
		}
	}
	return slices.Sorted(maps.Keys(files))
}

// compare says which files are executed and not in the walk, and the other way round.
func (w walk) compare(files []string) (errs []error) {
	here := w.files()
	for _, f := range files {
		if _, ok := here[f]; !ok {
			errs = append(errs, fmt.Errorf("an AllReduce on %s executes %s, which %s.txt does not name", w.on, f, w.name))
		}
	}
	for _, f := range slices.Sorted(maps.Keys(here)) {
		if here[f] && !slices.Contains(files, f) {
			errs = append(errs, fmt.Errorf("an AllReduce on %s does not execute %s, which %s.txt names", w.on, f, w.name))
		}
	}
	return errs
}
