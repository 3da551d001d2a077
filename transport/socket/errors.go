package socket

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/ringo-go/ringo/fifo"
)

// A PeerError is a connection that broke: the peer died, the network did, or
// bytes came that no peer of ours sends.
type PeerError struct {
	Op   string // "send to" or "recv from"
	Peer int
	Err  error // a syscall.Errno or a *FrameError
}

func (e *PeerError) Error() string {
	return fmt.Sprintf("%s rank %d over socket: %v", e.Op, e.Peer, e.Err)
}

func (e *PeerError) Unwrap() error { return e.Err }

// peerError says what happened to the connection, with the peer's number. Ends
// that this side asked for stay what they are.
func peerError(op string, peer int, err error) error {
	var pe *PeerError
	switch {
	case err == nil, err == fifo.ErrClosed, errors.As(err, &pe):
		return err
	case errors.Is(err, net.ErrClosed):
		return fifo.ErrClosed
	case errors.Is(err, io.EOF):
		err = syscall.ECONNRESET // an end without goodbye is a death
	}
	return &PeerError{Op: op, Peer: peer, Err: err}
}
