// The arguments of window kernels: what a rank moves where.

package grid

import (
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
)

// windowArgs is struct Args of kernels/cuda/window.cu.
type windowArgs struct {
	comm
	gates          [MaxDirect]uint64
	from, to       [MaxDirect]uint64
	bytes          [MaxDirect]uint64
	epochs, hash   uint64
	scalar, value  uint64
	moves, targets uint32
	tile, tiles    uint32
	pass, before   uint32
	part, swap     uint32
	finish, _      uint32
}

// Bits of windowArgs.part: the kernel's role in an operation of several kernels.
const (
	beginsOp = 1 << iota
	endsOp
)

// buffers are the addresses of each rank's In and Out in an operation, 0 where this
// rank does not know them.
type buffers struct {
	in, out [MaxDirect]uint64
}

func (e *Engine) buffersOf(j *Job, in, out WindowOffset) (l buffers) {
	fill := func(at *[MaxDirect]uint64, p WindowOffset, own mem.Region) {
		if p.Window != nil {
			for q, base := range p.Window.At {
				at[q] = base + uint64(p.Offset)
			}
		}
		if own.Len() > 0 {
			at[e.rank] = uint64(own.Ptr())
		}
	}
	fill(&l.in, in, j.In)
	fill(&l.out, out, j.Out)
	return l
}

// add adds a move of n bytes, unless from and to are the same.
func (a *windowArgs) add(from, to, n uint64) {
	if from == to {
		return
	}
	k := a.moves
	a.from[k], a.to[k], a.bytes[k] = from, to, n
	a.moves++
}

// target adds a target of the only move.
func (a *windowArgs) target(to uint64) {
	a.to[a.targets] = to
	a.targets++
}

// loose reports whether a source of a move and its first target differ by no multiple of 16 bytes. A reduction has the
// sources of all ranks.
func (a *windowArgs) loose(reduces bool, ranks int) bool {
	apart := uint64(0)
	for k := range a.moves {
		if !reduces {
			apart |= a.from[k] ^ a.to[k]
			continue
		}
		for _, from := range a.from[:ranks] {
			apart |= from ^ a.to[k]
		}
	}
	return apart%16 != 0
}

// share is the part of bytes that the i-th of n ranks combines or passes on.
func share(bytes, i, n int) (at, length uint64) {
	part := roundUp((bytes+n-1)/n, 128)
	at = uint64(min(bytes, i*part))
	return at, min(uint64(part), uint64(bytes)-at)
}

// windowArgsOf is the part of the arguments that all kernels of an operation share.
func (e *Engine) windowArgsOf(j *Job, d Direct, in, out WindowOffset, root sched.Rank, bytes int) *windowArgs {
	a := &e.frame.window
	*a = windowArgs{comm: e.collective(j), epochs: uint64(e.gates.epochs), pass: 2, before: 1, part: beginsOp | endsOp,
		targets: 1}
	copy(a.gates[:], e.gates.at)
	what := uint64(d) | uint64(root)<<8
	if d == AllToAll && j.In.Ptr() == j.Out.Ptr() {
		what |= 1 << 63
	}
	a.hash = hashOf(j.Stamp, what, uint64(bytes), uint64(in.Offset), uint64(out.Offset))
	return a
}

// after is how many ranks lie between the root and a rank, n - 1 for the root.
func after(rank, root, n int) int { return (rank - root - 1 + n) % n }

// layMoves sets the moves of a rank. Peers come in order of their distance, so that
// at any time all ranks write to different ones.
func (e *Engine) layMoves(a *windowArgs, l buffers, d Direct, root sched.Rank, bytes int) {
	n, rank := e.ranks, int(e.rank)
	one, isRoot := uint64(bytes), e.rank == root
	in, out := l.in[rank], l.out[rank]
	peers := func(do func(q int, at uint64)) { // this rank is the last
		for k := 1; k <= n; k++ {
			q := (rank + k) % n
			do(q, uint64(q)*one)
		}
	}
	mine := uint64(rank) * one
	switch d {
	case TwoShot, Reduce:
		i, parts := rank, n
		if d == Reduce && n > 2 { // the root takes as much as all others send
			i, parts = after(rank, int(root), n), n-1
		}
		at, length := share(bytes, i, parts)
		a.moves, a.targets, a.bytes[0] = 1, 0, length
		peers(func(q int, _ uint64) {
			a.from[q] = l.in[q] + at
			if d == TwoShot || q == int(root) {
				a.target(l.out[q] + at)
			}
		})
	case ReduceScatter:
		a.moves, a.bytes[0], a.to[0] = 1, one, out
		peers(func(q int, _ uint64) { a.from[q] = l.in[q] + mine })
	case AllGather:
		peers(func(q int, _ uint64) { a.add(in, l.out[q]+mine, one) })
	case AllToAll:
		if in == out {
			e.laySwaps(a, l, one)
			return
		}
		peers(func(q int, at uint64) { a.add(in+at, l.out[q]+mine, one) })
	case Scatter:
		if isRoot {
			peers(func(q int, at uint64) { a.add(in+at, l.out[q], one) })
		}
	case Gather:
		if isRoot {
			peers(func(q int, at uint64) { a.add(l.in[q], out+at, one) })
		}
	case Broadcast:
		e.layBroadcast(a, l, int(root), bytes)
	}
}

