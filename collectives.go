package ringo

import "github.com/ringo-go/ringo/mem"

// Of the typed calls the functions XOf describe a call on slices, to be given to Comm.Do, Comm.Start or Group.Add;
// the functions X carry it out, and allocate nothing after the first call of a kind. The package's doc says what
// shapes mean.

// AllReduceOf reduces data [k] of all ranks in place: every rank gets ⊕ of all.
func AllReduceOf[T Element](data []T, op RedOp) *Call { return AllReduceToOf(data, data, op) }

// AllReduce reduces data [k] of all ranks in place: every rank gets ⊕ of all.
func AllReduce[T Element](c *Comm, data []T, op RedOp) error {
	return c.Do(AllReduceToOf(data, data, op))
}

// AllReduceToOf reduces in [k] of all ranks: every rank gets ⊕ of all in out [k].
func AllReduceToOf[T Element](out, in []T, op RedOp) *Call {
	c := sameCounts(KindAllReduce, out, in, len(in), op, 0, 0)
	return &c
}

// AllReduceTo reduces in [k] of all ranks: every rank gets ⊕ of all in out [k].
func AllReduceTo[T Element](c *Comm, out, in []T, op RedOp) error {
	return c.Do(AllReduceToOf(out, in, op))
}

// ReduceOf reduces in [k] of all ranks into out [k] of root. out may be in, and nil on the other ranks.
func ReduceOf[T Element](out, in []T, op RedOp, root int) *Call {
	c := sameCounts(KindReduce, out, in, len(in), op, root, 0)
	return &c
}

// Reduce reduces in [k] of all ranks into out [k] of root. out may be in, and nil on the other ranks.
func Reduce[T Element](c *Comm, out, in []T, op RedOp, root int) error {
	return c.Do(ReduceOf(out, in, op, root))
}

// BroadcastOf copies data [k] of root to all ranks.
func BroadcastOf[T Element](data []T, root int) *Call { return BroadcastToOf(data, data, root) }

// Broadcast copies data [k] of root to all ranks.
func Broadcast[T Element](c *Comm, data []T, root int) error {
	return BroadcastTo(c, data, data, root)
}

// BroadcastToOf copies in [k] of root to out [k] of all ranks; in may be nil on the others.
func BroadcastToOf[T Element](out, in []T, root int) *Call {
	c := sameCounts(KindBroadcast, out, in, len(out), RedOp{}, root, 0)
	return &c
}

// BroadcastTo copies in [k] of root to out [k] of all ranks; in may be nil on the others.
func BroadcastTo[T Element](c *Comm, out, in []T, root int) error {
	return c.Do(BroadcastToOf(out, in, root))
}

// AllGatherOf collects in [k] of all ranks, by rank, in out [n·k].
func AllGatherOf[T Element](out, in []T) *Call {
	c := sameCounts(KindAllGather, out, in, len(in), RedOp{}, 0, 0)
	return &c
}

// AllGather collects in [k] of all ranks, by rank, in out [n·k].
func AllGather[T Element](c *Comm, out, in []T) error {
	return c.Do(AllGatherOf(out, in))
}

// ReduceScatterOf reduces in [n·k] of all ranks and leaves the rank's share in out [k].
func ReduceScatterOf[T Element](out, in []T, op RedOp) *Call {
	c := sameCounts(KindReduceScatter, out, in, len(out), op, 0, 0)
	return &c
}

// ReduceScatter reduces in [n·k] of all ranks and leaves the rank's share in out [k].
func ReduceScatter[T Element](c *Comm, out, in []T, op RedOp) error {
	return c.Do(ReduceScatterOf(out, in, op))
}

// AlltoAllOf describes the call of AlltoAll. ranks is n, the communicator's Size, and no number of elements.
func AlltoAllOf[T Element](out, in []T, ranks int) *Call {
	c := sameCounts(KindAlltoAll, out, in, len(in)/max(ranks, 1), RedOp{}, 0, 0)
	return &c
}

// AlltoAll sends the p-th share of in [n·k] to rank p and collects what the
// ranks send, by rank, in out [n·k].
func AlltoAll[T Element](c *Comm, out, in []T) error {
	call := sameCounts(KindAlltoAll, out, in, len(in)/max(c.Size(), 1), RedOp{}, 0, 0)
	return c.Do(&call)
}

