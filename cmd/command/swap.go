package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ringo-go/ringo/bootstrap/launch"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/internal/trusted"
)

// swapHelp is what "ringo swap -h" prints.
const swapHelp = `usage: ringo swap [flags] -- PROGRAM [arguments]

Runs a program that uses NCCL, as it is, with this project's libnccl.so.2 in its
place. Then says which library its processes have really used, what they called,
and whether a call was answered by "not there".

Examples
  ringo swap -- python train.py
  ringo swap -- torchrun --nproc-per-node 8 train.py
  ringo swap -compare -ignore '[0-9.]+ s' -- python train.py
  ringo swap -host -- ./program     buffers in host memory, no GPU
  ringo swap -g 4 -- ./program      emulated GPUs

{nccl compare ignore host g gpu kit time}

Exit status: the program's; with -compare 1 if the two differ.
`

// A swap is the flags and the program of ringo swap. Its emulation names the program and the emulated GPUs, if any.
type swap struct {
	library string
	folder  string // of the library, as the loader takes it
	compare bool
	ignore  *regexp.Regexp // parts of lines that -compare ignores; nil for none
	host    bool           // on host memory
	emulation
}

func runSwap(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var s swap
	fs := flags("swap")
	fs.StringVar(&s.library, "nccl", "", "`FILE` the library (default: what the sources here or above build, "+
		"by Go and gcc, into the user's cache; without sources one beside ringo or in a folder build, if of ringo's "+
		"version)")
	fs.BoolVar(&s.compare, "compare", false, "run it with the NCCL that it has, then with this one: how long "+
		"both took, and where what they print first differs")
	ignore := fs.String("ignore", "", "`REGEXP` what -compare leaves out of each line, such as times")
	fs.BoolVar(&s.host, "host", false, "host memory in the place of GPUs: RINGO_HOST=1")
	gpusFlag(fs, &s.GPUs, 0, "g `N` emulated GPUs")
	kindFlag(fs, &s.Kind, "gpu `KIND` their kind, as of ringo emulate")
	fs.StringVar(&s.kit, "kit", "", "`FOLDER` the libraries of emulated GPUs, as of ringo emulate")
	cli.Duration(fs, &s.limit, 0, "time `D` end the program after this time (default: never)")
	program, err := cli.ParseFirst(fs, args)
	if err != nil {
		return err
	}
	if err := s.check(program, *ignore); err != nil {
		return err
	}
	s.program, s.environment = program, os.Environ()
	if s.GPUs > 0 {
		if s.kit, err = findKit(ctx, s.kit, stderr); err != nil {
			return err
		}
	}
	if s.library, err = findNCCL(ctx, s.library, stderr); err != nil {
		return err
	}
	s.folder = filepath.Dir(s.library)
	for _, folder := range []*string{&s.kit, &s.folder} {
		var remove func()
		if *folder, remove, err = forLoader(*folder); err != nil {
			return err
		}
		defer remove()
	}
	if s.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.limit, fmt.Errorf("ran out of time after %v (-time)", s.limit))
		defer cancel()
	}
	if s.compare {
		return s.runBoth(ctx, stdout, stderr)
	}
	r, err := s.once(ctx, s.library, stdout, stderr)
	if err != nil {
		return err
	}
	if err := r.print(cli.Text(stdout), s.library); err != nil {
		return err
	}
	if r.status != 0 {
		return cli.ExitStatus(r.status)
	}
	return nil
}

// check finds mistakes in a command line.
func (s *swap) check(program []string, ignore string) (err error) {
	switch {
	case len(program) == 0:
		return cli.Usagef("which program? write: ringo swap -- python train.py")
	case s.host && s.GPUs > 0:
		return cli.Usagef("-host has no GPUs, and -g %d emulated ones: want one of them", s.GPUs)
	case s.compare && (s.host || s.GPUs > 0):
		return cli.Usagef("-compare runs NCCL, which has neither -host nor -g")
	case ignore != "" && !s.compare:
		return cli.Usagef("-ignore is of -compare")
	}
	if ignore != "" {
		if s.ignore, err = regexp.Compile(ignore); err != nil {
			return cli.Usagef("-ignore: %v", err)
		}
	}
	return nil
}

// once runs the program with a library in front, "" for none, and reads the report of its processes.
func (s *swap) once(ctx context.Context, library string, stdout, stderr io.Writer) (*swapReport, error) {
	dir, err := temporary("ringo-swap")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "report")
	cmd := exec.Command(s.program[0], s.program[1:]...)
	cmd.Env = with(s.environment, map[string]string{reportVariable: file})
	if s.GPUs > 0 {
		cmd.Env = s.emulated(cmd.Env, 0, file)
	}
	if s.host {
		cmd.Env = with(cmd.Env, map[string]string{"RINGO_HOST": strconv.FormatBool(true)})
	}
	if library != "" {
		cmd.Env = before(cmd.Env, "LD_PRELOAD", filepath.Join(s.folder, filepath.Base(library)))
	}
	count := filepath.Join(s.folder, countFile)
	r := &swapReport{calls: map[string]*swapCalls{}}
	if isFile(count) {
		r.uncounted = trusted.Paths(count) // -nccl names the library beside it alone
	} else {
		r.uncounted = fmt.Errorf("there is no %s beside %s (scripts/libnccl builds both)", countFile, s.library)
	}
	if r.uncounted == nil {
		cmd.Env = before(cmd.Env, "LD_PRELOAD", count)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, stderr
	begun := time.Now()
	err = launch.Program(ctx, cmd)
	r.took = time.Since(begun)
	var ended *launch.Error
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &ended) && ended.Err == nil:
		r.status = ended.ExitStatus()
	case err != nil:
		return nil, err
	}
	return r, r.read(file)
}

// runBoth runs the program with its own NCCL, then with Ringo's.
func (s *swap) runBoth(ctx context.Context, stdout, stderr io.Writer) error {
	var runs [2]*swapReport
	var printed [2]lineTimes
	for i, library := range []string{"", s.library} {
		fmt.Fprintf(stderr, "ringo swap: with %s\n", [...]string{"the program's own NCCL", library}[i])
		printed[i].began = time.Now()
		var err error
		if runs[i], err = s.once(ctx, library, io.MultiWriter(stdout, &printed[i]), stderr); err != nil {
			return err
		}
	}
	same, err := printComparison(cli.Text(stdout), s.library, runs, &printed, s.ignore)
	if err == nil && !same {
		return cli.ExitStatus(1)
	}
	return err
}

// lineTimes keeps the lines that a program prints, and their times since it began.
type lineTimes struct {
	began time.Time
	lines []string
	at    []time.Duration
	rest  string // of a line that has not ended
}

func (l *lineTimes) Write(b []byte) (int, error) {
	parts := strings.Split(l.rest+string(b), "\n")
	l.rest = parts[len(parts)-1]
	for _, line := range parts[:len(parts)-1] {
		l.lines, l.at = append(l.lines, line), append(l.at, time.Since(l.began))
	}
	return len(b), nil
}
