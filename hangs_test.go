package ringo

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"github.com/ringo-go/ringo/bootstrap"
	why "github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/cmd/why/histories"
	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/trace/history"
	"github.com/ringo-go/ringo/trace/judge"
	"github.com/ringo-go/ringo/transport"
)

// A hang is done to a communicator of 4 ranks, of which one is to blame. do is that rank's n-th call in
// place of the right one.
type hang struct {
	name    string
	do      func(c *Comm, n int, call *Call, release <-chan struct{}) error
	message bool
	link    bool // the connection from the rank to the next is slow, instead
}

var hangs = []hang{
	{name: "late", do: func(_ *Comm, _ int, _ *Call, release <-chan struct{}) error {
		<-release
		return nil
	}},
	{name: "stopped", do: func(c *Comm, _ int, _ *Call, release <-chan struct{}) error {
		bootstrap.Mute(c.group)
		<-release
		return nil
	}},
	{name: "dead", do: func(c *Comm, _ int, _ *Call, _ <-chan struct{}) error {
		bootstrap.Drop(c.group)
		return nil
	}},
	{name: "left", do: func(c *Comm, _ int, _ *Call, _ <-chan struct{}) error { return c.Close() }},
	{name: "skipped call", do: func(c *Comm, n int, _ *Call, _ <-chan struct{}) error {
		return c.Do(hangCall(n + 1))
	}},
	{name: "other order", do: func(c *Comm, n int, call *Call, _ <-chan struct{}) error {
		if err := c.Do(hangCall(n + 1)); err != nil {
			return err
		}
		return c.Do(call)
	}},
	{name: "waits for a message", message: true, do: func(c *Comm, _ int, _ *Call, _ <-chan struct{}) error {
		return Recv(c, make([]byte, 8), (c.Rank()+1)%c.Size())
	}},
	{name: "slow link", link: true},
}

// hangCall is the n-th call of every rank.
func hangCall(n int) *Call {
	x := make([]int32, 64+n%5)
	if n%3 == 2 {
		return BroadcastOf(x, n%4)
	}
	return AllReduceOf(x, Sum)
}

// A slowEnd hands its slots over late.
type slowEnd struct {
	transport.SendConn
	guard *fifo.Guard
	slot  []byte
	slow  *atomic.Bool
	queue chan func()
}

func (s *slowEnd) Reserve(n int) (mem.Region, error) {
	s.slot = make([]byte, n)
	return mem.Host(s.slot), s.guard.Err()
}

func (s *slowEnd) Publish(stamp transport.Stamp) error {
	b, slow := s.slot, s.slow.Load()
	deliver := func() {
		for slow && s.guard.Aborted() == nil {
			time.Sleep(time.Millisecond)
		}
		if out, err := s.SendConn.Reserve(len(b)); err == nil {
			copy(out.Bytes(), b)
			s.SendConn.Publish(stamp)
		}
	}
	select {
	case s.queue <- deliver:
	default: // nobody fills it
	}
	return s.guard.Err()
}

