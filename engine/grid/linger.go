// Operations that follow each other closely: one kernel of bulk copies carries them out, see kernels/cuda/linger.h.

package grid

import (
	"errors"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// lingerArgs is struct Linger of kernels/cuda/linger.h.
type lingerArgs struct {
	line, queue          uint64
	at, number, kind, ns uint32
}

// bulkArgs are the arguments of a kernel that moves by bulk copies.
type bulkArgs struct {
	run    runArgs
	linger lingerArgs
}

// A line of kernels/cuda/linger.h.
const (
	bellAt      = 0
	doneAt      = 256
	lingerBytes = 384 + 256 // RunArgs at its end
)

// A linger is an Engine's state of lingering kernels.
type linger struct {
	Linger
	stream cuda.Stream // of the kernels
	line   uintptr
	queue  uint64           // the ring of tables in host memory, as an address of the device
	asked  uint32           // operations so far
	module *module          // of the last operation that combined; nil before there was one
	sums   *kernels.Reducer // of that operation
	kind   uint32           // changes with module
}

// openLinger makes the stream and the line, where bulk copies are used.
func (e *Engine) openLinger(o Linger) error {
	if o.Time == 0 || e.bulk.tile == 0 {
		return nil
	}
	can, err := e.driver.DeviceGetAttribute(cuda.AttrStreamValues64, e.dev)
	if err != nil || can == 0 {
		return err
	}
	l := &e.linger
	if l.stream, err = e.driver.StreamCreate(cuda.StreamNonBlocking, e.priority); err != nil {
		return err
	}
	if l.line, err = e.carve(lingerBytes); err != nil {
		return err
	}
	if err = e.clear(l.line, lingerBytes); err != nil {
		return err
	}
	queue, err := e.driver.MemHostGetDevicePointer(e.tables.pinned)
	l.queue, l.Linger = uint64(queue), o
	if l.Blocks == 0 || l.Blocks > e.blocks {
		l.Blocks = e.blocks
	}
	return err
}

// closeLinger waits for the last kernel, which may linger yet.
func (e *Engine) closeLinger() error {
	s := e.linger.stream
	if s == 0 {
		return nil
	}
	e.linger = linger{}
	return errors.Join(e.driver.StreamSynchronize(s), e.driver.StreamDestroy(s))
}

// lingers reports whether a lingering kernel carries out a job. A graph may run at any time, so a captured job has a
// kernel of its own; so has a job with chunks of different sizes. A job that only moves must lie in vectors of 16
// bytes: a kernel that combines elements of any size may carry it out.
func (e *Engine) lingers(j *Job) bool {
	l, bytes := &e.linger, max(j.InL.Total, j.OutL.Total)
	if l.Time == 0 || bytes < l.Least || bytes > l.Most || j.lanes() > l.Blocks {
		return false
	}
	if j.Capture != 0 || j.InL.Off != nil || j.OutL.Off != nil {
		return false
	}
	return j.Reducer != nil || inVectors(j.In, &j.InL) && inVectors(j.Out, &j.OutL)
}

// inVectors reports whether all chunks lie in vectors of 16 bytes.
func inVectors(r mem.Region, l *engine.Layout) bool {
	return l.Total%16 == 0 && evenly(uint64(r.Ptr()), l)
}

// runLingering queues a job, for which e.frame is ready, for a lingering kernel. The caller's stream rings before the
// kernels' stream waits for that, and has the kernel queued before it waits for the end: streams may share a queue of
// the hardware.
func (e *Engine) runLingering(j *Job, m *module) (err error) {
	l, f := &e.linger, &e.frame
	a := &f.bulk.run
	if j.Reducer != nil {
		if l.module != m {
			l.module, l.sums, l.kind = m, j.Reducer, l.kind+1
		}
		a.kind = l.kind
	} else if l.module != nil {
		m = l.module
		e.bulkBlock(l.sums, j.Program.shared())
	}
	words, off, token, err := e.reserve(len(cuda.ArgsOf(a))/8, j)
	if err != nil {
		return err
	}
	a.token = token
	copy(bytesOf(words), cuda.ArgsOf(a))
	l.asked++
	n, d, caller := l.asked, e.driver, f.launch.Stream
	f.bulk.linger = lingerArgs{uint64(l.line), l.queue, uint32(off), n, l.kind, uint32(l.Time)}
	f.launch.Grid.X, f.launch.Stream = uint32(l.Blocks), l.stream
	bell := uint64(n) << 32
	if err = d.StreamWriteValue64(caller, l.line+bellAt, bell|uint64(off), 0); err != nil {
		return err
	}
	if err = d.StreamWaitValue64(l.stream, l.line+bellAt, bell, cuda.WaitGEQ); err != nil {
		return err
	}
	if err = e.queue(m.run, cuda.ArgsOf(&f.bulk), 0); err != nil {
		return err
	}
	e.tables.space.Commit(token)
	return d.StreamWaitValue32(caller, l.line+doneAt, n, cuda.WaitGEQ)
}
