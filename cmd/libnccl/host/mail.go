package host

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/mem"
)

// A Mail sends and receives one rank's messages with tags, beside the collectives of its communicator. A
// line from one rank to another is a communicator of two, which carries a letter before each message's data; a
// goroutine at the receiving end takes the messages. A message that nobody waits for is kept. A message that has not
// ended within the communicator's Timeout fails; its line goes on, unless part of the message has gone over it.
type Mail struct {
	comm *ringo.Comm
	life *life.Life // of comm
	ctx  context.Context
	stop context.CancelCauseFunc
	work sync.WaitGroup

	mu     sync.Mutex
	out    map[int]*line // guarded by mu; by peer
	in     map[int]*line // guarded by mu; by peer, lines that lead here
	waits  []*Message    // guarded by mu; receives without a message, oldest first
	kept   []*Message    // guarded by mu; messages without a receive, oldest first
	broken map[int]error // guarded by mu; why nothing more comes from a peer
	left   map[int]int   // guarded by mu; by peer: how often the group has said that it has left, while no line was open
}

// A line leads to one peer, or from it. Only one that leads out has a queue.
type line struct {
	id   bootstrap.ID
	ctx  context.Context // ends with the line
	stop context.CancelCauseFunc

	mu      sync.Mutex
	changed *sync.Cond // with mu
	open    bool       // guarded by mu; both ends have met
	moving  bool       // guarded by mu; the first of queue is being sent
	queue   []*Message // guarded by mu
	err     error      // guarded by mu; why nothing more goes
}

func (m *Mail) newLine(id bootstrap.ID) *line {
	l := &line{id: id}
	l.changed = sync.NewCond(&l.mu)
	l.ctx, l.stop = context.WithCancelCause(m.ctx)
	return l
}

// awaited reports whether the ends have yet to meet.
func (l *line) awaited() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.open && l.err == nil
}

// A Message is on its way out or in.
type Message struct {
	Source int // the rank that sent a received message
	tag    int64
	data   []byte
	until  time.Time
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
	// lookTime is how often a rank looks whether its communicator lives and which messages have run out of time.
	lookTime = 100 * time.Millisecond
)

var errMailClosed = errors.New("the mail was closed")

// NewMail makes the mail of a communicator's rank, which ends when the communicator fails.
func NewMail(c *ringo.Comm) *Mail {
	m := &Mail{comm: c, life: life.Of(c), out: map[int]*line{}, in: map[int]*line{}, broken: map[int]error{},
		left: map[int]int{}}
	m.ctx, m.stop = context.WithCancelCause(context.Background())
	m.work.Go(m.watch)
	return m
}

// watch ends the mail when the communicator fails, and messages whose time has passed or whose peer has left. A rank
// that has left is no failure: its messages may still come.
func (m *Mail) watch() {
	tick := time.NewTicker(lookTime)
	defer tick.Stop()
	asked := time.Now()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-tick.C:
		}
		if err := m.failure(); err != nil {
			m.fail(err)
			return
		}
		now := time.Now()
		m.expire(now)
		if now.Sub(asked) >= life.Slow {
			asked = now
			m.ask()
		}
	}
}

// failure is why the communicator has ended, nil while messages may come.
func (m *Mail) failure() error {
	if err := m.comm.Failure(); err != nil && !errors.Is(err, ringo.ErrLeft) {
		return err
	}
	return nil
}

// fail ends all messages and lines.
func (m *Mail) fail(err error) {
	m.stop(err)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.waits {
		w.end(named("Recv", err))
	}
	m.waits = nil
	for _, l := range m.out {
		l.fail(named("Send", err))
	}
}

// named is an error of the communicator as that of an operation.
func named(op string, err error) error {
	if e, ok := errors.AsType[*ringo.Error](err); ok && e.Op == life.OpComm {
		of := *e // others have e too
		of.Op = op
		return &of
	}
	return err
}

// expire ends the messages whose time has passed. Those whose data are moving end with the call that moves them.
func (m *Mail) expire(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waits = slices.DeleteFunc(m.waits, func(w *Message) bool {
		return w.expire(now, func() error { return m.late("Recv", w.Source, "sent no message", w.tag) })
	})
	for peer, l := range m.out {
		l.mu.Lock()
		moving := l.queue[:l.inMotion()]
		rest := slices.DeleteFunc(l.queue[len(moving):], func(x *Message) bool {
			return x.expire(now, func() error { return m.late("Send", peer, "taken no message", x.tag) })
		})
		l.queue = l.queue[:len(moving)+len(rest)]
		l.changed.Broadcast()
		l.mu.Unlock()
	}
}

// expire ends a message whose time has passed, and reports whether it has.
func (m *Message) expire(now time.Time, why func() error) bool {
	if !now.After(m.until) {
		return false
	}
	m.end(why())
	return true
}

