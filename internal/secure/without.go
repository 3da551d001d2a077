//go:build ringo_notls

// Package secure is without TLS in a program with -tags ringo_notls: what asks for it is an error, and a caller who
// speaks it is turned away.
package secure

import (
	"errors"
	"io"
	"net"
)

var errWithout = errors.New("tls: this program is built without it (-tags ringo_notls)")

// A Config is never made.
type Config struct{}

// New returns an error.
func New(cert, key, ca string) (*Config, error) { return nil, errWithout }

// String is "off".
func (c *Config) String() string { return "off" }

// A Conn is never made.
type Conn struct{ net.Conn }

// Client returns an error.
func (c *Config) Client(net.Conn) (*Conn, error) { return nil, errWithout }

// Server returns an error.
func (c *Config) Server(net.Conn) (*Conn, error) { return nil, errWithout }

// NetConn is the connection below.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// CloseWrite returns an error.
func (c *Conn) CloseWrite() error { return errWithout }

// Binding returns an error.
func (c *Conn) Binding() ([]byte, error) { return nil, errWithout }

// Move does nothing.
func (c *Conn) Move(io.ReadWriter) {}

// Either returns an error if the caller speaks TLS.
func (c *Config) Either(conn net.Conn) (_ net.Conn, sealed bool, err error) {
	first := make([]byte, 1)
	if _, err := io.ReadFull(conn, first); err != nil {
		return nil, false, err
	}
	if first[0] == recordHandshake {
		return nil, true, errWithout
	}
	return &peeked{conn, first}, false, nil
}

// Altered is false.
func Altered(error) bool { return false }
