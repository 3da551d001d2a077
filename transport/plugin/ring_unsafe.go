package plugin

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ringo-go/ringo/transport"
)

// A message is a header and the payload of one slot:
//
//	 0  8  number of the slot, from 0
//	 8  8  length of the payload
//	16 16  stamp
//
// All numbers are little-endian. The payloads of a placed connection are messages of their own,
// on a second comm; there is one for each header, also where it is empty.
const (
	headerLen    = 32
	maxSlotBytes = 1 << 30
)

// A header begins a message.
type header struct {
	n     int // bytes of the payload
	stamp transport.Stamp
}

func (h header) put(b []byte, slot uint64) {
	_ = b[headerLen-1]
	s := h.stamp
	binary.LittleEndian.PutUint64(b, slot)
	binary.LittleEndian.PutUint64(b[8:], uint64(h.n))
	binary.LittleEndian.PutUint64(b[16:], s[0])
	binary.LittleEndian.PutUint64(b[24:], s[1])
}

// parseHeader reads the header of slot number slot; payload is the number of bytes that came with it.
func parseHeader(b []byte, slot uint64, payload int) (h header, err error) {
	_ = b[headerLen-1]
	number, length := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	switch {
	case number != slot:
		return h, fmt.Errorf("slot %d where slot %d was due", number, slot)
	case length != uint64(payload):
		return h, fmt.Errorf("a payload of %d bytes came for a slot of %d", payload, length)
	}
	h.n = payload
	h.stamp = transport.Stamp{binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])}
	return h, nil
}

// A ring is the memory of an end's slots, pinned for the plugin until free. A message begins headerLen
// bytes before a page, so that its payload begins on the page.
type ring struct {
	memory []byte
	slots  [][]byte // header and payload
	pin    runtime.Pinner
}

const page = 4096

func newRing(l transport.Limits) *ring {
	stride := page + (l.SlotBytes+page-1)/page*page
	raw := make([]byte, l.Slots*stride+page)
	skip := -int(addr(unsafe.SliceData(raw))) & (page - 1)
	r := &ring{memory: raw[skip:][:l.Slots*stride]}
	r.pin.Pin(&raw[0])
	for i := range l.Slots {
		r.slots = append(r.slots, r.memory[i*stride+page-headerLen:][:headerLen+l.SlotBytes])
	}
	return r
}

// at is the message of a slot.
func (r *ring) at(slot uint64) []byte { return r.slots[slot%uint64(len(r.slots))] }

// length is the length of the longest message.
func (r *ring) length() int { return len(r.slots[0]) }

func (r *ring) address(slot uint64) uintptr { return addr(unsafe.SliceData(r.at(slot))) }

func (r *ring) free() { r.pin.Unpin() }
