package check

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
)

// mostAhead is how many gathers of a stage may be held without a rank that is late: it hears all their answers at once,
// and then comes to all of them.
const mostAhead = 1024

// errNothing is that nothing has come in time.
var errNothing = errors.New("check: nothing has come")

// A mailbox has what a connection brings until its one reader takes it. It takes memory for what lies in it alone: a
// hub has a mailbox for each rank.
type mailbox[T any] struct {
	came chan struct{} // holds one if something has come since the reader looked

	mu   sync.Mutex
	list []T
	err  error // why no more comes
}

func newMailbox[T any]() *mailbox[T] { return &mailbox[T]{came: make(chan struct{}, 1)} }

// fill puts in what r brings as JSON, to its end, or until more lies there than the rules allow.
func (b *mailbox[T]) fill(r io.Reader) {
	for dec := json.NewDecoder(r); ; {
		var m T
		if !b.put(&m, dec.Decode(&m)) {
			return
		}
	}
}

// put puts a message in, or says why no more comes. It reports whether more may come.
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

// take is the next message, which it waits for until done, with errNothing then; else the error is why no more comes.
// What has come goes before both.
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
