//go:build unix

// Package random tests programs that chance has written: collectives, groups of messages cut from one order, calls that are started,
// Split, Grow and Shrink, by goroutines and by processes, of which one may end in the midst of it all. Those that are left have
// the right data or an error of the end, at once, and go on together.
package random

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// patience is how long a program may take.
const patience = 90 * time.Second

// TestPrograms runs programs. RINGO_PROGRAMS is a number of them, RINGO_PROGRAMS_SEED the first one's seed; scripts/random-programs sets both.
func TestPrograms(t *testing.T) {
	n, seed := tier.Count(60, 400), uint64(1)
	if v, err := strconv.Atoi(os.Getenv("RINGO_PROGRAMS")); err == nil {
		n = v
	}
	if v, err := strconv.ParseUint(os.Getenv("RINGO_PROGRAMS_SEED"), 10, 64); err == nil {
		seed = v
	}
	for way, run := range map[string]func(program) []error{"goroutines": inGoroutines, "processes": inProcesses} {
		t.Run(way, func(t *testing.T) {
			many := n
			if way == "processes" {
				many = (n + 4) / 5
			}
			for i := range uint64(many) {
				p := programOf(seed+i, way == "processes")
				began := time.Now()
				require.NoError(t, within(func() error { return errors.Join(run(p)...) }), "%v", p)
				if took := time.Since(began); took > time.Second {
					t.Logf("%v took %v", p, took)
				}
			}
		})
	}
}

// within is f's error, or all stacks if it does not return.
func within(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		stacks := make([]byte, 1<<22)
		return fmt.Errorf("hangs:\n%s", stacks[:runtime.Stack(stacks, true)])
	}
}

// inGoroutines runs a program in this process.
func inGoroutines(p program) []error {
	comms, err := ringo.OpenLocal(p.members, p.config())
	if err != nil {
		return []error{err}
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	run := func(m *member) {
		if err := m.run(); err != nil {
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		}
	}
	var spawn func(id bootstrap.ID, rank, size int, number, step int32)
	spawn = func(id bootstrap.ID, rank, size int, number, step int32) {
		all.Go(func() {
			cfg := p.config()
			cfg.ID, cfg.Rank, cfg.Size = &id, rank, size
			if c, err := ringo.Open(context.Background(), cfg); err == nil { // else one has ended that was to meet it
				run(&member{program: p, number: number, step: step, c: c, spawn: spawn})
			}
		})
	}
	for r, c := range comms {
		all.Go(func() { run(&member{program: p, number: int32(r), c: c, spawn: spawn}) })
	}
	all.Wait()
	return errs
}

// inProcesses runs a program with a process a member.
func inProcesses(p program) []error {
	id, err := ringo.NewID("127.0.0.1:0")
	if err != nil {
		return []error{err}
	}
	defer bootstrap.Stop(id)
	var all sync.WaitGroup
	errs := make([]error, p.members)
	for r := range errs {
		all.Go(func() {
			cmd := command(p.seed, id, r, p.members, int32(r), 0)
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &said
			err := cmd.Run()
			if p.end.how == "kill" && r == p.end.member {
				return
			}
			if err != nil {
				errs[r] = fmt.Errorf("member %d: %w: %s", r, err, &said)
			}
		})
	}
	all.Wait()
	return errs
}

func command(seed uint64, id bootstrap.ID, rank, size int, number, step int32) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "RINGO_TEST_RANK=random", fmt.Sprint("RINGO_PROGRAMS_SEED=", seed), "RINGO_COMM_ID="+id.String(),
		fmt.Sprint("RINGO_RANK=", rank), fmt.Sprint("RINGO_SIZE=", size), fmt.Sprint("RINGO_TEST_NUMBER=", number), fmt.Sprint("RINGO_TEST_STEP=", step))
	return cmd
}

func TestMain(m *testing.M) {
	if os.Getenv("RINGO_TEST_RANK") == "" {
		os.Exit(m.Run())
	}
	seed, err := strconv.ParseUint(os.Getenv("RINGO_PROGRAMS_SEED"), 10, 64)
	number, bad := strconv.Atoi(os.Getenv("RINGO_TEST_NUMBER"))
	step, wrong := strconv.Atoi(os.Getenv("RINGO_TEST_STEP"))
	if err = errors.Join(err, bad, wrong); err != nil {
		exit(2, err)
	}
	p := programOf(seed, true)
	time.AfterFunc(patience-5*time.Second, func() {
		stacks := make([]byte, 1<<22)
		exit(3, "hangs:", string(stacks[:runtime.Stack(stacks, true)]))
	})
	c, err := ringo.OpenEnv(context.Background(), p.config())
	if err != nil {
		if step > 0 { // one has ended that was to meet it
			os.Exit(0)
		}
		exit(4, "Open:", err)
	}
	var children []*exec.Cmd
	r := &member{program: p, number: int32(number), step: int32(step), c: c}
	r.spawn = func(id bootstrap.ID, rank, size int, number, step int32) {
		cmd := command(seed, id, rank, size, number, step)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			exit(5, err)
		}
		children = append(children, cmd)
	}
	r.ends = func(how string) {
		if how == "kill" {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		os.Exit(0)
	}
	if err := r.run(); err != nil {
		exit(6, err)
	}
	for _, cmd := range children {
		if err := cmd.Wait(); err != nil {
			exit(7, "a member that came in:", err)
		}
	}
}
