// A connection between a rank and the hub: frames, keep-alive and the queue of frames to send.

package bootstrap

import (
	"bufio"
	"net"
	"os"
	"sync"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
	"github.com/ringo-go/ringo/internal/secure"
)

const (
	idleBeforeProbe = 5 * time.Second // a silent host is probed after this …
	probeInterval   = 2 * time.Second
	probeCount      = 5 // … and given up after 5 + 5 × 2 seconds
	silence         = idleBeforeProbe + probeCount*probeInterval
	unanswered      = 3 // how many tries in a row a host must leave without an answer to count as silent
	looks           = 3 // number of looks within silence at the bytes that a host has not acknowledged
)

// A link is a connection with a queue of frames to send, so that send never blocks. Its
// goroutine exists only while there is something to write.
type link struct {
	conn     net.Conn
	in       *bufio.Reader
	tcp      *net.TCPConn  // below conn; nil if that is no TCP connection
	patience time.Duration // with a host that acknowledges nothing

	mu      sync.Mutex
	watched bool // a call of look is due
	queue   net.Buffers
	writing chan struct{} // closed when all is written; nil while no goroutine writes
	ending  bool          // the stream ends after queue
	broken  bool
}

func newLink(conn net.Conn) *link {
	tcp, _ := secure.Below(conn).(*net.TCPConn)
	if tcp != nil {
		// Kernels send and answer keep-alive probes, so a process that is stopped
		// or busy is not taken for dead. Without them a silent host is found later.
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{
			Enable: true, Idle: idleBeforeProbe, Interval: probeInterval, Count: probeCount,
		})
	}
	return &link{conn: conn, in: bufio.NewReader(conn), tcp: tcp, patience: silence}
}

func (l *link) send(m message) { l.sendFrame(rendezvous.Encode(m)) }

// sendFrame queues an encoded message, which may be shared between links.
func (l *link) sendFrame(frame []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		return
	}
	l.queue = append(l.queue, frame)
	l.watch()
	l.begin()
}

// begin has the queue written. Under mu.
func (l *link) begin() {
	if l.writing == nil {
		l.writing = make(chan struct{})
		go l.write()
	}
}

func (l *link) write() {
	for {
		l.mu.Lock()
		batch := l.queue
		l.queue = nil
		if len(batch) == 0 || l.broken {
			if l.ending {
				if c, ok := l.conn.(interface{ CloseWrite() error }); ok {
					c.CloseWrite()
				}
			}
			close(l.writing)
			l.writing = nil
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		if _, err := batch.WriteTo(l.conn); err != nil {
			l.close() // the reader returns the reason
		}
	}
}

// watch makes look be called while there are bytes that the other kernel has not acknowledged: then keep-alive probes
// are not sent, and retransmission gives up only after a quarter of an hour. Under mu.
func (l *link) watch() {
	if l.tcp == nil || l.watched {
		return
	}
	l.watched = true
	time.AfterFunc(l.patience/looks, l.look)
}

// look ends the reader's wait if the host at the other end is silent.
func (l *link) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watched = false
	if l.broken {
		return
	}
	pending, silent := unacknowledged(l.tcp, l.patience, unanswered)
	if silent {
		l.conn.SetReadDeadline(time.Unix(1, 0)) // the reader returns the reason
	}
	if pending || l.writing != nil {
		l.watch()
	}
}

// hears reports whether the host at the other end is known to have acknowledged what was sent, or anything within d.
func (l *link) hears(d time.Duration) bool {
	if l.tcp == nil || !acknowledges {
		return false
	}
	pending, silent := unacknowledged(l.tcp, d, 0)
	return !pending || !silent
}

// flush waits until all sent frames are with the kernel, at most d.
func (l *link) flush(d time.Duration) {
	l.mu.Lock()
	writing := l.writing
	l.mu.Unlock()
	if writing == nil {
		return
	}
	select {
	case <-writing:
	case <-time.After(d):
	}
}

func (l *link) receive(limit int) (message, error) { return rendezvous.Decode(l.in, limit) }

// closeWrite ends the stream to the other side, after the frames that were sent.
func (l *link) closeWrite() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ending = true
	l.begin()
}

func (l *link) close() {
	l.mu.Lock()
	l.broken = true
	l.queue = nil
	l.mu.Unlock()
	l.conn.Close()
}

// containers begins the suffix of a machine's ID that tells apart its containers, whose processes may have the same
// numbers.
const containers = "|"

// hostname is the name of this host, for messages.
func hostname() string {
	host, _ := os.Hostname()
	return host[:min(len(host), 255)]
}
