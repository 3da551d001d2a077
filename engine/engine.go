// Package engine carries out one rank's part of a schedule (package sched) over
// connections (package transport) and host memory. It is for packages that implement
// communicators, such as hostcomm. Compile makes a Program of a schedule, and an Engine
// runs it as a Job.
//
// Run is three loops: rounds, steps, slices. A round is the whole schedule over
// one piece of every chunk. A step moves its piece slice by slice; a slice fits in a
// slot. A step that receives, reduces and sends forwards the first slice while the next
// is still on its way, so pipelining needs no code.
//
// The trap: a piece fills at most half a queue. If it could fill the whole, all
// ranks of a ring could be sending into full queues, and none would receive.
//
// Connections may have slots of different sizes (Wide); mixed.go has the steps that receive
// in slots of one size and send in slots of another.
//
// engine.go is in the order in which data flows: Run, move, slice.
package engine

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/trace"
	"github.com/ringo-go/ringo/transport"
)

// A Job is one operation: a program, and the memory that it reads and writes.
type Job struct {
	Program   *Program
	In, Out   []byte
	InL, OutL Layout           // the chunks of In and of Out
	Reducer   *kernels.Reducer // nil where nothing is reduced
	Stamp     transport.Stamp

	// Each gives each message between two ranks a stamp of its own, which both ends make of Stamp and the length of the
	// message. The steps move chunks of In and Out. nil: all messages have Stamp.
	Each func(s transport.Stamp, bytes int) transport.Stamp

	// Lend lets connections send straight from In and Out. Run then waits until
	// the receivers have taken the lent bytes.
	Lend bool

	// Observed records the steps and their waits; nil records nothing.
	Observed *trace.Call

	cutting
	stamp   transport.Stamp // of the messages of the step
	scaled  bool            // contributions pass Reducer.Load
	large   bool            // Out is stored past the caches
	inPlace bool            // In and Out overlap
	data    *Layout         // of In or Out, whichever has more chunks
	chunks  int             // of data
}

// An Engine carries out jobs, one after the other. It is not for concurrent
// use; a communicator has one for its queue of operations and makes others for
// the sends and receives of a group.
type Engine struct {
	limits transport.Limits
	tmp    []byte
}

// New makes an Engine for connections of these limits.
func New(l transport.Limits) *Engine {
	return &Engine{limits: l}
}

// Piece is the most bytes of a chunk that one round moves.
func (e *Engine) Piece() int { return cuttingOf(e.limits, 1).piece }

// A cutting is how chunks become pieces, and pieces slices.
type cutting struct {
	slot  int // bytes of a slice: the whole elements that fit in a slot
	piece int // bytes of a piece: half a queue, in whole elements
}

func cuttingOf(l transport.Limits, unit int) cutting {
	slot := l.SlotBytes - l.SlotBytes%unit
	return cutting{slot, slot * (l.Slots / 2)}
}

// Slots is how many slots of a width a message of n bytes takes. Each of its pieces begins a new slot.
func Slots(l transport.Limits, width, n int) int {
	c := cuttingOf(l, 1)
	slices := func(piece int) int { return (piece + width*c.slot - 1) / (width * c.slot) }
	return max(1, n/c.piece*slices(c.piece)+slices(n%c.piece))
}

// largeOut is the least size of a result, in bytes, that is stored past the caches. Such
// stores save a fifth of the time at 64 MiB and nothing at 16 MiB. A result in place is
// stored as usual: its memory has just been read and is in the caches anyway.
const largeOut = 32 << 20

// Run carries out a job and returns when this rank's part is done: its result
// is complete and its memory may be reused. An error is a *StepError, unless an
// element does not fit in a slot: then no step has run.
//
// Messages of no bytes are sent in the first round, so that ranks which disagree find
// out even if one of them has no data.
func (e *Engine) Run(j *Job) error {
	p := j.Program
	if err := e.cut(j); err != nil {
		return err
	}
	if need := p.shape.Tmp * j.piece; len(e.tmp) < need {
		e.tmp = make([]byte, need)
	}
	j.scaled = j.Reducer != nil && !j.Reducer.LoadIsCopy()
	j.data, j.chunks = &j.InL, p.shape.In
	if p.shape.Out > p.shape.In {
		j.data, j.chunks = &j.OutL, p.shape.Out
	}
	j.inPlace = mem.Host(j.In).Overlaps(mem.Host(j.Out))
	j.large = !j.inPlace && len(j.Out) >= largeOut
	j.stamp = j.Stamp
	j.Observed.Run()
	for round, more := 0, true; more; round++ {
		more = false
		for i := range p.steps {
			st := &p.steps[i]
			src, left1 := e.part(j, st.Src, round)
			dst, left2 := e.part(j, st.Dst, round)
			more = more || left1 || left2
			n := len(src)
			if st.Src.Buf == sched.None {
				n = len(dst)
			}
			if n == 0 && round > 0 {
				continue
			}
			j.Observed.Enter(round, i, int32(st.Recv), int32(st.Send))
			if !st.connected {
				if err := st.connect(j, p.links); err != nil {
					return at(err, round, i)
				}
			}
			if j.Each != nil {
				j.stamp = j.Each(j.Stamp, j.length(st))
			}
			if err := e.move(j, st, src, dst, n); err != nil {
				return at(err, round, i)
			}
			j.Observed.Leave()
		}
	}
	if j.Lend {
		return p.flush(j)
	}
	return nil
}

