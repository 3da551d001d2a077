package socket

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/secure"
)

// broken is the error of a broken connection. The caller adds the operation, the rank
// and the transport.
func broken(err error) error {
	switch {
	case errors.Is(err, net.ErrClosed):
		return fifo.ErrClosed
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // without goodbye
		return fmt.Errorf("the peer has gone: %w", syscall.ECONNRESET)
	case gone(err):
		return fmt.Errorf("the peer has gone: %w", err)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "local error" || op.Op == "remote error") {
		return &TamperedError{op}
	}
	if secure.Altered(err) {
		return &TamperedError{err}
	}
	return err
}

// A TamperedError says that TLS, on this end or the other, has received other bytes than were sent.
type TamperedError struct{ Err error }

func (e *TamperedError) Error() string { return "bytes were changed on the way: " + e.Err.Error() }

func (e *TamperedError) Unwrap() error { return e.Err }
