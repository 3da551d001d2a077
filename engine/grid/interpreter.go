package grid

import (
	"errors"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/device"
	"github.com/ringo-go/ringo/mem"
)

// runArgs is RunArgs of kernels/cuda/run.cu.
type runArgs struct {
	comm
	steps, ends         uint64
	layout              [2]layout
	table, tmp          uint64
	scalar, value       uint64
	slice, piece        uint64
	stepCount, endCount uint32
	lanes, rounds       uint32
	chunks              [2]uint32
	tmpChunks           uint32
	data, dataChunks    uint32
	kind                uint32
}

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

// A layout is Layout of kernels/cuda/run.cu.
type layout struct{ at, total, chunk uint64 }

// An interpreter carries out schedules step by step, with a block for each lane.
type interpreter struct {
	*bulk
	args   bulkArgs
	finish device.Args
	srcs   [1]mem.Region
}

// otherThreads are those of a block that wait for peers, and those that notify peers.
const otherThreads = 64

// A run is what a launch of the interpreter has besides its arguments.
type run struct {
	table    table
	finishes bool // the division that ends an average of integers follows
	divide   device.Kernel
}

// Prepare loads the kernels for r, or those that copy if it is nil, so that no Run has to. A Run that misses one loads
// it, which takes about 0.1 s.
func (x *interpreter) Prepare(r *kernels.Reducer) error {
	_, p, err := x.kernel(r)
	if err == nil && p.Finishes {
		_, err = x.finisher(r)
	}
	if err == nil {
		_, _, err = x.bulkModule(r, 0)
	}
	return err
}

// RunThreads queues a job on its stream, with the Engine's context current on this thread; threads move the data. It
// waits only where a table has no room, see FullError, and allocates only the first time that it runs with a program
// and a Reducer. Results are ordered on the stream; later errors are in Control.
//
// As on the host, messages of no bytes are sent in the first round, so that ranks
// which disagree find out.
func (x *interpreter) RunThreads(j *Job) error {
	m, p, err := x.kernel(j.Reducer)
	if err != nil {
		return err
	}
	r, err := x.begin(j, &p)
	if err != nil {
		return err
	}
	x.call.Block.X, x.call.Shared = uint32(x.threads+otherThreads), j.Program.shared()
	if err = x.launch(m.run, r.table, cuda.ArgsOf(&x.args.run), 0); err != nil {
		return err
	}
	return x.average(j, &r)
}

// RunBulk is RunThreads by bulk copies, for a job whose Facts have Bulk.
func (x *interpreter) RunBulk(j *Job) error {
	m, r, err := x.beginBulk(j)
	if err != nil {
		return err
	}
	x.args.linger = lingerArgs{}
	if err = x.launch(m.run, r.table, cuda.ArgsOf(&x.args), 0); err != nil {
		return err
	}
	return x.average(j, &r)
}

// beginBulk is begin for kernels of bulk copies.
func (x *interpreter) beginBulk(j *Job) (m *module, r run, err error) {
	shared := j.Program.shared()
	m, p, err := x.bulkModule(j.Reducer, shared)
	if err != nil {
		return nil, r, err
	}
	if m == nil {
		return nil, r, errors.New("grid: no kernels of bulk copies")
	}
	r, err = x.begin(j, &p)
	x.block(j.Reducer, shared)
	return m, r, err
}

// begin checks a job and sets the arguments and the grid of its launch.
func (x *interpreter) begin(j *Job, code *kernels.Program) (r run, err error) {
	if err = x.check(j); err != nil {
		return r, err
	}
	r.finishes = code.Finishes && j.Out.Len() > 0 && !j.More
	if r.finishes { // load before the kernel is queued: loading would wait for it, and so for other ranks
		if r.divide, err = x.finisher(j.Reducer); err != nil {
			return r, err
		}
	}
	p, a := j.Program, &x.args.run
	*a = runArgs{
		comm: x.collective(j),
		ends: uint64(p.image), steps: uint64(p.image) + uint64(len(p.ends)*endBytes),
		layout:    [2]layout{layoutOf(j.In, &j.InL), layoutOf(j.Out, &j.OutL)},
		tmp:       uint64(p.tmp),
		scalar:    uint64(j.Scalar),
		value:     code.Value,
		stepCount: uint32(len(p.steps)), endCount: uint32(len(p.ends)),
		lanes:      uint32(j.lanes()),
		tmpChunks:  uint32(p.shape.Tmp),
		chunks:     [2]uint32{uint32(p.shape.In), uint32(p.shape.Out)},
		dataChunks: uint32(p.shape.In),
		kind:       only[uint32](j.Reducer != nil, 1),
	}
	if p.shape.Out > p.shape.In {
		a.data, a.dataChunks = 1, uint32(p.shape.Out)
	}
	piece, slice, longest := x.cut(j)
	a.piece, a.slice = uint64(piece), uint64(slice)
	a.rounds = uint32(max(1, (longest+piece-1)/piece))
	blocks := min(a.lanes, a.rounds)
	if err = lanesFor(p.needs, int(blocks)); err != nil {
		return r, err
	}
	if r.table, err = x.chunkTable(j); err != nil {
		return r, err
	}
	a.table, a.token = r.table.at, r.table.token
	x.shape(int(blocks), 0, 0, j.Stream)
	return r, nil
}

// average queues the division that ends an average of integers.
func (x *interpreter) average(j *Job, r *run) error {
	if !r.finishes {
		return nil
	}
	x.srcs[0] = j.Out
	x.finish = device.Args{Dst: j.Out, Srcs: x.srcs[:], Finish: true}
	return r.divide.Launch(j.Stream, &x.finish)
}

func layoutOf(r mem.Region, l *engine.Layout) layout {
	return layout{uint64(r.Ptr()), uint64(l.Total), uint64(l.Chunk)}
}

// chunkTable makes the table of chunks of different sizes: the offset and length of each. It is empty if all have the
// same length.
func (x *interpreter) chunkTable(j *Job) (t table, err error) {
	if j.even() {
		return t, nil
	}
	in, out := j.Program.shape.In, j.Program.shape.Out
	if t, err = x.table(chunkWords*(in+out), nil, j.Stamp, j.Capture); err != nil {
		return t, err
	}
	for i := range in + out {
		l, c := &j.InL, i
		if i >= in {
			l, c = &j.OutL, i-in
		}
		off, n := l.Extent(c)
		t.words[chunkWords*i], t.words[chunkWords*i+1] = uint64(off), uint64(n)
	}
	return t, nil
}