// Many hangs: every rank names the right one, all alike, within 5 s of the deadline; and so
// does what they have written.
func TestHangs(t *testing.T) {
	t.Parallel()
	timeout := tier.Soon(300 * time.Millisecond)
	cases := tier.Count(24, 104)
	if tier.Race {
		cases = 24
	}
	rng := rand.New(rand.NewPCG(5, 6))
	room := semaphore.NewWeighted(13)
	var right, wrote atomic.Int32
	var all sync.WaitGroup
	for i := range cases {
		h, bad, at, algo := hangs[i%len(hangs)], rng.IntN(4), 1+rng.IntN(9), []string{"", "ring"}[rng.IntN(2)]
		if h.link {
			algo = "ring" // the connection is used
		}
		require.NoError(t, room.Acquire(t.Context(), 1))
		all.Go(func() {
			defer room.Release(1)
			name := fmt.Sprintf("%s: rank %d at call %d, algorithm %q", h.name, bad, at, algo)
			dir := t.TempDir()
			comms, err := OpenLocal(4, Config{Timeout: timeout, Algo: algo, History: dir})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			want := []int{bad}
			var slow atomic.Bool
			quit := make(chan struct{})
			if h.link {
				next := (bad + 1) % 4
				want = []int{min(bad, next), max(bad, next)}
				comms[bad].net.Links.Spoil(func(to int, c transport.SendConn) transport.SendConn {
					if to != next {
						return c
					}
					s := &slowEnd{SendConn: c, guard: &comms[bad].life.Guard, slow: &slow, queue: make(chan func(), 1000)}
					all.Go(func() {
						for {
							select {
							case f := <-s.queue:
								f()
							case <-quit:
								return
							}
						}
					})
					return s
				})
			}
			same := func(culprits []int) bool {
				if h.message && len(culprits) == 2 { // its message met a collective: it is between the two
					return slices.Contains(culprits, bad)
				}
				return slices.Equal(culprits, want)
			}
			release := make(chan struct{})
			var survivors sync.WaitGroup
			errs := make([]error, 4)
			var ranks sync.WaitGroup
			survivors.Add(3)
			for r, c := range comms {
				ranks.Go(func() {
					for n := range 1 << 20 {
						if n == at && r == bad && h.do != nil {
							errs[r] = h.do(c, n, hangCall(n), release)
							return
						}
						if n == at && h.link {
							slow.Store(true)
						}
						if errs[r] = c.Do(hangCall(n)); errs[r] != nil {
							break
						}
					}
					if r != bad {
						survivors.Done()
					}
				})
			}
			began := time.Now()
			survivors.Wait()
			took := time.Since(began)
			close(release)
			ranks.Wait()
			close(quit)
			ok := took < timeout+5*time.Second
			for r, err := range errs {
				if e, is := err.(*Error); r != bad && (!is || !same(e.Culprits)) {
					ok = false
				}
			}
			if ok {
				right.Add(1)
			} else {
				t.Logf("%s: want %v after %v: %v", name, want, took, errs)
			}
			for r, c := range comms {
				if r != bad || h.name != "left" {
					c.Close()
				}
			}
			records, _, err := history.Read(dir)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			if found := why.Judge(histories.Jobs(records, nil)[0]); same(found.Culprits) {
				wrote.Add(1)
			} else {
				t.Logf("%s: want %v, files say %v", name, want, found.Sentence)
			}
		})
	}
	all.Wait()
	require.GreaterOrEqual(t, right.Load(), int32(cases*95/100))
	require.GreaterOrEqual(t, wrote.Load(), int32(cases*95/100))
}

// A rank's file is there when its error is: a program may exit on it.
func TestHistoryBeforeError(t *testing.T) {
	t.Parallel()
	for range tier.Count(5, 20) {
		dir := t.TempDir()
		comms := local(t, 4, Config{Timeout: 100 * time.Millisecond, History: dir})
		var ranks sync.WaitGroup
		for r, c := range comms {
			ranks.Go(func() {
				if r == 1 { // it never comes
					return
				}
				file := filepath.Join(dir, fmt.Sprintf("ringo-%s-rank%d.json", c.life.ID(), r))
				for _, of := range []string{"the call that failed", "the next one"} {
					assert.Error(t, AllReduce(c, []int32{1}, Sum))
					assert.FileExists(t, file, of)
				}
			})
		}
		ranks.Wait()
	}
}

// The history is kept without being asked for.
func TestHistory(t *testing.T) {
	comms := local(t, 2, Config{})
	noErrors(t, each(comms, func(c *Comm) error {
		for range 100 {
			if err := Barrier(c); err != nil {
				return err
			}
		}
		if c.Rank() == 0 {
			return Send(c, []int32{1, 2}, 1)
		}
		return Recv(c, make([]int32, 2), 0)
	}))
	h := comms[1].History()
	require.EqualValues(t, 101, h.Total)
	require.Len(t, h.Calls, history.Depth)
	require.Equal(t, "Recv(count 2, int32) from rank 0", h.Calls[history.Depth-1].What)
	require.EqualValues(t, 100, h.Calls[history.Depth-2].Number)
	require.Equal(t, judge.State{Rank: 1, Heard: true, Last: 100, Peer: -1}, h.State)
	require.Equal(t, comms[0].History().Comm, h.Comm)
	_, err := OpenLocal(1, Config{History: t.TempDir(), HistorySignal: "NONSENSE"})
	require.ErrorIs(t, err, ErrInvalid)
}

