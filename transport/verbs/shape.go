package verbs

import (
	"encoding/binary"
	"fmt"

	"github.com/ringo-go/ringo/transport"
)

// A shape is the layout of a connection's memory, the same at both ends: a ring of
// slots, each with its header right before its payload, so that a slot is one write.
//
//	slot 0: 32 bytes unused │ header 32 │ payload, a multiple of 64 bytes
//	slot 1: …
//
// The ring has more slots than the queue: the receiver may keep up to lag credits back,
// and the sender still has all slots of the queue. In a placed connection the ring has as
// many slots as the queue, for headers alone, and the receiver gives every credit at once:
// payloads lie in memory of the caller, without gaps.
type shape struct {
	ring, lag int // slots
	stride    int // bytes of a slot
	max       int // payload
	apart     bool
}

const (
	headerLen = 32
	lineLen   = 64
)

func shapeOf(l transport.Limits) shape {
	lag := max(1, l.Slots/2)
	return shape{ring: l.Slots + lag, lag: lag, stride: lineLen + (l.SlotBytes+lineLen-1)/lineLen*lineLen,
		max: l.SlotBytes}
}

// form is the shape of a Transport's connections, placed or not.
func (t *Transport) form(placed bool) shape {
	if !placed {
		return t.shape
	}
	return shape{ring: t.cfg.Limits.Slots, lag: 1, stride: lineLen, max: t.cfg.Limits.SlotBytes, apart: true}
}

func (s shape) size() int { return s.ring * s.stride }

// at is the offset of the header of slot number n in the ring.
func (s shape) at(n uint64) int { return int(n%uint64(s.ring))*s.stride + lineLen - headerLen }

// payloadAt is the offset of the payload of slot number n in the slots of a placed connection.
func (s shape) payloadAt(n uint64) int { return int(n%uint64(s.ring)) * s.max }

// wrote is the length of the write that carries the immediate for a payload: where payloads lie apart,
// the payload's write, or the header's if the payload is empty.
func (s shape) wrote(payload int) int {
	if s.apart && payload > 0 {
		return payload
	}
	return headerLen + payload
}

// A header travels before the payload, little-endian:
//
//	 0  4  magic
//	 4  4  length of the payload
//	 8  8  number of the slot, from 0
//	16 16  stamp
type header struct {
	length int
	slot   uint64
	stamp  transport.Stamp
}

const headerMagic = 0x6d627276

func (h header) put(b []byte) {
	_ = b[headerLen-1]
	binary.LittleEndian.PutUint32(b, headerMagic)
	binary.LittleEndian.PutUint32(b[4:], uint32(h.length))
	binary.LittleEndian.PutUint64(b[8:], h.slot)
	binary.LittleEndian.PutUint64(b[16:], h.stamp[0])
	binary.LittleEndian.PutUint64(b[24:], h.stamp[1])
}

// header reads the header of slot number slot, which a write of wrote bytes announced.
func (s shape) header(b []byte, slot uint64, wrote int) (h header, err error) {
	h = header{
		length: int(binary.LittleEndian.Uint32(b[4:])), slot: binary.LittleEndian.Uint64(b[8:]),
		stamp: transport.Stamp{binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])},
	}
	if binary.LittleEndian.Uint32(b) != headerMagic || h.slot != slot || s.wrote(h.length) != wrote || h.length > s.max {
		return h, fmt.Errorf("malformed slot %d: a write of %d bytes that begins with %x", slot, wrote, b[:16])
	}
	return h, nil
}