// cut sets the sizes of pieces and slices, in whole elements.
func (e *Engine) cut(j *Job) error {
	unit := 1
	if j.Reducer != nil {
		unit = j.Reducer.Unit()
	}
	if j.cutting = cuttingOf(e.limits, unit); j.slot == 0 {
		return fmt.Errorf("an element of %d bytes does not fit in a slot of %d: make slots larger", unit, e.limits.SlotBytes)
	}
	return nil
}

// flush waits until no memory of the caller is lent any more.
func (p *Program) flush(j *Job) error {
	for i := range p.steps {
		if st := &p.steps[i]; st.from != nil {
			since := j.Observed.Clock()
			err := st.from.Flush()
			j.Observed.WaitedSend(int32(st.Send), since)
			if err != nil {
				return st.fail("send", err)
			}
		}
	}
	return nil
}

// length is the length of a step's whole chunk of In or Out.
func (j *Job) length(st *step) (n int) {
	if st.Src.Buf == sched.In {
		_, n = j.InL.Extent(int(st.Src.Chunk))
	} else {
		_, n = j.OutL.Extent(int(st.Dst.Chunk))
	}
	return n
}

// part is the part of a chunk that belongs to a round, and whether the chunk
// goes on after it.
func (e *Engine) part(j *Job, r sched.Ref, round int) (part []byte, more bool) {
	var buf []byte
	var off, n int
	switch r.Buf {
	case sched.None:
		return nil, false
	case sched.In:
		buf = j.In
		off, n = j.InL.Extent(int(r.Chunk))
	case sched.Out:
		buf = j.Out
		off, n = j.OutL.Extent(int(r.Chunk))
	case sched.Tmp:
		// Scratch is used anew in every round, so it holds one piece of a chunk.
		// Chunk t of Tmp is as long as chunk t (mod chunks) of the data.
		_, n = j.data.Extent(int(r.Chunk) % j.chunks)
		n -= round * j.piece
		off = int(r.Chunk) * j.piece
		return e.tmp[off : off+max(0, min(n, j.piece))], n > j.piece
	}
	off += round * j.piece
	n -= round * j.piece
	if n <= 0 {
		return nil, false
	}
	return buf[off : off+min(n, j.piece)], n > j.piece
}

// move carries out one step over one piece.
func (e *Engine) move(j *Job, st *step, src, dst []byte, n int) error {
	width, mixed := st.width()
	if mixed {
		return st.moveMixed(j, src, dst, n)
	}
	for at := 0; ; at += width * j.slot {
		end := min(at+width*j.slot, n)
		var s, d []byte
		if src != nil {
			s = src[at:end]
		}
		if dst != nil {
			d = dst[at:end]
		}
		if err := st.slice(j, s, d, end-at); err != nil {
			return err
		}
		if end == n {
			return nil
		}
	}
}

// slice carries out one step over one slice. The step's Recv, Src, Dst and Send
// say which of its parts exist; v is the value that is sent and stored.
func (st *step) slice(j *Job, src, dst []byte, n int) error {
	if st.lend(j, n) {
		return st.sliceFrom(j, src, dst, n)
	}
	if st.recv == nil {
		if st.send == nil {
			j.load(st, dst, src)
			return nil
		}
		v, err := st.reserve(j, n)
		if err != nil {
			return err
		}
		j.load(st, v, src)
		return st.publish(j, v, dst)
	}

	if st.into != nil && st.Src.Buf == sched.None && n > 0 {
		if err := st.receiveInto(j, dst, n); err != nil || st.send == nil {
			return err
		}
		v, err := st.reserve(j, n)
		if err != nil {
			return err
		}
		copy(v, dst)
		return st.publish(j, nil, nil)
	}
	got, err := st.receive(j, n)
	if err != nil {
		return err
	}
	if st.send == nil {
		if st.Src.Buf == sched.None {
			j.store(dst, got)
		} else {
			j.combine(st, dst, got, src)
		}
		return st.release()
	}
	v, err := st.reserve(j, n)
	if err != nil {
		return err
	}
	j.combine(st, v, got, src)
	if err := st.release(); err != nil {
		return err
	}
	return st.publish(j, v, dst)
}

