package verbs

import (
	"github.com/ringo-go/ringo/internal/test/conntest"
	"github.com/ringo-go/ringo/transport"
)

// flow sends messages of all sizes and calls between before each. It returns the errors
// of both ends.
func flow(s transport.SendConn, r transport.RecvConn, messages int, between func(i int)) (sent, received error) {
	done := make(chan error)
	go func() { done <- receiveAll(r, 0, messages) }()
	sent = sendAll(s, 0, messages, between)
	return sent, <-done
}

func (c *conn) first() *rail { return c.rails[0] }

// size is the length of message i.
func (c *conn) size(i int) int { return i * 37 % (c.shape.max + 1) }

func sendAll(s transport.SendConn, from, to int, between func(i int)) error {
	size := s.(interface{ size(i int) int }).size
	for i := from; i < to; i++ {
		if between != nil {
			between(i)
		}
		if err := conntest.PutAll(s, i, i+1, size); err != nil {
			return err
		}
	}
	return nil
}

func receiveAll(r transport.RecvConn, from, to int) error {
	return conntest.GetAll(r, from, to, r.(interface{ size(i int) int }).size)
}
