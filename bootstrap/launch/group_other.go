//go:build !unix

package launch

import (
	"net"
	"os"
	"strconv"
	"syscall"
)

// attributes is nil: there are no process groups here.
func attributes() *syscall.SysProcAttr { return nil }

// kill ends the process: there are no other signals here.
func kill(p *os.Process, _ syscall.Signal) { _ = p.Kill() }

// A reservation is a port of loopback that was free a moment ago.
type reservation struct{ addr string }

func reserve() (*reservation, error) {
	port, err := freePort()
	return &reservation{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}, err
}

func (r *reservation) Close() error { return nil }

func stopped(int) bool { return false }

// A keeper does nothing here: without process groups it cannot end the processes that ranks have started.
type keeper struct{}

func newKeeper() *keeper   { return nil }
func (*keeper) add(int)    {}
func (*keeper) remove(int) {}
func (*keeper) close()     {}
