package listen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/auth"
	"github.com/ringo-go/ringo/internal/secure"
	"github.com/ringo-go/ringo/transport"
)

const (
	// HandshakeTime is how long one handshake may take.
	HandshakeTime = 5 * time.Second
	// MaxPending is how many connections of a listener may be in the handshake.
	MaxPending = 256

	dialTime   = 20 * time.Second // after which somebody should look why a listener is not reached
	firstPause = 20 * time.Millisecond
	lastPause  = 500 * time.Millisecond
	// graceTime is how long a dialler tries again if nobody listens, the listener hangs up (too many callers cause both
	// for a moment), or loopback is down. graceTries is how often it tries at least, since one attempt takes long on a
	// machine that stops for a while.
	graceTime  = 300 * time.Millisecond
	graceTries = 3
)

var (
	errDialTime = fmt.Errorf("no connection in %v", dialTime)
	errSilent   = fmt.Errorf("it took the connection and said nothing for %v: its process may be stopped", HandshakeTime)
)

// A dialling is what the last attempt of a dial met.
type dialling struct {
	silent, lost atomic.Bool // the listener said nothing; there was no way to the listener
	log          *slog.Logger
}

// dials is the key of a context's *dialling.
type dials struct{}

func diallingOf(ctx context.Context) *dialling {
	if d, ok := ctx.Value(dials{}).(*dialling); ok {
		return d
	}
	return &dialling{log: slog.New(slog.DiscardHandler)}
}

// met turns the deadline of a handshake into errSilent, and notes what an attempt has met. A silent or unreachable
// listener neither times out an operation nor ends the dial: a process may be stopped for a while, by a debugger or
// with its whole machine, and a network may be away.
func met(ctx context.Context, err error) error {
	d := diallingOf(ctx)
	late := errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil
	op, dialled := errors.AsType[*net.OpError](err)
	_, nameless := errors.AsType[*net.DNSError](err)
	d.silent.Store(late)
	d.lost.Store(!late && dialled && op.Op == "dial" && !nameless)
	if late {
		return errSilent
	}
	return err
}

// Patience is a context for a dial. It ends with the Guard, when away is closed (fifo.ErrClosed), or after 20 s. But as
// long as calls of Dial meet a silent listener, or no way to the listener, 20 s do not end it; if there is no way, log
// then gets a warning. log may be nil.
func Patience(guard *fifo.Guard, away <-chan struct{}, log *slog.Logger) (context.Context, context.CancelFunc) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	last := &dialling{log: log}
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), dials{}, last))
	begun := time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(patience)
		defer tick.Stop()
		for {
			if err := guard.Err(); err != nil {
				cancel(err)
			}
			if time.Since(begun) > dialTime && !last.silent.Load() && !last.lost.Load() {
				cancel(errDialTime)
			}
			select {
			case <-away:
				cancel(fifo.ErrClosed)
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-done
	}
}

// Retry calls try until try succeeds or fails for good, or ctx ends. When ctx ends the result is
// its cause, and wraps the last error of try only if the time to dial has run out.
func Retry(ctx context.Context, try func() error) error {
	const advice = "is a firewall between, or the interface the wrong one?"
	since, d, said := time.Now(), diallingOf(ctx), false
	for tries, pause := 1, firstPause; ; tries, pause = tries+1, min(2*pause, lastPause) {
		err := try()
		// What failed after the end of ctx may have failed because of it.
		if err == nil || ctx.Err() == nil && final(err, tries, time.Since(since)) {
			return err
		}
		long := d.lost.Load() && time.Since(since) > dialTime
		if long && !said {
			said = true
			d.log.Warn("no connection to another rank in "+dialTime.String()+"; "+advice+" It is tried again as long as the "+
				"operation may take", "err", err)
		}
		select {
		case <-ctx.Done():
			cause := context.Cause(ctx)
			if cause == errDialTime || long && errors.Is(cause, fifo.ErrDeadline) {
				return fmt.Errorf("%w: %w; %s", cause, err, advice)
			}
			return cause
		case <-time.After(pause):
		}
	}
}

func final(err error, tries int, took time.Duration) bool {
	if _, refused := errors.AsType[*Refusal](err); refused || errors.Is(err, auth.ErrKey) ||
		errors.Is(err, auth.ErrProtocol) {
		return true
	}
	return tries >= graceTries && took >= graceTime &&
		(errors.Is(err, transport.ErrClosed) || errors.Is(err, auth.ErrHungUp) || auth.NoLoopback(err))
}

// KeepAlive has the kernel find out within 20 s that the host at the other end is silent. It works
// on connections with nothing in flight, and on one of these some rank always waits to receive.
// TCP_USER_TIMEOUT would cover the others too, but would also end connections to a rank that is
// busy elsewhere for longer and lets its window fill.
func KeepAlive(c net.Conn) {
	if tcp, ok := secure.Below(c).(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second,
			Count: 3})
	}
}

// A Target is where somebody listens.
type Target struct {
	Network, Addr string
	TLS           *secure.Config     // the connection goes over it, unless it is nil
	Sockets       *transport.Sockets // to dial with, nil for none
}

// Dial connects once and does the caller's side of the handshake, and then what
// the transport adds to it (then may be nil). Where nobody listens any more the
// error is transport.ErrClosed.
func Dial(ctx context.Context, to Target, key []byte, protocol string, r *Request, then func(net.Conn) error) (net.Conn,
	error) {
	c, err := reach(ctx, to)
	if err != nil {
		return nil, met(ctx, err)
	}
	_ = c.SetDeadline(time.Now().Add(HandshakeTime))
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	answer, err := auth.Call(c, key, protocol, r.bytes())
	if err == nil && len(answer) > 0 {
		err = &Refusal{string(answer)}
	}
	if err == nil && then != nil {
		err = then(c)
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("handshake with %s %s: %w", to.Network, to.Addr, met(ctx, err))
	}
	return c, nil
}
