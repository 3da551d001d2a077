package life

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/kernels"
)

// A fakeGroup is rank 1 of 4 in a group whose other ranks say what a test wants.
type fakeGroup struct {
	bootstrap.Group
	failed  chan struct{}
	failure *bootstrap.Failure
	hear    func(*bootstrap.Failure)
	hub     []int

	mu       sync.Mutex
	told     []string // to Fail
	culprits []int    // likewise
	inquired int
	halt     func()
	late     []bootstrap.Position
	mute     bool  // nobody answers a complaint
	left     []int // ranks that have left, which is heard when Inquire asks for them
	gone     []int // those of left that Inquire has asked for
}

func newFakeGroup() *fakeGroup { return &fakeGroup{failed: make(chan struct{})} }

// say has the others report a failure.
func (g *fakeGroup) say(f bootstrap.Failure) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failure = &f
	close(g.failed)
	if g.hear != nil {
		go g.hear(&f)
	}
}

func (g *fakeGroup) OnFailure(f func(*bootstrap.Failure)) { g.hear = f }

func (g *fakeGroup) Rank() int                                { return 1 }
func (g *fakeGroup) Size() int                                { return 4 }
func (g *fakeGroup) Locate(func() (bootstrap.Position, bool)) {}
func (g *fakeGroup) Hub() []int                               { return g.hub }

func (g *fakeGroup) Failure() *bootstrap.Failure {
	select {
	case <-g.failed:
		return g.failure
	default:
		return nil
	}
}

func (g *fakeGroup) Inquire(p bootstrap.Position) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inquired++
	for _, r := range p.Awaits {
		if slices.Contains(g.left, r) {
			g.gone = append(g.gone, r)
		}
	}
}

func (g *fakeGroup) Left(rank int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Contains(g.gone, rank)
}

func (g *fakeGroup) Fail(reason string, culprits ...int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.told = append(g.told, reason)
	g.culprits = culprits
	if len(culprits) == 2 && g.failure == nil && g.hear != nil && !g.mute { // as the hub does
		go g.hear(&bootstrap.Failure{Rank: 1, Culprits: culprits, Reason: reason})
	}
}

func (g *fakeGroup) FailWith(reason string, peer int, _ bool) {
	g.Fail(reason, min(1, peer), max(1, peer))
}
func (g *fakeGroup) Seek() { time.Sleep(bootstrap.InquestTime) }

func (g *fakeGroup) OnHalt(f func()) { g.halt = f }

func (g *fakeGroup) Late(p bootstrap.Position) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.late = append(g.late, p)
}

// A peer whose call was cut short by a death may be seen at a later one: the death
// is what counts, whether the group's word or the mismatch comes first.
func TestDeathBeforeMismatch(t *testing.T) {
	at := func(seq uint32) [2]uint64 {
		return call.Sign{Kind: call.AllReduce, Seq: seq, Count: 4, Type: kernels.Float32, Root: -1}.Stamp()
	}
	for name, test := range map[string]struct {
		theirs uint32
		died   bool
		want   error
	}{
		"death":               {8, true, call.ErrPeer},
		"complaint":           {8, false, call.ErrMismatch},
		"same number":         {7, true, call.ErrMismatch},
		"peer is behind":      {6, true, call.ErrMismatch},
		"peer has no numbers": {0, true, call.ErrMismatch},
	} {
		for _, wordFirst := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", word first", false: ", word second"}[wordFirst], func(t *testing.T) {
				g := newFakeGroup()
				l := New(g, "h", "", time.Minute)
				defer l.Close()
				word := bootstrap.Failure{Rank: 2, Died: test.died, Reason: "x"}
				if wordFirst {
					g.say(word)
					<-l.Stopped()
				} else {
					defer time.AfterFunc(time.Millisecond, func() { g.say(word) }).Stop()
				}
				cause := &engine.StepError{Peer: 3, Phase: "recv", Err: &engine.MismatchError{Want: at(7), Got: at(test.theirs)}}
				err := l.Fail(&call.Call{Kind: call.AllReduce}, 7, cause, nil)
				require.ErrorIs(t, err, test.want)
				require.ErrorIs(t, l.Err(), test.want)
			})
		}
	}
}

