package verbs

import (
	"encoding/binary"
	"fmt"

	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

var _ transport.Placer = (*Transport)(nil)

// DialPlaced connects to peer as Dial does, and sends slots from the caller's memory. It does not wait
// for AcceptPlaced: Free is 0 until then.
func (t *Transport) DialPlaced(peer transport.Info, addr []byte, slots mem.Region) (transport.PlacedSendConn, error) {
	m, err := t.known(slots)
	var c *sendConn
	if err == nil {
		c, err = t.dial(peer, string(addr), payloadArea{slots, m})
	}
	if err != nil {
		return nil, fmt.Errorf("ib: dial rank %d: %w", peer.Rank, err)
	}
	return c, nil
}

// AcceptPlaced waits until peer has dialled, and tells peer the address of slots.
func (t *Transport) AcceptPlaced(peer transport.Info, slots mem.Region) (transport.PlacedRecvConn, error) {
	m, err := t.known(slots)
	var c *recvConn
	if err == nil {
		c, err = t.take(peer, true)
	}
	if err == nil {
		if err = c.offer(payloadArea{slots, m}); err != nil {
			c.refuse(err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("ib: accept rank %d: %w", peer.Rank, err)
	}
	return c, nil
}

// A payloadArea is the memory of an end's payloads; the zero value is for payloads that follow their headers.
type payloadArea struct {
	slots mem.Region
	in    *memory
}

// put makes an end use the payloadArea. The caller is inside, or the end has not begun.
func (p payloadArea) put(c *conn) {
	c.payloads = p.slots
	for _, r := range c.rails {
		if p.in != nil {
			r.placed = p.in.mrs[r.port.dev]
		}
	}
}

// offer tells the sender the address of the payloads' memory.
func (c *recvConn) offer(p payloadArea) error {
	if err := c.enter(); err != nil {
		return err
	}
	p.put(c.conn)
	c.readBack = p.in.readBack
	for _, r := range c.rails {
		if at := r.phase(); !c.readBack || at != railUp && at != railTried { // else rejoin makes it
			continue
		}
		if err := r.loopback(&c.t.opt); err != nil {
			c.fail(r, err.Error(), false)
		}
	}
	c.control.say(target{addr: uint64(p.slots.Ptr())}.message(c.rails))
	c.leave()
	return nil
}

// refuse ends a connection that this rank refuses, and tells the peer why.
func (c *recvConn) refuse(why error) {
	c.control.say(message{kind: goodbye, text: why.Error()})
	_ = c.Close()
}

// A target is the memory to which a sender writes payloads.
type target struct {
	addr uint64
	keys []uint32 // of the rails
}

// message tells the peer the target: the address, and a key of 4 bytes for each rail, big-endian.
func (p target) message(rails []*rail) message {
	var keys []byte
	for _, r := range rails {
		keys = binary.BigEndian.AppendUint32(keys, r.placed.RKey)
	}
	return message{kind: placed, count: p.addr, text: string(keys)}
}

func parseTarget(m message, rails int) (*target, error) {
	p := &target{addr: m.count}
	for keys := []byte(m.text); len(keys) >= 4; keys = keys[4:] {
		p.keys = append(p.keys, binary.BigEndian.Uint32(keys))
	}
	if len(m.text) != 4*rails {
		return nil, fmt.Errorf("malformed target: %d bytes for %d rails", len(m.text), rails)
	}
	return p, nil
}

// pieces are the parts of slot number n: the whole slot, or its header and its payload.
func (c *sendConn) pieces(n uint64, r *rail) (what, payload piece) {
	length, at := c.slot(n).length, uint64(c.shape.at(n))
	what = piece{from: c.area.addr() + at, to: c.to + at, length: length, lkey: c.area.mrs[r.port.dev].LKey,
		rkey: r.peer.RKey, byValue: true}
	if c.shape.apart {
		what.length = headerLen
		at, there := uint64(c.shape.payloadAt(n)), c.there.Load()
		payload = piece{from: uint64(c.payloads.Ptr()) + at, to: there.addr + at, length: length - headerLen,
			lkey: r.placed.LKey, rkey: there.keys[r.index]}
	}
	return what, payload
}
