package verbs

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/ringo-go/ringo/internal/ibverbs"
)

// protocol is the context of the handshake (see internal/auth). When both sides have
// proved themselves the dialler sends its hello, and the listener answers with its own.
const protocol = "ringo ib 4"

// A hello describes the rails of one end to the other. It travels as 2 bytes of length,
// big-endian, and JSON.
type hello struct {
	Refused string      `json:",omitempty"` // why the listener wants no connection
	Placed  bool        `json:",omitempty"` // payloads lie apart, at an address that the receiver sends later
	Addr    uint64      // of the receiver's ring
	Rails   []railHello // in an answer one for each rail of the dialler; QPN 0 is none
}

// A railHello is a queue pair and the port that it is on.
type railHello struct {
	Port     string // "mlx5_0:1"
	To       string // the port wanted at the other end, "" for any
	Ethernet bool
	LID      uint16
	GID      ibverbs.GID
	GIDType  ibverbs.GIDType
	MTU      uint32
	QPN, PSN uint32
	RKey     uint32 // of the receiver's ring
}

func (r *rail) hello(rkey uint32) railHello {
	p := r.port
	return railHello{
		Port: p.String(), To: r.to, Ethernet: p.ethernet(), LID: p.attr.LID, GID: p.gid, GIDType: p.gidType,
		MTU: p.attr.ActiveMTU, QPN: r.qp.Num, PSN: r.psn, RKey: rkey,
	}
}

func writeHello(w io.Writer, h *hello) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if len(b) > 0xffff {
		return fmt.Errorf("hello of %d bytes", len(b))
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...))
	return err
}

// readHello reads and checks the hello of a peer that knows the key.
func readHello(r io.Reader) (*hello, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint16(head[:]))
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	h := new(hello)
	if err := json.Unmarshal(b, h); err != nil {
		return nil, fmt.Errorf("malformed hello: %w", err)
	}
	if h.Refused != "" {
		return h, nil
	}
	if len(h.Rails) < 1 || len(h.Rails) > maxRails+1 {
		return nil, fmt.Errorf("malformed hello: %d rails", len(h.Rails))
	}
	for i := range h.Rails {
		r := &h.Rails[i]
		if *r == (railHello{}) {
			continue
		}
		if r.MTU < 1 || r.MTU > 5 || r.QPN>>24 != 0 || r.PSN>>24 != 0 || r.GIDType > ibverbs.GIDRoCE2 {
			return nil, fmt.Errorf("malformed hello: rail %d is %+v", i, *r)
		}
	}
	return h, nil
}