// A connection that breaks because the peer has left is no fault of the network, also where the peer's goodbye was not
// read from the connection.
func TestBrokenByLeaving(t *testing.T) {
	for _, left := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			g := newFakeGroup()
			if left {
				g.left = []int{3}
			}
			l := New(g, "h", "", time.Minute)
			defer l.Close()
			cause := &engine.StepError{Peer: 3, Phase: "send", Err: syscall.EPIPE}
			err := l.Fail(&call.Call{Kind: call.Send, Peer: 3}, 0, cause, nil)
			require.ErrorIs(t, err, syscall.EPIPE)
			require.Equal(t, left, errors.Is(err, call.ErrLeft), "%v", err)
			require.Equal(t, left, errors.Is(l.Err(), call.ErrLeft))
			if left {
				require.Equal(t, []int{3}, err.Culprits)
			}
		})
	}
}

// Functions of OnStop may use memory that the owner gives back after Close.
func TestCloseWaitsForOnStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(newFakeGroup(), "h", "", time.Minute)
		used := false
		l.OnStop(func(error) {
			time.Sleep(time.Second)
			used = true
		})
		go l.Abort(nil)
		<-l.Stopped()
		l.Close()
		require.True(t, used)
	})
}

// reset is a connection that broke, for whatever reason.
var reset = &engine.StepError{Peer: 0, Phase: "recv", Err: errors.New("connection reset")}

// TestFailWaits: an operation that another rank may have ended waits for the group's word,
// and not for long.
func TestFailWaits(t *testing.T) {
	c := &call.Call{Kind: call.AllReduce}
	died := bootstrap.Failure{Rank: 2, Died: true, Reason: "killed"}
	for name, test := range map[string]struct {
		cause    error
		word     time.Duration // when it comes; 0 for never
		want     error
		after    time.Duration
		told     int
		inquired int
	}{
		"late, word":       {call.ErrTimeout, time.Second, call.ErrPeer, time.Second, 0, 0},
		"late, no word":    {call.ErrTimeout, 0, call.ErrTimeout, TrialWait + bootstrap.InquestTime, 0, 0},
		"word":             {reset, 100 * time.Millisecond, call.ErrPeer, 100 * time.Millisecond, 0, 1},
		"no word":          {reset, 0, reset.Err, RootCauseWait, 1, 1},
		"late word":        {reset, RootCauseWait + 1, reset.Err, RootCauseWait, 1, 1},
		"apart, word":      {mismatch(7, 8), 500 * time.Millisecond, call.ErrPeer, 500 * time.Millisecond, 0, 1},
		"apart, no word":   {mismatch(7, 8), 0, call.ErrMismatch, RollCallWait, 1, 1},
		"invalid":          {fmt.Errorf("%w: count", call.ErrInvalid), 0, call.ErrInvalid, 0, 0, 0},
		"unsupported":      {fmt.Errorf("%w: GPU", call.ErrUnsupported), 0, call.ErrUnsupported, 0, 0, 0},
		"differs, word":    {mismatch(7, 7), 500 * time.Millisecond, call.ErrMismatch, 500 * time.Millisecond, 0, 1},
		"differs, no word": {mismatch(7, 7), 0, call.ErrMismatch, RollCallWait, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newFakeGroup()
				l := New(g, "h", "", time.Minute)
				var stopped []error
				l.OnStop(func(cause error) { stopped = append(stopped, cause) })
				if test.word > 0 {
					time.AfterFunc(test.word, func() { g.say(died) })
				}
				begin := time.Now()
				err := l.Fail(c, 7, test.cause, nil)
				require.Equal(t, test.after, time.Since(begin))
				require.ErrorIs(t, err, test.want)
				require.Len(t, g.told, test.told)
				require.Equal(t, test.inquired, g.inquired)
				if errors.Is(err, call.ErrInvalid) || errors.Is(err, call.ErrUnsupported) {
					require.NoError(t, l.Err())
					require.Zero(t, err.Seq)
					require.Empty(t, stopped)
				} else {
					require.EqualError(t, l.Err(), err.Error())
					require.EqualValues(t, 7, err.Seq)
					require.Len(t, stopped, 1)
					require.Equal(t, stopped[0], l.Guard.Aborted())
					l.OnStop(func(cause error) { require.Equal(t, stopped[0], cause) })
				}
				l.Close()
				time.Sleep(time.Second) // what is left over would show
				require.Len(t, g.told, test.told)
			})
		})
	}
}