// lend reports whether this slice of v is sent from the caller's memory. In is
// not lent in place, where a later step may write it as Out.
func (st *step) lend(j *Job, n int) bool {
	return j.Lend && st.from != nil && n > 0 && (st.lends.Buf == sched.Out || !j.inPlace && !j.scaled)
}

// sliceFrom is slice for a step that sends v from the caller's memory, In or Out.
func (st *step) sliceFrom(j *Job, src, dst []byte, n int) error {
	v := dst
	switch {
	case st.recv == nil && st.Dst.Buf == sched.None:
		v = src
	case st.recv == nil:
		j.load(st, dst, src)
	case st.into != nil && st.Src.Buf == sched.None:
		if err := st.receiveInto(j, dst, n); err != nil {
			return err
		}
	default:
		got, err := st.receive(j, n)
		if err != nil {
			return err
		}
		j.combine(st, dst, got, src)
		if err := st.release(); err != nil {
			return err
		}
	}
	since := j.Observed.Clock()
	err := st.from.PublishFrom(mem.Host(v), j.stamp)
	j.Observed.WaitedSend(int32(st.Send), since)
	if err != nil {
		return st.fail("send", err)
	}
	return nil
}

// reserve waits for a free slot and returns n bytes of it.
func (st *step) reserve(j *Job, n int) ([]byte, error) {
	since := j.Observed.Clock()
	out, err := st.send.Reserve(n)
	j.Observed.WaitedSend(int32(st.Send), since)
	if err != nil {
		return nil, st.fail("send", err)
	}
	return out.Bytes(), nil
}

// receive waits for the next slot and checks that it belongs to this call.
func (st *step) receive(j *Job, n int) ([]byte, error) {
	since := j.Observed.Clock()
	in, stamp, err := st.recv.Next()
	j.Observed.WaitedRecv(int32(st.Recv), since)
	if err != nil {
		return nil, st.fail("recv", err)
	}
	if stamp != j.stamp || in.Len() != n {
		return nil, st.fail("recv", &MismatchError{Want: j.stamp, Got: stamp, WantBytes: n, GotBytes: in.Len()})
	}
	return in.Bytes(), nil
}

func (st *step) release() error {
	if err := st.recv.Release(); err != nil {
		return st.fail("recv", err)
	}
	return nil
}

// receiveInto is receive for data that is stored unchanged.
func (st *step) receiveInto(j *Job, dst []byte, n int) error {
	since := j.Observed.Clock()
	stamp, err := st.into.NextInto(mem.Host(dst))
	j.Observed.WaitedRecv(int32(st.Recv), since)
	got := n
	if l, ok := errors.AsType[*transport.LengthError](err); ok {
		got = l.Got
	} else if err != nil {
		return st.fail("recv", err)
	}
	if stamp != j.stamp || got != n {
		return st.fail("recv", &MismatchError{Want: j.stamp, Got: stamp, WantBytes: n, GotBytes: got})
	}
	return nil
}

// publish sends the reserved slot and stores v in dst only then, so that the peer does not
// wait for the store. v lies in the slot, which stays unchanged until it is reserved again.
func (st *step) publish(j *Job, v, dst []byte) error {
	if err := st.send.Publish(j.stamp); err != nil {
		return st.fail("send", err)
	}
	if len(dst) > 0 {
		j.store(dst, v)
	}
	return nil
}

// store is Dst = v.
func (j *Job) store(dst, v []byte) {
	if j.large {
		mem.Stream(dst, v)
	} else {
		copy(dst, v)
	}
}

// load is v = src. A contribution of the caller passes Reducer.Load, which applies the operator's scalar.
func (j *Job) load(st *step, v, src []byte) {
	if st.Src.Buf == sched.In && j.scaled {
		j.Reducer.Load(v, src)
		return
	}
	if len(v) > 0 && &v[0] != &src[0] {
		copy(v, src)
	}
}

// combine is v = got ⊕ src, or v = got where the step has no source.
func (j *Job) combine(st *step, v, got, src []byte) {
	if len(v) == 0 { // a Barrier has no arithmetic
		return
	}
	switch st.Src.Buf {
	case sched.None:
		copy(v, got)
	case sched.In:
		j.Reducer.CombineIn(v, got, src)
	default:
		j.Reducer.Combine(v, got, src)
	}
}

func (st *step) fail(phase string, err error) error {
	peer := st.Send
	if phase == "recv" {
		peer = st.Recv
	}
	return &StepError{Peer: peer, Phase: phase, Err: err}
}