// ask finds out which peers have left of those whose lines messages wait for. An open line tells that itself, after its
// last message, and one that may be opening gets a second round.
func (m *Mail) ask() {
	m.mu.Lock()
	var waited []int
	for peer := range m.comm.Size() {
		in, out := m.in[peer], m.out[peer]
		recv := m.other(peer) && m.broken[peer] == nil && (in == nil || in.awaited()) &&
			slices.ContainsFunc(m.waits, func(w *Message) bool { return w.Source == peer || w.Source == Any })
		if recv || out != nil && out.awaited() {
			waited = append(waited, peer)
		}
	}
	m.mu.Unlock()
	if len(waited) == 0 {
		return
	}
	for _, peer := range m.life.Left(waited...) {
		m.mu.Lock()
		m.left[peer]++
		sure, in, out := m.left[peer] > 1, m.in[peer], m.out[peer]
		m.mu.Unlock()
		if sure && (in == nil || in.awaited()) {
			m.lose(peer, m.error("Recv", peer, errGone))
		}
		if sure && out != nil && out.awaited() {
			out.fail(m.error("Send", peer, errGone))
		}
	}
}

var errGone = fmt.Errorf("%w: it has closed the communicator, and neither sends nor takes messages", ringo.ErrLeft)

// late is the error of a message whose time has passed.
func (m *Mail) late(op string, peer int, what string, tag int64) error {
	who := fmt.Sprintf("rank %d has %s", peer, what)
	if peer == Any {
		who = "no rank has sent a message"
	}
	return m.error(op, peer, fmt.Errorf("%w: %s with tag %d within %v", ringo.ErrTimeout, who, tag, m.life.Timeout))
}

// error is an error of a message, with the ranks of the communicator.
func (m *Mail) error(op string, peer int, cause error) error {
	e := m.life.ErrorIn(op, cause)
	if peer != Any {
		e.Phase, e.Peer, e.Culprits = strings.ToLower(op), peer, []int{peer}
	}
	return e
}

// explain is why a line has ended, in the ranks of the communicator and not of the line. Where the peer may be a
// victim, explain waits for the group to say whose.
func (m *Mail) explain(op string, peer int, err error) error {
	var died *bootstrap.Failure
	var of *ringo.Error
	certain := errors.Is(err, ringo.ErrLeft) || errors.Is(err, ringo.ErrTimeout)
	if !certain {
		m.life.Left(peer) // asks
	}
	for end := time.Now().Add(life.RollCallWait); ; time.Sleep(lookTime / 10) {
		if failed := cmp.Or(context.Cause(m.ctx), m.failure()); failed != nil {
			return named(op, failed)
		}
		if certain || time.Now().After(end) {
			break
		}
	}
	switch {
	case errors.Is(err, ringo.ErrLeft), !certain && len(m.life.Left(peer)) > 0:
		err = errGone
	case errors.Is(err, ringo.ErrTimeout):
		err = fmt.Errorf("%w: a message has not moved to its end within %v", ringo.ErrTimeout, m.life.Timeout)
	case errors.As(err, &died) && died.Died:
		err = fmt.Errorf("%w: %s", ringo.ErrPeer, died.Reason)
	case errors.As(err, &died): // it has ended its end of the line
		err = errGone
	case errors.As(err, &of):
		err = of.Err
	}
	return m.error(op, peer, err)
}

// Close ends the mail, after all messages of Send have been sent.
func (m *Mail) Close() {
	m.mu.Lock()
	lines := slices.Collect(maps.Values(m.out))
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
	l := m.newLine(id)
	m.out[peer] = l
	m.work.Go(func() { l.fail(m.explain("Send", peer, m.send(l))) })
	return nil
}

// From opens the line that a peer has made.
func (m *Mail) From(peer int, id bootstrap.ID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.in[peer] != nil || !m.other(peer) {
		return fmt.Errorf("%w: a line from rank %d", ringo.ErrInvalid, peer)
	}
	l := m.newLine(id)
	m.in[peer] = l
	m.work.Go(func() { m.lose(peer, m.receive(peer, l)) })
	return nil
}

func (m *Mail) other(peer int) bool {
	return peer >= 0 && peer < m.comm.Size() && peer != m.comm.Rank()
}

// open opens an end of a line, which is aborted when the line ends.
func (m *Mail) open(l *line, rank int) (*ringo.Comm, func(), error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	end := func() {
		if rank == 0 { // this process has made the ID, and nobody else waits there who should hear of it
			bootstrap.Stop(l.id)
		}
		cancel(context.Cause(l.ctx))
	}
	goes := context.AfterFunc(l.ctx, end)
	c, err := ringo.Open(ctx, ringo.Config{ID: &l.id, Rank: rank, Size: 2, Timeout: lineTime, JoinTimeout: lineTime})
	if goes(); err != nil {
		end()
		return nil, nil, err
	}
	l.mu.Lock()
	l.open = true
	l.mu.Unlock()
	stop := context.AfterFunc(l.ctx, func() {
		if cause := context.Cause(l.ctx); !errors.Is(cause, errMailClosed) || rank == 1 {
			c.Abort(cause)
		}
	})
	return c, func() { stop(); c.Close() }, nil
}

