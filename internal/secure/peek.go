package secure

import (
	"errors"
	"net"
)

// recordHandshake is the first byte that a caller who speaks TLS sends.
const recordHandshake = 22

// A peeked connection had its first byte read already.
type peeked struct {
	net.Conn
	first []byte
}

func (p *peeked) Read(b []byte) (int, error) {
	if len(p.first) > 0 && len(b) > 0 {
		n := copy(b, p.first)
		p.first = p.first[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}

func (p *peeked) NetConn() net.Conn { return p.Conn }

func (p *peeked) CloseWrite() error { return closeWrite(p.Conn) }

// Below is the connection of the system that c goes over.
func Below(c net.Conn) net.Conn {
	for {
		switch x := c.(type) { // and not a TLS of the program's own
		case *Conn:
			c = x.Conn
		case *peeked:
			c = x.Conn
		default:
			return c
		}
	}
}

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
