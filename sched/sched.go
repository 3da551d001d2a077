// Package sched is the language of collectives, for whoever writes or studies an
// algorithm. A collective is a table: what does rank r do at step i? The table is
// a pure function, so one description can be proved (Check), counted (CostOf),
// timed (package sim), printed (Format), composed (Then, Beside, Split, Relabel)
// and carried out (package engine) by code that knows no algorithm.
//
// The trap: rank 0 is the zero Rank, so a Step without a peer must say Nobody.
package sched

// A Rank is the number of a member of a communicator, from 0.
type Rank int32

// Nobody is the Rank of an absent peer.
const Nobody Rank = -1

// After is the rank k places after r when n ranks stand in a circle; k may be
// negative.
func (r Rank) After(k, n int) Rank {
	at := (int(r) + k) % n
	if at < 0 {
		at += n
	}
	return Rank(at)
}

// A Buffer names one of the three memories of a rank.
type Buffer uint8

const (
	None Buffer = iota // no memory at all
	In                 // the caller's contribution, read only
	Out                // the caller's result
	Tmp                // scratch of the communicator, undefined at the start
)

// At is a chunk of the buffer.
func (b Buffer) At(chunk int) Ref { return Ref{b, int32(chunk)} }

// A Ref is a chunk of a buffer. The zero Ref is no memory.
type Ref struct {
	Buf   Buffer
	Chunk int32
}

// A Step is the unit of work of one rank:
//
//	v  = received from Recv   (unless Nobody)
//	v  = v ⊕ Src              (if Src is set; v = Src if nothing was received)
//	Dst = v                   (if Dst is set)
//	send v to Send            (unless Nobody)
//
// A rank's steps happen in order. Between two ranks messages arrive in the
// order sent; there are no tags. A rank may send to itself: the message waits
// in a queue like any other. Every step has a Src or a Dst, because the chunk
// tells how long the message is. The zero Step has Rank 0 as its peers; use
// Nobody for "no peer".
type Step struct {
	Recv, Send Rank
	Src, Dst   Ref
}

// Shape is the number of ranks and how many chunks each buffer of a rank has.
// All chunks of a schedule hold the same share of the data; see engine.Layout.
type Shape struct {
	Ranks        int
	In, Out, Tmp int
}

// A Schedule is a pure table of steps. All its methods may be called from any
// goroutine and always give the same answer.
type Schedule interface {
	Shape() Shape
	Len(r Rank) int        // how many steps rank r has
	At(r Rank, i int) Step // step i of rank r, 0 ≤ i < Len(r)
}
