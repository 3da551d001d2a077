package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/mem"
)

// A Mail sends and receives one rank's messages with tags, beside the collectives of its communicator. A
// line from one rank to another is a communicator of two, which carries a letter before each message's data; a
// goroutine at the receiving end takes the messages. A message that nobody waits for is kept.
type Mail struct {
	comm *ringo.Comm
	ctx  context.Context
	stop context.CancelCauseFunc
	work sync.WaitGroup

	mu     sync.Mutex
	out    map[int]*line // guarded by mu; by peer
	in     map[int]bool  // guarded by mu; peers whose lines lead here
	waits  []*Message    // guarded by mu; receives without a message, oldest first
	kept   []*Message    // guarded by mu; messages without a receive, oldest first
	broken map[int]error // guarded by mu; why nothing more comes from a peer
}

// A line is what goes to one peer.
type line struct {
	mu      sync.Mutex
	changed *sync.Cond // with mu
	queue   []*Message // guarded by mu
	err     error      // guarded by mu; why nothing more goes
}

// A Message is on its way out or in.
type Message struct {
	Source int // the rank that sent a received message
	tag    int64
	data   []byte
	err    error
	done   chan struct{}
}

// Done is closed when the data may be used.
func (m *Message) Done() <-chan struct{} { return m.done }

// Wait waits until the data may be used.
func (m *Message) Wait() error {
	<-m.done
	return m.err
}

func (m *Message) end(err error) {
	m.err = err
	close(m.done)
}

const (
	// Any is every rank, as the source of a message.
	Any = -1
	// letterBytes is the length of a letter, which goes before a message's data: tag and length.
	letterBytes = 16
	// lineTime is the time-out of a line: a peer may send nothing for as long as it lives.
	lineTime = 100 * 365 * 24 * time.Hour
	// lookTime is how often a rank that waits for a message looks whether the communicator lives.
	lookTime = 100 * time.Millisecond
)

var errMailClosed = errors.New("the mail was closed")

// NewMail makes the mail of a communicator's rank, which ends when the communicator fails.
func NewMail(c *ringo.Comm) *Mail {
	m := &Mail{comm: c, out: map[int]*line{}, in: map[int]bool{}, broken: map[int]error{}}
	m.ctx, m.stop = context.WithCancelCause(context.Background())
	m.work.Go(m.watch)
	return m
}

// watch ends the mail when the communicator fails. A rank that has left is no failure: its messages may still come.
func (m *Mail) watch() {
	tick := time.NewTicker(lookTime)
	defer tick.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-tick.C:
		}
		if err := m.comm.Failure(); err != nil && !errors.Is(err, ringo.ErrLeft) {
			m.fail(err)
			return
		}
	}
}

// fail ends all messages and lines.
func (m *Mail) fail(err error) {
	m.stop(err)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.waits {
		w.end(err)
	}
	m.waits = nil
	for _, l := range m.out {
		l.fail(err)
	}
}

// Close ends the mail, after all messages of Send have been sent.
func (m *Mail) Close() {
	m.mu.Lock()
	lines := m.out
	m.mu.Unlock()
	for _, l := range lines {
		l.mu.Lock()
		for len(l.queue) > 0 && l.err == nil {
			l.changed.Wait()
		}
		l.mu.Unlock()
	}
	m.fail(errMailClosed)
	m.work.Wait()
}

// To opens the line to a peer.
func (m *Mail) To(peer int, id bootstrap.ID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.out[peer] != nil || !m.other(peer) {
		return fmt.Errorf("%w: a line to rank %d", ringo.ErrInvalid, peer)
	}
	l := new(line)
	l.changed = sync.NewCond(&l.mu)
	m.out[peer] = l
	m.work.Go(func() { l.fail(m.send(l, id)) })
	return nil
}

// From opens the line that a peer has made.
func (m *Mail) From(peer int, id bootstrap.ID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.in[peer] || !m.other(peer) {
		return fmt.Errorf("%w: a line from rank %d", ringo.ErrInvalid, peer)
	}
	m.in[peer] = true
	m.work.Go(func() { m.lose(peer, m.receive(peer, id)) })
	return nil
}

func (m *Mail) other(peer int) bool {
	return peer >= 0 && peer < m.comm.Size() && peer != m.comm.Rank()
}

// open opens an end of a line, which is aborted when the mail fails.
func (m *Mail) open(id bootstrap.ID, rank int) (*ringo.Comm, func(), error) {
	c, err := ringo.Open(m.ctx, ringo.Config{ID: &id, Rank: rank, Size: 2, Timeout: lineTime, JoinTimeout: lineTime})
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(m.ctx, func() {
		if cause := context.Cause(m.ctx); !errors.Is(cause, errMailClosed) || rank == 1 {
			c.Abort(cause)
		}
	})
	return c, func() { stop(); c.Close() }, nil
}

