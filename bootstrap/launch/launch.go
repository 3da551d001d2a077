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
	"strconv"
	"syscall"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/trace/history"
)

// A Config names the program to start, and the number of processes.
type Config struct {
	N              int       // processes
	Args           []string  // the command: name or path, then its arguments
	Env            []string  // as in exec.Cmd: nil is this process's; the ranks' variables are added
	Stdout, Stderr io.Writer // nil is nowhere

	// Stdin is the standard input of rank 0, as with mpirun; others read an empty one, and rank 0 does if Stdin is nil or
	// a terminal: a rank is in no terminal's foreground, so that Ctrl-C goes to the launcher alone.
	Stdin *os.File

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

	// GraceFlag is the flag that sets Grace, for texts that name it; empty if there is none.
	GraceFlag string
}

// An Error is the end of the rank that failed first.
type Error struct {
	Rank   int            // -1 of a Program
	Status int            // exit status, if Signal is 0
	Signal syscall.Signal // what killed it
	Err    error          // the rank did not start, or its output could not be passed on

	// Stopped are the ranks whose processes were stopped (SIGSTOP) when Rank failed:
	// it may have waited for them. nil where there are no such signals.
	Stopped []int

	// Blamed is the failure that the ranks agreed on, if its culprits are others than Rank: ranks that fail because of
	// another may end before it.
	Blamed *bootstrap.Failure
}

func (e *Error) Error() string {
	s := e.how()
	if e.Rank >= 0 {
		s = fmt.Sprintf("rank %d: %s", e.Rank, s)
	}
	for _, rank := range e.Stopped {
		s += fmt.Sprintf("; the process of rank %d is stopped, which may be why", rank)
	}
	if e.Blamed != nil {
		s += fmt.Sprintf("; the ranks blame %s: %v", history.Ranks(e.Blamed.Culprits), e.Blamed)
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

// had is how, for a sentence about the past.
func (e *Error) had() string {
	switch {
	case e.Err != nil:
		return "had failed: " + e.how()
	case e.Signal != 0:
		return "was " + e.how()
	}
	return fmt.Sprintf("had failed with status %d", e.Status)
}

func (e *Error) Unwrap() error { return e.Err }

// ExitStatus is the exit status for a launcher, as shells count: the rank's own,
// 128 plus the number of its signal, 127 if there is no such program, or 126 if it cannot be executed.
func (e *Error) ExitStatus() int {
	var path *fs.PathError
	var name *exec.Error
	switch {
	case errors.Is(e.Err, exec.ErrNotFound), errors.Is(e.Err, fs.ErrNotExist):
		return 127
	case errors.As(e.Err, &name), errors.As(e.Err, &path) && path.Op == startOp:
		return 126
	case e.Err != nil:
		return 1
	case e.Signal != 0:
		return 128 + int(e.Signal)
	}
	return e.Status
}

// startOp is the operation of a PathError for a program that cannot be started, as of os.StartProcess.
const startOp = "fork/exec"

// Run starts N processes of the command, passes their output on, and returns
// when all have ended: nil if all did with status 0, else an *Error that names
// the rank that a signal killed, or else the first that failed. A failed rank does not count if the
// others have gone on without it (ringo.Comm.Shrink).
//
// Each process has the variables of torchrun (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR,
// MASTER_PORT), and RINGO_RANK, RINGO_SIZE and RINGO_COMM_ID, which is secret. This process serves the rendezvous, so
// ranks that wait for one which has ended before it joined hear so at once. Each rank has a process group of its own.
// SIGINT and SIGTERM to this process go to all ranks. When ctx ends the ranks get SIGTERM, and after Grace SIGKILL.
//
// What ranks have started ends with the job, or if this process is killed: on Linux all of it, on other Unix what has
// not left the rank's process group. Processes in a session of their own (setsid) are left alone, and Stderr names
// them. The ranks' parent is a small process that is this program again. On Windows what ranks have started is left.
func Run(ctx context.Context, c Config) error {
	if c.N < 1 || len(c.Args) == 0 {
		return fmt.Errorf("launch: %d processes of %q: want at least one, and a command", c.N, c.Args)
	}
	if c.Grace < 0 {
		return fmt.Errorf("launch: a grace of %v: want 0, which is the default, or more", c.Grace)
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
	j := newJob(c)
	j.master = master
	j.id, err = bootstrap.NewID(bootstrap.ListenOptions{Addr: hub.addr, Again: true, Launched: c.Restarts == 0, TLS: tls,
		Regrouped: j.regrouped.heard, Failed: j.blamed.heard})
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	defer bootstrap.Stop(j.id)
	j.parent = newParent(fileOf(c.Stderr))
	defer j.parent.close()
	return j.run(ctx)
}

type job struct {
	Config
	id             bootstrap.ID
	master         int   // port
	restarts       []int // by rank: how often it was started again
	stdout, stderr *sink
	processes      []*process // by rank
	streams        []*stream
	outputs        [][]*stream // by rank: those of its last process
	ended          chan int    // ranks, as they end
	regrouped      regrouping
	blamed         blame
	parent         parent
}

func newJob(c Config) *job {
	j := &job{Config: c, restarts: make([]int, c.N), processes: make([]*process, c.N), outputs: make([][]*stream, c.N),
		ended: make(chan int, c.N)}
	j.stdout, j.stderr = sinks(c.Stdout, c.Stderr)
	return j
}

// command is the program as a rank's.
func (j *job) command(rank int) (program, error) {
	cmd := exec.Command(j.Args[0], j.Args[1:]...)
	if cmd.Path == "" {
		return program{}, &exec.Error{Name: j.Args[0], Err: exec.ErrNotFound}
	}
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
	return program{path: cmd.Path, args: cmd.Args, env: cmd.Environ()}, cmd.Err
}

func (j *job) run(ctx context.Context) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	var first *Error
	running := 0
	for running < j.N && first == nil {
		if err := j.start(running); err != nil {
			first = &Error{Rank: running, Err: err}
		} else {
			running++
		}
	}
	if first != nil {
		bootstrap.Gone(j.id, running, first.how())
		for rank := running; rank < j.N && j.Ended != nil; rank++ {
			j.Ended(rank, &Error{Rank: rank, Err: fmt.Errorf("not started: %w", first.Err)})
		}
	}
	return j.watch(ctx, signals, running, first)
}

// outputTime is how long the end of a rank waits for its last words: what it has started may hold its output open.
const outputTime = 100 * time.Millisecond

// start starts a rank's process.
func (j *job) start(rank int) error {
	p, err := j.command(rank)
	if err != nil {
		return err
	}
	prefix := ""
	if j.Prefix && (rank > 0 || !j.Reporter) {
		prefix = fmt.Sprintf("[%d]", rank)
	}
	var in *os.File
	if rank == 0 && j.Stdin != nil && !isTerminal(j.Stdin) {
		in = j.Stdin
	}
	process, streams, err := begin(j.parent, p, in, j.stdout.of(prefix), j.stderr.of(prefix))
	if err != nil {
		return err
	}
	j.processes[rank] = process
	j.streams = append(j.streams, streams...)
	j.outputs[rank] = streams
	go func() {
		<-process.ended
		ctx, cancel := context.WithTimeout(context.Background(), outputTime)
		defer cancel()
		await(ctx, streams)
		j.ended <- rank
	}()
	return nil
}
