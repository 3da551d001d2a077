// Package request is a call on its way to an engine: checked, with an algorithm, numbered. It is part of a
// communicator, and nothing here is promised to other modules.
//
// Begin gives a call its number among the collectives of its communicator, the stamp that travels with every slot, and
// its arithmetic; Layouts says where the chunks of the call lie; a Watch tells an observer of the call. All calls of
// both halves of a communicator pass Begin and End; the halves make engine jobs of requests. The trap: nothing may go
// wrong with a call on one rank alone after it has a number, or the ranks are out of step.
package request

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/trace"
	"github.com/ringo-go/ringo/transport"
)

// A Request is a checked call as an engine needs it.
type Request struct {
	Stamp   transport.Stamp
	Each    func(s transport.Stamp, bytes int) transport.Stamp // of the engines' jobs, nil if all messages have Stamp
	Reducer *kernels.Reducer                                   // nil where nothing is reduced
	Op      kernels.Kind
	Scalar  uintptr // of a PreMulSum, on the device
	Key     choice.Key
	Size    int // bytes of an element
	Unit    int // bytes that may not be divided: an element, or more for some user operators
	In, Out int // bytes that this rank gives and gets
}

// Seq is the number of the call among the collectives, 0 if it has none.
func (r *Request) Seq() uint32 { return uint32(r.Stamp[0] >> 32) }

// Part is the key of a collective that is part of a request.
func (r *Request) Part(kind call.Kind, a call.Algo) choice.Key {
	k := choice.Key{Kind: kind, Algo: a, Peer: -1}
	if kind.Rooted() {
		k.Peer = r.Key.Peer
	}
	return k
}

// A Numberer makes the requests of one communicator.
type Numberer struct {
	Life *life.Life
	Log  *slog.Logger // receives every call at LevelTrace; nil for none

	Observer trace.Observer // nil for none; see Watch
}

// LevelTrace is the level of a record of every call.
const LevelTrace = slog.LevelDebug

// Begin numbers a checked call and fills in its request, with the algorithm of ans. The turn is held. An error is for
// End; it wraps ErrInvalid, and the call has no number. Begin allocates nothing where nothing is wrong and nobody logs.
// A call that a graph captures gets no number and leaves no trace in the turn: the graph may be thrown away, or run
// often, and the GPU numbers the call when it runs.
func (n *Numberer) Begin(r *Request, c *call.Call, ans *choice.Answer, captured bool) (err error) {
	rank, size, a := n.Life.Rank, n.Life.Size, ans.Algo
	*r = Request{}
	if ans.Err != nil {
		return ans.Err
	}
	if c.Kind.Reduces() {
		r.Op = c.Op.Kind
		if r.Reducer, err = kernels.NewReducer(c.Type, c.Op, size); err != nil {
			return fmt.Errorf("%w: %w", call.ErrInvalid, err)
		}
		if at := c.Op.At; at != nil && !at.IsHost() {
			r.Scalar = at.Ptr()
		}
	}
	r.Stamp = n.stamp(c, a, captured) // nothing below can be wrong on this rank alone
	r.Size, r.Unit = 1, 1
	if c.Kind != call.Barrier {
		r.Size = c.Type.Size()
		r.Unit = r.Size
		if r.Reducer != nil {
			r.Unit = max(r.Unit, r.Reducer.Unit())
		}
		in, out := c.Shape(rank, size)
		r.In, r.Out = in*r.Size, out*r.Size
		if c.Kind == call.AlltoAllv {
			r.Each = call.StampMessage
		}
		if c.Norm != nil && c.Out.Len() == 0 { // nobody wants the sums
			r.Out = 0
		}
	}
	r.Key = choice.Key{Kind: c.Kind, Algo: a, Peer: -1}
	switch {
	case c.Kind.Pairwise():
		r.Key.Peer = int32(c.Peer)
	case c.Kind.Rooted():
		r.Key.Peer = int32(c.Root)
	}
	n.log(r, c, a)
	return nil
}

// End reports how a call ended: the error, also of Begin, goes to Life.Fail with path and comes back as a *call.Error.
func (n *Numberer) End(r *Request, c *call.Call, err error, path life.Path) error {
	if err == nil {
		return nil
	}
	return n.Life.Fail(c, r.Seq(), err, path)
}

// Again is Begin for a call that differs from the last one of r in its memory alone: r gets only a new stamp.
func (n *Numberer) Again(r *Request, c *call.Call, a call.Algo, captured bool) {
	r.Stamp = n.stamp(c, a, captured)
	n.log(r, c, a)
}

// stamp is the stamp of a call, with its number if it has one.
func (n *Numberer) stamp(c *call.Call, a call.Algo, captured bool) transport.Stamp {
	s := call.StampOf(c, a)
	switch {
	case captured:
		return s
	case c.Kind.Pairwise():
		return n.Life.Turn.Next(s, c.Peer, c.Kind == call.Recv)
	}
	s = n.Life.Turn.Next(s, life.Collective, false)
	if counts := c.Shared(); counts != nil {
		n.Life.Turn.Counts(counts)
	}
	return s
}

func (n *Numberer) log(r *Request, c *call.Call, a call.Algo) {
	if n.Log != nil {
		n.Log.Log(context.Background(), LevelTrace, c.String(), "subsys", "CALL", "seq", r.Seq(), "algo", a.String())
	}
}