// send sends the messages in a line's queue, until the line ends.
func (m *Mail) send(l *line) error {
	c, end, err := m.open(l, 0)
	if err != nil {
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
		l.moving = true
		l.mu.Unlock()
		var letter [letterBytes]byte
		binary.LittleEndian.PutUint64(letter[:], uint64(next.tag))
		binary.LittleEndian.PutUint64(letter[8:], uint64(len(next.data)))
		err := move(c, ringo.KindSend, letter[:], time.Until(next.until))
		if err == nil && len(next.data) > 0 {
			err = move(c, ringo.KindSend, next.data, time.Until(next.until))
		}
		l.mu.Lock()
		l.moving = false
		if err == nil {
			l.queue = l.queue[1:]
			next.end(nil)
			l.changed.Broadcast()
		}
		l.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// move sends or receives over a line.
func move(c *ringo.Comm, kind ringo.Kind, data []byte, limit time.Duration) error {
	x := &ringo.Call{Kind: kind, Count: len(data), Type: ringo.Uint8, Peer: 1 - c.Rank(), Timeout: max(limit, 1)}
	if kind == ringo.KindSend {
		x.In = mem.Of(data)
	} else {
		x.Out = mem.Of(data)
	}
	return c.Do(x)
}

// inMotion is how many of the queue are being sent. Under mu.
func (l *line) inMotion() int {
	if l.moving {
		return 1
	}
	return 0
}

// fail ends a line and its messages. One that is being sent stays until its memory is no longer read.
func (l *line) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
	for _, m := range l.queue[l.inMotion():] {
		m.end(l.err)
	}
	l.queue = l.queue[:l.inMotion()]
	l.changed.Broadcast()
	l.stop(err)
}

// receive takes the messages of a peer, and returns why no more come.
func (m *Mail) receive(peer int, l *line) error {
	c, end, err := m.open(l, 1)
	if err != nil {
		return m.explain("Recv", peer, err)
	}
	defer end()
	for {
		var letter [letterBytes]byte
		if err := move(c, ringo.KindRecv, letter[:], lineTime); err != nil {
			return m.explain("Recv", peer, err)
		}
		tag, n := int64(binary.LittleEndian.Uint64(letter[:])), int(binary.LittleEndian.Uint64(letter[8:]))
		to, limit := m.waiter(peer, tag), lineTime
		if to != nil {
			limit = time.Until(to.until)
		}
		fits := to != nil && len(to.data) == n
		came := &Message{Source: peer, tag: tag}
		if fits {
			came.data = to.data
		} else {
			came.data = make([]byte, n)
		}
		if n > 0 {
			err = move(c, ringo.KindRecv, came.data, limit)
		}
		if err != nil {
			err = m.explain("Recv", peer, err)
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

// lose ends the line from a peer, and the receives that only it could have ended.
func (m *Mail) lose(peer int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken[peer] = cmp.Or(m.broken[peer], err)
	if l := m.in[peer]; l != nil {
		l.stop(err)
	}
	m.waits = slices.DeleteFunc(m.waits, func(w *Message) bool {
		err := m.mute(w.Source)
		if err != nil {
			w.end(err)
		}
		return err != nil
	})
}

// mute is why nothing more can come from a peer, or from Any, nil if it can. Under mu.
func (m *Mail) mute(source int) error {
	if source == Any && len(m.broken) == m.comm.Size()-1 {
		for _, err := range m.broken {
			return err
		}
	}
	return m.broken[source]
}

// Send sends n bytes to a peer. The memory must stay as it is until the message is done.
func (m *Mail) Send(peer int, tag int64, at uintptr, n int) (*Message, error) {
	m.mu.Lock()
	l := m.out[peer]
	m.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("%w: there is no line to rank %d", ringo.ErrInvalid, peer)
	}
	x := m.message(m.comm.Rank(), tag, at, n)
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
	if peer != Any && !m.other(peer) {
		return nil, fmt.Errorf("%w: a message from rank %d", ringo.ErrInvalid, peer)
	}
	x := m.message(peer, tag, at, n)
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.IndexFunc(m.kept, func(k *Message) bool { return x.fits(k.Source, k.tag) }); i >= 0 {
		came := m.kept[i]
		m.kept = slices.Delete(m.kept, i, i+1)
		x.take(came, true)
		return x, nil
	}
	if err := m.ctx.Err(); err != nil {
		return nil, named("Recv", context.Cause(m.ctx))
	}
	if err := m.mute(peer); err != nil {
		return nil, err
	}
	m.waits = append(m.waits, x)
	return x, nil
}

func (m *Mail) message(source int, tag int64, at uintptr, n int) *Message {
	return &Message{Source: source, tag: tag, data: bytesOf(memory(at, n)), until: time.Now().Add(m.life.Timeout),
		done: make(chan struct{})}
}

func bytesOf(r mem.Region) []byte {
	if r.IsNil() {
		return nil
	}
	return r.Bytes()
}
