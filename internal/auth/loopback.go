package auth

import (
	"errors"
	"net"
	"syscall"
)

// NoLoopback reports whether a dial has failed because no loopback interface is up, as in a new network namespace.
// Another try would fail too.
func NoLoopback(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || !errors.Is(err, syscall.ENETUNREACH) {
		return false
	}
	to, ok := op.Addr.(*net.TCPAddr)
	return ok && to.IP.IsLoopback()
}
