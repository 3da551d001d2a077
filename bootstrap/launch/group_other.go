//go:build !unix

package launch

import (
	"io"
	"net"
	"os"
	"strconv"
)

// newParent is this process: without process groups nothing can end the processes that ranks have started.
func newParent(*os.File) parent { return direct{} }

// drain reads nothing: what is left in a pipe cannot be read without waiting.
func drain(*os.File, io.Writer) error { return nil }

// A reservation is a port of loopback that was free a moment ago.
type reservation struct{ addr string }

func reserve() (*reservation, error) {
	port, err := freePort()
	return &reservation{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}, err
}

func (r *reservation) Close() error { return nil }

func stopped(int) bool { return false }

func isTerminal(*os.File) bool { return false }
