// Composites: collectives that are made of other calls.

package hostcomm

import (
	"time"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// parts is what composites are made of. The next composite reuses the memory, so that nothing is allocated.
type parts struct {
	give, take []int
	data       []byte
	calls      [2]call.Call
	list       []*call.Call
}

// forget lets go of memory of the caller.
func (s *parts) forget() { s.calls = [2]call.Call{} }

// counts makes counts of n ranks, all 0.
func (s *parts) counts(n int) {
	s.give, s.take = append(s.give[:0], make([]int, n)...), append(s.take[:0], make([]int, n)...)
}

// bytes are n bytes, aligned for any element.
func (s *parts) bytes(n int) []byte {
	if cap(s.data) < n {
		s.data = make([]byte, max(n, 64))
	}
	return s.data[:n]
}

// composite carries out a checked call by others. The turn is held.
func (h *Comm) composite(whole *call.Call) error {
	s := &h.parts
	defer s.forget()
	if whole.Kind == call.Scan {
		return h.scan(s, whole)
	}
	s.counts(h.life.Size)
	x := &s.calls[0]
	*x = call.Call{Kind: call.AlltoAllv, Type: whole.Type, Timeout: whole.Timeout, InCounts: s.give, OutCounts: s.take}
	call.PartOf(x, whole)
	root := h.life.Rank == whole.Root
	switch whole.Kind {
	case call.Gatherv:
		s.give[whole.Root] = whole.OutCounts[h.life.Rank]
		if x.In = whole.In; root {
			x.Out, x.OutCounts, x.OutOffsets = whole.Out, whole.OutCounts, whole.OutOffsets
		}
	case call.Scatterv:
		s.take[whole.Root] = whole.InCounts[h.life.Rank]
		if x.Out = whole.Out; root {
			x.In, x.InCounts, x.InOffsets = whole.In, whole.InCounts, whole.InOffsets
		}
	default:
		return h.reduceShares(s, x, whole)
	}
	return h.Do(x)
}

// reduceShares is a ReduceScatterv, of which x brings the shares.
func (h *Comm) reduceShares(s *parts, x, whole *call.Call) error {
	r, err := kernels.NewReducer(whole.Type, whole.Op, h.life.Size)
	if err != nil {
		return err // cannot be, after Check
	}
	mine := whole.InCounts[h.life.Rank]
	share := mine * whole.Type.Size()
	from := whole.In
	shares := s.bytes(h.life.Size*share + from.Len())
	if !r.LoadIsCopy() {
		scaled := shares[h.life.Size*share:]
		r.Load(scaled, from.Bytes())
		from = mem.Host(scaled)
	}
	shares = shares[:h.life.Size*share]
	for i := range s.take {
		s.take[i] = mine
	}
	x.In, x.InCounts, x.Out = from, whole.InCounts, mem.Host(shares)
	if err := h.Do(x); err != nil || mine == 0 {
		return err
	}
	sum := whole.Out.Slice(0, share).Bytes()
	copy(sum, shares)
	for i := 1; i < h.life.Size; i++ {
		r.Combine(sum, sum, shares[i*share:(i+1)*share])
	}
	if r.Finishes() {
		r.Finish(sum)
	}
	return nil
}

// scan doubles in every round how many ranks a rank has the sum of.
func (h *Comm) scan(s *parts, whole *call.Call) error {
	r, err := kernels.NewReducer(whole.Type, whole.Op, h.life.Size)
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
	for far := 1; far < h.life.Size; far *= 2 {
		s.list = s.list[:0]
		if to := h.life.Rank + far; to < h.life.Size {
			s.message(call.Call{Kind: call.Send, In: whole.Out, Peer: to}, whole, end)
		}
		if from := h.life.Rank - far; from >= 0 {
			s.message(call.Call{Kind: call.Recv, Out: mem.Host(before), Peer: from}, whole, end)
		}
		switch len(s.list) {
		case 0:
			continue
		case 1:
			err = h.Do(s.list[0])
		default:
			err = h.Exchange(s.list)
		}
		if err != nil {
			return err
		}
		if h.life.Rank >= far && whole.Count > 0 {
			r.Combine(x, before, x)
		}
	}
	return nil
}

// message adds a message of a Scan, which has until end if it has a Timeout, to those that are carried out side by
// side.
func (s *parts) message(m call.Call, whole *call.Call, end time.Time) {
	x := &s.calls[len(s.list)]
	*x = m
	x.Count, x.Type = whole.Count, whole.Type
	if whole.Timeout > 0 {
		x.Timeout = max(1, time.Until(end))
	}
	call.PartOf(x, whole)
	s.list = append(s.list, x)
}
