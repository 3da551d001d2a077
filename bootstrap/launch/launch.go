// Package launch starts the ranks of a job as processes of this machine, as "ringo run" does, and
// waits for them. A rank learns its number by the variables that bootstrap.FromEnv reads.
//
// The trap: when one rank fails the others are killed after Config.Grace, unless they have gone on without
// it by then (ringo.Comm.Shrink).
package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
)

// A Config names the program to start, and the number of processes.
type Config struct {
	N              int       // processes
	Args           []string  // the command: name or path, then its arguments
	Env            []string  // as in exec.Cmd: nil is this process's; the ranks' variables are added
	Stdout, Stderr io.Writer // nil is nowhere

	// Hosts, above 1, makes the ranks believe that they are on so many hosts, in equal blocks: ranks
	// of different blocks share no memory.
	Hosts int

	// Prefix begins every line of rank r with "[r] ". Without it a rank writes straight to the
	// terminal if Stdout is one.
	Prefix bool

	// Reporter says that rank 0 reports for all: its lines have no prefix.
	Reporter bool

	// Restarts is how often a rank that fails is started again, with the same variables except
	// RINGO_RESTART, which counts. The others go on: their communicator has failed, and they may
	// open another one, or fail and be started again too.
	Restarts int

	// Ended is called with how each rank has ended, nil if well, or why it was not started. One goroutine calls it; a nil
	// Ended is not called.
	Ended func(rank int, err *Error)

	// Grace is how long the others may run after the first failure, to end by themselves with their
	// own messages. Ranks that in this time go on without the failed rank (ringo.Comm.Shrink) may run
	// for as long as they like. Stderr names the ranks that are ended. Default 2 s.
	Grace time.Duration
}

// An Error is the end of the rank that failed first.
type Error struct {
	Rank   int
	Status int            // exit status, if Signal is 0
	Signal syscall.Signal // what killed it
	Err    error          // the rank did not start, or its output could not be passed on

	// Stopped are the ranks whose processes were stopped (SIGSTOP) when Rank failed:
	// it may have waited for them. nil on other systems than Linux.
	Stopped []int
}

func (e *Error) Error() string {
	s := fmt.Sprintf("rank %d: %s", e.Rank, e.how())
	for _, rank := range e.Stopped {
		s += fmt.Sprintf("; the process of rank %d is stopped, which may be why", rank)
	}
	return s
}

// how is how the rank ended, as text for bootstrap.Gone; a nil Error is EndedWell.
func (e *Error) how() string {
	switch {
	case e == nil:
		return bootstrap.EndedWell
	case e.Err != nil:
		return e.Err.Error()
	case e.Signal != 0:
		return fmt.Sprintf("killed by signal %d", e.Signal)
	}
	return fmt.Sprintf("exit status %d", e.Status)
}

func (e *Error) Unwrap() error { return e.Err }

// ExitStatus is the exit status for a launcher, as shells count: the rank's own,
// 128 plus the number of its signal, 127 if there is no such program, or 126 if it may not be executed.
func (e *Error) ExitStatus() int {
	switch {
	case errors.Is(e.Err, exec.ErrNotFound), errors.Is(e.Err, fs.ErrNotExist):
		return 127
	case errors.Is(e.Err, fs.ErrPermission):
		return 126
	case e.Err != nil:
		return 1
	case e.Signal != 0:
		return 128 + int(e.Signal)
	}
	return e.Status
}

// Run starts N processes of the command, passes their output on, and returns
// when all have ended: nil if all did with status 0, else an *Error that names
// the rank that a signal killed, or else the first that failed. A failed rank does not count if the
// others have gone on without it (ringo.Comm.Shrink).
//
// Each process has the variables of torchrun (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR,
// MASTER_PORT), and RINGO_RANK, RINGO_SIZE and RINGO_COMM_ID, which is secret. This process serves the rendezvous, so
// ranks that wait for one which has ended before it joined hear so at once. Each rank has a process group of its own.
// SIGINT and SIGTERM to this process go to all ranks. When ctx ends the ranks get SIGTERM, and after Grace SIGKILL. If
// this process is killed, on Unix, the ranks are killed too, with the processes they have started: by a small process
// that is this program again and does nothing else.
func Run(ctx context.Context, c Config) error {
	if c.N < 1 || len(c.Args) == 0 {
		return fmt.Errorf("launch: %d processes of %q: want at least one, and a command", c.N, c.Args)
	}
	if c.Grace == 0 {
		c.Grace = 2 * time.Second
	}
	hub, err := reserve()
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	defer hub.Close()
	master, err := freePort()
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	tls, err := bootstrap.TLSFromEnv(os.Getenv)
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	j := &job{Config: c, master: master, restarts: make([]int, c.N), ended: make(chan int, c.N)}
	j.id, err = bootstrap.NewID(bootstrap.ListenOptions{Addr: hub.addr, Again: true, Launched: c.Restarts == 0, TLS: tls,
		Regrouped: j.regrouped.heard})
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	defer bootstrap.Stop(j.id)
	j.keeper = newKeeper()
	defer j.keeper.close()
	var mu sync.Mutex
	j.stdout, j.stderr = share(c.Stdout, &mu), share(c.Stderr, &mu)
	for rank := range c.N {
		j.cmds = append(j.cmds, j.command(rank))
	}
	return j.run(ctx)
}

