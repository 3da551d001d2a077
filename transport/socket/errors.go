package socket

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/ringo-go/ringo/fifo"
)

// broken is the error of a broken connection. The caller adds the operation, the rank
// and the transport.
func broken(err error) error {
	switch {
	case errors.Is(err, net.ErrClosed):
		return fifo.ErrClosed
	case errors.Is(err, io.EOF): // without goodbye
		return fmt.Errorf("the peer has gone: %w", syscall.ECONNRESET)
	case gone(err):
		return fmt.Errorf("the peer has gone: %w", err)
	}
	return err
}
