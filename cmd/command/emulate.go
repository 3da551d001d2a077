package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringo-go/ringo/bootstrap/launch"
	"github.com/ringo-go/ringo/internal/cli"
)

// emulateHelp is what "ringo emulate -h" prints.
const emulateHelp = `usage: ringo emulate [flags] -- PROGRAM [arguments]

Runs a CUDA program on emulated GPUs, without a GPU: a program that is linked
with libcudart.so.12 or .13, libcuda.so.1 or libnccl.so.2 as shared libraries
gets those of this project instead. Then says what was found: races, bad
addresses, reads of what nothing wrote, deadlocks, calls that failed, what was
not given back; and how often which kernel and function of NCCL ran.

Examples
  build/cuda/bin/nvcc -o add add.cu && ringo emulate -- ./add
  ringo emulate -g 4 -seeds 20 -- ./all_reduce_perf -g 4 -b 8 -e 64K -c 1

scripts/cuda-kit builds the libraries, and bin/nvcc in front of clang. Programs
compiled by NVIDIA's nvcc need PTX in them, such as by -gencode
arch=compute_90,code=compute_90, and -cudart shared.

{g gpu seeds seed shrink kit time wait allow json}

Exit status: 0 if the program's was 0 and nothing was found, 2 for a mistake in
the command line, 1 otherwise.
`

// An emulation is one run of a program on emulated GPUs, or several under different seeds.
type emulation struct {
	GPUs        int
	Kind        string
	Seeds       int
	First       uint64
	Shrink      bool
	wait, limit time.Duration
	allow       allowed
	kit         string
	program     []string
	environment []string
}

func runEmulate(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var e emulation
	fs := flags("emulate")
	e.GPUs, e.Seeds, e.wait = 1, 1, time.Minute
	gpusFlag(fs, &e.GPUs, 1, "g `N` GPUs (default 1)")
	kindFlag(fs, &e.Kind, "gpu `KIND` their kind: v100, t4, a100, l4, h100 or h200. Without it they are "+
		"small ones of capability 9.0, which is quickest")
	cli.Int(fs, &e.Seeds, 1, mostSeeds, "at least 1, and at most a million seeds",
		"seeds `N` run the program N times, each with another order of threads, stores and copies (default 1)")
	fs.Uint64Var(&e.First, "seed", 0, "`N` the first seed (default 0)")
	fs.BoolVar(&e.Shrink, "shrink", false, "make the schedule of each failure short, by up to 400 more runs "+
		"for each: which few decisions of a seed it needs")
	fs.Var(&e.allow, "allow", "`CALL=ERROR` take a failed call for right, such as cudaMalloc=*; * stands for "+
		"any call or any error. May be repeated")
	fs.StringVar(&e.kit, "kit", "", "`FOLDER` what scripts/cuda-kit has built (default: what the sources here "+
		"or above build, or one beside ringo or in build/cuda)")
	cli.Duration(fs, &e.wait, cli.Moment, "wait `D` how long a call of NCCL may wait while nothing moves on "+
		"any GPU (default 1m), unless RINGO_TIMEOUT is set; a program that calls no driver for ten times as long is "+
		"ended")
	cli.Duration(fs, &e.limit, 0, "time `D` end the program after this time (default: never)")
	asJSON := fs.Bool("json", false, "print a report as JSON, version 1; what the program prints goes to "+
		"standard error")
	program, err := cli.ParseFirst(fs, args)
	if err != nil {
		return err
	}
	if len(program) == 0 {
		return cli.Usagef("which program? write: ringo emulate -g 4 -- ./program")
	}
	if e.kit, err = findKit(ctx, e.kit, stderr); err != nil {
		return err
	}
	if _, err := exec.LookPath(program[0]); err != nil {
		return cli.Usagef("%v", err)
	}
	var remove func()
	if e.kit, remove, err = forLoader(e.kit); err != nil {
		return err
	}
	defer remove()
	e.program, e.environment = program, os.Environ()
	if e.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, e.limit, fmt.Errorf("ran out of time after %v (-time)", e.limit))
		defer cancel()
	}
	out := stdout
	if *asJSON {
		out = stderr
	}
	r, err := e.run(ctx, out, stderr)
	if *asJSON {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		err = errors.Join(err, enc.Encode(r))
	} else {
		err = errors.Join(err, r.print(cli.Text(stdout)))
	}
	if err != nil {
		return err
	}
	if r.Status != 0 || len(r.Findings) > 0 {
		return cli.ExitStatus(1)
	}
	return nil
}

