package ringo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/internal/race"
)

// everyTransport are the ways in which ranks of one process can be connected.
var everyTransport = slices.DeleteFunc([]Config{{}, {Transport: "shm"}, {Transport: "socket"}, {Transport: "socket", SocketNetwork: "tcp"}},
	func(c Config) bool { return c.Transport == "shm" && runtime.GOOS != "linux" })

func (c Config) name() string { return strings.Trim(c.Transport+" "+c.SocketNetwork, " ") }

// within fails the test if f takes longer than most.
func within(t *testing.T, most time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(most):
		require.FailNow(t, what+" takes too long")
	}
}

// An operator that panics ends the communicator, and Close returns, so that a program that
// defers it prints the panic.
func TestPanicInOperator(t *testing.T) {
	comms := local(t, 3, Config{})
	bad := UserOp("bad", func(_ DataType, dst, src []byte) { panic("no such luck") })
	var panicked any
	errs := each(comms, func(c *Comm) (err error) {
		if c.Rank() == 1 {
			defer func() { panicked = recover() }()
			return AllReduce(c, make([]float32, 1000), bad)
		}
		return AllReduce(c, make([]float32, 1000), UserOp("good", func(_ DataType, dst, src []byte) {}))
	})
	require.Equal(t, "no such luck", panicked)
	for _, r := range []int{0, 2} {
		if errs[r] == nil { // it needed nothing more of rank 1
			errs[r] = Barrier(comms[r])
		}
		require.ErrorIs(t, errs[r], ErrPeer)
		require.ErrorContains(t, errs[r], "rank 1")
		require.ErrorContains(t, errs[r], "panicked")
	}
	within(t, 3*time.Second, "Close", func() {
		for _, c := range comms {
			c.Close()
		}
	})
}

// The functions on slices allocate nothing after the first call of a kind.
func TestFunctionsAllocateNothing(t *testing.T) {
	const runs = 50
	comms := local(t, 2, Config{})
	x, y := [2][]float32{}, [2][]float32{}
	for r := range x {
		x[r], y[r] = make([]float32, 64), make([]float32, 128)
	}
	counts := [][]int{{24, 40}, {40, 24}}
	for name, f := range map[string]func(c *Comm, x, y []float32) error{
		"AllReduce":     func(c *Comm, x, y []float32) error { return AllReduce(c, x, Sum) },
		"Reduce":        func(c *Comm, x, y []float32) error { return Reduce(c, x, x, Sum, 1) },
		"Broadcast":     func(c *Comm, x, y []float32) error { return Broadcast(c, x, 0) },
		"AllGather":     func(c *Comm, x, y []float32) error { return AllGather(c, y, x) },
		"ReduceScatter": func(c *Comm, x, y []float32) error { return ReduceScatter(c, x, y, Max) },
		"AlltoAll":      func(c *Comm, x, y []float32) error { return AlltoAll(c, y[:64], x) },
		"Gather":        func(c *Comm, x, y []float32) error { return Gather(c, y, x, 0) },
		"Scatter":       func(c *Comm, x, y []float32) error { return Scatter(c, x, y, 0) },
		"AllGatherv":    func(c *Comm, x, y []float32) error { return AllGatherv(c, y[:64], x[:counts[0][c.Rank()]], counts[0]) },
		"AlltoAllv": func(c *Comm, x, y []float32) error {
			return AlltoAllv(c, y, counts[0], x, counts[0])
		},
		"Barrier": func(c *Comm, x, y []float32) error { return Barrier(c) },
	} {
		if name == "AlltoAllv" { // rank 0 sends 24 and 40, rank 1 sends 40 and 24
			f = func(c *Comm, x, y []float32) error { return AlltoAllv(c, y, counts[c.Rank()], x, counts[c.Rank()]) }
		}
		done := make(chan error)
		go func() {
			var err error
			for range runs + 1 {
				err = errors.Join(err, f(comms[1], x[1], y[1]))
			}
			done <- err
		}()
		var err error
		allocs := testing.AllocsPerRun(runs, func() {
			if e := f(comms[0], x[0], y[0]); e != nil {
				err = e
			}
		})
		require.NoError(t, errors.Join(err, <-done), name)
		require.Less(t, allocs, 0.5, name)
	}
}

