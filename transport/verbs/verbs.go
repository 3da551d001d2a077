// Package verbs is the transport over InfiniBand and RoCE, through libibverbs. It is for
// package paths.
//
// A connection is a reliable queue pair on one port or on several (its rails). The
// sender writes a slot, its header before its payload, straight into the receiver's
// memory; the immediate that comes with the write is the number of the slot. The
// receiver gives credits back as immediates without a payload. Both poll only completion
// queues, so the order in which bytes appear in memory does not matter.
//
// A TCP connection carries the handshake (internal/auth) and stays open: it tells of the
// peer's goodbye or death, and lets both ends agree that a rail has failed. Slots of a
// failed rail are sent again over another one; without another the connection ends with
// a *LinkError.
//
// The payloads of a placed connection (transport.Placer) lie in memory of the callers, of GPUs too:
// devices move them from one to the other, and no processor touches them. A GPU's memory is registered
// by a dma-buf, or by its address where the kernel has nvidia-peermem. A slot is then two work
// requests, the header and the payload; the immediate comes with the payload.
//
// Where a GPU does not see the writes of devices in order, Next waits until a byte of the slot was
// read back (readback.go).
//
// The trap: RDMA is neither encrypted nor authenticated, only the handshake is authenticated. And
// Close of a Transport gives its memory back, so no goroutine may use a slot any more. Registered
// memory belongs to the caller, but must not be freed before it is released or the Transport closed:
// peers would write to whatever uses the addresses next.
package verbs

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/auth"
	"github.com/ringo-go/ringo/internal/ibverbs"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/ends"
	"github.com/ringo-go/ringo/transport/internal/listen"
)

// Options say which ports to use and how. The zero value is automatic.
type Options struct {
	// HCAs names devices, as NCCL_IB_HCA does: a comma list of prefixes, each with a
	// port's number after a colon if only that port is meant; a leading ^ excludes them,
	// a leading = wants exact names, ^= both.
	HCAs string
	// GIDIndex is the entry of the ports' GID tables, nil for the best (see bestGID).
	GIDIndex *int
	// Timeout is how long a packet waits for its acknowledgement: 4.096 µs × 2^Timeout,
	// 1 to 31, 0 for 20 (4 s).
	Timeout int
	// Retries is how often a packet is sent again before its rail has failed: 1 to 7, 0
	// for 7.
	Retries int
	// TrafficClass and ServiceLevel mark the packets.
	TrafficClass, ServiceLevel int
	// PKeyIndex is the entry of the ports' tables of partition keys.
	PKeyIndex int
	// Rails is how many ports the slots of a connection take by turns, at most 4; 0 is this
	// rank's share of the ports. One port more, if there is one, stands by in case one of
	// them fails.
	Rails int
	// Sharers is how many ranks share the ports of this host, 0 for 1, and LocalRank the number
	// of this rank among them. Ranks of the same LocalRank reach each other by the same ports.
	Sharers, LocalRank int
	// Near is the distance of a device from the rank's GPU; nil means that all are equally near. A rank uses
	// the nearest ports, and LocalRank decides among equally near ones.
	Near func(device string) int
	// Listen opens the listener of handshakes. nil is one on loopback, for peers on this host
	// alone. Transports of a process with the same Door share a listener.
	Listen func() (l net.Listener, zone string, err error)
	Door   string
	// Verbs is the library, nil for the system's libibverbs.
	Verbs ibverbs.Verbs
}

const (
	defaultTimeout = 20
	defaultRetries = 7
	maxRails       = 4
	maxSlots       = 4096
	maxSlotBytes   = 1 << 30
)

func (o *Options) check() error {
	set := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	set(&o.Timeout, defaultTimeout)
	set(&o.Retries, defaultRetries)
	set(&o.Sharers, 1)
	if o.Listen == nil {
		o.Listen = func() (net.Listener, string, error) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			return l, "", err
		}
	}
	for _, v := range []struct {
		name            string
		value, low, top int
	}{
		{"timeout (NCCL_IB_TIMEOUT)", o.Timeout, 1, 31},
		{"retry count (NCCL_IB_RETRY_CNT)", o.Retries, 1, 7},
		{"traffic class (NCCL_IB_TC)", o.TrafficClass, 0, 255},
		{"service level (NCCL_IB_SL)", o.ServiceLevel, 0, 15},
		{"index of the partition key (NCCL_IB_PKEY)", o.PKeyIndex, 0, math.MaxUint16},
		{"number of rails", o.Rails, 0, maxRails},
		{"number of ranks on this host", o.Sharers, 1, math.MaxInt32},
		{"local rank", o.LocalRank, 0, math.MaxInt32},
	} {
		if v.value < v.low || v.value > v.top {
			return fmt.Errorf("%s is %d: want %d to %d", v.name, v.value, v.low, v.top)
		}
	}
	return nil
}

// retryTime is how long a packet is sent again.
func (o *Options) retryTime() time.Duration {
	return 4096 * time.Nanosecond << o.Timeout * time.Duration(o.Retries+1)
}

