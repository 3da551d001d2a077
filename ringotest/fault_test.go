package ringotest

import (
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// blamed repeats barriers until one fails, and returns the culprits.
func blamed(r *Rank, c *ringo.Comm) []int {
	for {
		if err := ringo.Barrier(c); err != nil {
			e, ok := errors.AsType[*ringo.Error](err)
			require.True(r, ok, "%v", err)
			return e.Culprits
		}
	}
}

// A rank that is killed is named to the others, which go on without it. The test does not fail.
func TestKill(t *testing.T) {
	Run(t, 3, func(c *ringo.Comm) {
		r := Of(c)
		if c.Rank() == 1 {
			require.NoError(r, ringo.Barrier(c))
			r.Kill()
		}
		require.Equal(r, []int{1}, blamed(r, c))
		left, err := c.Shrink(t.Context())
		require.NoError(r, err)
		defer left.Close()
		require.Equal(r, 2, left.Size())
		sum(r, left)
	}, Over(Inproc, TCP, Processes), Faults())
}

// A rank that is stopped is named too; it goes on later and finds that the communicator has failed.
func TestStall(t *testing.T) {
	t.Parallel()
	over := []Setup{TCP, Processes}
	if runtime.GOOS == "windows" {
		over = over[:1]
	}
	for _, w := range over {
		t.Run(string(w), func(t *testing.T) {
			t.Parallel() // it waits most of the time
			Run(t, 3, func(c *ringo.Comm) {
				r := Of(c)
				require.NoError(r, c.Do(&ringo.Call{Kind: ringo.KindBarrier, Timeout: tier.Patience})) // connects them
				r.Meet()
				if c.Rank() == 1 {
					r.Stall(0)
				}
				require.Equal(r, []int{1}, blamed(r, c))
			}, Over(w), Faults(), Config(ringo.Config{Timeout: tier.Soon(time.Second)}))
		})
	}
}

// A stall that is shorter than the deadline is a delay.
func TestStallBriefly(t *testing.T) {
	const pause = 50 * time.Millisecond
	over := []Setup{TCP, ProcessesTCP}
	if runtime.GOOS == "windows" {
		over = over[:1]
	}
	Run(t, 2, func(c *ringo.Comm) {
		r, began := Of(c), time.Now()
		if c.Rank() == 1 {
			r.Stall(pause)
			require.GreaterOrEqual(r, time.Since(began), pause)
		}
		sum(r, c)
	}, Over(over...), Faults())
}

// Links are late or slow, and the data that go over them are right.
func TestSlowLinks(t *testing.T) {
	t.Parallel()
	const late = 20 * time.Millisecond
	Run(t, 2, func(c *ringo.Comm) {
		r := Of(c)
		sum(r, c) // there are connections
		l := r.Link(1 - c.Rank())
		l.Delay(late)
		began := time.Now() // before the other rank sends
		r.Meet()
		sum(r, c)
		require.GreaterOrEqual(r, time.Since(began), late)
		r.Meet()
		l.Mend()

		const rate, count = 1 << 20, 16 << 10
		l.Slow(rate)
		began = time.Now()
		r.Meet()
		if c.Rank() == 0 {
			require.NoError(r, ringo.Send(c, make([]int64, count), 1))
			require.NoError(r, ringo.Recv(c, make([]int64, 1), 1))
		} else {
			require.NoError(r, ringo.Recv(c, make([]int64, count), 0))
			require.NoError(r, ringo.Send(c, make([]int64, 1), 0))
		}
		require.GreaterOrEqual(r, time.Since(began), time.Second*count*8/rate)
	}, Faults())
}

// Operations over a bad link end with an error; a time-out names the rank of the link.
func TestBadLinks(t *testing.T) {
	t.Parallel()
	fails := func(c *ringo.Comm, deadline time.Duration) (err error) {
		for err == nil {
			call := ringo.AllReduceOf(make([]int64, 100), ringo.Sum)
			call.Timeout = deadline
			err = c.Do(call)
		}
		return err
	}
	for name, tt := range map[string]struct {
		do       func(l *Link)
		tls      bool
		deadline time.Duration
		err      error
	}{
		"drop":    {(*Link).Drop, false, tier.Soon(time.Second), ringo.ErrTimeout},
		"hold":    {(*Link).Hold, false, tier.Soon(time.Second), ringo.ErrTimeout},
		"cut":     {(*Link).Cut, false, 0, nil},
		"corrupt": {(*Link).Corrupt, true, 20 * time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			Run(t, 3, func(c *ringo.Comm) {
				r := Of(c)
				sum(r, c)
				r.Meet()
				if c.Rank() == 1 {
					tt.do(r.Link(0))
					tt.do(r.Link(2))
				}
				err := fails(c, tt.deadline)
				require.Error(r, err)
				if tt.err != nil {
					require.ErrorIs(r, err, tt.err)
					require.Contains(r, err.(*ringo.Error).Culprits, 1, "%v", err)
				}
			}, Faults(), Config(ringo.Config{TLS: tt.tls}), Leaks(false))
		})
	}
}

// Messages that a partition holds get through when it is mended.
func TestPartition(t *testing.T) {
	Run(t, 4, func(c *ringo.Comm) {
		r := Of(c)
		sum(r, c)
		r.Meet()
		r.Partition([]int{0, 1}, []int{2, 3})
		r.Meet()
		peer := c.Rank() ^ 1
		got := make([]int64, 1)
		var g ringo.Group
		g.Add(c, ringo.SendOf([]int64{int64(c.Rank())}, peer))
		g.Add(c, ringo.RecvOf(got, peer))
		require.NoError(r, g.Run(), "within a part")
		require.EqualValues(r, peer, got[0])
		began, late := time.Now(), 30*time.Millisecond
		r.Meet()
		mended := make(chan struct{})
		time.AfterFunc(late, func() {
			r.Partition()
			close(mended)
		})
		sum(r, c)
		require.GreaterOrEqual(r, time.Since(began), late)
		<-mended
	}, Faults())
}

// A rank that asks for a fault which its Setup does not have is told what to do.
func TestFaultsWrong(t *testing.T) {
	for want, tt := range map[string]struct {
		f    func(r *Rank)
		opts []Option
	}{
		"Link needs the option Faults()":              {func(r *Rank) { r.Link(1) }, []Option{Over(TCP)}},
		"Kill needs the option Faults()":              {func(r *Rank) { r.Kill() }, nil},
		"Stall needs the option Faults()":             {func(r *Rank) { r.Stall(0) }, nil},
		"over shm there is no Link: use Over":         {func(r *Rank) { r.Link(1) }, []Option{Over(Shm), Faults()}},
		"no Link from rank 0 to 2: there are 2 ranks": {func(r *Rank) { r.Link(2) }, []Option{Faults()}},
		"rank 0 is in none of the groups [[1] [2 3]]": {func(r *Rank) { r.Partition([]int{1}, []int{2, 3}) },
			[]Option{Faults()}},
	} {
		if tt.opts != nil && runtime.GOOS != "linux" &&
			slices.Contains([]string{"over shm there is no Link: use Over"}, want) {
			continue
		}
		got := record(t, func(t testing.TB) {
			Run(t, 2, func(c *ringo.Comm) {
				if c.Rank() == 0 {
					tt.f(Of(c))
				}
			}, tt.opts...)
		})
		require.Contains(t, got.String(), want)
	}
}
