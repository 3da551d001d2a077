package ringo

import (
	"fmt"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// A spare is memory of the functions here, which the communicator keeps for the next one, so that nothing is allocated.
type spare struct {
	give, take []int
	data       []byte
	calls      [2]Call
	list       []*Call
}

// takeSpare is a spare with counts of n ranks, all 0. Goroutines that are in one communicator at once have their own.
func (c *Comm) takeSpare(n int) *spare {
	s := c.spare.Swap(nil)
	if s == nil {
		s = new(spare)
	}
	s.give, s.take = append(s.give[:0], make([]int, n)...), append(s.take[:0], make([]int, n)...)
	return s
}

// keepSpare forgets memory of the caller.
func (c *Comm) keepSpare(s *spare) {
	s.calls = [2]Call{}
	c.spare.Store(s)
}

// bytes are n bytes, aligned for any element.
func (s *spare) bytes(n int) []byte {
	if cap(s.data) < n {
		s.data = make([]byte, max(n, 64))
	}
	return s.data[:n]
}

// alltoAllv carries out what an AlltoAllv of in and out is part of.
func (s *spare) alltoAllv(c *Comm, of call.Composite, in, out mem.Region, t DataType, give, take []int, op kernels.Kind, root int) error {
	x := &s.calls[0]
	*x = Call{Kind: KindAlltoAllv, In: in, Out: out, Type: t, InCounts: give, OutCounts: take}
	call.PartOf(x, of, op, root)
	return c.Do(x)
}

// Gatherv collects in [counts[rank]] of all ranks, packed by rank, in out [Σcounts] of root; out may be nil on the
// others. All ranks give the same counts. It is an AlltoAllv in which all but root receive nothing.
func Gatherv[T Element](c *Comm, out, in []T, counts []int, root int) error {
	if err := checkRooted(c, call.Gatherv, counts, root); err != nil {
		return err
	}
	s := c.takeSpare(len(counts))
	defer c.keepSpare(s)
	take := s.take
	s.give[root] = counts[c.Rank()]
	if c.Rank() == root {
		take = counts
	} else {
		out = nil
	}
	return s.alltoAllv(c, call.Gatherv, mem.Of(in), mem.Of(out), TypeOf[T](), s.give, take, 0, root)
}

// Scatterv gives each rank its share [counts[rank]] of in [Σcounts] of root, packed by rank, in out; in may be nil on the
// others. All ranks give the same counts. It is an AlltoAllv in which all but root send nothing.
func Scatterv[T Element](c *Comm, out, in []T, counts []int, root int) error {
	if err := checkRooted(c, call.Scatterv, counts, root); err != nil {
		return err
	}
	s := c.takeSpare(len(counts))
	defer c.keepSpare(s)
	give := s.give
	s.take[root] = counts[c.Rank()]
	if c.Rank() == root {
		give = counts
	} else {
		in = nil
	}
	return s.alltoAllv(c, call.Scatterv, mem.Of(in), mem.Of(out), TypeOf[T](), give, s.take, 0, root)
}

func checkRooted(c *Comm, of call.Composite, counts []int, root int) error {
	switch {
	case root < 0 || root >= c.Size():
		return c.life.ErrorIn(of.String(), fmt.Errorf("%w: root %d is not in 0…%d", ErrInvalid, root, c.Size()-1))
	case len(counts) != c.Size():
		return c.life.ErrorIn(of.String(), fmt.Errorf("%w: %d counts for %d ranks", ErrInvalid, len(counts), c.Size()))
	}
	return nil
}

// ReduceScatterv reduces in [Σcounts] of all ranks and leaves the rank's share [counts[rank]] in out, which must not be part of
// in. All ranks give the same counts. The shares travel as in an AlltoAllv and each rank combines its own, in order of
// rank: a rank receives Size times its share, in memory that the communicator keeps.
func ReduceScatterv[T Element](c *Comm, out, in []T, counts []int, op RedOp) error {
	const of = call.ReduceScatterv
	if err := checkRooted(c, of, counts, 0); err != nil {
		return err
	}
	t := TypeOf[T]()
	r, err := kernels.NewReducer(t, op, c.Size())
	if err != nil {
		return c.life.ErrorIn(of.String(), fmt.Errorf("%w: %w", ErrInvalid, err))
	}
	mine := counts[c.Rank()]
	if len(out) != mine {
		return c.life.ErrorIn(of.String(), fmt.Errorf("%w: out has %d elements, counts say %d", ErrInvalid, len(out), mine))
	}
	for i, n := range counts {
		if n*t.Size()%r.Unit() != 0 {
			return c.life.ErrorIn(of.String(), fmt.Errorf("%w: the share of rank %d is no multiple of the %d bytes that %v takes as a whole",
				ErrInvalid, i, r.Unit(), op))
		}
	}
	s := c.takeSpare(c.Size())
	defer c.keepSpare(s)
	from, share := mem.Of(in), mine*t.Size()
	shares := s.bytes(c.Size()*share + from.Len())
	if !r.LoadIsCopy() {
		scaled := shares[c.Size()*share:]
		r.Load(scaled, from.Bytes())
		from = mem.Host(scaled)
	}
	shares = shares[:c.Size()*share]
	for i := range s.take {
		s.take[i] = mine
	}
	if err := s.alltoAllv(c, of, from, mem.Host(shares), t, counts, s.take, op.Kind, -1); err != nil || mine == 0 {
		return err
	}
	sum := mem.Of(out).Bytes()
	copy(sum, shares)
	for i := 1; i < c.Size(); i++ {
		r.Combine(sum, sum, shares[i*share:(i+1)*share])
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
	t := TypeOf[T]()
	r, err := kernels.NewReducer(t, op, c.Size())
	if err == nil && op.Kind == Avg.Kind {
		err = fmt.Errorf("a scan has no %v", op)
	}
	if err == nil && len(data)*t.Size()%r.Unit() != 0 {
		err = fmt.Errorf("data is no multiple of the %d bytes that %v takes as a whole", r.Unit(), op)
	}
	if err != nil {
		return c.life.ErrorIn("Scan", fmt.Errorf("%w: %w", ErrInvalid, err))
	}
	s := c.takeSpare(0)
	defer c.keepSpare(s)
	x := mem.Of(data).Bytes()
	before := s.bytes(len(x))
	if !r.LoadIsCopy() {
		copy(before, x)
		r.Load(x, before)
	}
	for far := 1; far < c.Size(); far *= 2 {
		s.list = s.list[:0]
		if to := c.Rank() + far; to < c.Size() {
			s.message(Call{Kind: KindSend, In: mem.Host(x), Count: len(data), Type: t, Peer: to}, op)
		}
		if from := c.Rank() - far; from >= 0 {
			s.message(Call{Kind: KindRecv, Out: mem.Host(before), Count: len(data), Type: t, Peer: from}, op)
		}
		if len(s.list) == 0 {
			continue
		}
		for _, m := range s.list {
			if err := m.Check(c.life.Rank, c.life.Size); err != nil {
				return c.life.Locate(m, 0, err, nil)
			}
		}
		if _, err := together(c, s.list, true); err != nil {
			return err
		}
		if c.Rank() >= far && len(data) > 0 {
			r.Combine(x, before, x)
		}
	}
	return nil
}

// message adds a message of a Scan to those that are carried out side by side.
func (s *spare) message(m Call, op RedOp) {
	x := &s.calls[len(s.list)]
	*x = m
	call.PartOf(x, call.Scan, op.Kind, -1)
	s.list = append(s.list, x)
}
