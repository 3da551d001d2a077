package shm

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/auth"
	"github.com/ringo-go/ringo/internal/limit"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/listen"
)

// Transport is the shared-memory transport of one rank of one communicator.
type Transport struct {
	cfg     transport.Config
	options Options
	size    int // bytes of a queue
	arrived *listen.Arrivals[*recvConn]
	groups  func() []limit.Group // the control groups that limit this process's memory
	warn    *auth.Log            // for events that strangers can cause
	away    chan struct{}        // closed by Close
	work    sync.WaitGroup       // watchers

	mu       sync.Mutex
	endpoint *listen.Endpoint // nil before Listen
	links    []*link
	closed   bool
}

// New makes a transport. It costs nothing until Listen.
func New(cfg transport.Config, o Options) *Transport {
	cfg = withDefaults(cfg)
	warn := auth.NewLog(cfg.Log)
	return &Transport{
		cfg: cfg, options: o, size: geometry(cfg.Limits).Size(),
		groups:  sync.OnceValue(limit.Groups),
		arrived: listen.NewArrivals[*recvConn](cfg.Left),
		warn:    warn,
		away:    make(chan struct{}),
	}
}

// Listen checks that there is room for one queue, or with Options.Dir for Options.Queues of them, and opens a socket
// for peers, which the transports of the process share.
func (t *Transport) Listen() ([]byte, error) {
	fail := func(err error) ([]byte, error) { return nil, fmt.Errorf("shm: listen: %w", err) }
	if err := geometry(t.cfg.Limits).Check(); err != nil {
		return fail(err)
	}
	if err := vacant(t.size*max(1, t.options.Queues), t.options.Dir); err != nil {
		return fail(err)
	}
	if err := t.room(t.size); err != nil {
		return fail(err)
	}
	f, err := allocate(t.size, t.options.Dir)
	if err != nil {
		return fail(err)
	}
	f.Close()

	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return fail(fifo.ErrClosed)
	}
	if t.endpoint == nil {
		if t.endpoint, err = listen.Enter("shm", openDoor, nil, t.warn, t.receive); err != nil {
			return fail(err)
		}
	}
	return []byte(t.endpoint.Addr()), nil
}

func openDoor() (net.Listener, string, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: "@ringo-" + rand.Text()})
	return l, "", err
}

// Dial makes a queue and passes it to peer.
func (t *Transport) Dial(peer transport.Info, addr []byte) (transport.SendConn, error) {
	fail := func(err error) (transport.SendConn, error) {
		return nil, fmt.Errorf("shm: dial rank %d: %w", peer.Rank, err)
	}
	if err := t.room(t.size); err != nil {
		return fail(err)
	}
	f, err := allocate(t.size, t.options.Dir)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	memory, err := share(int(f.Fd()), t.size)
	if err != nil {
		return fail(err)
	}
	p, err := fifo.NewProducer(memory, geometry(t.cfg.Limits), t.waiting())
	if err != nil {
		_ = unix.Munmap(memory)
		return fail(err)
	}
	socket, err := t.connect(peer, string(addr), f)
	if err == nil {
		l := &link{end: p, socket: socket, memory: memory}
		if t.keep(l) {
			return &sendConn{p, l}, nil
		}
		socket.Close()
		err = fifo.ErrClosed
	}
	_ = unix.Munmap(memory)
	return fail(err)
}

// Accept waits until peer has dialled.
func (t *Transport) Accept(peer transport.Info) (transport.RecvConn, error) {
	c, err := t.arrived.Take(peer.Rank, t.cfg.Guard)
	if err != nil {
		return nil, fmt.Errorf("shm: accept rank %d: %w", peer.Rank, err)
	}
	return c, nil
}

// keep starts the watcher of link l and keeps l until Close. It returns false after Close.
func (t *Transport) keep(l *link) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.links = append(t.links, l)
	t.work.Go(l.watch)
	return true
}

// Close ends all connections and unmaps their memory. Waits end by themselves, but the
// bytes of slots are gone: call Close after all operations have returned. Close of a
// connection has no such condition.
func (t *Transport) Close() error {
	t.mu.Lock()
	if !t.closed {
		close(t.away)
	}
	links := t.links
	t.links, t.closed = nil, true
	endpoint := t.endpoint
	t.mu.Unlock()
	if endpoint != nil {
		endpoint.Shut()
	}

	t.arrived.Close()
	for _, l := range links {
		_ = l.Close()
	}
	if endpoint != nil {
		endpoint.Wait()
	}
	t.work.Wait()
	var first error
	for _, l := range links {
		l.end.Drain()
		if err := unix.Munmap(l.memory); err != nil && first == nil {
			first = fmt.Errorf("shm: close: %w", os.NewSyscallError("munmap", err))
		}
	}
	return first
}

func (t *Transport) waiting() fifo.Waiting {
	return fifo.Waiting{Guard: t.cfg.Guard, Spin: t.cfg.Spin}
}
