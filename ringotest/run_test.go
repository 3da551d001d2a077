package ringotest

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringo-go/ringo"
)

// TestMain fails if the tests leave goroutines behind.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "16") // they wait
	goleak.VerifyTestMain(m)
}

// A recorder is a test that may fail.
type recorder struct {
	testing.TB // the real one

	mu              sync.Mutex
	text            strings.Builder
	failed, skipped bool
}

func (r *recorder) Helper() {}
func (r *recorder) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(&r.text, format+"\n", args...)
}
func (r *recorder) Errorf(format string, args ...any) {
	r.Logf(format, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}
func (r *recorder) FailNow() {
	r.mu.Lock()
	r.failed = true
	r.mu.Unlock()
	runtime.Goexit()
}
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}
func (r *recorder) Skipped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.skipped
}
func (r *recorder) SkipNow() {
	r.mu.Lock()
	r.skipped = true
	r.mu.Unlock()
	runtime.Goexit()
}

// record runs a test that may fail and returns what it has said.
func record(t *testing.T, test func(t testing.TB)) *recorder {
	r := &recorder{TB: t}
	if seat() != nil { // a rank's process writes what it has to say
		test(t)
		return r
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(r)
	}()
	<-done
	return r
}

func (r *recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// sum all-reduces.
func sum(t require.TestingT, c *ringo.Comm) {
	x := []int64{int64(c.Rank()) + 1}
	require.NoError(t, ringo.AllReduce(c, x, ringo.Sum))
	require.EqualValues(t, c.Size()*(c.Size()+1)/2, x[0])
}

func TestRun(t *testing.T) {
	var ran atomic.Int32
	onHost := slices.DeleteFunc(slices.Clone(setups), func(s Setup) bool { return s == GPU }) // see gpu's tests
	Run(t, 3, func(c *ringo.Comm) {
		ran.Add(1)
		sum(Of(c), c)
	}, Over(onHost...))
	n := 0
	for _, w := range onHost {
		if w.here() && !w.apart() {
			n++
		}
	}
	require.EqualValues(t, 3*n, ran.Load())
}

// Ranks are joined by the transport of their Setup.
func TestWays(t *testing.T) {
	for way, transport := range map[Setup]string{Inproc: "inproc", Shm: "shm", Unix: "socket", TCP: "socket"} {
		if way.here() {
			Run(t, 2, func(c *ringo.Comm) { require.Equal(t, transport, c.Transport(1-c.Rank())) }, Over(way))
		}
	}
}

// However a rank fails, the others do not wait for it, and the test says who was first and how to repeat it.
func TestFailures(t *testing.T) {
	for name, fail := range map[string]func(t testing.TB, c *ringo.Comm){
		"FailNow": func(t testing.TB, c *ringo.Comm) { t.FailNow() },
		"panic":   func(t testing.TB, c *ringo.Comm) { panic("no such luck") },
		"Rank":    func(t testing.TB, c *ringo.Comm) { Of(c).Fatalf("wrong: %d", 7) },
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			errs := make([]error, 3)
			r := record(t, func(t testing.TB) {
				Run(t, 3, func(c *ringo.Comm) {
					if c.Rank() == 1 {
						fail(t, c)
					}
					for errs[c.Rank()] == nil {
						errs[c.Rank()] = ringo.Barrier(c)
					}
				}, Seed(77))
				t.Errorf("Run has returned")
			})
			require.True(t, r.Failed())
			text := r.String()
			require.Contains(t, text, "3 ranks over inproc: rank 1 failed first")
			require.Contains(t, text, "RINGOTEST_SEED=77 go test -run '^TestFailures$/^"+name+"$'")
			require.NotContains(t, text, "Run has returned")
			for _, rank := range []int{0, 2} {
				require.ErrorIs(t, errs[rank], ringo.ErrPeer)
				require.ErrorContains(t, errs[rank], "rank 1")
			}
			require.Less(t, time.Since(began), 30*time.Second)
			switch name {
			case "panic":
				require.Contains(t, text, "rank 1 of 3 over inproc panicked: no such luck (seed 77)")
				require.Contains(t, text, "run_test.go", "the stack")
			case "Rank":
				require.Contains(t, text, "rank 1: wrong: 7")
			}
		})
	}
}

// Ranks that fail because of another one say so, and where that was.
func TestBlame(t *testing.T) {
	if seat() == nil {
		t.Parallel()
	}
	lines := map[string]string{"hang": `\(run_test.go:%d\)`, "return": `\(its function of run_test.go:%d has returned\)`}
	for what, at := range lines {
		for _, way := range []Setup{Inproc, Processes} {
			if what == "hang" && way == Processes || !way.here() { // see TestProcessTimeout
				continue
			}
			t.Run(what+string(way), func(t *testing.T) {
				var waits sync.WaitGroup
				waits.Add(2)
				_, _, line, _ := runtime.Caller(0)
				r := record(t, func(t testing.TB) {
					Run(t, 3, func(c *ringo.Comm) { // at line + 2
						if c.Rank() == 1 && what == "hang" {
							waits.Wait() // at line + 4
						}
						if c.Rank() == 1 {
							return
						}
						if err := ringo.AllReduce(c, []int32{1}, ringo.Sum); err != nil {
							Of(c).Errorf("%v", err)
						}
						waits.Done()
					}, Over(way), Config(ringo.Config{Timeout: time.Second}))
				})
				line += map[string]int{"hang": 4, "return": 2}[what]
				require.Regexp(t, `ringotest: 3 ranks over \w+: ranks 0 and 2 failed because of rank 1 `+
					fmt.Sprintf(at, line)+"; repeat", r.String())
			})
		}
	}
}