// send sends the messages in a line's queue, until the mail ends.
func (m *Mail) send(l *line, id bootstrap.ID) error {
	c, end, err := m.open(id, 0)
	if err != nil {
		bootstrap.Stop(id) // this process has made the ID, and nobody else waits there
		return err
	}
	defer end()
	for {
		l.mu.Lock()
		for len(l.queue) == 0 && l.err == nil {
			l.changed.Wait()
		}
		if l.err != nil {
			defer l.mu.Unlock()
			return l.err
		}
		next := l.queue[0]
		l.mu.Unlock()
		var letter [letterBytes]byte
		binary.LittleEndian.PutUint64(letter[:], uint64(next.tag))
		binary.LittleEndian.PutUint64(letter[8:], uint64(len(next.data)))
		err := ringo.Send(c, letter[:], 1)
		if err == nil && len(next.data) > 0 {
			err = ringo.Send(c, next.data, 1)
		}
		if err != nil {
			return err
		}
		l.mu.Lock()
		if l.err == nil {
			l.queue = l.queue[1:]
			next.end(nil)
			l.changed.Broadcast()
		}
		l.mu.Unlock()
	}
}

// fail ends the messages of a line.
func (l *line) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	l.err = err
	for _, m := range l.queue {
		m.end(err)
	}
	l.queue = nil
	l.changed.Broadcast()
}

// receive takes the messages of a peer.
func (m *Mail) receive(peer int, id bootstrap.ID) error {
	c, end, err := m.open(id, 1)
	if err != nil {
		return err
	}
	defer end()
	for {
		var letter [letterBytes]byte
		if err := ringo.Recv(c, letter[:], 0); err != nil {
			return err
		}
		tag, n := int64(binary.LittleEndian.Uint64(letter[:])), int(binary.LittleEndian.Uint64(letter[8:]))
		to := m.waiter(peer, tag)
		fits := to != nil && len(to.data) == n
		came := &Message{Source: peer, tag: tag}
		if fits {
			came.data = to.data
		} else {
			came.data = make([]byte, n)
		}
		if n > 0 {
			err = ringo.Recv(c, came.data, 0)
		}
		switch {
		case err != nil && to != nil:
			to.end(err)
		case to != nil:
			to.take(came, !fits)
		case err == nil:
			m.keep(came)
		}
		if err != nil {
			return err
		}
	}
}

// take ends a receive with the message that has come.
func (m *Message) take(came *Message, copies bool) {
	m.Source = came.Source
	if len(m.data) != len(came.data) {
		m.end(fmt.Errorf("%w: rank %d's message with tag %d has %d bytes, and the memory for it %d", ringo.ErrInvalid,
			came.Source, came.tag, len(came.data), len(m.data)))
		return
	}
	if copies {
		copy(m.data, came.data)
	}
	m.end(nil)
}

func (m *Message) fits(source int, tag int64) bool {
	return m.tag == tag && (m.Source == Any || m.Source == source)
}

// waiter is the oldest receive that a message is for, or nil.
func (m *Mail) waiter(source int, tag int64) *Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.takeWaiter(source, tag)
}

// takeWaiter is waiter with mu held.
func (m *Mail) takeWaiter(source int, tag int64) *Message {
	i := slices.IndexFunc(m.waits, func(w *Message) bool { return w.fits(source, tag) })
	if i < 0 {
		return nil
	}
	w := m.waits[i]
	m.waits = slices.Delete(m.waits, i, i+1)
	return w
}

// keep gives a message to a receive that has begun meanwhile, or keeps it.
func (m *Mail) keep(came *Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.takeWaiter(came.Source, came.tag); w != nil {
		w.take(came, true)
		return
	}
	m.kept = append(m.kept, came)
}

// lose ends the receives that wait for a peer whose line has ended.
func (m *Mail) lose(peer int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken[peer] = err
	m.waits = slices.DeleteFunc(m.waits, func(w *Message) bool {
		gone := w.Source == peer
		if gone {
			w.end(err)
		}
		return gone
	})
}

// Send sends n bytes to a peer. The memory must stay as it is until the message is done.
func (m *Mail) Send(peer int, tag int64, at uintptr, n int) (*Message, error) {
	m.mu.Lock()
	l := m.out[peer]
	m.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("%w: there is no line to rank %d", ringo.ErrInvalid, peer)
	}
	x := &Message{Source: m.comm.Rank(), tag: tag, data: bytesOf(memory(at, n)), done: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return nil, l.err
	}
	l.queue = append(l.queue, x)
	l.changed.Broadcast()
	return x, nil
}

// Recv takes a message of n bytes with the tag, from a peer or from Any.
func (m *Mail) Recv(peer int, tag int64, at uintptr, n int) (*Message, error) {
	x := &Message{Source: peer, tag: tag, data: bytesOf(memory(at, n)), done: make(chan struct{})}
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.IndexFunc(m.kept, func(k *Message) bool { return x.fits(k.Source, k.tag) }); i >= 0 {
		came := m.kept[i]
		m.kept = slices.Delete(m.kept, i, i+1)
		x.take(came, true)
		return x, nil
	}
	if err := m.ctx.Err(); err != nil {
		return nil, context.Cause(m.ctx)
	}
	if err := m.broken[peer]; err != nil {
		return nil, err
	}
	m.waits = append(m.waits, x)
	return x, nil
}

func bytesOf(r mem.Region) []byte {
	if r.IsNil() {
		return nil
	}
	return r.Bytes()
}