// What would lose data, or do nothing, or something else, is an error.
func TestTraps(t *testing.T) {
	c := local(t, 1, Config{})[0]
	x := []float32{1, 2, 3}
	for _, tc := range []struct {
		call *Call
		want string
	}{
		{&Call{In: AllReduceOf(x, Sum).In, Out: AllReduceOf(x, Sum).Out, Count: 3, Type: Float32}, "no Kind"},
		{&Call{Kind: KindAllReduce, In: AllReduceOf(x, Sum).In, Out: AllReduceOf(x, Sum).Out, Type: Float32}, "set Count"},
		{&Call{Kind: KindBarrier, Count: 5}, "a Barrier moves nothing"},
		{AllGatherOf(make([]float32, 5), x), "Out has 5 elements"},
	} {
		err := c.Do(tc.call)
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, tc.want)
	}
	require.NoError(t, Barrier(c), "it is usable")
	for n, lengths := range map[int][2]int{2: {5, 4}, 4: {3, 0}} {
		comms := local(t, n, Config{})
		for _, err := range each(comms, func(c *Comm) error {
			return AlltoAll(c, make([]int32, lengths[0]), make([]int32, lengths[0]))
		}) {
			require.ErrorIs(t, err, ErrInvalid)
			require.ErrorContains(t, err, "would be lost")
		}
		for _, err := range each(comms, func(c *Comm) error {
			return ReduceScatter(c, make([]int32, 2), make([]int32, 2*n+1), Sum)
		}) {
			require.ErrorIs(t, err, ErrInvalid)
		}
		noErrors(t, each(comms, Barrier))
	}
}

// An operator on structs gets whole ones, whatever the slots and shares are.
func TestUserOpOfStructs(t *testing.T) {
	const size, count = 24, 1000
	whole := UserOpOf("structs", size, func(_ DataType, dst, src []byte) {
		if len(dst)%size != 0 {
			panic(fmt.Sprintf("%d bytes are no structs", len(dst)))
		}
		for i := range dst {
			dst[i] += src[i]
		}
	})
	for _, cfg := range []Config{{SlotBytes: 256, Slots: 4}, {SlotBytes: 1024, Deterministic: call.RankOrder}, {SlotBytes: 64}} {
		for _, algo := range []string{"", "ring", "twoshot", "tree"} {
			cfg.Algo = algo
			comms := local(t, 3, cfg)
			noErrors(t, each(comms, func(c *Comm) error {
				x := make([]uint8, size*count)
				for i := range x {
					x[i] = uint8(i + c.Rank())
				}
				if err := AllReduce(c, x, whole); err != nil {
					return err
				}
				for i := range x {
					if x[i] != uint8(3*i+3) {
						return fmt.Errorf("byte %d is %d", i, x[i])
					}
				}
				return nil
			}))
			err := AllReduce(comms[0], make([]uint8, size+1), whole)
			require.ErrorIs(t, err, ErrInvalid)
		}
	}
	err := AllReduce(local(t, 1, Config{SlotBytes: 64})[0], make([]uint8, 80), UserOpOf("large", 80, nil))
	require.ErrorIs(t, err, ErrInvalid)
}

// A rank closes while the others go on: they hear of it soon, and it is not a failure.
func TestDeparture(t *testing.T) {
	for _, cfg := range everyTransport {
		for _, tc := range []struct {
			name string
			call func(c *Comm) error // of the ranks that stay
		}{
			{"AllReduce", func(c *Comm) error { return AllReduce(c, make([]float32, 10_000), Sum) }},
			{"Broadcast of who has left", func(c *Comm) error { return Broadcast(c, make([]float32, 10), 1) }},
			{"Barrier", Barrier},
		} {
			for _, before := range []bool{false, true} { // there are connections
				t.Run(fmt.Sprintf("%s %s %v", cfg.name(), tc.name, before), func(t *testing.T) {
					t.Parallel()
					comms := local(t, 3, cfg)
					began := time.Now()
					errs := each(comms, func(c *Comm) error {
						if before {
							if err := tc.call(c); err != nil {
								return err
							}
						}
						if c.Rank() == 1 {
							return c.Close()
						}
						return tc.call(c)
					})
					require.NoError(t, errs[1])
					for _, r := range []int{0, 2} {
						for errs[r] == nil && time.Since(began) < race.Soon(3*time.Second) { // it needs nothing of rank 1
							errs[r] = comms[r].Err()
							time.Sleep(time.Millisecond)
						}
						require.Error(t, errs[r])
						require.True(t, errors.Is(errs[r], ErrLeft) || strings.Contains(errs[r].Error(), ErrLeft.Error()), "%v", errs[r])
						require.ErrorContains(t, errs[r], "rank 1")
						var e *Error
						require.ErrorAs(t, comms[r].Err(), &e)
					}
					require.Less(t, time.Since(began), race.Soon(3*time.Second))
				})
			}
		}
	}
}