// A test that goes on after an error says how to repeat it too.
func TestErrorf(t *testing.T) {
	r := record(t, func(t testing.TB) {
		Run(t, 2, func(c *ringo.Comm) { t.Errorf("not well") }, Seed(5))
		t.Logf("Run has returned")
	})
	require.Contains(t, r.String(), "RINGOTEST_SEED=5")
	require.Contains(t, r.String(), "Run has returned")
	r = record(t, func(t testing.TB) {
		Run(t, 2, func(c *ringo.Comm) { t.SkipNow() })
		t.Errorf("Run has returned")
	})
	require.True(t, r.Skipped())
	require.False(t, r.Failed(), r)
}

// A time-out names the ranks that have not ended and where they are, and ends those that wait for Ringo.
func TestTimeout(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	r := record(t, func(t testing.TB) {
		Run(t, 3, func(c *ringo.Comm) {
			if err := ringo.Barrier(c); err != nil {
				return
			}
			if c.Rank() == 1 {
				<-release
				return
			}
			if err := ringo.AllReduce(c, make([]float32, 10), ringo.Sum); err != nil && c.Rank() == 0 {
				close(release)
			}
		}, Timeout(time.Second), Seed(3))
	})
	text := r.String()
	require.Contains(t, text, "3 ranks over inproc, seed 3: after 1s ranks 0, 1 and 2 have not ended")
	require.Contains(t, text, "rank 1 never entered", "the verdict")
	require.Contains(t, text, "rank 0 is in AllReduce(count 10, float32, sum) #2\n")
	require.Contains(t, text, "rank 1 is in no call; its last one was Barrier() #1")
	require.Contains(t, text, "run_test.go", "the line")
	require.NotContains(t, text, "left behind")
	require.True(t, r.Failed())
}

// Leaks of goroutines, communicators and descriptors are found; package gpu tests those of GPUs.
func TestLeaks(t *testing.T) {
	defer func(was time.Duration) { settleTime = was }(settleTime)
	settleTime = 50 * time.Millisecond
	var release sync.WaitGroup
	release.Add(1)
	_, _, line, _ := runtime.Caller(0)
	r := record(t, func(t testing.TB) {
		Run(t, 2, func(c *ringo.Comm) {
			if c.Rank() == 0 {
				go release.Wait() // at line + 4
			}
		})
	})
	require.True(t, r.Failed())
	require.Contains(t, r.String(), "left by 2 ranks over inproc: goroutines: 1 @")
	require.Regexp(t, fmt.Sprintf(`created by .*TestLeaks.* at run_test.go:%d\n`, line+4), r.String())
	release.Done()
	kept := make([]*ringo.Comm, 4)
	_, _, line, _ = runtime.Caller(0)
	r = record(t, func(t testing.TB) {
		Run(t, 3, func(c *ringo.Comm) {
			one, err := c.With(t.Context()).Split(t.Context(), 0, 0) // at line + 3
			require.NoError(t, err)
			kept[c.Rank()], err = one.Split(t.Context(), 0, 0) // at line + 5
			require.NoError(t, err)
			if c.Rank() > 0 {
				require.NoError(t, kept[c.Rank()].Close())
				require.NoError(t, one.Close())
				return
			}
			kept[3] = one
		}, Leaks(true))
	})
	require.Equal(t, 2, strings.Count(r.String(), "left by"), "nothing beside: %s", r)
	for _, at := range []int{3, 5} {
		require.Contains(t, r.String(), fmt.Sprintf("left by 3 ranks over inproc: rank 0: a communicator of Split was not "+
			"closed, of run_test.go:%d\n", line+at))
	}
	require.NoError(t, kept[0].Close())
	require.NoError(t, kept[3].Close())
	if runtime.GOOS == "linux" {
		var l net.Listener
		r = record(t, func(t testing.TB) {
			Run(t, 1, func(c *ringo.Comm) {
				var err error
				l, err = net.Listen("tcp", "127.0.0.1:0")
				require.NoError(t, err)
			})
		})
		l.Close()
		require.Regexp(t, `left by 1 ranks over inproc: descriptor \d+: socket:`, r.String())
	}
}

// The same seed gives each rank the same numbers, and not those of another.
func TestSeed(t *testing.T) {
	numbers := func(o ...Option) (got [2]uint64) {
		Run(t, 2, func(c *ringo.Comm) { got[c.Rank()] = Of(c).Rand().Uint64() }, o...)
		return got
	}
	a, b, c := numbers(Seed(1)), numbers(Seed(1)), numbers(Seed(2))
	require.Equal(t, a, b)
	require.NotEqual(t, a, c)
	require.NotEqual(t, a[0], a[1])
	require.NotEqual(t, numbers(), numbers())
	t.Setenv(seedVariable, "1")
	require.Equal(t, a, numbers(Seed(9)))
	os.Setenv(seedVariable, "x")
	r := record(t, func(t testing.TB) { Run(t, 1, func(c *ringo.Comm) {}) })
	require.Contains(t, r.String(), `RINGOTEST_SEED="x": want a number`)
}

// A function may close its communicator, or leave one that has failed.
func TestClosed(t *testing.T) {
	Run(t, 2, func(c *ringo.Comm) {
		require.NoError(Of(c), ringo.Barrier(c))
		require.NoError(Of(c), c.Close())
	})
	Run(t, 2, func(c *ringo.Comm) {
		if c.Rank() == 0 {
			c.Abort(errors.New("enough"))
		}
		require.Error(Of(c), ringo.Barrier(c))
	})
	r := record(t, func(t testing.TB) { Run(t, 0, func(c *ringo.Comm) {}) })
	require.Contains(t, r.String(), "0 ranks: want at least one")
}
