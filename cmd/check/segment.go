package check

import (
	"context"
	"net"
	"syscall"
)

// smallSegment is the most payload of a packet on connections of control, in both directions. A path that drops large
// packets passes such ones, so that reports come and the path can be named.
const smallSegment = 440

// dialSmall is dialSegments for connections of control: to the rendezvous and to rank 0.
func dialSmall(ctx context.Context, from, to string) (net.Conn, error) {
	return dialSegments(ctx, from, to, smallSegment)
}

// dialSegments connects, with packets of at most so much payload in both directions if segment is not 0.
func dialSegments(ctx context.Context, from, to string, segment int) (net.Conn, error) {
	d := net.Dialer{Timeout: callTime}
	if from != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	if segment > 0 { // before connecting, since the other side learns of it then
		d.Control = func(_, _ string, c syscall.RawConn) error {
			_ = c.Control(func(fd uintptr) { limitSegments(fd, segment) })
			return nil
		}
	}
	return d.DialContext(ctx, "tcp", to)
}