type job struct {
	Config
	id             bootstrap.ID
	master         int   // port
	restarts       []int // by rank: how often it was started again
	stdout, stderr io.Writer
	cmds           []*exec.Cmd
	errs           []error  // of Wait, by rank
	ended          chan int // ranks, as they end
	regrouped      regrouping
	keeper         *keeper
}

func (j *job) command(rank int) *exec.Cmd {
	cmd := exec.Command(j.Args[0], j.Args[1:]...)
	env := j.Env
	if env == nil {
		env = os.Environ()
	}
	r, n := strconv.Itoa(rank), strconv.Itoa(j.N)
	cmd.Env = append(env[:len(env):len(env)],
		"RANK="+r, "WORLD_SIZE="+n, "LOCAL_RANK="+r, "LOCAL_WORLD_SIZE="+n,
		"MASTER_ADDR=127.0.0.1", "MASTER_PORT="+strconv.Itoa(j.master),
		"RINGO_RANK="+r, "RINGO_SIZE="+n, "RINGO_LOCAL_RANK="+r, "RINGO_LOCAL_SIZE="+n,
		"RINGO_COMM_ID="+j.id.String(), "RINGO_RESTART="+strconv.Itoa(j.restarts[rank]))
	if j.Hosts > 1 {
		name, _ := os.Hostname()
		host := fmt.Sprintf("%s-%d", name, rank*j.Hosts/j.N)
		cmd.Env = append(cmd.Env, "RINGO_HOSTID="+host, "NCCL_HOSTID="+host)
	}
	cmd.Stdout, cmd.Stderr = j.stdout, j.stderr
	if j.Prefix && (rank > 0 || !j.Reporter) {
		cmd.Stdout, cmd.Stderr = prefixed(j.stdout, rank), prefixed(j.stderr, rank)
	}
	cmd.WaitDelay = j.Grace // a grandchild may keep the output open
	cmd.SysProcAttr = attributes()
	return cmd
}

func (j *job) run(ctx context.Context) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	j.errs = make([]error, j.N)
	done := make(chan struct{})
	defer close(done)
	started, again := make(chan int), make(chan int)
	go j.start(started, again, done)
	running := <-started
	var first *Error
	if running < j.N {
		first = &Error{Rank: running, Err: j.errs[running]}
		bootstrap.Gone(j.id, running, first.how())
		for rank := running; rank < j.N && j.Ended != nil; rank++ {
			j.Ended(rank, &Error{Rank: rank, Err: fmt.Errorf("not started: %w", first.Err)})
		}
	}
	return j.watch(ctx, signals, running, first, func(rank int) bool {
		again <- rank
		return <-started == 1
	})
}

// start starts the processes and sends on started how many it could start; then it restarts the
// ranks that come from again. On Linux a child gets its death signal when the thread that started
// it ends, so this thread stays until done.
func (j *job) start(started chan<- int, again <-chan int, done <-chan struct{}) {
	runtime.LockOSThread()
	n := 0
	for n < j.N && j.startRank(n) {
		n++
	}
	started <- n
	for {
		select {
		case rank := <-again:
			j.restarts[rank]++
			j.cmds[rank] = j.command(rank)
			n = 0
			if j.startRank(rank) {
				n = 1
			}
			started <- n
		case <-done:
			return
		}
	}
}

func (j *job) startRank(rank int) bool {
	cmd := j.cmds[rank]
	if j.errs[rank] = cmd.Start(); j.errs[rank] != nil {
		return false
	}
	j.keeper.add(cmd.Process.Pid)
	go func() {
		j.errs[rank] = cmd.Wait()
		j.keeper.remove(cmd.Process.Pid)
		finish(cmd.Stdout)
		finish(cmd.Stderr)
		j.ended <- rank
	}()
	return true
}
