package sched

import "fmt"

// A Goal is what a collective promises: which chunks of the ranks' In every
// chunk of their Out must hold. Chunks come in blocks of k; a buffer holds one
// block, or one for each rank, block q for or from rank q. k follows from the
// Shape of the schedule, which must agree with the goal.
type Goal struct {
	name    string
	in, out extent
	sum     bool // Out holds sums over all ranks, else copies
	same    bool // all ranks must hold the same bits
}

// extent is the ranks that have a buffer, and its length.
type extent struct {
	perRank bool // n blocks, else one
	rooted  bool // only root has it, else all ranks
	root    Rank
}

var (
	one  = extent{}
	each = extent{perRank: true}
)

func oneAt(root Rank) extent  { return extent{rooted: true, root: root} }
func eachAt(root Rank) extent { return extent{rooted: true, root: root, perRank: true} }

// AllReduce: every rank's Out is the sum of all In, with the same bits
// everywhere. In place, Out is In.
var AllReduce = Goal{name: "all-reduce", in: one, out: one, sum: true, same: true}

// AllGather: block q of every rank's Out is the In of rank q. In place, In is
// the rank's own block of Out.
var AllGather = Goal{name: "all-gather", in: one, out: each}

// ReduceScatter: the Out of rank r is the sum of block r of all In. In place,
// Out is the rank's own block of In.
var ReduceScatter = Goal{name: "reduce-scatter", in: each, out: one, sum: true}

// AlltoAll: block q of the Out of rank r is block r of the In of rank q. It has
// no form in place.
var AlltoAll = Goal{name: "all-to-all", in: each, out: each}

// Reduce: the root's Out is the sum of all In; no other rank has an Out. In
// place, the root's Out is its In.
func Reduce(root Rank) Goal {
	return Goal{name: fmt.Sprintf("reduce to %d", root), in: one, out: oneAt(root), sum: true}
}

// Broadcast: every rank's Out is the root's In; no other rank has an In. In
// place, the root's Out is its In.
func Broadcast(root Rank) Goal {
	return Goal{name: fmt.Sprintf("broadcast from %d", root), in: oneAt(root), out: one}
}

// Gather: block q of the root's Out is the In of rank q; no other rank has an
// Out. In place, the root's In is its own block of Out.
func Gather(root Rank) Goal {
	return Goal{name: fmt.Sprintf("gather to %d", root), in: one, out: eachAt(root)}
}

// Scatter: the Out of rank r is block r of the root's In; no other rank has an
// In. In place, the root's Out is its own block of In.
func Scatter(root Rank) Goal {
	return Goal{name: fmt.Sprintf("scatter from %d", root), in: eachAt(root), out: one}
}

// String names the collective and its root.
func (g Goal) String() string { return g.name }

// block is k, or an error if a schedule of this shape cannot reach the goal.
func (g Goal) block(s Shape) (k int, err error) {
	if s.Ranks < 1 || s.In < 1 || s.Out < 1 || s.Tmp < 0 {
		return 0, fmt.Errorf("shape %+v: needs a rank and a chunk in and out", s)
	}
	if max(g.in.root, g.out.root) >= Rank(s.Ranks) || min(g.in.root, g.out.root) < 0 {
		return 0, fmt.Errorf("root is none of the %d ranks", s.Ranks)
	}
	k = s.In / g.in.blocks(s.Ranks)
	if k < 1 || k*g.in.blocks(s.Ranks) != s.In || k*g.out.blocks(s.Ranks) != s.Out {
		return 0, fmt.Errorf("shape %+v: In must be %d and Out %d equal blocks of chunks",
			s, g.in.blocks(s.Ranks), g.out.blocks(s.Ranks))
	}
	return k, nil
}

// want is what chunk c of the Out of rank r must hold: the chunk of the In of
// one rank, or of all if from is Nobody.
func (g Goal) want(r Rank, c, k int) (from Rank, chunk int) {
	chunk = c % k
	if g.in.perRank {
		chunk += int(r) * k
	}
	switch {
	case g.sum:
		return Nobody, chunk
	case g.out.perRank:
		return Rank(c / k), chunk
	default:
		return g.in.root, chunk
	}
}

// alias is the chunk of In that shares the memory of chunk c of Out in place,
// or -1.
func (g Goal) alias(r Rank, c, k int) int {
	switch {
	case !g.in.has(r) || !g.out.has(r):
		return -1
	case g.in.perRank:
		return int(r)*k + c
	case g.out.perRank && c/k != int(r):
		return -1
	default:
		return c % k
	}
}

func (e extent) has(r Rank) bool { return !e.rooted || e.root == r }

func (e extent) blocks(n int) int {
	if e.perRank {
		return n
	}
	return 1
}
