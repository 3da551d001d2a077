// Operations that follow each other closely: one kernel of bulk copies carries them out, see kernels/cuda/linger.h.

package grid

import (
	"errors"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
)

// A line of kernels/cuda/linger.h.
const (
	bellAt      = 0
	doneAt      = 256
	lingerBytes = 384 + 256 // RunArgs at its end
)

// A linger carries out schedules by kernels of bulk copies that wait for further jobs.
type linger struct {
	*interpreter
	Linger
	kernels  cuda.Stream // on which they are
	line     uintptr
	ringAt   uint64           // their ring in host memory, as an address of the device
	asked    uint32           // operations so far
	combines *module          // of the last operation that combined; nil before there was one
	sums     *kernels.Reducer // of that operation
	kind     uint32           // changes with combines
}

// open makes the stream and the line, where bulk copies are used.
func (l *linger) open(o *Options) error {
	if o.Linger.Time == 0 || l.tile == 0 {
		return nil
	}
	can, err := l.driver.DeviceGetAttribute(cuda.AttrStreamValues64, l.dev)
	if err != nil || can == 0 {
		return err
	}
	if l.kernels, err = l.driver.StreamCreate(cuda.StreamNonBlocking, l.priority); err != nil {
		return err
	}
	if l.line, err = l.carveClear(lingerBytes); err != nil {
		return err
	}
	ring, err := l.driver.MemHostGetDevicePointer(l.pinned)
	l.ringAt, l.Linger = uint64(ring), o.Linger
	if l.Blocks == 0 || l.Blocks > l.blocks {
		l.Blocks = l.blocks
	}
	return err
}

// close waits for the last kernel, which may linger yet.
func (l *linger) close() error {
	s := l.kernels
	if s == 0 {
		return nil
	}
	l.kernels, l.Linger = 0, Linger{}
	return l.quietly(func() error { return errors.Join(l.driver.StreamSynchronize(s), l.driver.StreamDestroy(s)) })
}

// RunLingering is RunBulk by a kernel that waits for further jobs, for a job in the range of its Facts. The caller's
// stream rings before the kernels' stream waits for that, and has the kernel queued before it waits for the end:
// streams may share a queue of the hardware.
func (l *linger) RunLingering(j *Job) error {
	if l.kernels == 0 {
		return errors.New("grid: no lingering kernels")
	}
	m, r, err := l.beginBulk(j)
	if err != nil {
		return err
	}
	a := &l.args.run
	if j.Reducer != nil {
		if l.combines != m {
			l.combines, l.sums, l.kind = m, j.Reducer, l.kind+1
		}
		a.kind = l.kind
	} else if l.combines != nil {
		m = l.combines
		l.block(l.sums, j.Program.shared())
	}
	words, off, token, err := l.reserve(len(cuda.ArgsOf(a))/8, j.Stamp)
	if err != nil {
		return err
	}
	a.token = token
	copy(bytesOf(words), cuda.ArgsOf(a))
	l.asked++
	n, d := l.asked, l.driver
	l.args.linger = lingerArgs{uint64(l.line), l.ringAt, uint32(off), n, l.kind, uint32(l.Time)}
	l.call.Grid.X, l.call.Stream = uint32(l.Blocks), l.kernels
	bell := uint64(n) << 32
	if err = d.StreamWriteValue64(j.Stream, l.line+bellAt, bell|uint64(off), 0); err != nil {
		return err
	}
	if err = d.StreamWaitValue64(l.kernels, l.line+bellAt, bell, cuda.WaitGEQ); err != nil {
		return err
	}
	if err = l.queue(m.run, cuda.ArgsOf(&l.args), 0); err != nil {
		return err
	}
	l.space.Commit(token)
	if err = d.StreamWaitValue32(j.Stream, l.line+doneAt, n, cuda.WaitGEQ); err != nil {
		return err
	}
	return l.average(j, &r)
}
