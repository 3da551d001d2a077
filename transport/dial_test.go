package transport_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/auth"
	"github.com/ringo-go/ringo/internal/test/transcript"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/listen"
)

// As package listen has them.
const (
	dialTime  = 20 * time.Second
	graceTime = 300 * time.Millisecond
)

// refused is the system's error of a dial where nobody listens.
func refused(t *testing.T) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	_, err = net.Dial("tcp", l.Addr().String())
	require.Error(t, err)
	return err
}

// A listener that takes a connection and says nothing, as a stopped process does, has not hung up, and no operation
// has run out of time: it is called again for as long as the Guard lasts.
func TestDialSilent(t *testing.T) {
	nobody := refused(t)
	for _, addr := range []string{"there", "there#place"} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			sockets := &transport.Sockets{Dial: func(context.Context, string, string) (net.Conn, error) {
				if calls++; calls == 10 {
					return nil, nobody
				}
				here, there := net.Pipe()
				go io.Copy(io.Discard, there)
				return here, nil
			}}
			ctx, cancel := listen.Patience(new(fifo.Guard), nil, nil)
			defer cancel()
			begun := time.Now()
			err := listen.Retry(ctx, func() error {
				to := listen.Target{Network: "tcp", Addr: addr, Sockets: sockets}
				_, err := listen.Dial(ctx, to, nil, "test", &listen.Request{}, nil)
				if calls < 10 {
					require.ErrorContains(t, err, "it took the connection and said nothing for 5s")
					require.NotErrorIs(t, err, auth.ErrHungUp)
					require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
				}
				return err
			})
			require.ErrorIs(t, err, transport.ErrClosed)
			require.Greater(t, time.Since(begun), 2*dialTime)
		})
	}
}

// Attempts that are no calls of Dial, such as a plugin's, are given up after a while.
func TestDialUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := listen.Patience(new(fifo.Guard), nil, nil)
		defer cancel()
		begun := time.Now()
		err := listen.Retry(ctx, func() error { return errors.New("no route to host") })
		require.ErrorContains(t, err, "no connection in 20s")
		require.ErrorContains(t, err, "no route to host; is a firewall between")
		require.Less(t, time.Since(begun), dialTime+time.Second)
	})
}

// A network may be away for a while: a dial goes on as long as its operation may take, and after 20 s the log says what
// to look at.
func TestDialNoWay(t *testing.T) {
	nobody := refused(t)
	for back, want := range map[time.Duration]error{3 * dialTime: transport.ErrClosed, time.Hour: fifo.ErrDeadline} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			sockets := &transport.Sockets{Dial: func(context.Context, string, string) (net.Conn, error) {
				if time.Since(begun) > back {
					return nil, nobody
				}
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}
			}}
			guard, log := new(fifo.Guard), new(transcript.Transcript)
			defer time.AfterFunc(5*dialTime, func() { guard.Abort(fifo.ErrDeadline) }).Stop()
			ctx, cancel := listen.Patience(guard, nil, slog.New(slog.NewTextHandler(log, nil)))
			defer cancel()
			err := listen.Retry(ctx, func() error {
				to := listen.Target{Network: "tcp", Addr: "there", Sockets: sockets}
				_, err := listen.Dial(ctx, to, nil, "test", &listen.Request{}, nil)
				return err
			})
			require.ErrorIs(t, err, want)
			if want == fifo.ErrDeadline {
				require.ErrorContains(t, err, "is a firewall between")
			}
			require.Greater(t, time.Since(begun), 2*dialTime)
			require.Equal(t, 1, strings.Count(log.String(), "is a firewall between"), log.String())
		})
	}
}

// Loopback that is down stays so; another network may come back.
func TestDialNoLoopback(t *testing.T) {
	for ip, most := range map[string]time.Duration{"127.0.0.1": 2 * graceTime, "10.0.0.1": dialTime + time.Second} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := listen.Patience(new(fifo.Guard), nil, nil)
			defer cancel()
			begun := time.Now()
			down := &net.OpError{Op: "dial", Addr: &net.TCPAddr{IP: net.ParseIP(ip)},
				Err: os.NewSyscallError("connect", syscall.ENETUNREACH)}
			require.ErrorIs(t, listen.Retry(ctx, func() error { return down }), down)
			require.Less(t, time.Since(begun), most)
			require.Greater(t, time.Since(begun), most/3)
		})
	}
}

// A handshake that is cut off because the communicator has ended returns the communicator's error,
// however long it has taken, and not the peer's.
func TestRetryAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("ranks disagree")
		ctx, cancel := context.WithCancelCause(context.Background())
		err := listen.Retry(ctx, func() error {
			time.Sleep(2 * graceTime)
			cancel(cause)
			return auth.ErrHungUp
		})
		require.Equal(t, cause, err)

		err = listen.Retry(context.Background(), func() error {
			time.Sleep(2 * graceTime)
			return auth.ErrHungUp
		})
		require.Equal(t, auth.ErrHungUp, err)
	})
}

// A connection that is cut while the machine stops is tried again, however long that has taken.
func TestRetryAfterAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, cut := range []error{auth.ErrHungUp, transport.ErrClosed} {
			tries := 0
			require.NoError(t, listen.Retry(context.Background(), func() error {
				if tries++; tries == 1 {
					time.Sleep(2 * graceTime)
					return cut
				}
				return nil
			}))
		}
	})
}
