package socket

import (
	"sync"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/transport/internal/ends"
)

// A sender is the sending side of one stream: a queue of chunks that the kernel has not
// taken yet. On Linux a chunk is offered to the kernel at once, in the caller's
// goroutine; a background writer sends the rest and lives until the queue is empty. On
// other systems the background writer sends all.
type sender struct {
	*stream
	guard *fifo.Guard

	mu      sync.Mutex
	queue   []chunk // guarded by mu
	writing bool    // guarded by mu: the background writer lives
	err     error   // guarded by mu: why no more can be sent
	loan    loan    // guarded by mu

	// Used only by the goroutine that sends.
	lent   uint64   // slots whose memory was lent to the kernel
	asked  uint64   // the value of lent at the last PublishFrom, for which Flush waits
	repaid uint64   // credits that came back: so many of the lent slots are free, oldest first
	coins  [64]byte // credits as they are read

	write func() // the method writer, bound once so that go allocates nothing
}

// A chunk is a frame on its way to the kernel.
type chunk struct {
	head, body []byte // body is empty if the frame is all in head
	off        int    // bytes taken
	lend       bool
	slot       *slot // the owner of the memory, nil for goodbye
}

func (c *chunk) left() int { return len(c.head) + len(c.body) - c.off }

// rest is the part that the kernel has not taken.
func (c *chunk) rest(off int) (head, body []byte) {
	if off < len(c.head) {
		return c.head[off:], c.body
	}
	return c.body[off-len(c.head):], nil
}

func newSender(s *stream, guard *fifo.Guard, slots int) *sender {
	l := &sender{stream: s, guard: guard, queue: make([]chunk, 0, slots+1)}
	l.write = l.writer
	return l
}

// put sends c, or queues what the kernel does not take.
func (l *sender) put(c chunk) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	if c.slot != nil {
		c.slot.queued.Store(true)
	}
	l.queue = append(l.queue, c)
	if l.writing {
		return nil
	}
	if !l.flush() {
		l.writing = true
		go l.write()
	}
	return l.err
}

// help offers the queue to the kernel in place of the background writer: the
// calling goroutine is awake anyway.
func (l *sender) help() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.flush()
	}
	return l.err
}

// done counts n bytes of the first chunk as sent. The caller holds mu.
func (l *sender) done(n int) {
	c := &l.queue[0]
	if c.off += n; c.left() > 0 {
		return
	}
	if c.slot != nil {
		c.slot.queued.Store(false)
	}
	copy(l.queue, l.queue[1:])
	l.queue[len(l.queue)-1] = chunk{}
	l.queue = l.queue[:len(l.queue)-1]
}

// fail ends the sender. The caller holds mu.
func (l *sender) fail(err error) {
	if l.err == nil {
		l.err = err
	}
	clear(l.queue)
	l.queue = l.queue[:0]
}

// collect reads the credits that have come back: bytes, each a number of slots,
// or 0 when the receiver closes. Errors: errAgain if there are none, and
// fifo.ErrClosed.
func (l *sender) collect() error {
	n, err := l.read(l.coins[:], nil)
	if err != nil {
		return err
	}
	closed := false
	for _, b := range l.coins[:n] {
		closed = closed || b == 0
		l.repaid += uint64(b)
	}
	if l.repaid > l.lent {
		return &FrameError{"more credits than slots were lent"}
	}
	if closed {
		return fifo.ErrClosed
	}
	return nil
}

// farewell turns err of this sender into fifo.ErrClosed if the receiver has closed in
// order. A bridge may hear that it cannot send before it has brought the receiver's last words.
func (l *sender) farewell(err error) error {
	if !gone(err) {
		return err
	}
	for last := time.Now().Add(ends.LingerTime); ; {
		switch l.collect() {
		case nil:
		case fifo.ErrClosed:
			return fifo.ErrClosed
		case errAgain:
			if left := time.Until(last); !l.bridged() || left <= 0 || l.poll(true, false, left) != nil {
				return err
			}
		default:
			return err
		}
	}
}

// undelivered is how many bytes of the chunks the peer's kernel does not have yet, 0
// if it never will.
func (l *sender) undelivered() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return 0
	}
	for i := range l.queue {
		n += l.queue[i].left()
	}
	return n + l.unacked()
}

// end closes the stream, which ends the background writer.
func (l *sender) end() {
	l.mu.Lock()
	l.fail(fifo.ErrClosed)
	l.loan.close()
	l.mu.Unlock()
	l.close()
}
