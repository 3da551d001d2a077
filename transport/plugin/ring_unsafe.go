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
// All numbers are little-endian.
const (
	headerLen    = 32
	maxSlotBytes = 1 << 30
)

func putHeader(b []byte, slot uint64, n int, s transport.Stamp) {
	_ = b[headerLen-1]
	binary.LittleEndian.PutUint64(b, slot)
	binary.LittleEndian.PutUint64(b[8:], uint64(n))
	binary.LittleEndian.PutUint64(b[16:], s[0])
	binary.LittleEndian.PutUint64(b[24:], s[1])
}

// parseHeader is the length and the stamp of slot number slot in a message of size bytes.
func parseHeader(b []byte, slot uint64, size int) (n int, s transport.Stamp, err error) {
	if size < headerLen || size > len(b) {
		return 0, s, fmt.Errorf("malformed message of %d bytes", size)
	}
	number, length := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	switch {
	case number != slot:
		return 0, s, fmt.Errorf("slot %d where slot %d was due", number, slot)
	case length != uint64(size-headerLen):
		return 0, s, fmt.Errorf("slot of %d bytes in a message of %d", length, size)
	}
	return int(length), transport.Stamp{binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])}, nil
}

// A ring is the memory of an end's slots, pinned for the plugin until it is freed. Messages begin so that
// payloads begin on pages.
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

func (r *ring) free() { r.pin.Unpin() }