// TestFailTogether: operations of several goroutines that a death has ended all name it, and
// the group hears once of what it did not know.
func TestFailTogether(t *testing.T) {
	for _, word := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			g := newFakeGroup()
			l := New(g, "h", "", time.Minute)
			errs := make([]*call.Error, 4)
			var all sync.WaitGroup
			for i := range errs {
				all.Go(func() { errs[i] = l.Fail(&call.Call{Kind: call.Send}, 0, reset, nil) })
			}
			synctest.Wait()
			if word {
				g.say(bootstrap.Failure{Rank: 2, Died: true, Reason: "killed"})
			}
			all.Wait()
			for _, err := range errs {
				require.Equal(t, word, errors.Is(err, call.ErrPeer), err)
				require.Zero(t, err.Seq, "a Send has no number")
			}
			require.Equal(t, map[bool]int{true: 0, false: 1}[word], len(g.told))
			l.Close()
		})
	}
}

// TestOnStop: a function of OnStop is called once, whether it is given before the end or after.
func TestOnStop(t *testing.T) {
	for range 200 {
		l := New(newFakeGroup(), "h", "", time.Minute)
		var calls [8]atomic.Int32
		var all sync.WaitGroup
		for i := range calls {
			all.Go(func() { l.OnStop(func(error) { calls[i].Add(1) }) })
		}
		all.Go(func() { l.Abort(nil) })
		all.Wait()
		for i := range calls {
			require.EqualValues(t, 1, calls[i].Load())
		}
		l.Close()
	}
}

// TestEnds: however a communicator ends, Err is a *call.Error, and what begins later is
// refused with the reason.
func TestEnds(t *testing.T) {
	c := &call.Call{Kind: call.Broadcast}
	for name, test := range map[string]struct {
		end   func(g *fakeGroup, l *Life)
		err   string
		later string
	}{
		"failure": {func(_ *fakeGroup, l *Life) { l.Fail(&call.Call{Kind: call.AllReduce}, 7, call.ErrTimeout, nil) },
			"AllReduce #7: rank 1 on h: i/o timeout",
			"Broadcast: rank 1 on h: the communicator has failed before: AllReduce #7: rank 1 on h: i/o timeout"},
		"abort": {func(_ *fakeGroup, l *Life) { l.Abort(errors.New("enough")) },
			"Abort: rank 1 on h: aborted: enough",
			"Broadcast: rank 1 on h: the communicator has failed before: Abort: rank 1 on h: aborted: enough"},
		"abort without a reason": {func(_ *fakeGroup, l *Life) { l.Abort(nil) },
			"Abort: rank 1 on h: aborted",
			"Broadcast: rank 1 on h: the communicator has failed before: Abort: rank 1 on h: aborted"},
		"word": {func(g *fakeGroup, l *Life) {
			g.say(bootstrap.Failure{Rank: 2, Died: true, Reason: "killed"})
			<-l.Stopped()
		},
			"Comm: rank 1 on h: rank 2 died: killed", "Broadcast: rank 1 on h: rank 2 died: killed"},
		"close": {func(_ *fakeGroup, l *Life) { l.step(CloseCalled{l.ErrorIn("Close", call.ErrClosed)}) },
			"Close: rank 1 on h: communicator closed", "Broadcast: rank 1 on h: communicator closed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newFakeGroup()
				l := New(g, "h", "", time.Minute)
				require.NoError(t, l.Begin(c, nil))
				require.NoError(t, l.Err())
				test.end(g, l)
				var e *call.Error
				require.ErrorAs(t, l.Failure(), &e)
				require.EqualError(t, l.Failure(), test.err)
				if name == "word" {
					require.NoError(t, l.Err(), "no operation has met it")
				}
				require.EqualError(t, l.Begin(c, nil), test.later)
				l.Close()
				require.EqualError(t, l.Err(), test.err, "Close leaves it")
			})
		})
	}
}

