package sched

import (
	"cmp"
	"errors"
	"fmt"
)

// Check proves that s reaches g: that every chunk of every Out holds what the
// goal says, each contribution exactly once, and that the ranks come to an end
// without a message left over when each ordered pair of ranks (a rank and
// itself included) has a queue of depth messages. It carries the schedule out
// on names of contributions instead of numbers. The proof holds for every speed
// of the ranks, and for every larger depth.
//
// In place, chunks of Out lie in the memory of In as the goal says, and a
// contribution that is read after it was written over is an error.
//
// For AllReduce it also proves that all ranks hold the same bits: a ⊕ b is b ⊕ a
// to the bit, but (a ⊕ b) ⊕ c is not a ⊕ (b ⊕ c), so chunk c must be the same
// expression on all ranks but for the sides of its ⊕.
//
// Chunks of a block may differ in length: chunk c of any buffer is as long as
// chunk c modulo the block, and a step must not mix lengths.
//
// An error names the rank, the step and the contributions, and for a deadlock
// what each rank waits for; where it is about a step or a chunk it wraps a *Refutation. The cost is
// O(n) for each step, a bit a rank.
func Check(s Schedule, g Goal, depth int, inPlace bool) error {
	return Watch(s, g, depth, inPlace, nil)
}

func check(s Schedule, g Goal, depth int, inPlace bool, see func(Event)) error {
	shape := s.Shape()
	k, err := g.block(shape)
	if err != nil {
		return err
	}
	if inPlace && g.in.perRank && g.out.perRank {
		return errors.New("has no form in place")
	}
	p := proof{shape: shape, goal: g, k: k, inPlace: inPlace}
	p.terms = newTerms(shape.Ranks, shape.In)
	p.mem = make([]term, shape.Ranks*(shape.In+shape.Out+shape.Tmp))
	for r := range Rank(shape.Ranks) {
		for c := 0; c < shape.In && g.in.has(r); c++ {
			p.mem[p.addr(r, Ref{In, int32(c)})] = p.terms.part(r, c)
		}
	}
	if err := run(s, depth, p.watched(see)); err != nil || p.wrong != nil {
		return cmp.Or(p.wrong, err)
	}
	for r := range Rank(shape.Ranks) {
		for c := 0; c < shape.Out && g.out.has(r); c++ {
			if err := p.result(r, c); err != nil {
				return &Refutation{[]Fault{{r, -1, c, err.Error()}}, fmt.Errorf("rank %d Out[%d]: %w", r, c, err)}
			}
		}
	}
	return nil
}

// proof is the state of the ranks' memories, in terms.
type proof struct {
	shape   Shape
	goal    Goal
	k       int // chunks of a block
	inPlace bool
	terms   *terms
	mem     []term // of rank 0: In, Out, Tmp; of rank 1 …
	wrong   error  // the first step that cannot be
}

// message is a message on paper: a value, and which of the k lengths it has.
type message struct {
	value  term
	length int
}

// step carries out one step.
func (p *proof) step(r Rank, _ int, t Step, got message) (m message, err error) {
	switch {
	case t.Src.Buf == None && t.Dst.Buf == None:
		return m, errors.New("has neither Src nor Dst, so nothing says how long its message is")
	case t.Src.Buf == None && t.Recv == Nobody:
		return m, errors.New("has no value: neither Recv nor Src")
	case t.Dst.Buf == None && t.Send == Nobody:
		return m, errors.New("its value goes nowhere: neither Dst nor Send")
	case t.Dst.Buf == In:
		return m, errors.New("writes to In, which is the caller's and read only")
	}
	m.length = -1
	for _, ref := range []Ref{t.Src, t.Dst} {
		if ref.Buf == None {
			continue
		}
		if err := p.inShape(r, ref); err != nil {
			return m, err
		}
		length := int(ref.Chunk) % p.k
		if m.length >= 0 && m.length != length {
			return m, fmt.Errorf("has %v and %v in one message: chunks %d and %d of a block may differ in length",
				t.Src, t.Dst, m.length, length)
		}
		m.length = length
	}
	if t.Recv != Nobody && got.length != m.length {
		return m, p.mixed(r, t, got, m.length)
	}
	m.value = got.value
	if t.Src.Buf != None {
		src, err := p.read(r, t.Src)
		if err != nil {
			return m, err
		}
		if m.value, err = p.add(t, got.value, src); err != nil {
			return m, err
		}
	}
	if t.Dst.Buf != None {
		p.mem[p.addr(r, t.Dst)] = m.value
	}
	return m, nil
}

