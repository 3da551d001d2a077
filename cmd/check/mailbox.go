package check

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
)

// mostAhead is the most gathers of a stage that may be held without a late rank, which later gets all their answers at
// once and then takes part in them.
const mostAhead = 1024

// errNothing is the error of a take to which nothing has come in time.
var errNothing = errors.New("check: nothing has come")

// A mailbox keeps the messages of a connection until its one reader takes them. An empty mailbox is small, since a hub
// has one for each rank.
type mailbox[T any] struct {
	came chan struct{} // holds one value if something has come since the reader looked

	mu   sync.Mutex
	list []T
	err  error // why no more comes
}

func newMailbox[T any]() *mailbox[T] { return &mailbox[T]{came: make(chan struct{}, 1)} }

// fill puts in the JSON messages of r, to its end, or until more than mostAhead lie there.
func (b *mailbox[T]) fill(r io.Reader) {
	for dec := json.NewDecoder(r); ; {
		var m T
		if !b.put(&m, dec.Decode(&m)) {
			return
		}
	}
}

// put puts m in, or, if err is not nil, notes err as the reason why no more comes. It reports whether more may come.
func (b *mailbox[T]) put(m *T, err error) bool {
	b.mu.Lock()
	switch {
	case err == nil && len(b.list) < mostAhead:
		b.list = append(b.list, *m)
	case err == nil:
		err = errors.New("it says more than it should")
	}
	b.err = err
	b.mu.Unlock()
	select {
	case b.came <- struct{}{}:
	default:
	}
	return err == nil
}

// take waits for the next message. The error is errNothing once done is closed, or the reason why no more messages
// come. Messages that have come are returned before either.
func (b *mailbox[T]) take(done <-chan struct{}) (T, error) {
	for over := false; ; {
		if m, ok, err := b.next(); ok || err != nil {
			return m, err
		} else if over {
			return m, errNothing
		}
		select {
		case <-b.came:
		case <-done:
			over = true
		}
	}
}

func (b *mailbox[T]) next() (m T, ok bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.list) == 0 {
		return m, false, b.err
	}
	m = b.list[0]
	if b.list = slices.Delete(b.list, 0, 1); len(b.list) == 0 {
		b.list = nil
	}
	return m, true, nil
}