// Whatever goes wrong with a Split on one rank, all hear of it, and the next one works.
func TestSplitFailures(t *testing.T) {
	comms := local(t, 3, Config{})
	well := func() {
		t.Helper()
		parts := make([]*Comm, 3)
		noErrors(t, each(comms, func(c *Comm) (err error) {
			parts[c.Rank()], err = c.Split(t.Context(), c.Rank()&1, math.MaxInt-c.Rank()*(math.MaxInt/2))
			if err == nil {
				err = Barrier(parts[c.Rank()])
			}
			return err
		}))
		require.Equal(t, 1, parts[0].Rank(), "keys far apart")
		for _, p := range parts {
			require.NoError(t, p.Close())
		}
	}
	well()
	for _, err := range each(comms, func(c *Comm) error {
		color := 0
		if c.Rank() == 1 {
			color = -7
		}
		_, err := c.Split(t.Context(), color, 0)
		return err
	}) {
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, "rank 1: color -7")
	}
	well()
	began := time.Now()
	errs := each(comms, func(c *Comm) error {
		ctx := t.Context()
		if c.Rank() == 2 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
		}
		if c.Rank() == 0 {
			time.Sleep(100 * time.Millisecond)
		}
		_, err := c.Split(ctx, 0, 0)
		return err
	})
	require.ErrorIs(t, errs[2], context.DeadlineExceeded)
	require.ErrorContains(t, errs[2], "0", "who had not come")
	for _, r := range []int{0, 1} {
		require.ErrorIs(t, errs[r], ErrPeer)
		require.ErrorContains(t, errs[r], "rank 2")
	}
	require.Less(t, time.Since(began), race.Soon(2*time.Second))
	well()
	noErrors(t, each(comms, func(c *Comm) error { return AllReduce(c, make([]int32, 100), Sum) }))
}

// A rank calls Split, the others something else.
func TestSplitMismatch(t *testing.T) {
	for _, cfg := range everyTransport {
		t.Run(cfg.name(), func(t *testing.T) {
			t.Parallel()
			comms := local(t, 3, cfg)
			began := time.Now()
			for r, err := range each(comms, func(c *Comm) error {
				if c.Rank() == 1 {
					_, err := c.Split(t.Context(), 0, 0)
					return err
				}
				return AllReduce(c, make([]int32, 100), Sum)
			}) {
				require.Error(t, err)
				require.ErrorContains(t, err, call.ErrMismatch.Error(), "rank %d", r)
				require.ErrorContains(t, err, "Split #1", "rank %d", r)
				require.ErrorContains(t, err, "AllReduce #1", "rank %d", r)
			}
			require.Less(t, time.Since(began), race.Soon(3*time.Second))
		})
	}
}

// A group whose sends fit in a queue, but for what earlier sends have left in it.
func TestGroupBehindSends(t *testing.T) {
	for _, cfg := range everyTransport {
		t.Run(cfg.name(), func(t *testing.T) {
			cfg.Timeout = 5 * time.Second
			comms := local(t, 2, cfg)
			noErrors(t, each(comms, func(c *Comm) error {
				peer := 1 - c.Rank()
				for i := range DefaultSlots {
					if err := Send(c, []int64{int64(i)}, peer); err != nil {
						return err
					}
				}
				var g Group
				out, in := []int64{99}, make([]int64, 1)
				g.Add(c, SendOf(out, peer))
				g.Add(c, RecvOf(in, peer))
				if err := g.Run(); err != nil {
					return err
				}
				for i := 1; i <= DefaultSlots; i++ {
					if want := int64(i - 1); in[0] != want {
						return fmt.Errorf("message %d, want %d", in[0], want)
					}
					if err := Recv(c, in, peer); err != nil {
						return err
					}
				}
				if in[0] != 99 {
					return fmt.Errorf("last message %d", in[0])
				}
				return nil
			}))
		})
	}
}

// Ranks that are idle when another fails hear of it as an *Error, in Err and in the next call.
func TestIdleRankHears(t *testing.T) {
	comms := local(t, 3, Config{})
	comms[1].Abort(errors.New("for a reason"))
	for _, r := range []int{0, 2} {
		var e *Error
		for began := time.Now(); comms[r].Err() == nil && time.Since(began) < race.Soon(3*time.Second); {
			time.Sleep(time.Millisecond)
		}
		require.ErrorAs(t, comms[r].Err(), &e)
		require.ErrorIs(t, e, ErrPeer)
		err := Barrier(comms[r])
		require.ErrorAs(t, err, &e)
		require.ErrorIs(t, err, ErrPeer)
		require.ErrorContains(t, err, "for a reason")
		require.Equal(t, "Barrier", e.Op)
	}
}

// Four ranks of one process are together in 2 ms: nothing is listened on that nobody needs.
func BenchmarkOpenLocal(b *testing.B) {
	for b.Loop() {
		comms, err := OpenLocal(4, Config{})
		require.NoError(b, err)
		var wg sync.WaitGroup
		for _, c := range comms {
			wg.Go(func() { c.Close() })
		}
		wg.Wait()
	}
}
