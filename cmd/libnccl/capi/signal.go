package capi

import (
	"fmt"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/mem"
)

// An Arrival is an ncclWaitSignalDesc_t: a number of signals of a peer to wait for.
type Arrival struct{ Count, Peer, Index, Context int32 }

// A Put is an ncclPutSignal, or an ncclSignal, which puts nothing.
type Put struct {
	Puts                  bool
	Local                 uintptr
	Count                 uint64
	Type, Peer            int
	Window                uintptr
	Offset                uint64
	Index, Context, Flags int
	Stream                uintptr
}

// A sided is a one-sided message or a wait of a group.
type sided struct {
	waits bool
	do    func() error
}

// PutSignal copies local memory into a peer's window, and then sends the peer a signal.
func (l *Library) PutSignal(group, handle uintptr, p *Put) (err error) {
	defer func() { l.Fail(group, err) }()
	c, r, err := l.ready(handle)
	if err != nil {
		return err
	}
	switch {
	case p.Index != 0 || p.Context != 0 || p.Flags != 0:
		return fmt.Errorf("%w: signal %d, context %d, flags %#x: all have to be 0", ringo.ErrInvalid, p.Index,
			p.Context, p.Flags)
	case p.Peer < 0 || p.Peer >= r.Size():
		return fmt.Errorf("%w: peer %d of %d ranks", ringo.ErrInvalid, p.Peer, r.Size())
	}
	local, w, n := mem.Region{}, (*window)(nil), 0
	if p.Puts {
		if w, err = l.windowOf(c, p.Window); err != nil {
			return err
		}
		t, err := typeOf(p.Type)
		if err != nil {
			return err
		}
		if n = w.bytes; p.Count > uint64(n) || p.Offset > uint64(n) || p.Count*uint64(t.Size()) > uint64(n)-p.Offset {
			return fmt.Errorf("%w: %d elements of %v at %d of a window of %d bytes", ringo.ErrInvalid, p.Count, t, p.Offset, n)
		}
		if local, err = c.memory("local", p.Local, int(p.Count)*t.Size()); err != nil {
			return err
		}
	}
	peer, offset, stream := p.Peer, int(p.Offset), gpu.Stream(p.Stream)
	return l.aside(group, c, sided{false, func() error {
		if c.device == nil {
			post, err := c.hostPost()
			if err != nil {
				return err
			}
			return post.put(w, offset, local, peer)
		}
		if w == nil {
			any, err := c.anyWindow()
			if err != nil {
				return err
			}
			return any.Signal(peer, stream)
		}
		return w.ring.Put(local, peer, offset, stream)
	}})
}

// WaitSignal has a stream wait for signals of peers; each signal serves one wait. On host memory WaitSignal
// returns when the signals have come.
func (l *Library) WaitSignal(group, handle uintptr, list []Arrival, stream uintptr) (err error) {
	defer func() { l.Fail(group, err) }()
	c, r, err := l.ready(handle)
	if err != nil {
		return err
	}
	arrivals := make([]ringo.Arrival, len(list))
	for i, a := range list {
		switch {
		case a.Index != 0 || a.Context != 0:
			return fmt.Errorf("%w: signal %d, context %d: both have to be 0", ringo.ErrInvalid, a.Index, a.Context)
		case a.Peer < 0 || int(a.Peer) >= r.Size() || a.Count < 0:
			return fmt.Errorf("%w: %d signals of peer %d of %d ranks", ringo.ErrInvalid, a.Count, a.Peer, r.Size())
		}
		arrivals[i] = ringo.Arrival{Peer: int(a.Peer), Count: int(a.Count)}
	}
	return l.aside(group, c, sided{true, func() error {
		if c.device == nil {
			post, err := c.hostPost()
			if err != nil {
				return err
			}
			return post.wait(arrivals, c.config.Timeout)
		}
		any, err := c.anyWindow()
		if err != nil {
			return err
		}
		return any.Wait(arrivals, gpu.Stream(stream))
	}})
}

// aside carries out a one-sided message or a wait, or puts it in the thread's group.
func (l *Library) aside(handle uintptr, c *comm, s sided) error {
	switch {
	case handle != 0:
		g, err := l.groups.Get(handle)
		if err != nil {
			return err
		}
		g.with(c)
		g.sided = append(g.sided, s)
		g.held.Add(1)
		return nil
	case c.device == nil:
		return c.do(s.do)
	}
	return s.do()
}

// windowOf is a window of WindowRegister.
func (l *Library) windowOf(c *comm, handle uintptr) (*window, error) {
	w, err := l.window(handle)
	switch {
	case err != nil:
		return nil, err
	case w.comm != c:
		return nil, fmt.Errorf("%w: the window is another communicator's", ringo.ErrInvalid)
	case w.number < 0:
		return nil, fmt.Errorf("%w: what ncclCommRegister gave is no window: use ncclCommWindowRegister", ringo.ErrInvalid)
	}
	return w, nil
}

// errNoWindow is the error of signals before the first window.
var errNoWindow = fmt.Errorf("%w: signals need a window: call ncclCommWindowRegister on all ranks", errUsage)

// anyWindow is a window for sending signals: one that has an effect, if there is such a window.
func (c *comm) anyWindow() (any *ringo.Window, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.windows {
		if w == nil || w.ring == nil {
			continue
		}
		if any = w.ring; any.Reason() == "" {
			return any, nil
		}
	}
	if any == nil {
		return nil, errNoWindow
	}
	return any, nil
}

// hostPost is the communicator's post; errNoWindow before the first window.
func (c *comm) hostPost() (*post, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.post == nil {
		return nil, errNoWindow
	}
	return c.post, nil
}
