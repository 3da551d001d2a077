package ringo

import "github.com/ringo-go/ringo/mem"

// Of the typed calls the functions XOf describe a call on slices, to be given to Comm.Do, Comm.Start or Group.Add;
// the functions X carry it out, and allocate nothing after the first call of a kind. The package's doc says what
// shapes mean.

// AllReduceOf reduces data [k] of all ranks in place: every rank gets ⊕ of all.
func AllReduceOf[T Element](data []T, op RedOp) *Call { return AllReduceToOf(data, data, op) }

// AllReduce reduces data [k] of all ranks in place: every rank gets ⊕ of all.
func AllReduce[T Element](c *Comm, data []T, op RedOp) error {
	call := allReduce(data, data, op)
	return c.Do(&call)
}

// AllReduceToOf reduces in [k] of all ranks: every rank gets ⊕ of all in out [k].
func AllReduceToOf[T Element](out, in []T, op RedOp) *Call {
	c := allReduce(out, in, op)
	return &c
}

// AllReduceTo reduces in [k] of all ranks: every rank gets ⊕ of all in out [k].
func AllReduceTo[T Element](c *Comm, out, in []T, op RedOp) error {
	call := allReduce(out, in, op)
	return c.Do(&call)
}

func allReduce[T Element](out, in []T, op RedOp) Call {
	return Call{Kind: KindAllReduce, In: mem.Of(in), Out: mem.Of(out), Count: len(in), Type: TypeOf[T](), Op: op,
		Exact: true}
}

// ReduceOf reduces in [k] of all ranks into out [k] of root. out may be in, and nil on the other ranks.
func ReduceOf[T Element](out, in []T, op RedOp, root int) *Call {
	c := reduce(out, in, op, root)
	return &c
}

// Reduce reduces in [k] of all ranks into out [k] of root. out may be in, and nil on the other ranks.
func Reduce[T Element](c *Comm, out, in []T, op RedOp, root int) error {
	call := reduce(out, in, op, root)
	return c.Do(&call)
}

func reduce[T Element](out, in []T, op RedOp, root int) Call {
	return Call{Kind: KindReduce, In: mem.Of(in), Out: mem.Of(out), Count: len(in), Type: TypeOf[T](), Op: op, Root: root,
		Exact: true}
}

// BroadcastOf copies data [k] of root to all ranks.
func BroadcastOf[T Element](data []T, root int) *Call { return BroadcastToOf(data, data, root) }

// Broadcast copies data [k] of root to all ranks.
func Broadcast[T Element](c *Comm, data []T, root int) error {
	return BroadcastTo(c, data, data, root)
}

// BroadcastToOf copies in [k] of root to out [k] of all ranks; in may be nil on the others.
func BroadcastToOf[T Element](out, in []T, root int) *Call {
	c := broadcast(out, in, root)
	return &c
}

// BroadcastTo copies in [k] of root to out [k] of all ranks; in may be nil on the others.
func BroadcastTo[T Element](c *Comm, out, in []T, root int) error {
	call := broadcast(out, in, root)
	return c.Do(&call)
}

func broadcast[T Element](out, in []T, root int) Call {
	return Call{Kind: KindBroadcast, In: mem.Of(in), Out: mem.Of(out), Count: len(out), Type: TypeOf[T](), Root: root,
		Exact: true}
}

// AllGatherOf collects in [k] of all ranks, by rank, in out [n·k].
func AllGatherOf[T Element](out, in []T) *Call {
	c := allGather(out, in)
	return &c
}

// AllGather collects in [k] of all ranks, by rank, in out [n·k].
func AllGather[T Element](c *Comm, out, in []T) error {
	call := allGather(out, in)
	return c.Do(&call)
}

func allGather[T Element](out, in []T) Call {
	return Call{Kind: KindAllGather, In: mem.Of(in), Out: mem.Of(out), Count: len(in), Type: TypeOf[T](), Exact: true}
}

// ReduceScatterOf reduces in [n·k] of all ranks and leaves the rank's share in out [k].
func ReduceScatterOf[T Element](out, in []T, op RedOp) *Call {
	c := reduceScatter(out, in, op)
	return &c
}

// ReduceScatter reduces in [n·k] of all ranks and leaves the rank's share in out [k].
func ReduceScatter[T Element](c *Comm, out, in []T, op RedOp) error {
	call := reduceScatter(out, in, op)
	return c.Do(&call)
}

func reduceScatter[T Element](out, in []T, op RedOp) Call {
	return Call{Kind: KindReduceScatter, In: mem.Of(in), Out: mem.Of(out), Count: len(out), Type: TypeOf[T](), Op: op,
		Exact: true}
}

// AlltoAllOf sends the p-th share of in [n·k] to rank p and collects what the
// ranks send, by rank, in out [n·k]. ranks is n, the communicator's Size, and no number of elements.
func AlltoAllOf[T Element](out, in []T, ranks int) *Call {
	c := alltoAll(out, in, ranks)
	return &c
}

// AlltoAll sends the p-th share of in [n·k] to rank p and collects what the
// ranks send, by rank, in out [n·k].
func AlltoAll[T Element](c *Comm, out, in []T) error {
	call := alltoAll(out, in, c.Size())
	return c.Do(&call)
}

