package ringo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/trace"
	"github.com/ringo-go/ringo/transport"
)

// turnCalls are the methods of a Comm that take its turn, for a barrier where they are calls of all ranks.
var turnCalls = []struct {
	name string
	do   func(ctx context.Context, c *Comm) error
}{
	{"Do", func(_ context.Context, c *Comm) error { return Barrier(c) }},
	{"DoContext", func(ctx context.Context, c *Comm) error { return c.DoContext(ctx, BarrierOf()) }},
	{"Timeout", func(ctx context.Context, c *Comm) error { return c.Do(timed(ctx, BarrierOf())) }},
	{"Start", func(ctx context.Context, c *Comm) error { return c.Start(timed(ctx, BarrierOf())).Wait() }},
	{"Start with", func(ctx context.Context, c *Comm) error { return c.With(ctx).Start(BarrierOf()).Wait() }},
	{"Group", func(ctx context.Context, c *Comm) error {
		g := NewGroup()
		g.Add(c, BarrierOf())
		g.Add(c, timed(ctx, BarrierOf()))
		return g.Run()
	}},
	{"Scan", func(ctx context.Context, c *Comm) error { return Scan(c.With(ctx), make([]int32, 3), Sum) }},
	{"Split", func(ctx context.Context, c *Comm) error {
		part, err := c.Split(ctx, 0, 0)
		return errors.Join(err, closed(part))
	}},
	{"Grow", func(ctx context.Context, c *Comm) error {
		grown, err := c.Grow(ctx, nil, c.Size()+1)
		return errors.Join(err, closed(grown))
	}},
}

func timed(ctx context.Context, call *Call) *Call {
	if end, ok := ctx.Deadline(); ok {
		call.Timeout = max(time.Until(end), 1)
	}
	return call
}

func closed(c *Comm) error {
	if c == nil {
		return nil
	}
	return c.Close()
}

// blocked is an all-reduce of all ranks that ends only after release: rank 0's operator waits for that.
func blocked(comms []*Comm, calls *sync.WaitGroup, release <-chan struct{}) (begun <-chan struct{}) {
	in := make(chan struct{})
	for _, c := range comms {
		stop := sync.OnceFunc(func() { close(in); <-release })
		op := UserOp("waits", func(DataType, []byte, []byte) {
			if c.Rank() == 0 {
				stop()
			}
		})
		calls.Go(func() { _ = AllReduce(c, make([]int8, 64), op) })
	}
	return in
}

// A call that waits when Close has begun must not come to the memory that Close gives back.
func TestCallsBesideClose(t *testing.T) {
	for _, cfg := range everyTransport {
		t.Run(nameOf(cfg), func(t *testing.T) {
			comms := local(t, 2, cfg)
			c, release := comms[0], make(chan struct{})
			var all sync.WaitGroup
			<-blocked(comms, &all, release)
			all.Go(func() { require.NoError(t, c.Close()) })
			waiting := func(n int) {
				require.Eventually(t, func() bool { return c.life.Turn.Waiting() >= n }, tier.Patience, time.Millisecond)
			}
			waiting(1)
			for _, x := range turnCalls {
				all.Go(func() {
					if err := x.do(t.Context(), c); !errors.Is(err, ErrClosed) || errors.Is(err, ErrLeft) {
						t.Errorf("%s beside Close: %v", x.name, err)
					}
				})
			}
			waiting(len(turnCalls) - 1) // without those that were to be started
			close(release)
			all.Wait()
		})
	}
}

