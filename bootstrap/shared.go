package bootstrap

import (
	"errors"
	"net"
	"slices"
	"sync"
)

// A shared listener is the program's own. Hubs that follow each other use it, and connections go to the newest hub. The
// listener is closed when no hub uses it any more.
type shared struct {
	net.Listener

	mu      sync.Mutex
	tenures []*tenure // open ones, oldest first
	served  bool
	closed  bool
}

// A tenure is one hub's use of a shared listener. It is over after Close, or when the listener has ended.
type tenure struct {
	*shared
	handed
}

// tenure begins a tenure.
func (s *shared) tenure() (net.Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, net.ErrClosed
	}
	t := &tenure{s, newHanded()}
	s.tenures = append(s.tenures, t)
	if !s.served {
		s.served = true
		go s.serve()
	}
	return t, nil
}

// serve hands callers to the newest tenure until the listener is closed.
func (s *shared) serve() {
	for {
		c, err := s.Listener.Accept()
		s.mu.Lock()
		if errors.Is(err, net.ErrClosed) {
			s.closed = true
		}
		var t *tenure
		if n := len(s.tenures); n > 0 && !s.closed {
			t = s.tenures[n-1]
		} else {
			s.closed = true // so that no tenure begins after this
			for _, t := range s.tenures {
				t.end()
			}
		}
		s.mu.Unlock()
		if t != nil {
			select {
			case t.calls <- call{c, err}:
				continue
			case <-t.over: // the caller tries again
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

// Close ends the tenure.
func (t *tenure) Close() error {
	t.end()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tenures = slices.DeleteFunc(t.tenures, func(x *tenure) bool { return x == t })
	if len(t.tenures) > 0 || t.closed {
		return nil
	}
	t.closed = true
	return t.Listener.Close()
}
