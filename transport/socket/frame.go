package socket

import (
	"encoding/binary"
	"fmt"

	"github.com/ringo-go/ringo/transport"
)

// A frame is a header and the payload of one slot. The header is of 32 bytes,
// so that a payload that follows it in aligned memory is aligned too:
//
//	 0  2  magic
//	 2  1  kind
//	 3  1  flags
//	 4  4  length of the payload
//	 8  8  number of the slot, from 0
//	16 16  stamp
//
// All numbers are little-endian.
const (
	headerLen    = 32
	headerMagic  = 0x7352
	maxSlotBytes = 1 << 30
)

type kind uint8

const (
	kindSlot    kind = 1
	kindGoodbye kind = 2 // the sender closed; nothing follows
)

// Flags say what the receiver must do after it has consumed the slot.
const (
	flagLent uint8 = 1 << iota // give a credit back: the sender's memory is lent to the kernel
	flagSoon                   // at once: the sender waits for it
	flagsAll = flagLent | flagSoon
)

type header struct {
	kind   kind
	flags  uint8
	length int
	slot   uint64
	stamp  transport.Stamp
}

func (h header) put(b []byte) {
	_ = b[headerLen-1]
	binary.LittleEndian.PutUint16(b, headerMagic)
	b[2], b[3] = byte(h.kind), h.flags
	binary.LittleEndian.PutUint32(b[4:], uint32(h.length))
	binary.LittleEndian.PutUint64(b[8:], h.slot)
	binary.LittleEndian.PutUint64(b[16:], h.stamp[0])
	binary.LittleEndian.PutUint64(b[24:], h.stamp[1])
}

// parseHeader reads the header of slot number slot, whose payload may have at
// most max bytes. The error is a *FrameError.
func parseHeader(b []byte, slot uint64, max int) (header, error) {
	if len(b) < headerLen {
		return header{}, &FrameError{fmt.Sprintf("header of %d bytes", len(b))}
	}
	h := header{
		kind: kind(b[2]), flags: b[3],
		slot:  binary.LittleEndian.Uint64(b[8:]),
		stamp: transport.Stamp{binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])},
	}
	length := binary.LittleEndian.Uint32(b[4:])
	switch {
	case binary.LittleEndian.Uint16(b) != headerMagic:
		return header{}, &FrameError{fmt.Sprintf("begins with %x", b[:2])}
	case h.kind != kindSlot && h.kind != kindGoodbye:
		return header{}, &FrameError{fmt.Sprintf("unknown kind %d", h.kind)}
	case h.flags&^flagsAll != 0:
		return header{}, &FrameError{fmt.Sprintf("unknown flags %#x", h.flags)}
	case int64(length) > int64(max), h.kind == kindGoodbye && length != 0:
		return header{}, &FrameError{fmt.Sprintf("%d bytes announced, at most %d fit", length, max)}
	case h.kind == kindSlot && h.slot != slot:
		return header{}, &FrameError{fmt.Sprintf("slot %d where slot %d was due", h.slot, slot)}
	}
	h.length = int(length)
	return h, nil
}

// A FrameError is a frame header that no sender of this package writes.
type FrameError struct{ Reason string }

func (e *FrameError) Error() string { return "malformed frame: " + e.Reason }
