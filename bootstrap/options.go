package bootstrap

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
)

// ListenOptions are for the process that serves an ID.
type ListenOptions struct {
	// Addr is where NewID listens, "host:port"; port 0 is any free one. Empty is
	// a free port at the address of the interface of the default route, or of
	// loopback where there is none. For ranks on one machine "127.0.0.1:0" is enough.
	Addr string

	// Listener is the program's own listener. Addr is then the "host:port" by which ranks reach it, by default
	// Listener.Addr(). Later groups (Again, and after Group.Regroup) meet there too. The Listener is closed
	// when the last group has ended, or by Stop.
	Listener net.Listener

	// Secret replaces the random key of NewID by the key of IDFor, and Key by that of IDOf.
	Secret string
	Key    []byte

	// Timeout ends a hub to which no rank ever comes; default 10 minutes.
	Timeout time.Duration

	// Again serves the ID for one group after the other, until Stop; Timeout does not
	// count then. It is for launchers.
	Again bool
	// TLS names the hub's certificates: ranks must show one too. If it is nil, ranks may still speak TLS
	// by the job's key, or all of them in clear.
	TLS *TLS

	Log *slog.Logger // nil is silence

	// Regrouped is called before ranks go on after a failure (Group.Regroup): with nil when the first of them asks, then
	// with the members, as ranks of the first group, or with an empty list if none can go on. It must return at once. It
	// is for launchers.
	Regrouped func(ranks []int)

	// Failed is called with the first failure of each group, in which ranks are those of the first group. It must return
	// at once. It is for launchers.
	Failed func(*Failure)

	// Launched promises that Gone is called as soon as a rank's process ends, and that no rank comes again. A rank whose
	// process ends with EndedWell has left; a rank that ends otherwise, without a goodbye, has died.
	Launched bool

	known     bool // the ID is one that another process may serve too
	elsewhere bool // the ID's address is none of this host: a gateway's, or a mistake

	shared  *shared          // the Listener
	members []int            // by rank: its number in the first group; nil in the first group
	failed  rendezvous.Paths // of the groups before

	machine string // in place of machineID, for tests

	files int // in place of descriptors(), for tests
}

func (o ListenOptions) logger() *slog.Logger { return orSilent(o.Log) }

func (o ListenOptions) timeout() time.Duration {
	switch {
	case o.Again:
		return math.MaxInt64
	case o.Timeout > 0:
		return o.Timeout
	}
	return 10 * time.Minute
}

func orSilent(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}

// shareListener wraps the Listener so that several hubs can use it.
func (o *ListenOptions) shareListener() {
	if o.Listener != nil && o.shared == nil {
		o.shared = &shared{Listener: o.Listener}
	}
}

// outwardIP is this machine's address on the way to the rest of the world. No
// packet is sent: connecting a UDP socket only asks the routing table.
func outwardIP() net.IP {
	for _, far := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} { // RFC 5737, RFC 3849
		c, err := net.Dial("udp", far)
		if err != nil {
			continue
		}
		ip := c.LocalAddr().(*net.UDPAddr).IP
		c.Close()
		if ip.IsGlobalUnicast() {
			return ip
		}
	}
	return net.IPv4(127, 0, 0, 1)
}

// explain describes for people how a connection ended.
func explain(err error) string {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "its connection ended without goodbye"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "its connection ended without goodbye (connection reset)"
	case errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Sprintf("its host did not answer for %s", rendezvous.Spell(silence))
	}
	return err.Error()
}

// IsSilence reports whether a connection has ended because the other host answers nothing.
func IsSilence(err error) bool {
	return errors.Is(err, syscall.ETIMEDOUT) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH)
}