func alltoAll[T Element](out, in []T, ranks int) Call {
	return Call{Kind: KindAlltoAll, In: mem.Of(in), Out: mem.Of(out), Count: len(in) / max(ranks, 1), Type: TypeOf[T](),
		Exact: true}
}

// GatherOf collects in [k] of all ranks in out [n·k] of root; out may be nil on the others.
func GatherOf[T Element](out, in []T, root int) *Call {
	c := gather(out, in, root)
	return &c
}

// Gather collects in [k] of all ranks in out [n·k] of root; out may be nil on the others.
func Gather[T Element](c *Comm, out, in []T, root int) error {
	call := gather(out, in, root)
	return c.Do(&call)
}

func gather[T Element](out, in []T, root int) Call {
	return Call{Kind: KindGather, In: mem.Of(in), Out: mem.Of(out), Count: len(in), Type: TypeOf[T](), Root: root,
		Exact: true}
}

// ScatterOf gives each rank its share of in [n·k] of root in out [k]; in may be nil on the others.
func ScatterOf[T Element](out, in []T, root int) *Call {
	c := scatter(out, in, root)
	return &c
}

// Scatter gives each rank its share of in [n·k] of root in out [k]; in may be nil on the others.
func Scatter[T Element](c *Comm, out, in []T, root int) error {
	call := scatter(out, in, root)
	return c.Do(&call)
}

func scatter[T Element](out, in []T, root int) Call {
	return Call{Kind: KindScatter, In: mem.Of(in), Out: mem.Of(out), Count: len(out), Type: TypeOf[T](), Root: root,
		Exact: true}
}

// SendOf sends data [k] to peer, which must receive the same number of elements.
func SendOf[T Element](data []T, peer int) *Call {
	c := send(data, peer)
	return &c
}

// Send sends data [k] to peer, which must receive the same number of elements. It returns when data
// may be used again, which may be before the peer has it.
func Send[T Element](c *Comm, data []T, peer int) error {
	call := send(data, peer)
	return c.Do(&call)
}

func send[T Element](data []T, peer int) Call {
	return Call{Kind: KindSend, In: mem.Of(data), Count: len(data), Type: TypeOf[T](), Peer: peer, Exact: true}
}

// RecvOf receives data [k] from peer, which must send the same number of elements.
func RecvOf[T Element](data []T, peer int) *Call {
	c := recv(data, peer)
	return &c
}

// Recv receives data [k] from peer, which must send the same number of elements.
func Recv[T Element](c *Comm, data []T, peer int) error {
	call := recv(data, peer)
	return c.Do(&call)
}

func recv[T Element](data []T, peer int) Call {
	return Call{Kind: KindRecv, Out: mem.Of(data), Count: len(data), Type: TypeOf[T](), Peer: peer, Exact: true}
}

// AllGathervOf collects in [counts[rank]] of all ranks, packed by rank, in out [Σcounts]. counts[r] is the number of
// elements of rank r, and the same on all ranks. What in and out have more is left alone.
func AllGathervOf[T Element](out, in []T, counts []int) *Call {
	c := allGatherv(out, in, counts)
	return &c
}

// AllGatherv collects in [counts[rank]] of all ranks, packed by rank, in out [Σcounts]. counts[r] is the number of
// elements of rank r, and the same on all ranks. What in and out have more is left alone.
func AllGatherv[T Element](c *Comm, out, in []T, counts []int) error {
	call := allGatherv(out, in, counts)
	return c.Do(&call)
}

func allGatherv[T Element](out, in []T, counts []int) Call {
	return Call{Kind: KindAllGatherv, In: mem.Of(in), Out: mem.Of(out), Type: TypeOf[T](), OutCounts: counts}
}

// AlltoAllvOf sends inCounts[p] elements of in [ΣinCounts] to rank p and receives outCounts[p] from it in out
// [ΣoutCounts], both packed by rank. outCounts[p] is rank p's inCounts for this rank, of the rank itself too. What
// in and out have more is left alone.
func AlltoAllvOf[T Element](out []T, outCounts []int, in []T, inCounts []int) *Call {
	c := alltoAllv(out, outCounts, in, inCounts)
	return &c
}

// AlltoAllv sends inCounts[p] elements of in [ΣinCounts] to rank p and receives outCounts[p] from it in out
// [ΣoutCounts], both packed by rank. outCounts[p] is rank p's inCounts for this rank, of the rank itself too. What
// in and out have more is left alone.
func AlltoAllv[T Element](c *Comm, out []T, outCounts []int, in []T, inCounts []int) error {
	call := alltoAllv(out, outCounts, in, inCounts)
	return c.Do(&call)
}

func alltoAllv[T Element](out []T, outCounts []int, in []T, inCounts []int) Call {
	return Call{Kind: KindAlltoAllv, In: mem.Of(in), Out: mem.Of(out), Type: TypeOf[T](), InCounts: inCounts,
		OutCounts: outCounts}
}

// BarrierOf is a call that ends when all ranks have made it.
func BarrierOf() *Call { return &Call{Kind: KindBarrier} }

// Barrier returns when all ranks have called it.
func Barrier(c *Comm) error {
	call := Call{Kind: KindBarrier}
	return c.Do(&call)
}
