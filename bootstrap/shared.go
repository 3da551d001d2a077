package bootstrap

import (
	"errors"
	"net"
	"slices"
	"sync"
)

// A shared listener is the caller's own. Hubs that follow each other have it in turn: callers come to the newest. It is
// closed when none has it any more.
type shared struct {
	net.Listener

	mu     sync.Mutex
	turns  []*turn // that are open, oldest first
	served bool
	closed bool
}

// A turn is a shared listener as one hub has it.
type turn struct {
	*shared
	calls chan call
	over  chan struct{} // closed by Close, or by the end of the listener
	once  sync.Once
}

// A call is a caller, or why there is none.
type call struct {
	conn net.Conn
	err  error
}

// share makes the Listener one that several hubs can have.
func (o *ListenOptions) share() {
	if o.Listener != nil && o.shared == nil {
		o.shared = &shared{Listener: o.Listener}
	}
}

// turn begins a turn.
func (s *shared) turn() (net.Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, net.ErrClosed
	}
	t := &turn{shared: s, calls: make(chan call), over: make(chan struct{})}
	s.turns = append(s.turns, t)
	if !s.served {
		s.served = true
		go s.serve()
	}
	return t, nil
}

// serve hands callers to the newest turn until the listener is closed.
func (s *shared) serve() {
	for {
		c, err := s.Listener.Accept()
		s.mu.Lock()
		if errors.Is(err, net.ErrClosed) {
			s.closed = true
		}
		var t *turn
		if n := len(s.turns); n > 0 && !s.closed {
			t = s.turns[n-1]
		} else {
			s.closed = true // there is always a turn before
			for _, t := range s.turns {
				t.end()
			}
		}
		s.mu.Unlock()
		if t != nil {
			select {
			case t.calls <- call{c, err}:
				continue
			case <-t.over: // he tries again
			}
		}
		if err == nil {
			c.Close()
		}
		if t == nil {
			return
		}
	}
}

func (t *turn) end() { t.once.Do(func() { close(t.over) }) }

// Accept waits for a caller in this turn.
func (t *turn) Accept() (net.Conn, error) {
	select {
	case c := <-t.calls:
		return c.conn, c.err
	case <-t.over:
		return nil, net.ErrClosed
	}
}

// Close ends the turn.
func (t *turn) Close() error {
	t.end()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turns = slices.DeleteFunc(t.turns, func(x *turn) bool { return x == t })
	if len(t.turns) > 0 || t.closed {
		return nil
	}
	t.closed = true
	return t.Listener.Close()
}
