//go:build linux && (amd64 || arm64)

package ctest_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/ringotest"
)

// TestMain makes this binary a rank of TestPairs where PAIRS_JOB says so.
func TestMain(m *testing.M) {
	if os.Getenv("PAIRS_JOB") != "go" {
		os.Exit(m.Run())
	}
	c, err := ringo.OpenEnv(context.Background(), ringo.Config{})
	if err == nil {
		err = job(c)
	}
	if err == nil {
		err = c.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// TestPairsJob is the same job by ringotest. TestPairs starts it.
func TestPairsJob(t *testing.T) {
	if os.Getenv("PAIRS_JOB") != "ringotest" {
		return
	}
	ringotest.Run(t, ranksOfPairs, func(c *ringo.Comm) {
		if err := job(c); err != nil {
			ringotest.Of(c).Fatalf("error: %v", err)
		}
	}, ringotest.Over(ringotest.Processes), ringotest.Timeout(tier.Soon(12*time.Second)))
}

// A commCall is a communicator and a call on it; more elements are a mistake.
type commCall struct {
	comm *ringo.Comm
	call func(c *ringo.Comm, more int) error
}

// job makes the calls of PAIRS_SHAPES, has rank 1 make the mistake of PAIRS_MISTAKE, and makes the calls again.
func job(c *ringo.Comm) error {
	mistake, more := "", 0
	if c.Rank() == 1 {
		mistake = os.Getenv("PAIRS_MISTAKE")
	}
	var calls []commCall
	for _, shape := range strings.Split(os.Getenv("PAIRS_SHAPES"), ",") {
		some, err := commCalls(c, shape)
		if err != nil {
			return err
		}
		calls = append(calls, some...)
	}
	for round := range 2 {
		if round == 1 {
			time.Sleep(settling)
		}
		if round == 1 && mistake == "mismatch" {
			more = 1
		} else if round == 1 {
			commit(mistake)
		}
		for i, s := range calls {
			if i > 0 {
				more = 0
			}
			if err := s.call(s.comm, more); err != nil {
				return err
			}
		}
	}
	if err := allReduce(c, 0); err != nil { // nobody leaves before all are done
		return err
	}
	times := 1
	if mistake == "close twice" {
		times = 2
	}
	for range times {
		for _, s := range calls {
			if s.comm != c || times == 2 {
				if err := s.comm.Close(); err != nil {
					return fmt.Errorf("Close: %w", err)
				}
			}
		}
	}
	return nil
}

// settling is how long rank 1 waits before its mistake, so that the calls before it have ended on all ranks.
const settling = 300 * time.Millisecond

// commit makes a mistake that ends the process or stops it.
func commit(mistake string) {
	switch mistake {
	case "exit":
		os.Exit(0)
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Hour) // another thread may take the signal
	case "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		time.Sleep(time.Hour)
	case "hang":
		time.Sleep(time.Hour)
	case "raise":
		panic("raised by rank 1")
	}
}

// commCalls gives the communicators and calls of a shape.
func commCalls(c *ringo.Comm, shape string) ([]commCall, error) {
	ctx := context.Background()
	switch shape {
	case "several communicators":
		var id bootstrap.ID
		if c.Rank() == 0 {
			var err error
			if id, err = bootstrap.NewID(bootstrap.ListenOptions{}); err != nil {
				return nil, err
			}
		}
		if err := ringo.Broadcast(c, id[:], 0); err != nil {
			return nil, err
		}
		other, err := ringo.Open(ctx, ringo.Config{ID: &id, Rank: c.Rank(), Size: c.Size()})
		return []commCall{{c, allReduce}, {other, allReduce}}, err
	case "a child of Split": // whose ranks are in the opposite order
		child, err := c.Split(ctx, 0, -c.Rank())
		return []commCall{{child, allReduce}}, err
	case "a group":
		return []commCall{{c, ring}}, nil
	case "v-variants":
		return []commCall{{c, allToAllv}}, nil
	}
	return []commCall{{c, allReduce}}, nil
}

func allReduce(c *ringo.Comm, more int) error {
	return ringo.AllReduce(c, make([]float32, 1000+more), ringo.Sum)
}

func ring(c *ringo.Comm, more int) error {
	g, n := ringo.NewGroup(), c.Size()
	g.Add(c, ringo.SendOf(make([]float32, 1000+more), (c.Rank()+1)%n))
	g.Add(c, ringo.RecvOf(make([]float32, 1000), (c.Rank()+n-1)%n))
	return g.Run()
}

func allToAllv(c *ringo.Comm, more int) error {
	n, r := c.Size(), c.Rank()
	in, out, room := make([]int, n), make([]int, n), 0
	for i := range n {
		in[i], out[i] = 100*(r+i+1), 100*(r+i+1)
		room += in[i]
	}
	in[(r+1)%n] += more
	return ringo.AlltoAllv(c, make([]float32, room), out, make([]float32, room+more), in)
}
