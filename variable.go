package ringo

import (
	"time"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// GathervOf collects in [counts[rank]] of all ranks, packed by rank, in out [Σcounts] of root; out may be nil on the
// others. counts[r] is the number of elements of rank r, and the same on all ranks. It is carried out as an
// AlltoAllv in which all but root receive nothing.
func GathervOf[T Element](out, in []T, counts []int, root int) *Call {
	c := gatherv(out, in, counts, root)
	return &c
}

// Gatherv collects in [counts[rank]] of all ranks, packed by rank, in out [Σcounts] of root; out may be nil on the
// others. counts[r] is the number of elements of rank r, and the same on all ranks. It is an AlltoAllv in which all
// but root receive nothing.
func Gatherv[T Element](c *Comm, out, in []T, counts []int, root int) error {
	call := gatherv(out, in, counts, root)
	return c.Do(&call)
}

func gatherv[T Element](out, in []T, counts []int, root int) Call {
	return Call{Kind: KindGatherv, In: mem.Of(in), Out: mem.Of(out), Type: TypeOf[T](), OutCounts: counts, Root: root}
}

// ScattervOf gives each rank its share [counts[rank]] of in [Σcounts] of root, packed by rank, in out; in may be nil
// on the others. counts[r] is the number of elements of rank r, and the same on all ranks. It is carried out as an
// AlltoAllv in which all but root send nothing.
func ScattervOf[T Element](out, in []T, counts []int, root int) *Call {
	c := scatterv(out, in, counts, root)
	return &c
}

// Scatterv gives each rank its share [counts[rank]] of in [Σcounts] of root, packed by rank, in out; in may be nil
// on the others. counts[r] is the number of elements of rank r, and the same on all ranks. It is an AlltoAllv in
// which all but root send nothing.
func Scatterv[T Element](c *Comm, out, in []T, counts []int, root int) error {
	call := scatterv(out, in, counts, root)
	return c.Do(&call)
}

func scatterv[T Element](out, in []T, counts []int, root int) Call {
	return Call{Kind: KindScatterv, In: mem.Of(in), Out: mem.Of(out), Type: TypeOf[T](), InCounts: counts, Root: root}
}

// ReduceScattervOf reduces in [Σcounts] of all ranks and leaves the rank's share [counts[rank]] in out, which may be
// part of in. counts[r] is the number of elements of rank r, and the same on all ranks. The shares travel as in an
// AlltoAllv and each rank combines its own, in order of rank: a rank receives Size times its share, in memory that
// the communicator keeps.
func ReduceScattervOf[T Element](out, in []T, counts []int, op RedOp) *Call {
	c := reduceScatterv(out, in, counts, op)
	return &c
}

// ReduceScatterv reduces in [Σcounts] of all ranks and leaves the rank's share [counts[rank]] in out, which may be
// part of in. counts[r] is the number of elements of rank r, and the same on all ranks. The shares travel as in an
// AlltoAllv and each rank combines its own, in order of rank: a rank receives Size times its share, in memory that
// the communicator keeps.
func ReduceScatterv[T Element](c *Comm, out, in []T, counts []int, op RedOp) error {
	call := reduceScatterv(out, in, counts, op)
	return c.Do(&call)
}

func reduceScatterv[T Element](out, in []T, counts []int, op RedOp) Call {
	return Call{Kind: KindReduceScatterv, In: mem.Of(in), Out: mem.Of(out), Type: TypeOf[T](), InCounts: counts, Op: op}
}

// ScanOf leaves in data [k] of each rank what the ranks up to it have contributed: rank 0's stays, the last rank has
// ⊕ of all. It takes ⌈log₂ Size⌉ messages a rank, of k elements each, as pairs and not as one collective: ranks that
// call something else are found at the messages that meet theirs. Avg has no meaning here and is refused.
func ScanOf[T Element](data []T, op RedOp) *Call { return ScanToOf(data, data, op) }

// Scan leaves in data [k] of each rank what the ranks up to it have contributed: rank 0's stays, the last rank has ⊕
// of all. It takes ⌈log₂ Size⌉ messages a rank, of k elements each, as pairs and not as one collective: ranks that
// call something else are found at the messages that meet theirs. Avg has no meaning here and is refused.
func Scan[T Element](c *Comm, data []T, op RedOp) error { return ScanTo(c, data, data, op) }

// ScanToOf is ScanOf of in [k] whose result is in out [k].
func ScanToOf[T Element](out, in []T, op RedOp) *Call {
	c := scan(out, in, op)
	return &c
}

// ScanTo is Scan of in [k] whose result is in out [k].
func ScanTo[T Element](c *Comm, out, in []T, op RedOp) error {
	call := scan(out, in, op)
	return c.Do(&call)
}

func scan[T Element](out, in []T, op RedOp) Call {
	return Call{Kind: KindScan, In: mem.Of(in), Out: mem.Of(out), Count: len(in), Type: TypeOf[T](), Op: op, Exact: true}
}

// A spare is memory of the composites, which the communicator keeps for the next one, so that nothing is allocated.
type spare struct {
	give, take []int
	data       []byte
	calls      [2]Call
	list       []*Call
}

// forget lets go of memory of the caller.
func (s *spare) forget() { s.calls = [2]Call{} }

// counts makes counts of n ranks, all 0.
func (s *spare) counts(n int) {
	s.give, s.take = append(s.give[:0], make([]int, n)...), append(s.take[:0], make([]int, n)...)
}

// bytes are n bytes, aligned for any element.
func (s *spare) bytes(n int) []byte {
	if cap(s.data) < n {
		s.data = make([]byte, max(n, 64))
	}
	return s.data[:n]
}

// composite carries out a checked call by others. The turn is held.
func (c *Comm) composite(whole *Call) error {
	s := &c.spare
	defer s.forget()
	if whole.Kind == KindScan {
		return c.scan(s, whole)
	}
	s.counts(c.Size())
	x := &s.calls[0]
	*x = Call{Kind: KindAlltoAllv, Type: whole.Type, Timeout: whole.Timeout, InCounts: s.give, OutCounts: s.take}
	call.PartOf(x, whole)
	root := c.Rank() == whole.Root
	switch whole.Kind {
	case KindGatherv:
		s.give[whole.Root] = whole.OutCounts[c.Rank()]
		if x.In = whole.In; root {
			x.Out, x.OutCounts, x.OutOffsets = whole.Out, whole.OutCounts, whole.OutOffsets
		}
	case KindScatterv:
		s.take[whole.Root] = whole.InCounts[c.Rank()]
		if x.Out = whole.Out; root {
			x.In, x.InCounts, x.InOffsets = whole.In, whole.InCounts, whole.InOffsets
		}
	default:
		return c.reduceShares(s, x, whole)
	}
	return c.host.Do(x)
}

// reduceShares is a ReduceScatterv, of which x brings the shares.
func (c *Comm) reduceShares(s *spare, x, whole *Call) error {
	r, err := kernels.NewReducer(whole.Type, whole.Op, c.Size())
	if err != nil {
		return err // cannot be, after Check
	}
	mine := whole.InCounts[c.Rank()]
	share := mine * whole.Type.Size()
	from := whole.In
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
	x.In, x.InCounts, x.Out = from, whole.InCounts, mem.Host(shares)
	if err := c.host.Do(x); err != nil || mine == 0 {
		return err
	}
	sum := whole.Out.Slice(0, share).Bytes()
	copy(sum, shares)
	for i := 1; i < c.Size(); i++ {
		r.Combine(sum, sum, shares[i*share:(i+1)*share])
	}
	if r.Finishes() {
		r.Finish(sum)
	}
	return nil
}

// scan doubles in every round how many ranks a rank has the sum of.
func (c *Comm) scan(s *spare, whole *Call) error {
	r, err := kernels.NewReducer(whole.Type, whole.Op, c.Size())
	if err != nil {
		return err // cannot be, after Check
	}
	x := whole.Out.Bytes()
	before := s.bytes(len(x))
	if r.LoadIsCopy() {
		copy(x, whole.In.Bytes())
	} else {
		copy(before, whole.In.Bytes())
		r.Load(x, before)
	}
	end := time.Now().Add(whole.Timeout)
	for far := 1; far < c.Size(); far *= 2 {
		s.list = s.list[:0]
		if to := c.Rank() + far; to < c.Size() {
			s.message(Call{Kind: KindSend, In: whole.Out, Peer: to}, whole, end)
		}
		if from := c.Rank() - far; from >= 0 {
			s.message(Call{Kind: KindRecv, Out: mem.Host(before), Peer: from}, whole, end)
		}
		switch len(s.list) {
		case 0:
			continue
		case 1:
			err = c.host.Do(s.list[0])
		default:
			err = c.host.Exchange(s.list)
		}
		if err != nil {
			return err
		}
		if c.Rank() >= far && whole.Count > 0 {
			r.Combine(x, before, x)
		}
	}
	return nil
}

// message adds a message of a Scan, which has until end if it has a Timeout, to those that are carried out side by
// side.
func (s *spare) message(m Call, whole *Call, end time.Time) {
	x := &s.calls[len(s.list)]
	*x = m
	x.Count, x.Type = whole.Count, whole.Type
	if whole.Timeout > 0 {
		x.Timeout = max(1, time.Until(end))
	}
	call.PartOf(x, whole)
	s.list = append(s.list, x)
}
