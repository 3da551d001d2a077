package sched

import (
	"fmt"
	"math/bits"
	"strings"
)

// A term is a value of the proof: 0 is undefined, then come the contributions
// (chunk c of the In of rank r), then sums of two terms. Equal terms have equal
// numbers, where a ⊕ b equals b ⊕ a (hash-consing).
type term int32

// terms holds all terms so far. The parts of a sum are of the same chunk and of
// different ranks, so a chunk and a set of ranks describe it.
type terms struct {
	ranks, in int
	words     int // of a set of ranks
	ids       map[[2]term]term
	sums      []sum
	sets      []uint64 // of sum i: sets[i*words : (i+1)*words]
}

type sum struct {
	a, b  term // a < b
	chunk int32
}

func newTerms(ranks, in int) *terms {
	return &terms{ranks: ranks, in: in, words: (ranks + 63) / 64, ids: map[[2]term]term{}}
}

// part is the term for chunk c of the In of rank r.
func (t *terms) part(r Rank, c int) term { return term(1 + int(r)*t.in + c) }

// plus is a ⊕ b, or an error if a contribution would count twice or the chunks
// differ.
func (t *terms) plus(a, b term) (term, error) {
	if a > b {
		a, b = b, a
	}
	if id, ok := t.ids[[2]term{a, b}]; ok {
		return id, nil
	}
	if t.chunk(a) != t.chunk(b) {
		return 0, fmt.Errorf("adds different chunks: %s and %s", t.String(a), t.String(b))
	}
	at := len(t.sets)
	t.sets = append(t.sets, make([]uint64, t.words)...)
	both := t.sets[at:]
	t.union(both, a)
	if r := t.union(both, b); r != Nobody {
		t.sets = t.sets[:at]
		return 0, fmt.Errorf("counts the contribution of rank %d twice: %s and %s", r, t.String(a), t.String(b))
	}
	t.sums = append(t.sums, sum{a, b, int32(t.chunk(a))})
	id := term(t.ranks*t.in + len(t.sums))
	t.ids[[2]term{a, b}] = id
	return id, nil
}

// sum is the sum that id stands for, and its place, unless it is a part.
func (t *terms) sum(id term) (at int, ok bool) {
	at = int(id) - t.ranks*t.in - 1
	return at, at >= 0
}

// union adds the ranks of id to set and returns one that was in it before, or
// Nobody.
func (t *terms) union(set []uint64, id term) (twice Rank) {
	twice = Nobody
	at, ok := t.sum(id)
	if !ok {
		r := (int(id) - 1) / t.in
		if set[r/64]>>(r%64)&1 != 0 {
			twice = Rank(r)
		}
		set[r/64] |= 1 << (r % 64)
		return twice
	}
	for w, v := range t.sets[at*t.words : (at+1)*t.words] {
		if both := set[w] & v; both != 0 {
			twice = Rank(w*64 + bits.TrailingZeros64(both))
		}
		set[w] |= v
	}
	return twice
}

// chunk is which chunk of In the parts of id are.
func (t *terms) chunk(id term) int {
	if at, ok := t.sum(id); ok {
		return int(t.sums[at].chunk)
	}
	return (int(id) - 1) % t.in
}

// missing lists the ranks that contribute nothing to id.
func (t *terms) missing(id term) (ranks []Rank) {
	set := make([]uint64, t.words)
	t.union(set, id)
	for r := range t.ranks {
		if set[r/64]>>(r%64)&1 == 0 {
			ranks = append(ranks, Rank(r))
		}
	}
	return ranks
}

// String writes a term as its ranks and its chunk, ((0+1)+2)[5]; long ones end
// in an ellipsis.
func (t *terms) String(id term) string {
	const limit = 120
	var b strings.Builder
	var write func(term)
	write = func(id term) {
		if b.Len() > limit {
			return
		}
		if at, ok := t.sum(id); ok {
			b.WriteByte('(')
			write(t.sums[at].a)
			b.WriteByte('+')
			write(t.sums[at].b)
			b.WriteByte(')')
			return
		}
		fmt.Fprint(&b, (int(id)-1)/t.in)
	}
	write(id)
	if b.Len() > limit {
		return b.String()[:limit] + "…"
	}
	return fmt.Sprintf("%s[%d]", b.String(), t.chunk(id))
}
