package launch

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A parent starts the processes of a job, and ends what they have left running. Its methods are for one goroutine.
type parent interface {
	// start starts a program with standard input, output and error. The error is that of os.StartProcess.
	start(p program, files [3]*os.File) (*process, error)
	// signal sends s to a process and its group, if it has one of its own. It does nothing once the process has ended.
	signal(p *process, s syscall.Signal)
	// tidy sends SIGTERM to the rest of the group of an ended process.
	tidy(p *process)
	// end ends the leftovers of all processes, once these have ended.
	end() leftovers
	// close returns when the parent itself has ended.
	close()
}

// A program is a command line and its environment.
type program struct {
	path      string
	args, env []string
	here      bool // in the launcher's process group, and not in one of its own
}

// A process is a started program.
type process struct {
	pid, number int
	child       *os.Process   // of a direct parent
	ended       chan struct{} // closed at its end

	mu      sync.Mutex
	how     ending // once ended is closed
	stopped string // the signal that has stopped it, "" while it runs
}

// An ending is how a process has ended.
type ending struct {
	status int
	signal syscall.Signal
	err    error // how it ended is unknown
}

func newProcess(pid, number int) *process {
	return &process{pid: pid, number: number, ended: make(chan struct{})}
}

func (p *process) end(how ending) {
	p.how = how
	close(p.ended)
}

// halt notes a signal, by which the process has stopped, "" if it goes on.
func (p *process) halt(signal string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = signal
}

// halted returns the signal of a stopped process, "" if it runs. It asks the parent and /proc: a debugger hides the
// first answer, some containers the second.
func (p *process) halted() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped == "" && stopped(p.pid) {
		return "SIGSTOP"
	}
	return p.stopped
}

// Leftovers are the processes still running at the end of the last rank.
type leftovers struct {
	Ended []leftover // they run no more
	Away  []leftover // in a session of their own, and left alone
	Stuck []leftover // killed, and still there
}

// A leftover is a process started by a rank.
type leftover struct {
	Pid     int
	Command string
}

// maxNamed bounds the leftovers of a message: thousands of ranks may leave some each.
const maxNamed = 8

// named is a list of leftovers for a message.
func named(list []leftover) string {
	var names []string
	for i, l := range list {
		if i == maxNamed {
			names = append(names, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		names = append(names, fmt.Sprintf("%d (%s)", l.Pid, l.Command))
	}
	return strings.Join(names, ", ")
}

// text returns lines for standard error, "" for none. They name ended processes only if the job went well: a failed one
// has told more already.
func (l leftovers) text(who string, well bool) (s string) {
	if well && len(l.Ended) > 0 {
		s += fmt.Sprintf("launch: ended %s, left running by %s: wait for what is started if its work counts\n",
			named(l.Ended), who)
	}
	if len(l.Away) > 0 {
		s += fmt.Sprintf("launch: still running, for it has a session of its own (setsid): %s; end it with: kill%s\n",
			named(l.Away), numbers(l.Away))
	}
	if len(l.Stuck) > 0 {
		s += fmt.Sprintf("launch: cannot end %s: killed %v ago and still there, as when a driver does not answer or it is "+
			"another user's\n", named(l.Stuck), killTime)
	}
	return s
}

// numbers is the numbers of leftovers, each after a space.
func numbers(list []leftover) (s string) {
	for _, l := range list {
		s += fmt.Sprint(" ", l.Pid)
	}
	return s
}

const (
	// quietTime is the time of leftovers to end by themselves: helpers of ranks remove shared memory then.
	quietTime = 100 * time.Millisecond
	// leftTime is the time of leftovers to end after a SIGTERM.
	leftTime = 500 * time.Millisecond
	// killTime is the time of the kernel to end killed processes.
	killTime = 5 * time.Second
)

// A direct parent is this process, where there is no keeper. It knows nothing of what ranks have left running.
type direct struct{}

func (direct) start(p program, files [3]*os.File) (*process, error) {
	child, err := os.StartProcess(p.path, p.args, &os.ProcAttr{Env: p.env, Files: files[:]})
	if err != nil {
		return nil, err
	}
	started := newProcess(child.Pid, 0)
	started.child = child
	go func() {
		state, err := child.Wait()
		how := ending{err: err}
		if err == nil {
			how = endingOf(state)
		}
		started.end(how)
	}()
	return started, nil
}

func (direct) signal(p *process, s syscall.Signal) {
	if p.child.Signal(s) != nil { // some systems have no other signals
		_ = p.child.Kill() // an error means that it has ended already
	}
}

func (direct) tidy(*process)  {}
func (direct) end() leftovers { return leftovers{} }
func (direct) close()         {}

// endingOf is how a child of this process has ended.
func endingOf(state *os.ProcessState) ending {
	if s, ok := state.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return ending{signal: s.Signal()}
	}
	return ending{status: state.ExitCode()}
}
