package ringo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// Gatherv collects in [counts[rank]] of all ranks, packed by rank, in out [Σcounts] of root; out may be nil on the
// others. All ranks give the same counts. It is an AlltoAllv in which all but root receive nothing.
func Gatherv[T Element](c *Comm, out, in []T, counts []int, root int) error {
	if err := checkRooted(c, counts, root); err != nil {
		return err
	}
	give, take := make([]int, len(counts)), make([]int, len(counts))
	give[root] = counts[c.Rank()]
	if c.Rank() == root {
		take = counts
	} else {
		out = nil
	}
	return AlltoAllv(c, out, take, in, give)
}

// Scatterv gives each rank its share [counts[rank]] of in [Σcounts] of root, packed by rank, in out; in may be nil on the
// others. All ranks give the same counts. It is an AlltoAllv in which all but root send nothing.
func Scatterv[T Element](c *Comm, out, in []T, counts []int, root int) error {
	if err := checkRooted(c, counts, root); err != nil {
		return err
	}
	give, take := make([]int, len(counts)), make([]int, len(counts))
	take[root] = counts[c.Rank()]
	if c.Rank() == root {
		give = counts
	} else {
		in = nil
	}
	return AlltoAllv(c, out, take, in, give)
}

func checkRooted(c *Comm, counts []int, root int) error {
	switch {
	case root < 0 || root >= c.Size():
		return c.life.ErrorIn("AlltoAllv", fmt.Errorf("%w: root %d is not in 0…%d", ErrInvalid, root, c.Size()-1))
	case len(counts) != c.Size():
		return c.life.ErrorIn("AlltoAllv", fmt.Errorf("%w: %d counts for %d ranks", ErrInvalid, len(counts), c.Size()))
	}
	return nil
}

// ReduceScatterv reduces in [Σcounts] of all ranks and leaves the rank's share [counts[rank]] in out, which must not be part of
// in. All ranks give the same counts. The shares travel as in an AlltoAllv and each rank combines its own, in order of
// rank: a rank receives Size times its share. It allocates that much.
func ReduceScatterv[T Element](c *Comm, out, in []T, counts []int, op RedOp) error {
	if err := checkRooted(c, counts, 0); err != nil {
		return err
	}
	r, err := kernels.NewReducer(TypeOf[T](), op, c.Size())
	if err != nil {
		return c.life.ErrorIn("ReduceScatterv", fmt.Errorf("%w: %w", ErrInvalid, err))
	}
	mine := counts[c.Rank()]
	if len(out) != mine {
		return c.life.ErrorIn("ReduceScatterv", fmt.Errorf("%w: out has %d elements, counts say %d", ErrInvalid, len(out), mine))
	}
	for i, n := range counts {
		if n*TypeOf[T]().Size()%r.Unit() != 0 {
			return c.life.ErrorIn("ReduceScatterv", fmt.Errorf("%w: the share of rank %d is no multiple of the %d bytes that %v takes as a whole",
				ErrInvalid, i, r.Unit(), op))
		}
	}
	if !r.LoadIsCopy() {
		scaled := make([]T, len(in))
		r.Load(mem.Of(scaled).Bytes(), mem.Of(in).Bytes())
		in = scaled
	}
	take, shares := make([]int, c.Size()), make([]T, c.Size()*mine)
	for i := range take {
		take[i] = mine
	}
	if err := AlltoAllv(c, shares, take, in, counts); err != nil || mine == 0 {
		return err
	}
	sum := mem.Of(out).Bytes()
	copy(out, shares)
	for i := 1; i < c.Size(); i++ {
		r.Combine(sum, sum, mem.Of(shares[i*mine:(i+1)*mine]).Bytes())
	}
	if r.Finishes() {
		r.Finish(sum)
	}
	return nil
}

// Scan leaves in data [c] of each rank what the ranks up to it have contributed: rank 0's stays, the
// last rank has ⊕ of all. It takes ⌈log₂ Size⌉ messages a rank, of c elements each, as pairs and not
// as one collective: ranks that call something else are found at the messages that meet theirs. Avg
// has no meaning here and is refused.
func Scan[T Element](c *Comm, data []T, op RedOp) error {
	r, err := kernels.NewReducer(TypeOf[T](), op, c.Size())
	if err == nil && op.Kind == Avg.Kind {
		err = fmt.Errorf("a scan has no %v", op)
	}
	if err == nil && len(data)*TypeOf[T]().Size()%r.Unit() != 0 {
		err = fmt.Errorf("data is no multiple of the %d bytes that %v takes as a whole", r.Unit(), op)
	}
	if err != nil {
		return c.life.ErrorIn("Scan", fmt.Errorf("%w: %w", ErrInvalid, err))
	}
	x := mem.Of(data).Bytes()
	if !r.LoadIsCopy() {
		r.Load(x, append([]byte{}, x...))
	}
	before := make([]T, len(data))
	var g Group
	for far := 1; far < c.Size(); far *= 2 {
		if to := c.Rank() + far; to < c.Size() {
			g.Add(c, SendOf(data, to))
		}
		if from := c.Rank() - far; from >= 0 {
			g.Add(c, RecvOf(before, from))
		}
		if err := g.Run(); err != nil {
			return err
		}
		if c.Rank() >= far && len(data) > 0 {
			r.Combine(x, mem.Of(before).Bytes(), x)
		}
	}
	return nil
}

// DoContext is Do that ends when ctx does. A deadline of ctx bounds the waits of the call as
// Call.Timeout does, and passes for all ranks with the error that says who was waited for; a
// cancellation aborts the communicator on all ranks. On GPU memory it bounds the queueing alone. If
// ctx has ended before, nothing is done on this rank.
func (c *Comm) DoContext(ctx context.Context, call *Call) error {
	if ctx.Err() != nil {
		return c.life.Locate(call, 0, fmt.Errorf("nothing was done: %w", context.Cause(ctx)), nil)
	}
	bounded := *call
	if end, ok := ctx.Deadline(); ok {
		left := max(time.Until(end), 1)
		if bounded.Timeout == 0 || left < bounded.Timeout {
			bounded.Timeout = left
		}
	}
	stop := context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) { // else the call finds out whom it has waited for
			c.Abort(context.Cause(ctx))
		}
	})
	defer stop()
	return c.Do(&bounded)
}
