package ringotest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/ringotest"
)

// In a test, t is the *testing.T.
func ExampleRun() {
	ringotest.Run(t, 4, func(c *ringo.Comm) {
		x := []float32{float32(c.Rank())}
		if err := ringo.AllReduce(c, x, ringo.Sum); err != nil {
			t.Fatalf("rank %d: %v", c.Rank(), err)
		}
		if c.Rank() == 0 {
			fmt.Println(x[0])
		}
	})
	// Output: 6
}

// Each Setup is a subtest of its name; the same function runs over all.
func ExampleOver() {
	test := func(t *testing.T) {
		ringotest.Run(t, 2, func(c *ringo.Comm) {
			if err := ringo.Barrier(c); err != nil {
				t.Fatal(err)
			}
		}, ringotest.Over(ringotest.Shm, ringotest.TCP, ringotest.Processes))
	}
	_ = test
}

// A Rank names itself in what it reports, and has random numbers that the seed of a failure repeats.
func ExampleOf() {
	ringotest.Run(t, 2, func(c *ringo.Comm) {
		r := ringotest.Of(c)
		x := []int64{r.Rand().Int64N(100)}
		if err := ringo.AllReduce(c, x, ringo.Max); err != nil {
			r.Fatalf("%v", err) // or require.NoError(r, err)
		}
	}, ringotest.Seed(7))
	// Output:
}

// A test that hangs says who is to blame, and where every rank is.
func ExampleTimeout() {
	release := make(chan struct{})
	ringotest.Run(t.expect("rank 1 never entered AllReduce(count 1, int64, sum) #1"), 2, func(c *ringo.Comm) {
		if c.Rank() == 1 {
			<-release // it forgets its all-reduce
			return
		}
		if err := ringo.AllReduce(c, []int64{1}, ringo.Sum); err != nil {
			close(release)
		}
	}, ringotest.Timeout(time.Second))
	// Output: the test says: rank 1 never entered AllReduce(count 1, int64, sum) #1
}

// The other ranks hear of a crash, and go on without the rank.
func ExampleRank_Kill() {
	ringotest.Run(t, 3, func(c *ringo.Comm) {
		r := ringotest.Of(c)
		if c.Rank() == 1 {
			r.Kill()
		}
		err := ringo.Barrier(c)
		for err == nil {
			err = ringo.Barrier(c)
		}
		left, err := c.Shrink(context.Background())
		if err != nil {
			r.Fatalf("%v", err)
		}
		defer left.Close()
		if c.Rank() == 0 {
			fmt.Println(c.Err().(*ringo.Error).Culprits, "is gone,", left.Size(), "go on")
		}
	}, ringotest.Faults())
	// Output: [1] is gone, 2 go on
}

// A rank that does not answer is to blame; after Stall(0) it goes on when the others have ended.
func ExampleRank_Stall() {
	ringotest.Run(t, 2, func(c *ringo.Comm) {
		if c.Rank() == 1 {
			ringotest.Of(c).Stall(10 * time.Millisecond)
		}
		if err := ringo.Barrier(c); err != nil { // with a Config.Timeout of 5 ms it would fail, with Culprits [1]
			t.Fatalf("%v", err)
		}
	}, ringotest.Faults())
	// Output:
}

// A link is late and slow, and then breaks.
func ExampleRank_Link() {
	ringotest.Run(t, 2, func(c *ringo.Comm) {
		r := ringotest.Of(c)
		l := r.Link(1 - c.Rank())
		l.Delay(time.Millisecond)
		l.Slow(10 << 20) // bytes a second
		if err := ringo.Barrier(c); err != nil {
			r.Fatalf("%v", err)
		}
		r.Meet() // nobody goes on before all have come
		l.Cut()
		err := ringo.Barrier(c)
		for err == nil {
			err = ringo.Barrier(c)
		}
		var e *ringo.Error
		if !errors.As(err, &e) {
			r.Fatalf("%v", err)
		}
	}, ringotest.Faults())
	// Output:
}

// Ranks of one part talk; messages to the other part wait until the partition is mended.
func ExampleRank_Partition() {
	ringotest.Run(t, 4, func(c *ringo.Comm) {
		r := ringotest.Of(c)
		r.Partition([]int{0, 1}, []int{2, 3})
		time.AfterFunc(10*time.Millisecond, func() { r.Partition() })
		if err := ringo.Barrier(c); err != nil {
			r.Fatalf("%v", err)
		}
	}, ringotest.Faults(), ringotest.Leaks(false))
	// Output:
}

// Under TLS a bit that changes on the way breaks the connection, and no wrong number arrives.
func ExampleLink_Corrupt() {
	ringotest.Run(t, 2, func(c *ringo.Comm) {
		r := ringotest.Of(c)
		x := []int64{1}
		if err := ringo.AllReduce(c, x, ringo.Sum); err != nil {
			r.Fatalf("%v", err)
		}
		r.Meet()
		r.Link(1 - c.Rank()).Corrupt()
		for x[0] == 2 {
			x[0] = 1
			if err := ringo.AllReduce(c, x, ringo.Sum); err != nil {
				return
			}
		}
		r.Errorf("the sum of 1 and 1 is %d", x[0])
	}, ringotest.Faults(), ringotest.Config(ringo.Config{TLS: true}))
	// Output:
}

// A printer is a test whose errors are the output of an example.
type printer struct {
	testing.TB
	want string
}

var t = new(printer)

// expect is a test that must fail with a text that contains what.
func (*printer) expect(what string) *printer { return &printer{want: what} }

func (*printer) Name() string                { return "Example" }
func (*printer) Helper()                     {}
func (*printer) Cleanup(func())              {}
func (*printer) Logf(string, ...any)         {}
func (*printer) Failed() bool                { return false }
func (*printer) Skipped() bool               { return false }
func (p *printer) FailNow()                  { runtime.Goexit() }
func (p *printer) Fatalf(f string, a ...any) { p.Errorf(f, a...) }
func (p *printer) Errorf(f string, a ...any) {
	text := fmt.Sprintf(f, a...)
	switch {
	case p.want == "":
		fmt.Println(text)
	case strings.Contains(text, p.want):
		fmt.Println("the test says:", p.want)
	}
}
