// Package join puts the calls that all ranks of a communicator have recorded (trace.Recorder) onto one clock and in one
// place. It is for programs that write one trace of many processes, such as "ringo bench -trace".
//
// A Clock is measured by small messages, best once before the recorded calls and once after them. Gather brings the
// calls of all ranks to rank 0. All ranks call each function together, on host memory. Rank 0 answers a message with
// its time, which lies somewhere between the sending and the receiving; of 32 round trips the quickest counts. So ranks
// are off by at most half of the quickest round trip, some hundred ns in shared memory and some µs between hosts.
// Between two measurements clocks are taken to drift evenly.
//
// The trap: the messages of Measure and Gather are recorded like any other call. Clocks that agree within the error of
// the measurement, as those of one process, are left as they are.
package join

import (
	"bytes"
	"fmt"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/trace"
)

// A Clock is how this rank's clock differs from rank 0's. The zero Clock does not differ.
type Clock struct {
	points []point
}

// A point is a measurement: how far rank 0's clock is ahead at a time of this rank's clock, in ns.
type point struct{ at, ahead int64 }

// rounds is the number of round trips of a measurement.
const rounds = 32

// Measure compares the clocks of all ranks with rank 0's. It takes rank 0 some 32 round trips a rank.
func (k *Clock) Measure(c *ringo.Comm) error {
	if c.Rank() > 0 {
		p, err := measure(c)
		if err == nil {
			k.points = append(k.points, p)
		}
		return err
	}
	for r := 1; r < c.Size(); r++ {
		for range rounds {
			if err := ringo.Recv(c, make([]int64, 1), r); err != nil {
				return err
			}
			if err := ringo.Send(c, []int64{trace.Now()}, r); err != nil {
				return err
			}
		}
	}
	return nil
}

func measure(c *ringo.Comm) (best point, err error) {
	least := time.Duration(1<<63 - 1)
	there := make([]int64, 1)
	for range rounds {
		before := trace.Now()
		if err := ringo.Send(c, there, 0); err != nil {
			return best, err
		}
		if err := ringo.Recv(c, there, 0); err != nil {
			return best, err
		}
		after := trace.Now()
		if took := time.Duration(after - before); took < least {
			least = took
			best = pointOf(before, after, there[0])
		}
	}
	return best, nil
}

// pointOf is the point of a round trip that began and ended when this rank's clock showed before and after, and was
// answered when rank 0's showed there.
func pointOf(before, after, there int64) point {
	middle := before + (after-before)/2
	if before <= there && there <= after { // the clocks agree as far as can be told
		return point{middle, 0}
	}
	return point{middle, there - middle}
}

// Of is rank 0's clock when this rank's shows at.
func (k *Clock) Of(at int64) int64 {
	n := len(k.points)
	if n == 0 {
		return at
	}
	first, last := k.points[0], k.points[n-1]
	if last.at == first.at {
		return at + first.ahead
	}
	drift := float64(last.ahead-first.ahead) / float64(last.at-first.at)
	return at + first.ahead + int64(drift*float64(at-first.at))
}

// Gather is the calls of all ranks by rank 0's clock, on rank 0, and nil on the others. From t, the record of this
// rank's process, Gather takes the calls of this rank in this communicator.
func Gather(c *ringo.Comm, k *Clock, t *trace.Trace) (*trace.Trace, error) {
	mine := t.Of(c.History().Comm, c.Rank())
	mine.Shift(k.Of)
	var b bytes.Buffer
	if err := mine.Write(&b); err != nil {
		return nil, err
	}
	n := make([]int64, c.Size())
	if err := ringo.AllGather(c, n, []int64{int64(b.Len())}); err != nil {
		return nil, err
	}
	counts, total := make([]int, len(n)), 0
	for r := range n {
		counts[r] = int(n[r])
		total += counts[r]
	}
	if c.Rank() > 0 {
		return nil, ringo.Gatherv(c, nil, b.Bytes(), counts, 0)
	}
	all := make([]byte, total)
	if err := ringo.Gatherv(c, all, b.Bytes(), counts, 0); err != nil {
		return nil, err
	}
	whole := &trace.Trace{}
	for r, n := range counts {
		part, err := trace.Read(bytes.NewReader(all[:n]))
		if err != nil {
			return nil, fmt.Errorf("what rank %d has recorded: %w", r, err)
		}
		whole.Calls = append(whole.Calls, part.Calls...)
		all = all[n:]
	}
	return whole, nil
}