// run runs the program under all seeds, one after the other.
func (e *emulation) run(ctx context.Context, stdout, stderr io.Writer) (*emulateReport, error) {
	r := newEmulateReport(e)
	dir, err := temporary("ringo-emulate")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	bar := cli.NewProgress(stderr)
	defer bar.Clear()
	var took time.Duration
	for i := range e.Seeds {
		if e.Seeds > 1 {
			bar.Show(fmt.Sprintf("%d seeds", e.Seeds), float64(i)/float64(e.Seeds))
		}
		seed := e.First + uint64(i)
		begun := time.Now()
		file := filepath.Join(dir, strconv.FormatUint(seed, 10))
		right, err := e.once(ctx, seed, file, stdout, stderr, r)
		if err != nil && r.Stopped == "" { // it did not begin
			return r, err
		}
		r.Ran++
		if err := errors.Join(err, r.read(file, seed, right)); err != nil {
			return r, err
		}
		took = max(took, time.Since(begun))
	}
	if e.Shrink {
		bar.Clear()
		return r, e.shrink(ctx, r, took, stderr)
	}
	return r, nil
}

// once runs the program under one seed, and reports whether the program ended with status 0. The program's processes
// append their lines to file.
func (e *emulation) once(ctx context.Context, seed uint64, file string, stdout, stderr io.Writer,
	r *emulateReport) (right bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go e.watch(ctx, file, cancel)
	cmd := exec.Command(e.program[0], e.program[1:]...)
	cmd.Env = e.emulated(e.environment, seed, file)
	if count := filepath.Join(e.kit, countFile); isFile(count) {
		cmd.Env = before(cmd.Env, "LD_PRELOAD", count)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, stderr
	err = launch.Program(ctx, cmd)
	var ended *launch.Error
	switch {
	case ctx.Err() != nil:
		err := context.Cause(ctx)
		r.Stopped = err.Error()
		return false, err
	case errors.As(err, &ended) && ended.Err == nil:
		if r.Status == 0 {
			r.Status = ended.ExitStatus()
			r.Ended, r.endedSeed = ended.Error(), seed
		}
		return false, nil
	}
	return err == nil, err
}

// reportVariable names the file to which the libraries in a program append what they saw of its kernels and calls.
const reportVariable = "RINGO_EMULATE_REPORT"

// emulated is env for a program on emulated GPUs, whose libraries write their report to file.
func (e *emulation) emulated(env []string, seed uint64, file string) []string {
	env = with(env, map[string]string{
		"RINGO_EMULATE": strconv.Itoa(e.GPUs), "RINGO_EMULATE_GPU": e.Kind,
		"RINGO_EMULATE_SEED": strconv.FormatUint(seed, 10),
		reportVariable:       file,
	})
	for name, d := range map[string]time.Duration{"RINGO_TIMEOUT": e.patience(), "RINGO_JOIN_TIMEOUT": 3 * e.patience()} {
		// Without one, as under ringo swap, the library's own bounds count.
		if d > 0 && !slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") }) {
			env = append(env, name+"="+d.String())
		}
	}
	return before(env, "LD_LIBRARY_PATH", e.kit)
}

// with is env with other values for some names; a name with an empty value is removed.
func with(env []string, values map[string]string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		_, ok := values[name]
		return ok
	})
	for name, v := range values {
		if v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// before puts path at the front of the colon-separated list that env has under name.
func before(env []string, name, path string) []string {
	for i, v := range env {
		if have, ok := strings.CutPrefix(v, name+"="); ok && have != "" {
			env[i] = name + "=" + path + ":" + have
			return env
		}
	}
	return append(env, name+"="+path)
}
