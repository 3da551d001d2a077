package cudaemu

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"unsafe"
)

// A chunk is memory that other processes can map.
type chunk struct {
	fd       int
	label    label
	raw      []byte // all of the file
	data     []byte
	written  []uint64 // nil if not watched
	exported bool     // other processes may have it
	trail    []uint64 // likewise: the last writes and the last reads by processes that share it, see weakmem.Trail
}

// A label is the last page of a chunk: it says whose and what the memory is, to a
// process that has only the descriptor.
type label struct {
	id      uint64 // of the machine and the allocation
	owner   uint64 // the machine
	size    uint64 // of the data
	device  [16]byte
	watched bool
	kind    chunkKind
}

type chunkKind uint8

const (
	chunkAlloc   chunkKind = iota // of MemAlloc
	chunkVirtual                  // of MemCreate
	chunkEvent
	chunkLog // see processLog
)

const (
	labelMagic = 0x72696e676f656d75
	labelBytes = 4096
)

var errNoChunk = errors.New("not memory of an emulated device")

func (l *label) bytes() []byte {
	b := make([]byte, labelBytes)
	put64(b, labelMagic)
	put64(b[8:], l.id)
	put64(b[16:], l.size)
	copy(b[24:40], l.device[:])
	b[40] = byte(boolInt(l.watched))
	b[41] = byte(l.kind)
	put64(b[48:], l.owner)
	return b
}

func parseLabel(b []byte) (l label, err error) {
	if len(b) < labelBytes || get64(b) != labelMagic {
		return l, errNoChunk
	}
	l.id, l.size, l.owner = get64(b[8:]), get64(b[16:]), get64(b[48:])
	copy(l.device[:], b[24:])
	l.watched, l.kind = b[40] != 0, chunkKind(b[41])
	if l.size == 0 || l.size > 1<<46 {
		return l, errNoChunk
	}
	return l, nil
}

func (c *chunk) dataBytes() int { return int(roundUp(c.label.size, labelBytes)) }

// fileBytes is the size of the file: data, bits and label.
func (c *chunk) fileBytes() int64 {
	n := labelBytes + c.dataBytes()
	if c.label.watched {
		n += c.dataBytes()/8 + 2*c.dataBytes()
	}
	return int64(n)
}

// slice points data and written into raw.
func (c *chunk) slice() {
	c.data = c.raw[:c.label.size]
	if c.label.watched {
		bits := c.raw[c.dataBytes() : len(c.raw)-labelBytes]
		words := unsafe.Slice((*uint64)(unsafe.Pointer(&bits[0])), len(bits)/8)
		n := c.dataBytes() / 64
		c.written, c.trail = words[:n:n], words[n:]
	}
}

// counters are the two words of an event that other processes see.
func (c *chunk) counters() *[2]uint64 { return (*[2]uint64)(unsafe.Pointer(&c.data[0])) }

// gone is the word of the label that is not 0 when the owner has freed the memory. Other processes see it.
func (c *chunk) gone() *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&c.raw[len(c.raw)-labelBytes+64]))
}

// hostBytes is host memory at an address.
func hostBytes(p uintptr, n int) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), n)
}

// addressOf is where memory of the host lies.
func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

func put64(b []byte, v uint64) { binary.LittleEndian.PutUint64(b, v) }
func get64(b []byte) uint64    { return binary.LittleEndian.Uint64(b) }

func roundUp(n, to uint64) uint64 { return (n + to - 1) / to * to }

// hash mixes a name and numbers, FNV-1a.
func hash(s string, v ...uint64) uint64 {
	h := uint64(0xcbf29ce484222325)
	add := func(b byte) { h = (h ^ uint64(b)) * 0x100000001b3 }
	for i := range len(s) {
		add(s[i])
	}
	for _, x := range v {
		for i := range 8 {
			add(byte(x >> (8 * i)))
		}
	}
	return h ^ h>>29
}
