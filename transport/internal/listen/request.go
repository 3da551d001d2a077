package listen

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/auth"
	"github.com/ringo-go/ringo/transport"
)

// A Request describes the connection that a dialling rank wants.
type Request struct {
	From, To int
	Limits   transport.Limits
	Rest     []byte // defined by the transport
}

const requestLen = 3*4 + 8

func (r *Request) bytes() []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(r.From))
	b = binary.BigEndian.AppendUint32(b, uint32(r.To))
	b = binary.BigEndian.AppendUint32(b, uint32(r.Limits.Slots))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Limits.SlotBytes))
	return append(b, r.Rest...)
}

func parseRequest(b []byte) (r Request, err error) {
	if len(b) < requestLen {
		return r, fmt.Errorf("request of %d bytes", len(b))
	}
	u32 := func(i int) int { return int(binary.BigEndian.Uint32(b[i:])) }
	return Request{
		From: u32(0), To: u32(4),
		Limits: transport.Limits{Slots: u32(8), SlotBytes: int(binary.BigEndian.Uint64(b[12:]))},
		Rest:   b[requestLen:],
	}, nil
}

// suits says why a rank with cfg refuses the connection, nil if it accepts.
func (r *Request) suits(cfg *transport.Config) error {
	switch here := cfg.Self.Rank; {
	case r.To != here:
		return fmt.Errorf("rank %d was dialled, but this is rank %d", r.To, here)
	case r.Limits != cfg.Limits:
		return fmt.Errorf("rank %d has queues of %d slots of %d bytes, rank %d of %d slots of %d bytes: set the same "+
			"everywhere",
			r.From, r.Limits.Slots, r.Limits.SlotBytes, here, cfg.Limits.Slots, cfg.Limits.SlotBytes)
	}
	return nil
}

// A Refusal is the answer of a listener that knows the key and does not want the
// connection.
type Refusal struct{ Reason string }

func (e *Refusal) Error() string { return "refused: " + e.Reason }

// MaxReason is the most bytes of a reason that are sent.
const MaxReason = 1024

// Answer is the listener's side of the handshake on c. want may refuse a request
// that suits cfg. If the error is nil, c is trusted and has no deadline any more.
// After an error the caller closes c.
func Answer(c net.Conn, at *Endpoint, cfg *transport.Config, protocol string, want func(*Request) error) (*Request,
	error) {
	var r Request
	refused := errors.New("not asked")
	err := auth.Answer(c, cfg.Key, protocol, func(body []byte) []byte {
		if !at.Trust(c) {
			refused = fifo.ErrClosed
			return nil
		}
		if r, refused = parseRequest(body); refused == nil {
			refused = r.suits(cfg)
		}
		if refused == nil {
			refused = want(&r)
		}
		if refused == nil {
			return nil
		}
		reason := refused.Error()
		return []byte(reason[:min(len(reason), MaxReason)])
	})
	if err == nil {
		err = refused
	}
	return &r, err
}