// Transport is the verbs transport of one rank of one communicator.
type Transport struct {
	cfg     transport.Config
	opt     Options
	bad     error // of the options, told by Listen and Dial
	shape   shape
	log     *slog.Logger
	warn    *auth.Log // for events that strangers can cause
	arrived *listen.Arrivals[*recvConn]
	ends    *ends.Set[*conn]

	mu       sync.Mutex
	ports    []*port // nil before the first Listen, Register or Dial
	devices  []*device
	endpoint *listen.Endpoint
	memory   []*memory // registered memory
}

// New makes a transport. It costs nothing until Listen.
func New(cfg transport.Config, o Options) *Transport {
	t := &Transport{cfg: cfg, opt: o, shape: shapeOf(cfg.Limits), log: cfg.Log,
		arrived: listen.NewArrivals[*recvConn](cfg.Left), ends: ends.New[*conn](cfg.Linger)}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	if t.cfg.Guard == nil {
		t.cfg.Guard = new(fifo.Guard)
	}
	t.bad = t.opt.check()
	if l := cfg.Limits; t.bad == nil &&
		(l.Slots < 2 || l.Slots > maxSlots || l.SlotBytes < 1 || l.SlotBytes > maxSlotBytes) {
		t.bad = fmt.Errorf("limits %+v: want 2 to %d slots of 1 to %d bytes", l, maxSlots, maxSlotBytes)
	}
	t.warn = auth.NewLog(t.log)
	return t
}

// Name is "ib".
func (t *Transport) Name() string { return "ib" }

// Reach is nil for all peers: only connecting shows whether two ports are on one network.
func (t *Transport) Reach(a, b transport.Info) error { return nil }

// Listen opens the devices, tries what a connection needs of the first one, and opens a
// TCP port for the handshake, which the transports of the process share. The first
// Listen of a process costs some ms. The address is that port and the names of the
// ports that this rank may use.
func (t *Transport) Listen() ([]byte, error) {
	fail := func(err error) ([]byte, error) { return nil, fmt.Errorf("ib: listen: %w", err) }
	if _, err := t.open(); err != nil {
		return fail(err)
	}
	defer t.ends.Leave()
	r, err := t.try()
	if err != nil {
		return fail(err)
	}
	r.destroy()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ends.Closed() {
		return fail(fifo.ErrClosed)
	}
	if t.endpoint == nil {
		if t.endpoint, err = listen.Enter("ib "+t.opt.Door, t.opt.Listen, nil, t.warn, t.receive); err != nil {
			return fail(err)
		}
	}
	words := []string{t.endpoint.Addr()}
	for _, p := range t.ports {
		words = append(words, p.String())
	}
	return []byte(strings.Join(words, " ")), nil
}

// try makes a rail and registers memory as a connection does, so that Listen fails where Dial would.
func (t *Transport) try() (*rail, error) {
	a, err := areas.take(t.shape.size(), t.devices)
	if err != nil {
		return nil, err
	}
	areas.give(a)
	return newRail(t.ports[0], t.shape, &t.opt)
}

// open finds the ports, once. After open the caller has to call ends.Leave, for which Close waits.
func (t *Transport) open() (_ []*port, err error) {
	if t.bad != nil {
		return nil, t.bad
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ends.Enter() {
		return nil, fifo.ErrClosed
	}
	defer func() {
		if err != nil {
			t.ends.Leave()
		}
	}()
	if t.ports != nil {
		return t.ports, nil
	}
	ports, devices, err := find(&t.opt)
	if err != nil {
		return nil, err
	}
	for _, p := range ports {
		if longest := int(p.attr.MaxMsg); longest > 0 && headerLen+t.cfg.Limits.SlotBytes > longest {
			release(devices)
			return nil, fmt.Errorf("slots of %d bytes: %s sends at most %d at a time; use smaller slots (RINGO_SLOT_BYTES)",
				t.cfg.Limits.SlotBytes, p, longest)
		}
	}
	t.ports, t.devices = ports, devices
	t.ends.Go(t.tend)
	return ports, nil
}

// tendTime is how soon the failure of a rail is noticed while no goroutine uses its connection.
const tendTime = 50 * time.Millisecond

// tend makes progress on connections that no goroutine uses: slots that were published
// must reach the peer although a rail fails.
func (t *Transport) tend() {
	tick := time.NewTicker(tendTime)
	defer tick.Stop()
	var all []*conn
	for {
		select {
		case <-t.ends.Away():
			return
		case <-tick.C:
		}
		all = t.ends.Append(all[:0])
		for _, c := range all {
			c.checkPorts()
			c.tend()
		}
	}
}

// Close ends all connections and gives their memory back. Slots that were published before
// still reach peers that go on: Close waits for these, and returns what is lost (transport.Config.Linger).
func (t *Transport) Close() error {
	if !t.ends.Shut() {
		return nil
	}
	t.mu.Lock()
	endpoint, devices := t.endpoint, t.devices
	t.mu.Unlock()
	if endpoint != nil {
		endpoint.Shut()
	}
	t.arrived.Close()
	all := t.ends.Append(nil)
	t.ends.Close()
	if endpoint != nil {
		endpoint.Wait()
	}
	t.ends.Wait()
	for _, c := range all {
		<-c.done
		c.free()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	errs := []error{t.ends.Lost()}
	for _, m := range t.memory {
		errs = append(errs, m.release())
	}
	t.memory = nil
	release(devices)
	return errors.Join(errs...)
}
