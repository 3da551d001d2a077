package bridge

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/ringo-go/ringo/transport"
)

// A Queue is one lane's queue in pinned memory, which a kernel uses at the other
// end: slots, then a header for each (engine/grid.Geometry.QueueBytes).
type Queue struct {
	Slots, SlotBytes int
	Memory           []byte
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

// NewQueue is a queue in memory that is aligned to 64 bytes. Its counters are the
// first words of posted and seen.
func NewQueue(slots, slotBytes int, memory, posted, seen []byte) (Queue, error) {
	if n := slots * (slotBytes + HeaderBytes); slots < 1 || slotBytes < 0 || n > len(memory) || len(posted) < 8 || len(seen) < 8 {
		return Queue{}, fmt.Errorf("bridge: a queue of %d bytes in %d", n, len(memory))
	}
	return Queue{slots, slotBytes, memory, word(posted), word(seen)}, nil
}

func word(b []byte) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(b))) }

// slot is the memory of a slot, by its number.
func (q *Queue) slot(n uint64) []byte {
	return q.Memory[int(n%uint64(q.Slots))*q.SlotBytes:][:q.SlotBytes]
}

func (q *Queue) header(n uint64) *header {
	at := q.Slots*q.SlotBytes + int(n%uint64(q.Slots))*HeaderBytes
	return (*header)(unsafe.Pointer(&q.Memory[at]))
}