// GatherOf collects in [k] of all ranks in out [n·k] of root; out may be nil on the others.
func GatherOf[T Element](out, in []T, root int) *Call {
	c := sameCounts(KindGather, out, in, len(in), RedOp{}, root, 0)
	return &c
}

// Gather collects in [k] of all ranks in out [n·k] of root; out may be nil on the others.
func Gather[T Element](c *Comm, out, in []T, root int) error {
	return c.Do(GatherOf(out, in, root))
}

// ScatterOf gives each rank its share of in [n·k] of root in out [k]; in may be nil on the others.
func ScatterOf[T Element](out, in []T, root int) *Call {
	c := sameCounts(KindScatter, out, in, len(out), RedOp{}, root, 0)
	return &c
}

// Scatter gives each rank its share of in [n·k] of root in out [k]; in may be nil on the others.
func Scatter[T Element](c *Comm, out, in []T, root int) error {
	return c.Do(ScatterOf(out, in, root))
}

// SendOf sends data [k] to peer, which must receive the same number of elements.
func SendOf[T Element](data []T, peer int) *Call {
	c := sameCounts[T](KindSend, nil, data, len(data), RedOp{}, 0, peer)
	return &c
}

// Send sends data [k] to peer, which must receive the same number of elements. It returns when data
// may be used again, which may be before the peer has it.
func Send[T Element](c *Comm, data []T, peer int) error {
	return c.Do(SendOf(data, peer))
}

// RecvOf receives data [k] from peer, which must send the same number of elements.
func RecvOf[T Element](data []T, peer int) *Call {
	c := sameCounts[T](KindRecv, data, nil, len(data), RedOp{}, 0, peer)
	return &c
}

// Recv receives data [k] from peer, which must send the same number of elements.
func Recv[T Element](c *Comm, data []T, peer int) error {
	return c.Do(RecvOf(data, peer))
}

// AllGathervOf describes the call of AllGatherv.
func AllGathervOf[T Element](out, in []T, counts []int) *Call {
	c := counted(KindAllGatherv, out, counts, in, nil, RedOp{}, 0)
	return &c
}

// AllGatherv collects in [counts[rank]] of all ranks, packed by rank, in out [Σcounts]. counts[r] is the number of
// elements of rank r, and the same on all ranks. What in and out have more is left alone.
func AllGatherv[T Element](c *Comm, out, in []T, counts []int) error {
	return c.Do(AllGathervOf(out, in, counts))
}

// AlltoAllvOf describes the call of AlltoAllv.
func AlltoAllvOf[T Element](out []T, outCounts []int, in []T, inCounts []int) *Call {
	c := counted(KindAlltoAllv, out, outCounts, in, inCounts, RedOp{}, 0)
	return &c
}

// AlltoAllv sends inCounts[p] elements of in [ΣinCounts] to rank p and receives outCounts[p] from it in out
// [ΣoutCounts], both packed by rank. outCounts[p] is rank p's inCounts for this rank, of the rank itself too. What
// in and out have more is left alone.
func AlltoAllv[T Element](c *Comm, out []T, outCounts []int, in []T, inCounts []int) error {
	return c.Do(AlltoAllvOf(out, outCounts, in, inCounts))
}

// BarrierOf is a call that ends when all ranks have made it.
func BarrierOf() *Call { return &Call{Kind: KindBarrier} }

// Barrier returns when all ranks have called it.
func Barrier(c *Comm) error {
	call := Call{Kind: KindBarrier}
	return c.Do(&call)
}

// sameCounts describes a call that has one count. The functions XOf only call it, so that the compiler inlines them:
// then the call stays on the stack of the functions X.
func sameCounts[T Element](kind Kind, out, in []T, count int, op RedOp, root, peer int) Call {
	return Call{Kind: kind, In: mem.Of(in), Out: mem.Of(out), Count: count, Type: TypeOf[T](), Op: op, Root: root,
		Peer: peer, Exact: true}
}

// counted is sameCounts for a call whose counts differ by rank.
func counted[T Element](kind Kind, out []T, outCounts []int, in []T, inCounts []int, op RedOp, root int) Call {
	return Call{Kind: kind, In: mem.Of(in), Out: mem.Of(out), Type: TypeOf[T](), InCounts: inCounts,
		OutCounts: outCounts, Op: op, Root: root}
}
