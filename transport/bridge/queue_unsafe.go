package bridge

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

// A Queue is one lane's queue, which a kernel uses at the other end: slots, and a header for
// each (engine/grid.Geometry). Headers and counters lie in pinned memory, and so do slots,
// unless they are placed.
type Queue struct {
	Slots, SlotBytes int
	Memory           []byte     // slots, nil if they are placed
	Placed           mem.Region // slots that a connection moves
	Headers          []byte
	Posted           *atomic.Uint64 // the kernel's counter: slots published, or released
	Seen             *atomic.Uint64 // the Bridge's: slots released, or published
}

// HeaderBytes is the length of a slot's header: stamp, length, 0.
const HeaderBytes = 32

type header struct {
	stamp transport.Stamp
	bytes uint64
	_     uint64
}

// NewQueue is a queue with slots and headers in memory that is aligned to 64 bytes. Its counters are
// the first words of posted and seen.
func NewQueue(slots, slotBytes int, memory, headers, posted, seen []byte) (Queue, error) {
	q, err := NewPlaced(slots, slotBytes, mem.Host(memory), headers, posted, seen)
	q.Memory, q.Placed = memory, mem.Region{}
	return q, err
}

// NewPlaced is NewQueue for slots that lie in placed, from or to which connections move them.
func NewPlaced(slots, slotBytes int, placed mem.Region, headers, posted, seen []byte) (Queue, error) {
	if slots < 1 || slotBytes < 0 || placed.Len() != slots*slotBytes || len(headers) < slots*HeaderBytes ||
		len(posted) < 8 || len(seen) < 8 {
		return Queue{}, fmt.Errorf("bridge: a queue of %d slots of %d bytes in %d, headers in %d", slots, slotBytes,
			placed.Len(), len(headers))
	}
	return Queue{Slots: slots, SlotBytes: slotBytes, Placed: placed, Headers: headers, Posted: word(posted),
		Seen: word(seen)}, nil
}

func word(b []byte) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(b))) }

// slot is the memory of a slot, by its number.
func (q *Queue) slot(n uint64) []byte {
	return q.Memory[int(n%uint64(q.Slots))*q.SlotBytes:][:q.SlotBytes]
}

func (q *Queue) header(n uint64) *header {
	return (*header)(unsafe.Pointer(&q.Headers[int(n%uint64(q.Slots))*HeaderBytes]))
}