// Whatever waits for a call under way heeds its context, or its timeout. A method in which the ranks meet keeps its
// place: the communicator is usable afterwards.
func TestDeadlinesBehindCalls(t *testing.T) {
	for _, started := range []bool{false, true} {
		for _, x := range turnCalls {
			t.Run(fmt.Sprintf("%s started=%v", x.name, started), func(t *testing.T) {
				t.Parallel()
				comms := local(t, 2, Config{JoinTimeout: tier.Patience})
				release := make(chan struct{})
				goOn := sync.OnceFunc(func() { close(release) })
				defer goOn()
				var all sync.WaitGroup
				if started {
					comms[0].Start(BarrierOf())
					all.Go(func() { <-release; _ = Barrier(comms[1]) })
				} else {
					<-blocked(comms, &all, release)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
				defer cancel()
				done := make(chan error, 1)
				go func() {
					if x.name == "Do" {
						done <- context.DeadlineExceeded // has no limit
					} else {
						done <- x.do(ctx, comms[0])
					}
				}()
				select {
				case err := <-done:
					require.ErrorIs(t, err, context.DeadlineExceeded)
				case <-time.After(tier.Patience):
					t.Fatal("it waits on for the call under way")
				}
				goOn()
				all.Wait()
				if x.name == "Split" || x.name == "Grow" {
					require.ErrorContains(t, x.do(t.Context(), comms[1]), "rank 0 gave up")
					noErrors(t, each(comms, func(c *Comm) error { return AllReduce(c, []int32{1}, Sum) }))
				}
			})
		}
	}
}

// A call from within a call of the same communicator is refused at once, whichever function of the program makes it;
// one from another goroutine waits for its turn.
func TestCallsWithinCalls(t *testing.T) {
	inside := []struct {
		name string
		do   func(c *Comm) error
	}{
		{"Close", func(c *Comm) error { return c.Close() }},
		{"Shrink", func(c *Comm) error { _, err := c.Shrink(t.Context()); return err }},
	}
	for _, x := range turnCalls {
		inside = append(inside, struct {
			name string
			do   func(c *Comm) error
		}{x.name, func(c *Comm) error { return x.do(t.Context(), c) }})
	}
	var comms []*Comm
	var mu sync.Mutex
	tried, armed := map[string]bool{}, atomic.Bool{}
	try := func(from string, rank int) {
		if !armed.Load() {
			return
		}
		c := comms[rank]
		for _, x := range inside {
			if err := x.do(c); !errors.Is(err, ErrInvalid) {
				t.Errorf("%s from within %s: %v", x.name, from, err)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		tried[from] = true
	}
	cfg := Config{
		History:  t.TempDir(),
		Observer: observer(func(x *trace.Call) { try(fmt.Sprintf("an observer of %s", x.Kind), x.Rank) }),
		Log: slog.New(handler(func(r slog.Record) {
			try(fmt.Sprintf("the log's handler (%.15s)", r.Message), 0)
		})),
	}
	var err error
	comms, err = OpenLocal(2, cfg)
	require.NoError(t, err)
	armed.Store(true)
	var beside sync.WaitGroup
	errs := each(comms, func(c *Comm) error {
		send := sync.OnceFunc(func() {
			beside.Go(func() { require.NoError(t, Send(c, []int32{1}, 1)) })
		})
		op := UserOp("calls", func(DataType, []byte, []byte) {
			if try("an operator", c.Rank()); c.Rank() == 0 {
				send()
			}
		})
		x := make([]int32, 64)
		err := AllReduce(c, x, op)
		if c.Rank() == 1 {
			err = errors.Join(err, Recv(c, x[:1], 0))
		} else {
			beside.Wait()
		}
		err = errors.Join(err, c.Start(AllReduceOf(x, op)).Wait())
		g, big := NewGroup(), make([]byte, 8<<20) // on goroutines of its own
		g.Add(c, SendOf(big, 1-c.Rank()))
		g.Add(c, RecvOf(slices.Clone(big), 1-c.Rank()))
		return errors.Join(err, g.Run())
	})
	noErrors(t, errs)
	beside.Wait()
	comms[0].Abort(errors.New("to have the history written"))
	for _, c := range comms {
		require.Error(t, Barrier(c))
	}
	mu.Lock()
	for _, from := range []string{"an operator", "an observer of Send", "an observer of AllReduce",
		"the log's handler (AllReduce(count)", "the log's handler (history written)"} {
		require.Contains(t, tried, from)
	}
	mu.Unlock()
	armed.Store(false)
	for _, c := range comms {
		require.NoError(t, c.Close())
	}
}

type observer func(*trace.Call)

func (f observer) Begin(x *trace.Call) { f(x) }
func (f observer) End(x *trace.Call)   { f(x) }

type handler func(slog.Record)

func (handler) Enabled(context.Context, slog.Level) bool { return true }
func (f handler) Handle(_ context.Context, r slog.Record) error {
	f(r)
	return nil
}
func (f handler) WithAttrs([]slog.Attr) slog.Handler { return f }
func (f handler) WithGroup(string) slog.Handler      { return f }

// A rank that gives up on its way to its part's meeting is not waited for, and the parent stays usable.
func TestSplitGivenUp(t *testing.T) {
	for quits := range 2 {
		t.Run(fmt.Sprint(quits), func(t *testing.T) {
			comms := local(t, 3, Config{JoinTimeout: 10 * tier.Patience})
			began := time.Now()
			errs := each(comms, func(c *Comm) error {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				cfg := c.cfg
				if c.Rank() == quits {
					cfg.Sockets = &transport.Sockets{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
						if cancel(); ctx.Err() != nil {
							return nil, ctx.Err()
						}
						return new(net.Dialer).DialContext(ctx, network, addr)
					}}
				}
				part, err := c.SplitWith(ctx, c.Rank()/2, 0, cfg)
				return errors.Join(err, closed(part))
			})
			require.ErrorIs(t, errs[quits], context.Canceled)
			require.Regexp(t, fmt.Sprintf("rank %d (will not come|failed): .*: context canceled", quits), errs[1-quits])
			require.NoError(t, errs[2])
			require.Less(t, time.Since(began), 5*tier.Patience)
			noErrors(t, each(comms, Barrier))
		})
	}
}
