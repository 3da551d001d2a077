// Package freeport finds ports for tests in which another process, or the product, opens a port of a given number.
package freeport

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

var given sync.Map // ports that this process has had, none of them twice

// Port is the number of a TCP port at which nothing listens. Kernels do not hand it out to programs that ask for any
// port, so that it is still free when it is opened.
func Port(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(10_000 + rand.IntN(10_000))
		l, err := net.Listen("tcp", ":"+port)
		if err != nil {
			continue
		}
		l.Close()
		if _, before := given.LoadOrStore(port, true); !before {
			return port
		}
	}
	t.Fatal("no free port")
	return ""
}

// Addr is such a port of loopback, as host:port.
func Addr(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", Port(t))
}
