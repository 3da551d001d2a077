package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"unicode"
)

// Sockets are what a program listens on and dials with in place of Ringo's own TCP sockets: for TLS of the program's
// own, a service mesh, a tunnel. They carry the data between ranks that the socket transport joins, and Dial also goes
// to the rendezvous; see bootstrap.ListenOptions.Listener for the process that serves it. Ranks of one process or host
// still use its memory, unless Config.Transport is "socket".
//
// All ranks have Sockets or none. Networks other than sockets are not used with them, nor are unix sockets.
// Both ends prove that they have the job's key, as always; what else protects the bytes is the program's
// affair, or Config.TLS's, which goes over these connections too.
//
// The trap: a connection must end when its peer's host does, by keep-alive or otherwise, and must keep deadlines, as
// net.Conn says. On Linux a connection that is no *net.TCPConn or *net.UnixConn costs a copy and three goroutines more
// at each end.
type Sockets struct {
	// Listener is where other ranks reach this one, nil for a TCP port of Ringo's as without Sockets. The communicators
	// that have these Sockets share it, and the last one to be closed closes it.
	Listener net.Listener
	// Address is what other ranks give their Dial to reach Listener: any text of at most 400 bytes without blanks and #,
	// such as the name of a service. By default it is Listener.Addr(), which does for one interface; a listener on all of
	// them ("0.0.0.0" or "[::]"), or on a link-local address, needs an Address.
	Address string
	// Dial connects to another rank's Address, or to the "host:port" of one that has no Listener or of the rendezvous.
	// network is "tcp". Nil is a net.Dialer. ctx is for the dialling alone: it ends soon after, and the connection goes
	// on. An error is tried again for a while; one that wraps ECONNREFUSED says that nobody listens there.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

const maxSocketsAddress = 400

// Reached is what other ranks dial to reach the Listener.
func (s *Sockets) Reached() (string, error) {
	addr := s.Address
	if addr == "" {
		addr = s.Listener.Addr().String()
	}
	if ip, _, err := net.SplitHostPort(addr); err == nil &&
		(ip == "" || net.ParseIP(ip) != nil && net.ParseIP(ip).IsUnspecified()) {
		return "", fmt.Errorf("Config.Sockets: address %q is every interface: set Sockets.Address to where the other ranks "+
			"reach this one", addr)
	}
	bad := func(r rune) bool { return r == '#' || unicode.IsSpace(r) || !unicode.IsPrint(r) }
	if addr == "" || len(addr) > maxSocketsAddress || strings.IndexFunc(addr, bad) >= 0 {
		return "", fmt.Errorf("Config.Sockets: address %q: want at most %d bytes without blanks and #; set Sockets.Address "+
			"to what the other ranks' Dial takes", addr, maxSocketsAddress)
	}
	return addr, nil
}

// Dialer is Dial with errors that name it, nil if there is none.
func (s *Sockets) Dialer() func(ctx context.Context, network, address string) (net.Conn, error) {
	if s == nil || s.Dial == nil {
		return nil
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := s.Dial(ctx, network, address)
		if err == nil && c == nil {
			err = errors.New("it returned neither a connection nor an error")
		}
		if err != nil {
			return nil, fmt.Errorf("Config.Sockets.Dial(%q): %w", address, err)
		}
		return c, nil
	}
}
