package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"
)

// A fakeNet joins hosts, numbered from 1, within a synctest bubble.
type fakeNet struct {
	// link describes the direction from host a to host b, as it is now.
	link func(a, b byte) fakeLink
	// stopped reports whether a host's processes are stopped now; nil is never.
	stopped func(host byte) bool
	seed    uint64

	mu        sync.Mutex
	owners    map[string][]byte // of an IP address: by mistake two hosts may have one
	first     map[byte]net.IP   // address of a host
	listeners map[int]*fakeListener
	ways      map[[2]byte]*fakeWay
	conns     []*fakeConn
	port      int
}

// A fakeLink is one direction of a link.
type fakeLink struct {
	rate    float64       // bytes a second
	varies  float64       // part of the rate that a connection lacks at most, by chance
	delay   time.Duration // of each packet
	jitter  time.Duration // random delay up to this, in addition; the order is kept
	busy    time.Duration // random time up to this, one time in four, until the receiving process runs
	loss    float64       // part of the packets that are lost
	twice   float64       // part of the packets that come twice
	longest int           // bytes of a packet; longer ones vanish. 0: any
	flip    bool          // a bit of every megabyte changes
	gone    bool          // all packets vanish
	cut     int           // bytes of a connection after which all vanish; 0: never
	uplink  *fakeUplink   // that the packets share with others'; nil: none
}

// A fakeUplink is a line of several links.
type fakeUplink struct {
	rate float64
	free time.Time // when all that is on its way has left
}

// A fakeWay is the state of one direction between two hosts.
type fakeWay struct {
	free   time.Time // when all that is on its way has left
	random *rand.Rand
}

func newFakeNet(link func(a, b byte) fakeLink) *fakeNet {
	return &fakeNet{link: link, owners: map[string][]byte{}, first: map[byte]net.IP{},
		listeners: map[int]*fakeListener{},
		ways:      map[[2]byte]*fakeWay{}}
}

type fakeListener struct {
	net    *fakeNet
	host   byte
	addr   *net.TCPAddr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *fakeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		if l.net.stops(l.host) {
			<-l.closed
			return nil, net.ErrClosed
		}
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *fakeListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *fakeListener) Addr() net.Addr { return l.addr }

func (n *fakeNet) stops(host byte) bool { return n.stopped != nil && n.stopped(host) }

// owns notes that a host has an address.
func (n *fakeNet) owns(host byte, ip net.IP) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.first[host] == nil {
		n.first[host] = ip
	}
	if at := ip.String(); !slices.Contains(n.owners[at], host) {
		n.owners[at] = append(n.owners[at], host)
	}
}

// listen is a host's listener at an address of its own.
func (n *fakeNet) listen(host byte, ip net.IP) net.Listener {
	n.owns(host, ip)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.port++
	l := &fakeListener{net: n, host: host, addr: &net.TCPAddr{IP: ip, Port: n.port}, conns: make(chan net.Conn, 64),
		closed: make(chan struct{})}
	n.listeners[n.port] = l
	return l
}

// found is the host that another one takes for the owner of an address: of two, the one whose answer it has heard.
func (n *fakeNet) found(by byte, ip net.IP) byte {
	owners := n.owners[ip.String()]
	switch {
	case len(owners) == 0:
		return 0
	case slices.Contains(owners, by):
		return by
	}
	return owners[(n.seed+uint64(by))%uint64(len(owners))]
}

// A fakePath is what a dialled connection goes over.
type fakePath struct {
	there, back byte // the host that is reached, and the one that gets its answers
	listener    *fakeListener
}

func (n *fakeNet) path(host byte, from, to string) fakePath {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, err := net.ResolveTCPAddr("tcp", to)
	if err != nil {
		return fakePath{}
	}
	p := fakePath{there: n.found(host, at.IP)}
	source := n.first[host]
	if from != "" {
		source = net.ParseIP(from)
	}
	p.back = n.found(p.there, source)
	if l := n.listeners[at.Port]; l != nil && l.host == p.there {
		p.listener = l
	}
	return p
}

// dial connects a host, whose address is from, to another one. Packets have at most segment bytes of data, if that is
// not 0.
func (n *fakeNet) dial(ctx context.Context, host byte, from, to string, segment int) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	p := n.path(host, from, to)
	for again := time.Second; ; again *= 2 {
		took, ok := n.knock(host, p)
		if !ok {
			took = again
		}
		select {
		case <-time.After(took):
		case <-ctx.Done():
			return nil, errors.New("no route to host")
		}
		if !ok {
			continue
		}
		if p.listener == nil {
			return nil, errors.New("connection refused")
		}
		near, far := n.connect(host, p.there, from, p.listener.addr, cmp.Or(segment, fakePacket))
		select {
		case <-p.listener.closed:
		case p.listener.conns <- far:
			return near, nil
		default:
		}
		near.Close()
		far.Close()
		return nil, errors.New("connection refused")
	}
}

// knock sends the first packet of a connection, and reports whether and when its answer comes.
func (n *fakeNet) knock(host byte, p fakePath) (time.Duration, bool) {
	if p.there == host {
		return 0, true
	}
	if p.there == 0 || p.back != host {
		return 0, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var took time.Duration
	for _, d := range [][2]byte{{host, p.there}, {p.there, host}} {
		l, w := n.link(d[0], d[1]), n.way(d[0], d[1])
		if l.gone || w.chance(l.loss) {
			return 0, false
		}
		took += l.delay + w.upTo(l.jitter)
	}
	return took, true
}

func (n *fakeNet) way(a, b byte) *fakeWay {
	w := n.ways[[2]byte{a, b}]
	if w == nil {
		w = &fakeWay{random: rand.New(rand.NewPCG(n.seed, uint64(a)<<8|uint64(b)))}
		n.ways[[2]byte{a, b}] = w
	}
	return w
}

func (w *fakeWay) chance(of float64) bool { return of > 0 && w.random.Float64() < of }

func (w *fakeWay) upTo(d time.Duration) time.Duration {
	if d == 0 {
		return 0
	}
	return time.Duration(w.random.Int64N(int64(d)))
}

// close ends all connections and listeners, so that no goroutine is left in the bubble.
func (n *fakeNet) close() {
	n.mu.Lock()
	conns, listeners := n.conns, n.listeners
	n.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
	for _, l := range listeners {
		l.Close()
	}
}

// join has a rank of a host use the net.
func (n *fakeNet) join(j *job, host byte) {
	j.dial = func(ctx context.Context, from, to string, segment int) (net.Conn, error) {
		return n.dial(ctx, host, from, to, segment)
	}
	j.listens = func(ip net.IP) (net.Listener, error) { return n.listen(host, ip), nil }
}

// fakeCluster are the jobs of hosts a, b, c … that a fakeNet joins; their stars are other networks.
func fakeCluster(n int, link func(a, b byte) fakeLink) []*job {
	var names []string
	for i := range n {
		names = append(names, string(rune('a'+i)))
	}
	if n > 26 {
		for i := range names {
			names[i] = fmt.Sprint("n", i)
		}
	}
	fake := newFakeNet(link)
	jobs := local(names...)
	for i, j := range jobs {
		h := newFakeHost(i)
		h.files["sys/class/net/eth0/speed"] = "128\n" // that of a link that is well
		j.SetMachine(h.machine())
		fake.join(j, byte(i+1))
	}
	return jobs
}

// healthy is a good link: of 16 MB/s, so that a test has little to compute.
func healthy(a, b byte) fakeLink {
	return fakeLink{rate: 16e6, delay: 300 * time.Microsecond, varies: 0.05}
}
