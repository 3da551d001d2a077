package auth

import (
	"errors"
	"net"
	"syscall"
)

// NoLoopback reports whether a dial has failed for want of a loopback interface that is up, which nobody is about to
// change: a new network namespace has none.
func NoLoopback(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || !errors.Is(err, syscall.ENETUNREACH) {
		return false
	}
	to, ok := op.Addr.(*net.TCPAddr)
	return ok && to.IP.IsLoopback()
}
