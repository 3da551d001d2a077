// The arguments of window kernels: what a rank moves where.

package grid

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

// after is how many ranks lie between the root and a rank, n - 1 for the root.
func after(rank, root, n int) int { return (rank - root - 1 + n) % n }

// place returns this rank and the number of ranks.
func (a *windowArgs) place() (rank, n int) { return int(a.comm.rank), int(a.comm.ranks) }

// layMoves sets the moves of a rank. Peers come in order of their distance, this rank last, so that
// at any time all ranks write to different ones.
func (a *windowArgs) layMoves(l *buffers, d Direct, root, bytes int) {
	rank, n := a.place()
	in, out, one, at := l.in[rank], l.out[rank], uint64(bytes), uint64(0)
	mine := uint64(rank) * one
	switch d {
	case TwoShot, Reduce:
		i, parts := rank, n
		if d == Reduce && n > 2 { // the root takes as much as all others send
			i, parts = after(rank, root, n), n-1
		}
		a.moves, a.targets = 1, 0
		at, a.bytes[0] = share(bytes, i, parts)
	case ReduceScatter:
		a.moves, a.bytes[0], a.to[0] = 1, one, out
	case AllToAll:
		if in == out {
			a.laySwaps(l, one)
			return
		}
	case Scatter, Gather:
		if rank != root {
			return
		}
	case Broadcast:
		a.layBroadcast(l, root, bytes)
		return
	}
	for k := 1; k <= n; k++ {
		q := (rank + k) % n
		theirs := uint64(q) * one
		switch d {
		case TwoShot, Reduce:
			a.from[q] = l.in[q] + at
			if d == TwoShot || q == root {
				a.target(l.out[q] + at)
			}
		case ReduceScatter:
			a.from[q] = l.in[q] + mine
		case AllGather:
			a.add(in, l.out[q]+mine, one)
		case AllToAll:
			a.add(in+theirs, l.out[q]+mine, one)
		case Scatter:
			a.add(in+theirs, l.out[q], one)
		case Gather:
			a.add(l.in[q], out+theirs, one)
		}
	}
}

// layBroadcast has the root copy the data to its own Out before it opens its gate. Each other rank reads a share there
// and passes it on, so no rank sends more than the length of the data. Of two ranks the root writes both Outs.
func (a *windowArgs) layBroadcast(l *buffers, root, bytes int) {
	rank, n := a.place()
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
func (a *windowArgs) laySwaps(l *buffers, one uint64) {
	rank, n := a.place()
	a.swap = 1
	half := one / 2 &^ 15
	for k := 1; k < n; k++ {
		q := (rank + k) % n
		at, length := uint64(0), half
		if q < rank {
			at, length = half, one-half
		}
		a.add(l.in[rank]+uint64(q)*one+at, l.out[q]+uint64(rank)*one+at, length)
	}
}

// layShares has each rank give its share of Out to all others.
func (a *windowArgs) layShares(l *buffers, bytes int) {
	rank, n := a.place()
	at, length := share(bytes, rank, n)
	for k := 1; k < n; k++ {
		a.add(l.out[rank]+at, l.out[(rank+k)%n]+at, length)
	}
}

// layRoot has the root of a broadcast give each other rank a share, and itself all of it.
func (a *windowArgs) layRoot(l *buffers, root, bytes int) {
	rank, n := a.place()
	if rank != root {
		return
	}
	in := l.in[root]
	for i := range n - 1 {
		at, length := share(bytes, i, n-1)
		a.add(in+at, l.out[(root+1+i)%n]+at, length)
	}
	a.add(in, l.out[root], uint64(bytes))
}

// layPassed has each rank but the root give its share to the ranks that got another one.
func (a *windowArgs) layPassed(l *buffers, root, bytes int) {
	a.moves = 0
	rank, n := a.place()
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
