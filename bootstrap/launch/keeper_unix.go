//go:build unix

package launch

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
)

// keeperName is the argument 0 of this program as a keeper.
const keeperName = "ringo: keeper"

// init runs the keeper before the program's main, in a process that is started as one.
func init() {
	if os.Args[0] == keeperName {
		keep(os.Stdin)
		os.Exit(0)
	}
}

// A keeper is a process that ends the process groups of the ranks when the launcher is killed. Linux ends the ranks
// then, but not the processes that ranks have started. A keeper is this program again; it learns of the groups, and of
// the launcher's end, by a pipe.
type keeper struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// newKeeper starts a keeper, nil if it cannot: ranks run without one, too.
func newKeeper() *keeper {
	exe, err := os.Executable()
	if err != nil {
		return nil
	}
	cmd := &exec.Cmd{Path: exe, Args: []string{keeperName}, SysProcAttr: &syscall.SysProcAttr{Setpgid: true}}
	pipe, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return nil
	}
	return &keeper{cmd, pipe}
}

// add has the keeper end the group of a process.
func (k *keeper) add(pid int) { k.say(pid) }

// remove removes the group of a process that has ended while the launcher lives.
func (k *keeper) remove(pid int) { k.say(-pid) }

func (k *keeper) say(pid int) {
	if k != nil {
		fmt.Fprintln(k.pipe, pid) // one write, which is atomic
	}
}

// close ends the keeper. All groups must have been removed.
func (k *keeper) close() {
	if k != nil {
		k.pipe.Close()
		k.cmd.Wait()
	}
}

// keep is the main function of a keeper.
func keep(launcher io.Reader) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT) // it ends after the launcher
	groups := map[int]bool{}
	for lines := bufio.NewScanner(launcher); lines.Scan(); {
		switch pid, err := strconv.Atoi(lines.Text()); {
		case err != nil:
		case pid > 1:
			groups[pid] = true
		default:
			delete(groups, -pid)
		}
	}
	for pid := range groups {
		_ = syscall.Kill(-pid, syscall.SIGKILL) // gone already is well
	}
}