// A history names the communicators that had failed before, and has the time of its own failure also if it is written
// again later.
func TestHistoryOfFailedBefore(t *testing.T) {
	dir := t.TempDir()
	world, err := OpenLocal(2, Config{History: dir})
	require.NoError(t, err)
	parts := make([]*Comm, 2)
	noErrors(t, each(world, func(c *Comm) (err error) {
		parts[c.Rank()], err = c.Split(t.Context(), 0, 0)
		return err
	}))
	read := func(c *Comm, failed bool) (r history.Record) {
		require.Eventually(t, func() bool {
			records, _, err := history.Read(filepath.Join(dir, history.FileOf(c.life.ID(), 0)))
			if err == nil {
				r = records[0]
			}
			return err == nil && (r.Cause != "") == failed
		}, time.Minute, time.Millisecond)
		return r
	}
	parts[0].Abort(errors.New("disk full"))
	first := read(parts[0], true)
	require.Empty(t, first.Failed)
	require.Equal(t, []string{parts[0].life.ID()}, read(world[0], false).Failed)
	world[0].Abort(errors.New("disk full"))
	require.Equal(t, []string{parts[0].life.ID()}, read(world[0], true).Failed)
	keeping.of(parts[0]).write(time.Time{})
	again := read(parts[0], true)
	require.Equal(t, first.Time, again.Time)
	require.Empty(t, again.Failed)
	for _, c := range slices.Concat(parts, world) { // an error comes after the files
		require.Error(t, Barrier(c))
		_ = c.Close() // it has failed
	}
}

// One job that has several communicators leaves one verdict, in which ranks have the job's numbers: a rank sleeps, or
// calls the two in another order than the others, and the others end as programs do. A part of Split that has no name
// of its own has its ID in errors; its history has the process and the number of each rank.
func TestHangsOfTwoCommunicators(t *testing.T) {
	t.Parallel()
	const n, bad = 4, 2
	kinds := []string{"another order", "sleeps", "sleeps before the part"}
	for _, kind := range kinds[:tier.Count(1, len(kinds))] {
		dir := t.TempDir()
		world, err := OpenLocal(n, Config{Timeout: tier.Soon(1500 * time.Millisecond), History: dir, Name: "job"})
		require.NoError(t, err)
		var wg, survivors sync.WaitGroup
		release := make(chan struct{})
		parts := make([]*Comm, n)
		survivors.Add(n - 1)
		for r, c := range world {
			wg.Go(func() {
				part, err := c.Split(t.Context(), 0, -r)
				if !assert.NoError(t, err) {
					return
				}
				parts[r] = part
				calls := []*Comm{c, part, c, part}
				switch {
				case r == bad && kind == "sleeps":
					calls = calls[:2]
				case r == bad && kind == "sleeps before the part":
					calls = calls[:3]
				case r == bad:
					calls = []*Comm{c, part, part, c}
				}
				for _, of := range calls {
					if err = AllReduce(of, []int32{1}, Sum); err != nil {
						break
					}
				}
				if r == bad {
					<-release
					return
				}
				defer survivors.Done()
				e, is := err.(*Error)
				if !assert.True(t, is, "%s: %v", kind, err) {
					return
				}
				if e.Comm == part.life.ID() {
					assert.Contains(t, e.Error(), " of job (communicator "+e.Comm+"): rank ")
				} else {
					assert.Contains(t, e.Error(), " of job: rank ")
				}
			})
		}
		survivors.Wait()
		close(release)
		wg.Wait()
		var records []history.Record
		require.Eventually(t, func() bool { // the sleeper writes on its own time
			records, _, err = history.Read(dir)
			return err == nil && len(records) == 2*n
		}, 10*time.Second, 10*time.Millisecond, "a process that has failed in one communicator writes both")
		for _, r := range records {
			require.Len(t, r.Members, n)
			if r.Origin != "" {
				require.Equal(t, world[0].life.ID(), r.Origin)
				require.Equal(t, n-1-r.Rank, r.Members[r.Rank].Number)
			}
		}
		jobs := histories.Jobs(records, nil)
		require.Len(t, jobs, 1)
		a := why.Judge(jobs[0])
		require.Equal(t, []int{bad}, a.Culprits, "%s: %s %v", kind, a.Sentence, a.Notes)
		for _, c := range append(world, parts...) {
			c.Close()
		}
	}
}
