package ringo

import (
	"bytes"
	"errors"
	"runtime/pprof"
	tracer "runtime/trace"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/trace"
)

// A witness is a Recorder that checks each call as it ends.
type witness struct {
	*trace.Recorder
	t      testing.TB
	begins chan int // receives the rank, if it is not nil
	mu     sync.Mutex
	failed []error
}

func newWitness(t testing.TB) *witness { return &witness{Recorder: trace.NewRecorder(0, 0), t: t} }

func (w *witness) Begin(c *trace.Call) {
	w.Recorder.Begin(c)
	if w.begins != nil {
		w.begins <- c.Rank
	}
}

// End checks that Spans lie within each other and that the waits add up.
func (w *witness) End(c *trace.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.Err != nil {
		w.failed = append(w.failed, c.Err)
	}
	if err := c.Check(); err != nil {
		w.t.Error(err)
	}
	waits := make([]time.Duration, c.Size)
	for _, s := range c.Steps {
		if s.What != trace.Step {
			waits[s.Peer()] += time.Duration(s.End - s.Start)
		}
	}
	if !c.GPU && (c.Lost > 0 || !slices.Equal(waits, c.Waits)) {
		w.t.Errorf("%s: waits are %v together, and %v by rank", c.Title(), waits, c.Waits)
	}
	w.Recorder.End(c)
}

// The steps of a call are those of its schedule, in order and round by round, with their peers.
func TestObserverSeesAllSteps(t *testing.T) {
	const n, count = 4, 3000
	for _, how := range []Config{{Algo: "ring"}, {Algo: "tree"}, {Algo: "oneshot"}, {Algo: "doubling", Transport: "shm"}, {Algo: "ring", Transport: "socket"}} {
		t.Run(how.Algo+how.Transport, func(t *testing.T) {
			w := newWitness(t)
			how.Observer, how.SlotBytes, how.Slots = w, 512, 4
			comms := local(t, n, how)
			for range 2 {
				noErrors(t, each(comms, func(c *Comm) error { return AllReduce(c, make([]float32, count), Sum) }))
			}
			want, err := Explain(KindAllReduce, n, 0, 4*count, 0, how)
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
						require.True(t, round > 0 || int(next) == want.Schedule.Len(sched.Rank(c.Rank)), "round 0 ends after %d steps", next)
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
	w := newWitness(t)
	w.begins = make(chan int, 8)
	comms := local(t, 4, Config{Observer: w, Algo: "oneshot"})
	noErrors(t, each(comms, func(c *Comm) error {
		if c.Rank() == 2 {
			for range 3 {
				<-w.begins
			}
		}
		return AllReduce(c, make([]float32, 2), Sum)
	}))
	calls := w.Trace()
	a := calls.Arrivals(calls.Calls[0].Comm)
	require.Equal(t, []int{0, 0, 1, 0}, a.Last)
	require.Equal(t, 1, a.Calls)
}

// Groups' messages, reductions in order of rank and started calls are observed too.
func TestObserverSeesEveryWay(t *testing.T) {
	w := newWitness(t)
	comms := local(t, 3, Config{Observer: w, Deterministic: "rank order", SlotBytes: 512, Slots: 2})
	big := make([][]float32, 6)
	for i := range big {
		big[i] = make([]float32, 5000)
	}
	noErrors(t, each(comms, func(c *Comm) error {
		if err := AllReduce(c, make([]float32, 100), Sum); err != nil {
			return err
		}
		var g Group
		next, before := (c.Rank()+1)%3, (c.Rank()+2)%3
		g.Add(c, SendOf(big[c.Rank()], next))
		g.Add(c, RecvOf(big[3+c.Rank()], before))
		if err := g.Run(); err != nil {
			return err
		}
		return c.Start(BroadcastOf(make([]int32, 10), 1)).Wait()
	}))
	seen := map[string]int{}
	lanes := map[int]bool{}
	for _, c := range w.Trace().Calls {
		seen[c.Kind]++
		if c.Kind == "Send" || c.Kind == "Recv" {
			lanes[c.Lane] = true
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
	w := newWitness(t)
	w.begins = make(chan int, 8)
	comms := local(t, 2, Config{Observer: w})
	require.ErrorIs(t, comms[0].Do(&Call{Kind: KindAllReduce}), ErrInvalid)
	done := make(chan error)
	go func() { done <- Barrier(comms[0]) }()
	<-w.begins
	comms[1].Abort(errors.New("enough"))
	err := <-done
	require.ErrorContains(t, err, "enough")
	require.ErrorIs(t, Barrier(comms[1]), ErrAborted)
	require.Equal(t, []error{err}, w.failed)
	require.Len(t, w.Trace().Calls, 1)
}

// Neither no observer nor a recorder has calls allocate.
func TestObservedCallsAllocateNothing(t *testing.T) {
	for name, o := range map[string]trace.Observer{"none": nil, "recorder": trace.NewRecorder(0, 0), "labels": trace.Labels(t.Context())} {
		comms := local(t, 2, Config{Observer: o})
		calls := []*Call{AllReduceOf(make([]float32, 2), Sum), AllReduceOf(make([]float32, 2), Sum)}
		const runs = 50
		do := func(r int) { noErrors(t, []error{comms[r].Do(calls[r])}) }
		var other sync.WaitGroup
		other.Go(func() {
			for range runs + 2 {
				do(1)
			}
		})
		do(0)
		require.Less(t, testing.AllocsPerRun(runs, func() { do(0) }), 1.0, name)
		other.Wait()
	}
}

// An execution trace of the program has regions, and the communicator's own goroutines have labels in profiles.
func TestRegionsAndLabels(t *testing.T) {
	var events, profile bytes.Buffer
	comms := local(t, 2, Config{})
	if err := tracer.Start(&events); err != nil {
		t.Skip(err) // go test -trace
	}
	var once sync.Once
	look := UserOp("look", func(DataType, []byte, []byte) {
		once.Do(func() { _ = pprof.Lookup("goroutine").WriteTo(&profile, 1) })
	})
	noErrors(t, each(comms, func(c *Comm) error {
		var g Group
		g.Add(c, BarrierOf())
		return errors.Join(c.Start(AllReduceOf(make([]int32, 4), look)).Wait(), g.Run())
	}))
	tracer.Stop()
	for _, region := range []string{"AllReduce", "Group"} {
		require.Contains(t, events.String(), region)
	}
	require.Contains(t, profile.String(), `{"ringo":"carrier"}`)
}
