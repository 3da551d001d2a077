package fifo

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/ringo-go/ringo/mem"
)

// Alignments of a queue's memory: of headers and slots, and of the first payload.
const (
	lineBytes = 64
	pageBytes = 4096
)

// control is the start of a queue's memory; see Producer.
type control struct {
	consumer atomic.Uint32 // state of an end: running, parked or closed
	producer atomic.Uint32
	_        [120]byte
	released atomic.Uint64
	_        [120]byte
}

// header describes the message in a slot, and contains its payload if that is short.
type header struct {
	word   atomic.Uint64
	stamp  Stamp
	inline [InlineBytes]byte
	_      [lineBytes]byte
}

const (
	controlBytes = int(unsafe.Sizeof(control{}))
	headerBytes  = int(unsafe.Sizeof(header{}))
)

func roundUp(n, to int) int { return (n + to - 1) / to * to }

func (g Geometry) stride() int    { return roundUp(g.SlotBytes, lineBytes) }
func (g Geometry) headBytes() int { return controlBytes + g.Slots*headerBytes }
func (g Geometry) payloadAt() int { return roundUp(g.headBytes(), pageBytes) }

// ring is a view of the memory of a queue.
type ring struct {
	ctl       *control
	headers   unsafe.Pointer
	payloads  unsafe.Pointer
	stride    uintptr
	slots     uint32
	slotBytes int
	local     [][]byte // payloads by slot of a queue in one process; nil if they are at payloads
}

// newRing views memory as a queue of shape g.
func newRing(memory []byte, g Geometry) (ring, error) {
	if err := g.Check(); err != nil {
		return ring{}, err
	}
	if len(memory) < g.Size() {
		return ring{}, fmt.Errorf("queue of %d slots of %d bytes needs %d bytes of memory, not %d",
			g.Slots, g.SlotBytes, g.Size(), len(memory))
	}
	base := unsafe.Pointer(unsafe.SliceData(memory))
	if uintptr(base)%lineBytes != 0 {
		return ring{}, fmt.Errorf("queue memory at %p: must be aligned to %d bytes", base, lineBytes)
	}
	r := ringAt(base, g)
	if g.SlotBytes > 0 { // else it would point after the memory's end
		r.payloads = unsafe.Add(base, g.payloadAt())
	}
	return r, nil
}

// newLocalRing is a queue in one process. Slots get memory when they are first written, and more
// when a longer message comes: of many connections most carry little. The Producer changes a slot's
// slice only while the slot is free; the Consumer reads the slice only after the slot's word.
func newLocalRing(g Geometry) ring {
	r := ringAt(unsafe.Pointer(unsafe.SliceData(aligned(g.headBytes(), 2*lineBytes))), g)
	r.local = make([][]byte, g.Slots)
	return r
}

// leastPayload keeps payloads of different slots on different lines.
const leastPayload = 256

// grow gives free slot i of a local queue memory for n bytes, at a page boundary if n is a page or more.
func (r *ring) grow(i uint32, n int) {
	room := min(uint(1)<<bits.Len(uint(n-1)), uint(r.stride)) // Go aligns a power of two to itself, up to a page
	r.local[i] = make([]byte, max(leastPayload, room))
}

func ringAt(base unsafe.Pointer, g Geometry) ring {
	return ring{
		ctl:       (*control)(base),
		headers:   unsafe.Add(base, controlBytes),
		stride:    uintptr(g.stride()),
		slots:     uint32(g.Slots),
		slotBytes: g.SlotBytes,
	}
}

func (r *ring) header(i uint32) *header {
	return (*header)(unsafe.Add(r.headers, uintptr(i)*uintptr(headerBytes)))
}

// bytes are the n bytes of payload of slot i, whose header is h.
func (r *ring) bytes(h *header, i uint32, n int) mem.Region {
	p := unsafe.Pointer(&h.inline)
	if n > InlineBytes {
		if r.local != nil {
			return mem.Host(r.local[i][:n])
		}
		p = unsafe.Add(r.payloads, uintptr(i)*r.stride)
	}
	return mem.Host(unsafe.Slice((*byte)(p), n))
}

// aligned is n zero bytes of ordinary memory at a multiple of align.
func aligned(n, align int) []byte {
	b := make([]byte, n+align-1)
	off := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (align - 1)
	return b[off : off+n : off+n]
}
