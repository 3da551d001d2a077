package verbs

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/ringo-go/ringo/fifo"
)

// A LinkError says that the last rail of a connection has failed.
type LinkError struct {
	Port   string // "mlx5_0:1"
	Peer   string // the port at the other end
	Remote bool   // the peer has noticed the failure
	Reason string
}

func (e *LinkError) Error() string {
	by := ""
	if e.Remote {
		by = "as the peer says, "
	}
	return fmt.Sprintf("link from %s to %s has failed: %s%s; look at the ports with ibstat and at the network between; "+
		"NCCL_IB_TIMEOUT and NCCL_IB_RETRY_CNT set how long it is tried",
		e.Port, e.Peer, by, e.Reason)
}

// gone is the error of a line that has closed, or has broken without goodbye.
func gone(err error) error {
	switch {
	case errors.Is(err, net.ErrClosed):
		return fifo.ErrClosed
	case errors.Is(err, io.EOF):
		err = syscall.ECONNRESET
	}
	return fmt.Errorf("the peer has gone: %w", err)
}