// TestHubSilent: a rank whose time is over and that hears no verdict names the process that serves the rendezvous,
// and itself: either may be cut off.
func TestHubSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeGroup()
		g.hub = []int{1, 2}
		l := New(g, "h", "", time.Minute)
		defer l.Close()
		err := l.Fail(&call.Call{Kind: call.AllReduce}, 7, call.ErrTimeout, nil)
		require.ErrorIs(t, err, call.ErrTimeout)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Empty(t, err.Culprits)
		require.Equal(t, []int{1, 2}, err.Candidates)
		require.ErrorContains(t, err, "is the process of rank 2, which serves it, stopped?")
		require.ErrorContains(t, err, "who is to blame cannot be known: ranks 1 and 2")
		require.Empty(t, g.told)
	})
}

// TestHalt: a rank that is to stop says where it was, once: at once if it is in no call, else when the call has ended,
// or after stopTime.
func TestHalt(t *testing.T) {
	halted := func(err error) *engine.StepError {
		return &engine.StepError{Peer: 3, Phase: "recv", Err: err, Round: 1, Step: 2}
	}
	for name, test := range map[string]struct {
		during func(l *Life) // the halt
		want   bootstrap.Stopped
		after  time.Duration
		calls  int
	}{
		"in no call": {func(*Life) {}, bootstrap.Stopped{Peer: -1}, 0, 0},
		"in a call that ends": {func(l *Life) {
			l.Turn.Lock(context.Background())
			l.Turn.Next(call.Sign{Kind: call.Broadcast}.Stamp(), Collective, false)
			go func() {
				<-l.Stopped()
				time.Sleep(time.Millisecond)
				l.Fail(&call.Call{Kind: call.Broadcast}, 1, halted(l.Guard.Aborted()), nil)
				l.Turn.Unlock()
			}()
		}, bootstrap.Stopped{Last: 1, At: 1, Peer: 3, Round: 1, Step: 2}, time.Millisecond, 1},
		"in a call that does not": {func(l *Life) {
			l.Turn.Lock(context.Background())
			l.Turn.Next(call.Sign{Kind: call.Broadcast}.Stamp(), Collective, false)
		}, bootstrap.Stopped{Last: 1, At: 1, Peer: -1}, stopTime, 1},
		"on a GPU": {func(l *Life) { l.Busy(func() bool { return true }) }, bootstrap.Stopped{Unsure: true, Peer: -1},
			stopTime, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newFakeGroup()
				l := New(g, "h", "", time.Minute)
				ended := false
				l.OnEnd(func() { ended = true })
				test.during(l)
				go g.halt()
				time.Sleep(test.after)
				synctest.Wait()
				require.Len(t, g.late, 1)
				require.Equal(t, test.want, g.late[0].Stop)
				require.Len(t, g.late[0].Calls, test.calls)
				require.NoError(t, l.Err(), "the verdict is the group's")
				require.False(t, ended)
				var settled error
				go func() {
					l.Settle()
					settled = l.Failure()
				}()
				synctest.Wait()
				require.NoError(t, settled)
				g.say(bootstrap.Failure{Rank: -1, Culprits: []int{2}, Late: &bootstrap.Lateness{Waiting: []int{0}}})
				time.Sleep(stopTime)
				var e *call.Error
				require.ErrorAs(t, l.Failure(), &e)
				require.ErrorIs(t, e, call.ErrTimeout)
				require.Equal(t, []int{2}, e.Culprits)
				synctest.Wait()
				require.Equal(t, l.Failure(), settled)
				l.Close()
				require.True(t, ended)
				require.Len(t, g.late, 1)
			})
		})
	}
}

// An error comes after the functions of OnEnd have returned, unless one hangs.
func TestEndBeforeError(t *testing.T) {
	do := &call.Call{Kind: call.AllReduce}
	for name, fail := range map[string]func(l *Life){
		"an operation": func(l *Life) { l.Fail(do, 1, errors.New("broken"), nil) },
		"the next one": func(l *Life) {
			go l.Abort(nil)
			<-l.Stopped()
			require.Error(t, l.Begin(do, nil))
		},
		"Abort": func(l *Life) { l.Abort(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, takes := range []time.Duration{noteTime - 1, time.Hour} {
				synctest.Test(t, func(t *testing.T) {
					l := New(newFakeGroup(), "h", "", time.Minute)
					var ended atomic.Bool
					l.OnEnd(func() {
						time.Sleep(takes)
						ended.Store(true)
					})
					begin := time.Now()
					fail(l)
					require.Equal(t, takes < noteTime, ended.Load())
					require.Less(t, time.Since(begin), noteTime+time.Second)
					l.Close()
				})
			}
		})
	}
}
