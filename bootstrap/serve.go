package bootstrap

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"github.com/libp2p/go-reuseport"

	"github.com/ringo-go/ringo/internal/process"
)

// A hubTable has the hubs of a process, by ID.
type hubTable struct {
	sync.Mutex
	m map[ID]*hub
}

var allHubs = process.NewRegistry(func() *hubTable { return &hubTable{m: map[ID]*hub{}} })

func hubOf(id ID) *hub {
	hubs := allHubs.In(nil)
	hubs.Lock()
	defer hubs.Unlock()
	return hubs.m[id]
}

// succeed puts a new hub in the place of one that has ended, if h.again is set.
func succeed(h *hub) {
	hubs := allHubs.In(nil)
	hubs.Lock()
	defer hubs.Unlock()
	if hubs.m[h.id] != h {
		return
	}
	delete(hubs.m, h.id)
	if !h.again {
		return
	}
	ln, err := h.opt.listen(h.id)
	if err != nil {
		h.log.Warn("rendezvous: the next group cannot meet", "err", err)
		return
	}
	hubs.m[h.id] = newHub(h.id, ln, h.opt, h.ended)
}

// EndedWell is the reason for Gone of a process that has ended with status 0.
const EndedWell = "exit status 0"

// Gone tells the hub of an ID that a rank's process has ended, and why. Ranks that wait
// for that rank to join, now or later, get a *JoinError at once that wraps a *Failure
// with the reason. For a rank that has joined Gone matters only with ListenOptions.Launched,
// since the hub sees the end of its connection. If this process does not serve id, Gone does nothing.
func Gone(id ID, rank int, why string) {
	hubs := allHubs.In(nil)
	hubs.Lock()
	defer hubs.Unlock()
	if h := hubs.m[id]; h != nil {
		h.gone(rank, why)
	}
}

// NewID makes a new ID and serves it in this process until all its ranks have
// come and left. Give the ID to the other ranks as it is, or as text.
func NewID(o ListenOptions) (ID, error) {
	o.known = o.Secret != "" || o.Key != nil
	o.shareListener()
	addr := o.Addr
	if addr == "" && o.shared == nil {
		addr = net.JoinHostPort(outwardIP().String(), "0")
	}
	ln, err := o.open(addr)
	if err != nil {
		return ID{}, fmt.Errorf("new id: %w", err)
	}
	id, err := o.idAt(ln, addr)
	if err != nil {
		ln.Close()
		return ID{}, fmt.Errorf("new %w", err)
	}
	return id, register(id, ln, o)
}

// open listens for NewID.
func (o *ListenOptions) open(addr string) (net.Listener, error) {
	if o.shared != nil {
		return o.shared.tenure()
	}
	return reuseport.Listen("tcp", addr)
}

// idAt makes the ID of a listener: the host of asked, the port of ln.
func (o *ListenOptions) idAt(ln net.Listener, asked string) (ID, error) {
	if o.shared != nil && asked != "" {
		return o.idOf(asked)
	}
	if asked == "" {
		asked = ln.Addr().String()
	}
	host, _, err := net.SplitHostPort(asked)
	if err != nil && o.shared != nil {
		return ID{}, fmt.Errorf("id: the Listener is at %q: set Addr to the host:port by which ranks reach it", asked)
	}
	if err != nil {
		return ID{}, err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = outwardIP().String()
	}
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		return ID{}, err
	}
	return o.idOf(net.JoinHostPort(host, port))
}

func (o *ListenOptions) idOf(addr string) (ID, error) {
	if o.Secret != "" {
		return IDFor(addr, o.Secret)
	}
	if o.Key != nil {
		return IDOf(addr, o.Key)
	}
	id, err := randomID(addr)
	if err == nil {
		err = id.Check()
	}
	return id, err
}

// Serve serves an ID of IDFor in this process, as NewID does with its own. If this
// process serves the ID already and that group has begun, the ID is served again
// when that group has ended.
//
// If an older hub of another process waits for the ID's ranks at this address, this one refuses all of its own.
//
// If the ID's host is a name other than localhost, Serve listens on all interfaces,
// since the name may mean another address here than elsewhere. So it does for an address that this
// machine does not hold, such as that of a gateway; Join of a rank in this process then fails within
// seconds with a *JoinError that wraps syscall.EADDRNOTAVAIL if it does not reach itself there.
func Serve(id ID, o ListenOptions) error {
	if err := id.Check(); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	o.known = true
	o.shareListener()
	ln, err := o.listen(id)
	if err != nil {
		return fmt.Errorf("serve %s: %w", id.Addr(), err)
	}
	return register(id, ln, o)
}

// listen listens at the address of an existing ID.
func (o *ListenOptions) listen(id ID) (net.Listener, error) {
	if o.shared != nil {
		return o.shared.tenure()
	}
	host, port, err := net.SplitHostPort(id.Addr())
	if err != nil {
		return nil, err
	}
	if net.ParseIP(host) == nil && host != "localhost" {
		host = ""
	}
	ln, err := reuseport.Listen("tcp", net.JoinHostPort(host, port))
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		ln, err = reuseport.Listen("tcp", net.JoinHostPort("", port))
		o.elsewhere = true
	}
	return ln, err
}

func register(id ID, ln net.Listener, o ListenOptions) error {
	hubs := allHubs.In(nil)
	hubs.Lock()
	defer hubs.Unlock()
	if h := hubs.m[id]; h != nil {
		h.again = h.again || h.begun()
		return ln.Close()
	}
	hubs.m[id] = newHub(id, ln, o, map[int]string{})
	return nil
}

// Stop ends the hub of an ID that this process serves, and waits for the hub's
// goroutines. Ranks that have joined lose the group. Stop is for programs that do not
// need an ID after all; a hub ends by itself when its ranks have left.
func Stop(id ID) {
	hubs := allHubs.In(nil)
	hubs.Lock()
	h := hubs.m[id]
	delete(hubs.m, id)
	hubs.Unlock()
	if h != nil {
		h.part()
		h.stop()
		h.wg.Wait()
		if r := h.started(); r != nil {
			r.tasks.Wait()
		}
	}
}