// mixed says what a step does with a message that may be of another length than its own chunk: contributions first.
func (p *proof) mixed(r Rank, t Step, got message, length int) error {
	if t.Src.Buf != None {
		if src, err := p.read(r, t.Src); err != nil {
			return err
		} else if _, err := p.add(t, got.value, src); err != nil {
			return fmt.Errorf("%w, which may differ in length", err)
		}
	}
	return fmt.Errorf("receives %s for %v: chunks %d and %d of a block may differ in length",
		p.terms.String(got.value), cmp.Or(t.Dst, t.Src), got.length, length)
}

func (p *proof) add(t Step, got, src term) (term, error) {
	if t.Recv == Nobody {
		return src, nil
	}
	if !p.goal.sum {
		return 0, errors.New("adds, but this collective only copies")
	}
	return p.terms.plus(got, src)
}

// inShape refuses chunks that the shape or the rank does not have.
func (p *proof) inShape(r Rank, ref Ref) error {
	var count int
	has := true
	switch ref.Buf {
	case In:
		count, has = p.shape.In, p.goal.in.has(r)
	case Out:
		count, has = p.shape.Out, p.goal.out.has(r)
	case Tmp:
		count = p.shape.Tmp
	}
	if ref.Chunk < 0 || int(ref.Chunk) >= count {
		return fmt.Errorf("%v is out of shape %+v", ref, p.shape)
	}
	if !has {
		return fmt.Errorf("rank %d has no %v in this collective", r, ref.Buf)
	}
	return nil
}

func (p *proof) read(r Rank, ref Ref) (term, error) {
	v := p.mem[p.addr(r, ref)]
	if v == 0 {
		return 0, fmt.Errorf("reads %v, which is not written yet", ref)
	}
	if own := p.terms.part(r, int(ref.Chunk)); ref.Buf == In && v != own {
		return 0, fmt.Errorf("reads %v after Out was written over it: it holds %s", ref, p.terms.String(v))
	}
	return v, nil
}

// addr is where a chunk lies in mem; in place, a chunk of Out may lie in In.
func (p *proof) addr(r Rank, ref Ref) int {
	base := int(r) * (p.shape.In + p.shape.Out + p.shape.Tmp)
	c := int(ref.Chunk)
	switch ref.Buf {
	case In:
		return base + c
	case Out:
		if own := p.goal.alias(r, c, p.k); p.inPlace && own >= 0 {
			return base + own
		}
		return base + p.shape.In + c
	default:
		return base + p.shape.In + p.shape.Out + c
	}
}

// result compares chunk c of the Out of rank r with the goal.
func (p *proof) result(r Rank, c int) error {
	got := p.mem[p.addr(r, Ref{Out, int32(c)})]
	if got == 0 {
		return errors.New("is never written")
	}
	from, chunk := p.goal.want(r, c, p.k)
	if from != Nobody {
		if want := p.terms.part(from, chunk); got != want {
			return fmt.Errorf("holds %s instead of %s", p.terms.String(got), p.terms.String(want))
		}
		return nil
	}
	if have := p.terms.chunk(got); have != chunk {
		return fmt.Errorf("holds a sum of In[%d] instead of In[%d]", have, chunk)
	}
	if missing := p.terms.missing(got); len(missing) > 0 {
		return fmt.Errorf("lacks the contribution of ranks %v: it holds %s", missing, p.terms.String(got))
	}
	if first := p.mem[p.addr(0, Ref{Out, int32(c)})]; p.goal.same && got != first {
		return fmt.Errorf("is added up in another order than on rank 0, so the bits may differ: %s and %s",
			p.terms.String(got), p.terms.String(first))
	}
	return nil
}
