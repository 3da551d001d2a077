package choice

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/ring/book"
	"github.com/ringo-go/ringo/sched"
)

// A Definition is an algorithm of a program's own for one of the collectives.
type Definition struct {
	Name string // a word, for Config.Algo and the command line
	Kind call.Kind
	// Schedule makes the table for n ranks, of which root is the Root of a rooted
	// collective. It is called for any n that Ranks allows.
	Schedule func(n int, root sched.Rank) sched.Schedule
	Ranks    func(n int) bool // which numbers of ranks it is for; nil for all
}

// Define proves an algorithm for 1 to 8 ranks and adds it to the book. From then on Config.Algo
// may name it; it is never chosen unasked. Errors wrap call.ErrInvalid. The trap: all ranks must
// define the same algorithms in the same order, before they open a communicator.
//
// Each number of ranks and root is proved once more at its first call, before any rank hears of it.
func Define(d Definition) error {
	if goal(d.Kind, 0) == nil {
		return fmt.Errorf("%w: define %q: %v is not a collective that a schedule can be proved for", call.ErrInvalid,
			d.Name, d.Kind)
	}
	if d.Schedule == nil {
		return fmt.Errorf("%w: define %q: no Schedule", call.ErrInvalid, d.Name)
	}
	t := table{Algorithm: book.Algorithm{Name: d.Name, Flat: d.Schedule}, ranks: d.Ranks}
	for n := 1; n <= 8; n++ {
		if t.ranks != nil && !t.ranks(n) {
			continue
		}
		for _, root := range []sched.Rank{0, sched.Rank(n - 1)} {
			if err := sched.Check(d.Schedule(n, root), *goal(d.Kind, root), depth, false); err != nil {
				return fmt.Errorf("%w: define %q for %v: %d ranks: %w", call.ErrInvalid, d.Name, d.Kind, n, err)
			}
		}
	}
	defining.Lock()
	defer defining.Unlock()
	var err error
	if t.algo, err = call.NewAlgo(d.Name); err != nil {
		return err
	}
	var all [call.Kinds][]table
	if old := defined.Load(); old != nil {
		all = *old
	}
	all[d.Kind] = append(slices.Clone(tables(d.Kind)), t)
	defined.Store(&all)
	return nil
}

var (
	defining sync.Mutex
	defined  atomic.Pointer[[call.Kinds][]table] // of kinds for which algorithms are defined: the book's, then these
)

// tables are the algorithms of a collective, the default first.
func tables(kind call.Kind) []table {
	if all := defined.Load(); all != nil && all[kind] != nil {
		return all[kind]
	}
	return lines[kind]
}

// lastAlgo is the number after the last algorithm's.
func lastAlgo() call.Algo { return call.Algos + call.Algo(len(call.Defined())) }

// depth is how many messages fit between two ranks at least, which proofs rely on: an engine's
// piece is half a queue.
const depth = 2

// goal is what a collective promises; nil if the book does not have it.
func goal(kind call.Kind, root sched.Rank) *sched.Goal {
	c := entry(kind)
	if c == nil {
		return nil
	}
	g := c.Goal(root)
	return &g
}

// A proof names one check of a schedule that a program has defined.
type proof struct {
	key     Key
	ranks   int
	inPlace bool
}

var proofs sync.Map // of proof, to an error or nil

// prove checks the schedule of an algorithm that a program has defined, once for each
// number of ranks and root, in and out of place; tests have proved the book's. The error
// wraps call.ErrInvalid.
func (c *Chooser) prove(q *Question, a call.Algo) error {
	key := Key{Kind: q.Kind, Algo: a, Peer: int32(max(0, q.Root))}
	p := proof{key, c.Topo.Ranks, q.InPlace && q.Kind != call.AlltoAll} // an AlltoAll in place copies In first
	if err, ok := proofs.Load(p); ok {
		err, _ := err.(error)
		return err
	}
	err := sched.Check(key.Schedule(c.Topo), *goal(q.Kind, sched.Rank(key.Peer)), depth, p.inPlace)
	if err != nil {
		how := ""
		if p.inPlace {
			how = " in place"
		}
		err = fmt.Errorf("%w: the schedule %q does not do an %v of %d ranks%s: %w", call.ErrInvalid, a, q.Kind, c.Topo.Ranks,
			how, err)
	}
	proofs.Store(p, err)
	return err
}
