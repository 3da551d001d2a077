package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// A fakeNet joins hosts within a synctest bubble. Each connection goes over a relay with the
// properties that link returns.
type fakeNet struct {
	mu        sync.Mutex
	listeners map[string]*fakeListener
	ports     int
	// link describes the direction from host a to host b.
	link func(a, b byte) fakeLink
}

// A fakeLink is one direction of a link.
type fakeLink struct {
	rate    float64 // bytes a second
	delay   time.Duration
	flip    bool // a bit of every megabyte
	refused bool
	cut     int     // bytes after which the link hangs, 0: never
	jitter  float64 // as a part of the rate
}

type fakeListener struct {
	addr   *net.TCPAddr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *fakeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *fakeListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *fakeListener) Addr() net.Addr { return l.addr }

func (n *fakeNet) listen(ip net.IP) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ports++
	l := &fakeListener{addr: &net.TCPAddr{IP: ip, Port: n.ports}, conns: make(chan net.Conn), closed: make(chan struct{})}
	n.listeners[l.addr.String()] = l
	return l, nil
}

func (n *fakeNet) dial(ctx context.Context, from, to string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[to]
	n.mu.Unlock()
	a, b := net.ParseIP(from).To4()[3], l.addr.IP.To4()[3]
	there, back := n.link(a, b), n.link(b, a)
	if there.refused || back.refused {
		select {
		case <-ctx.Done():
		case <-time.After(callTime):
		}
		return nil, errors.New("no route to host")
	}
	mine, near := net.Pipe()
	far, theirs := net.Pipe()
	go there.relay(far, near, rand.New(rand.NewPCG(uint64(a), uint64(b))))
	go back.relay(near, far, rand.New(rand.NewPCG(uint64(b), uint64(a))))
	select {
	case l.conns <- theirs:
		return mine, nil
	case <-l.closed:
	case <-ctx.Done():
	}
	mine.Close()
	theirs.Close()
	return nil, errors.New("connection refused")
}

// relay passes data on at the pace of the link.
func (f fakeLink) relay(to, from net.Conn, random *rand.Rand) {
	type parcel struct {
		data []byte
		due  time.Time
	}
	way := make(chan parcel, 256)
	go func() {
		for p := range way {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.data); err != nil {
				from.Close()
			}
		}
		to.Close()
	}()
	defer close(way)
	rate := f.rate * (1 - f.jitter*random.Float64())
	buffer := make([]byte, 64<<10)
	for total := 0; ; {
		n, err := from.Read(buffer)
		if b := bytes.Clone(buffer[:n]); n > 0 {
			if f.flip && total/(1<<20) != (total+n)/(1<<20) {
				b[n/2] ^= 4
			}
			total += n
			if f.cut > 0 && total > f.cut {
				time.Sleep(30 * time.Second) // a pipe that nobody reads
				return
			}
			time.Sleep(time.Duration(float64(n) / rate * float64(time.Second)))
			way <- parcel{b, time.Now().Add(f.delay)}
		}
		if err != nil {
			return
		}
	}
}

// fakeCluster are the jobs of hosts a, b, c … that a fakeNet joins.
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
	fake := &fakeNet{listeners: map[string]*fakeListener{}, link: link}
	jobs := local(names...)
	for i, j := range jobs {
		h := newFakeHost(i)
		h.files["sys/class/net/eth0/speed"] = "128\n" // that of a link that is well
		j.SetMachine(h.machine())
		j.dial, j.listens = fake.dial, fake.listen
	}
	return jobs
}

// healthy is a good link: of 16 MB/s, so that a test has little to compute.
func healthy(a, b byte) fakeLink {
	return fakeLink{rate: 16e6, delay: 300 * time.Microsecond, jitter: 0.05}
}