// layBroadcast has the root copy the data to its own Out before it opens its gate. Each other rank reads a share there
// and passes it on, so no rank sends more than the length of the data. Of two ranks the root writes both Outs.
func (e *Engine) layBroadcast(a *windowArgs, l buffers, root, bytes int) {
	n, rank := e.ranks, int(e.rank)
	if n == 2 {
		if rank == root {
			a.add(l.in[root], l.out[1-root], uint64(bytes))
			a.add(l.in[root], l.out[root], uint64(bytes))
		}
		return
	}
	if rank == root {
		a.before = 0
		for i := range n - 1 {
			at, length := share(bytes, i, n-1)
			a.add(l.in[root]+at, l.out[root]+at, length)
		}
		return
	}
	at, length := share(bytes, after(rank, root, n), n-1)
	a.moves, a.targets, a.from[0], a.bytes[0] = 1, 0, l.out[root]+at, length
	for k := 1; k <= n; k++ {
		if q := (rank + k) % n; q != root {
			a.target(l.out[q] + at)
		}
	}
}

// laySwaps is an all-to-all in place. Of the data that two ranks have for each other,
// one of them swaps the first half and the other one the rest.
func (e *Engine) laySwaps(a *windowArgs, l buffers, n uint64) {
	a.swap = 1
	half := n / 2 &^ 15
	for k := 1; k < e.ranks; k++ {
		q := (int(e.rank) + k) % e.ranks
		at, length := uint64(0), half
		if q < int(e.rank) {
			at, length = half, n-half
		}
		a.add(l.in[e.rank]+uint64(q)*n+at, l.out[q]+uint64(e.rank)*n+at, length)
	}
}

// layShares has each rank give its share of Out to all others.
func (e *Engine) layShares(a *windowArgs, l buffers, bytes int) {
	at, length := share(bytes, int(e.rank), e.ranks)
	for k := 1; k < e.ranks; k++ {
		a.add(l.out[e.rank]+at, l.out[(int(e.rank)+k)%e.ranks]+at, length)
	}
}

// layRoot has the root of a broadcast give each other rank a share, and itself all of it.
func (e *Engine) layRoot(a *windowArgs, l buffers, root, bytes int) {
	if int(e.rank) != root {
		return
	}
	n, in := e.ranks, l.in[root]
	for i := range n - 1 {
		at, length := share(bytes, i, n-1)
		a.add(in+at, l.out[(root+1+i)%n]+at, length)
	}
	a.add(in, l.out[root], uint64(bytes))
}

// layPassed has each rank but the root give its share to the ranks that got another one.
func (e *Engine) layPassed(a *windowArgs, l buffers, root, bytes int) {
	a.moves = 0
	n, rank := e.ranks, int(e.rank)
	if rank == root {
		return
	}
	at, length := share(bytes, after(rank, root, n), n-1)
	for k := 1; k < n; k++ {
		if q := (rank + k) % n; q != root {
			a.add(l.out[rank]+at, l.out[q]+at, length)
		}
	}
}

// cut divides the moves into tiles.
func (a *windowArgs) cut(tile, blocks int) {
	tile = roundUp(tile, 128)
	longest := uint64(0)
	for k := range a.moves {
		longest = max(longest, a.bytes[k])
	}
	tiles := int((longest + uint64(tile) - 1) / uint64(tile))
	// The root of a broadcast moves before the gate, and block b of each other rank reads
	// the data that block b of the root has moved: of every share, tile i must belong to
	// block i % blocks.
	if a.before == 0 {
		tiles = roundUp(tiles, blocks)
	}
	a.tile, a.tiles = uint32(tile), uint32(tiles)
}
