// Package ongpu has the collectives of package ringo on typed memory of the rank's GPU (gpu.Buffer). Each function
// queues the operation on a stream and returns; see ringo.Comm.Do and Synchronize. [k] is a Buffer of k elements, [n·k]
// one of k elements for each of n ranks; Buffers must have these lengths, and Slice gives a part of one. Errors are
// those of Comm.Do. It is an example to copy, and nothing here is promised to other modules.
//
// The trap: a Buffer is the caller's again only when the stream has carried out the operation, not when the function
// returns.
package ongpu

import (
	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/mem"
)

// AllReduce reduces data [k] of all ranks in place: every rank gets ⊕ of all.
func AllReduce[T ringo.Element](c *ringo.Comm, s gpu.Stream, data *gpu.Buffer[T], op ringo.RedOp) error {
	return do(c, s, &ringo.Call{Kind: ringo.KindAllReduce, Op: op, Count: data.Len()}, data, data)
}

// AllReduceNorm adds data [rows·row] of all ranks to residual [rows·row]. It writes to normed [rows·row], which may be
// data, each row of that sum divided by its root mean square, times weight [row]. epsilon is added to the mean square.
// A row's bits do not depend on the other rows.
func AllReduceNorm[T ringo.Element](c *ringo.Comm, s gpu.Stream, normed, residual, data, weight *gpu.Buffer[T],
	epsilon float32) error {
	return do(c, s, &ringo.Call{Kind: ringo.KindAllReduce, Op: ringo.Sum, Count: data.Len(), Norm: &ringo.Norm{
		Row: weight.Len(), Epsilon: epsilon, Residual: residual.Region(), Weight: weight.Region(), Normed: normed.Region(),
	}}, residual, data)
}

// Reduce reduces in [k] of all ranks into out [k] of root. out may be in, and may be nil on other ranks.
func Reduce[T ringo.Element](c *ringo.Comm, s gpu.Stream, out, in *gpu.Buffer[T], op ringo.RedOp, root int) error {
	return do(c, s, &ringo.Call{Kind: ringo.KindReduce, Op: op, Root: root, Count: in.Len()}, out, in)
}

// Broadcast copies data [k] of root to all ranks.
func Broadcast[T ringo.Element](c *ringo.Comm, s gpu.Stream, data *gpu.Buffer[T], root int) error {
	return do(c, s, &ringo.Call{Kind: ringo.KindBroadcast, Root: root, Count: data.Len()}, data, data)
}

// AllGather collects in [k] of all ranks, by rank, into out [n·k] of every rank.
func AllGather[T ringo.Element](c *ringo.Comm, s gpu.Stream, out, in *gpu.Buffer[T]) error {
	return do(c, s, &ringo.Call{Kind: ringo.KindAllGather, Count: in.Len()}, out, in)
}

// ReduceScatter reduces in [n·k] of all ranks and leaves the rank's share in out [k].
func ReduceScatter[T ringo.Element](c *ringo.Comm, s gpu.Stream, out, in *gpu.Buffer[T], op ringo.RedOp) error {
	return do(c, s, &ringo.Call{Kind: ringo.KindReduceScatter, Op: op, Count: out.Len()}, out, in)
}

// AlltoAll sends the p-th share of in [n·k] to rank p, and collects the shares from all ranks, by rank, in out [n·k].
func AlltoAll[T ringo.Element](c *ringo.Comm, s gpu.Stream, out, in *gpu.Buffer[T]) error {
	return do(c, s, &ringo.Call{Kind: ringo.KindAlltoAll, Count: in.Len() / c.Size()}, out, in)
}

// Gather collects in [k] of all ranks, by rank, into out [n·k] of root. out may be nil on other ranks.
func Gather[T ringo.Element](c *ringo.Comm, s gpu.Stream, out, in *gpu.Buffer[T], root int) error {
	return do(c, s, &ringo.Call{Kind: ringo.KindGather, Root: root, Count: in.Len()}, out, in)
}

// Scatter copies each rank's share of in [n·k] of root into its out [k]. in may be nil on other ranks.
func Scatter[T ringo.Element](c *ringo.Comm, s gpu.Stream, out, in *gpu.Buffer[T], root int) error {
	return do(c, s, &ringo.Call{Kind: ringo.KindScatter, Root: root, Count: out.Len()}, out, in)
}

// Send sends data [k] to peer, which must call Recv with the same c.
func Send[T ringo.Element](c *ringo.Comm, s gpu.Stream, data *gpu.Buffer[T], peer int) error {
	return do(c, s, &ringo.Call{Kind: ringo.KindSend, Peer: peer, Count: data.Len()}, nil, data)
}

// Recv receives data [k] from peer.
func Recv[T ringo.Element](c *ringo.Comm, s gpu.Stream, data *gpu.Buffer[T], peer int) error {
	return do(c, s, &ringo.Call{Kind: ringo.KindRecv, Peer: peer, Count: data.Len()}, data, nil)
}

// do completes a call and queues it.
func do[T ringo.Element](c *ringo.Comm, s gpu.Stream, call *ringo.Call, out, in *gpu.Buffer[T]) error {
	call.Type, call.Stream, call.Exact = ringo.TypeOf[T](), s, true
	call.In, call.Out = region(out, in), region(in, out)
	return c.Do(call)
}

// region is the memory of b; if b is nil, empty memory on the GPU of the other Buffer.
func region[T ringo.Element](other, b *gpu.Buffer[T]) mem.Region {
	if b != nil {
		return b.Region()
	}
	return other.Region().Slice(0, 0)
}
