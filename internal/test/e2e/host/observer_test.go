package host

import (
	"bytes"
	"errors"
	"runtime/pprof"
	tracer "runtime/trace"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/trace"
)

// The steps of a call are those of its schedule, in order and round by round, with their peers.
func TestObserverSeesAllSteps(t *testing.T) {
	const n, count = 4, 3000
	for _, how := range []ringo.Config{{Algo: "ring"}, {Algo: "tree"}, {Algo: "oneshot"},
		{Algo: "doubling", Transport: "shm"}, {Algo: "ring", Transport: "socket"}} {
		t.Run(how.Algo+how.Transport, func(t *testing.T) {
			w := commtest.NewWitness(t)
			how.Observer, how.SlotBytes, how.Slots = w, 512, 4
			comms := commtest.Local(t, n, how)
			for range 2 {
				commtest.NoErrors(t, commtest.Each(comms,
					func(c *ringo.Comm) error { return ringo.AllReduce(c, make([]float32, count), ringo.Sum) }))
			}
			want, err := ringo.Explain(ringo.KindAllReduce, n, 0, 4*count, 0, how)
			require.NoError(t, err)
			calls := w.Trace().Calls
			require.Len(t, calls, 2*n)
			for i, c := range calls {
				require.Equal(t, uint32(i%2+1), c.Number)
				require.Equal(t, []any{"AllReduce", how.Algo, 4 * count, n, -1}, []any{c.Kind, c.Algo, c.Bytes, c.Size, c.Peer})
				require.Zero(t, c.Lost)
				steps, round, next := 0, int32(0), int32(0)
				for _, s := range c.Steps {
					if s.What != trace.Step {
						continue
					}
					steps++
					if s.Round > round {
						require.True(t, round > 0 || int(next) == want.Schedule.Len(sched.Rank(c.Rank)), "round 0 ends after %d steps",
							next)
						round, next = s.Round, 0
					}
					require.Equal(t, round, s.Round)
					require.GreaterOrEqual(t, s.Step, next)
					require.False(t, round == 0 && s.Step > next, "step %d is left out", next)
					next = s.Step + 1
					st := want.Schedule.At(sched.Rank(c.Rank), int(s.Step))
					require.Equal(t, []sched.Rank{st.Recv, st.Send}, []sched.Rank{sched.Rank(s.Recv), sched.Rank(s.Send)})
				}
				require.Greater(t, steps, want.Schedule.Len(sched.Rank(c.Rank)), "there is more than one round")
			}
		})
	}
}

// Whoever comes last is found, and is waited for.
func TestObserverSeesWhoIsLate(t *testing.T) {
	w := commtest.NewWitness(t)
	w.Begins = make(chan int, 8)
	comms := commtest.Local(t, 4, ringo.Config{Observer: w, Algo: "oneshot"})
	commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error {
		if c.Rank() == 2 {
			for range 3 {
				<-w.Begins
			}
		}
		return ringo.AllReduce(c, make([]float32, 2), ringo.Sum)
	}))
	calls := w.Trace()
	a := calls.Arrivals(calls.Calls[0].Comm)
	require.Equal(t, []int{0, 0, 1, 0}, a.Last)
	require.Equal(t, 1, a.Calls)
}

// Groups' messages, reductions in order of rank and started calls are observed too.
func TestObserverSeesEveryWay(t *testing.T) {
	w := commtest.NewWitness(t)
	comms := commtest.Local(t, 3, ringo.Config{Observer: w, Deterministic: "rank order", SlotBytes: 512, Slots: 2})
	commtest.Run(t, comms, func(c *commtest.Rank) {
		require.NoError(c, ringo.AllReduce(c.Comm, make([]float32, 100), ringo.Sum))
		var g ringo.Group
		g.Add(c.Comm, ringo.SendOf(make([]float32, 5000), (c.Rank()+1)%3))
		g.Add(c.Comm, ringo.RecvOf(make([]float32, 5000), (c.Rank()+2)%3))
		require.NoError(c, g.Run())
		require.NoError(c, c.Start(ringo.BroadcastOf(make([]int32, 10), 1)).Wait())
	})
	seen := map[string]int{}
	lanes := map[int]bool{}
	for _, c := range w.Trace().Calls {
		seen[c.Kind]++
		if c.Kind == "Send" || c.Kind == "Recv" {
			lanes[c.Track] = true
			require.Zero(t, c.Number)
			require.Equal(t, 20000, c.Bytes)
		}
		if c.Kind == "Broadcast" {
			require.Equal(t, 1, c.Peer)
		}
		require.NotEmpty(t, c.Steps)
	}
	require.Equal(t, map[string]int{"AllReduce": 3, "Send": 3, "Recv": 3, "Broadcast": 3}, seen)
	require.Equal(t, map[int]bool{1: true, 2: true}, lanes)
}

// A call that fails ends with its error; one that is refused is not observed.
func TestObserverHearsOfFailures(t *testing.T) {
	w := commtest.NewWitness(t)
	w.Begins = make(chan int, 8)
	comms := commtest.Local(t, 2, ringo.Config{Observer: w})
	require.ErrorIs(t, comms[0].Do(&ringo.Call{Kind: ringo.KindAllReduce}), ringo.ErrInvalid)
	done := make(chan error)
	go func() { done <- ringo.Barrier(comms[0]) }()
	<-w.Begins
	comms[1].Abort(errors.New("enough"))
	err := <-done
	require.ErrorContains(t, err, "enough")
	require.ErrorIs(t, ringo.Barrier(comms[1]), ringo.ErrAborted)
	require.Equal(t, []error{err}, w.Failed)
	require.Len(t, w.Trace().Calls, 1)
}

// An execution trace of the program has regions, and the communicator's own goroutines have labels in profiles.
func TestRegionsAndLabels(t *testing.T) {
	var events, profile bytes.Buffer
	comms := commtest.Local(t, 2, ringo.Config{})
	if err := tracer.Start(&events); err != nil {
		t.Skip(err) // go test -trace
	}
	var once sync.Once
	look := ringo.UserOp("look", func(ringo.DataType, []byte, []byte) {
		once.Do(func() { _ = pprof.Lookup("goroutine").WriteTo(&profile, 1) })
	})
	commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error {
		var g ringo.Group
		g.Add(c, ringo.BarrierOf())
		return errors.Join(c.Start(ringo.AllReduceOf(make([]int32, 4), look)).Wait(), g.Run())
	}))
	tracer.Stop()
	for _, region := range []string{"AllReduce", "Group"} {
		require.Contains(t, events.String(), region)
	}
	require.Contains(t, profile.String(), `{"ringo":"carrier"}`)
}
