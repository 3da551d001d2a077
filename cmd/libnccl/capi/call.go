package capi

import (
	"fmt"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/mem"
)

// A Call is one of NCCL's collectives, or a message, in NCCL's numbers.
type Call struct {
	Kind    ringo.Kind
	In, Out uintptr
	Count   uint64
	Type    int
	Op      int
	Peer    int // or root
	Stream  uintptr
	Norm    *Norm // the step after a sum, nil for none; its rows then give the call's length
}

// types are NCCL's data types, by number.
var types = [...]ringo.DataType{ringo.Int8, ringo.Uint8, ringo.Int32, ringo.Uint32, ringo.Int64, ringo.Uint64,
	ringo.Float16, ringo.Float32, ringo.Float64, ringo.BFloat16, ringo.Float8E4M3, ringo.Float8E5M2}

// typeOf is the data type of a number.
func typeOf(number int) (ringo.DataType, error) {
	if number < 0 || number >= len(types) {
		return 0, fmt.Errorf("%w: data type %d is not in 0…%d", ringo.ErrInvalid, number, len(types)-1)
	}
	return types[number], nil
}

// Do carries out a call, or puts it in the thread's group. On host memory it returns when the call
// has been carried out; a GPU's is queued on its stream.
func (l *Library) Do(handle, comm uintptr, call *Call) error {
	if handle != 0 {
		return l.addTo(handle, comm, call)
	}
	c, r, err := l.ready(comm)
	if err != nil {
		return err
	}
	var rc ringo.Call
	if err := c.translate(&rc, r, call); err != nil {
		return err
	}
	if isEmpty(r, &rc) {
		return rc.Check(r.Rank(), r.Size())
	}
	c.count(rc.Kind)
	if !c.blocking && c.device == nil {
		return c.start(r, rc)
	}
	err = r.Do(&rc)
	l.failed(c, err)
	return err
}

// addTo puts a call in a thread's group.
func (l *Library) addTo(handle, comm uintptr, call *Call) error {
	g, err := l.groups.Get(handle)
	if err != nil {
		return err
	}
	c, r, err := l.ready(comm)
	rc := g.next()
	if err == nil {
		err = c.translate(rc, r, call)
	}
	if err == nil {
		err = rc.Check(r.Rank(), r.Size())
	}
	if err != nil {
		return g.fail(err)
	}
	if !isEmpty(r, rc) {
		g.add(c, r)
	}
	return nil
}

// isEmpty reports whether a call is checked and then thrown away, as NCCL does with collectives of no elements: a rank
// may leave one out. An empty message wants its other side. A communicator that has failed carries out all, to say so.
func isEmpty(r *ringo.Comm, c *ringo.Call) bool {
	return c.Count == 0 && !c.Kind.Pairwise() && r.Failure() == nil
}

// start begins a call in the background.
func (c *comm) start(r *ringo.Comm, call ringo.Call) error {
	p := r.Start(&call)
	if ended(p) {
		return p.Wait()
	}
	c.mu.Lock()
	c.started = p
	c.mu.Unlock()
	return errInProgress
}

// translate makes a ringo.Call of this rank, whose arguments ringo has yet to check.
func (c *comm) translate(to *ringo.Call, r *ringo.Comm, call *Call) error {
	t, err := typeOf(call.Type)
	if err != nil {
		return err
	}
	rank, size := r.Rank(), r.Size()
	if most := uint64(1) << 46; call.Count > most {
		return fmt.Errorf("%w: count %d: there is no memory for it", ringo.ErrInvalid, call.Count)
	}
	if n := call.Norm; n != nil {
		if most := uint64(1) << 32; n.Rows > most || n.Row > most/(1<<12) {
			return fmt.Errorf("%w: %d rows of %d: there is no memory for them", ringo.ErrInvalid, n.Rows, n.Row)
		}
		call.Count = n.Rows * n.Row
	}
	*to = ringo.Call{Kind: call.Kind, Count: int(call.Count), Type: t, Root: call.Peer, Peer: call.Peer,
		Stream: gpu.Stream(call.Stream)}
	if call.Kind.Reduces() {
		if to.Op, err = c.operator(call.Op, t); err != nil {
			return err
		}
	}
	in, out := to.Shape(rank, size)
	if to.In, err = c.memory("send", call.In, in*t.Size()); err != nil {
		return err
	}
	if call.Norm != nil {
		return c.normed(to, call)
	}
	if to.Out, err = c.memory("receive", call.Out, out*t.Size()); err != nil {
		return err
	}
	return nil
}

// memory is n bytes of a caller's buffer.
func (c *comm) memory(what string, at uintptr, n int) (mem.Region, error) {
	switch {
	case c.device != nil:
		return mem.Device(c.device.Number(), at, n), nil
	case n == 0:
		return mem.Region{}, nil
	case at < firstPage:
		return mem.Region{}, fmt.Errorf("%w: the %s buffer is at %#x", ringo.ErrInvalid, what, at)
	}
	return hostMemory(at, n), nil
}

// firstPage is the length of the first page, which is never mapped.
const firstPage = 0x1000
