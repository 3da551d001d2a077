// Run: one launch of the interpreter for a job.

package grid

import (
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels/device"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
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

// A comm is Comm of kernels/cuda/comm.h.
type comm struct {
	control, local    uint64
	stamp             [2]uint64
	signs, token      uint64
	sign, rank, ranks uint32
	fresh, collective uint16
}

// pairwise is the comm of a kernel for messages between two ranks each.
func (e *Engine) pairwise(s transport.Stamp) comm {
	return comm{
		control: e.control.device, local: uint64(e.local), stamp: unnumbered(s),
		signs: uint64(e.signs), rank: uint32(e.rank), ranks: uint32(e.ranks),
	}
}

// collective is the comm of the first kernel of a job that all ranks take part in.
func (e *Engine) collective(j *Job) comm {
	c := e.pairwise(j.Stamp)
	c.collective = 1
	if !j.Continues {
		c.fresh = 1
	}
	if e.signs != 0 {
		c.sign = max(1, uint32(hashOf(j.Stamp)>>32))
	}
	return c
}

// unnumbered is a stamp without its number: kernels number collectives when they run.
func unnumbered(s transport.Stamp) transport.Stamp {
	s[0] &= 1<<32 - 1
	return s
}

// A layout is Layout of kernels/cuda/run.cu.
type layout struct{ at, total, chunk uint64 }

// A frame holds the arguments of a launch, so that launching does not allocate.
type frame struct {
	bulk     bulkArgs
	messages messagesArgs
	launch   cuda.Launch
	direct   directArgs
	norm     normArgs
	many     manyArgs
	window   windowArgs
	signal   signalArgs
	finish   device.Args
	srcs     [1]mem.Region
}

// Run queues a job on its stream, with the Engine's context current on this thread. It waits only where a table has no
// room, see FullError, and allocates only the first time that it runs with a program and a Reducer. Results are ordered
// on the stream; later errors are in Control.
//
// As on the host, messages of no bytes are sent in the first round, so that ranks
// which disagree find out.
func (e *Engine) Run(j *Job) error {
	if err := j.check(e.dev); err != nil {
		return err
	}
	p := j.Program
	if p.message() {
		return e.RunMessages([]*Job{j})
	}
	b, err := e.bulkFor(j)
	if err != nil {
		return err
	}
	lingers := b != nil && e.lingers(j)
	if p.independent && (j.Each != nil || !lingers && e.atOnce(j) && j.disjoint()) {
		return e.runIndependent(j)
	}
	m, prog, err := e.kernel(j.Reducer)
	if err != nil {
		return err
	}
	var finish device.Kernel
	finishes := prog.Finishes && j.Out.Len() > 0 && !j.More
	if finishes { // load before the kernel is queued: loading would wait for it, and so for other ranks
		if finish, err = e.finisher(j.Reducer); err != nil {
			return err
		}
	}
	f := &e.frame
	a := &f.bulk.run
	*a = runArgs{
		comm: e.collective(j),
		ends: uint64(p.image), steps: uint64(p.image) + uint64(len(p.ends)*endBytes),
		layout:    [2]layout{layoutOf(j.In, &j.InL), layoutOf(j.Out, &j.OutL)},
		tmp:       uint64(p.tmp),
		scalar:    uint64(j.Scalar),
		value:     prog.Value,
		stepCount: uint32(len(p.steps)), endCount: uint32(len(p.ends)),
		lanes:      uint32(j.lanes()),
		tmpChunks:  uint32(p.shape.Tmp),
		chunks:     [2]uint32{uint32(p.shape.In), uint32(p.shape.Out)},
		dataChunks: uint32(p.shape.In),
	}
	if p.shape.Out > p.shape.In {
		a.data, a.dataChunks = 1, uint32(p.shape.Out)
	}
	if j.Reducer != nil {
		a.kind = 1
	}
	piece, slice, longest := e.cut(j)
	a.piece, a.slice = uint64(piece), uint64(slice)
	a.rounds = uint32(max(1, (longest+piece-1)/piece))
	if err := p.lanesFor(int(min(a.lanes, a.rounds))); err != nil {
		return err
	}
	t, err := e.chunkTable(j)
	if err != nil {
		return err
	}
	a.table, a.token = t.at, t.token
	f.launch = cuda.Launch{Grid: cuda.Dim3{X: min(a.lanes, a.rounds)}, Stream: j.Stream}
	switch {
	case b == nil:
		f.launch.Block.X, f.launch.Shared = uint32(e.threads+otherThreads), p.shared()
		err = e.launch(m.run, t, cuda.ArgsOf(a), 0)
	case lingers:
		e.bulkBlock(j.Reducer, p.shared())
		err = e.runLingering(j, b)
	default:
		e.bulkBlock(j.Reducer, p.shared())
		f.bulk.linger = lingerArgs{}
		err = e.launch(b.run, t, cuda.ArgsOf(&f.bulk), 0)
	}
	if err != nil {
		return err
	}
	if finishes {
		return e.average(finish, j)
	}
	return nil
}

func layoutOf(r mem.Region, l *engine.Layout) layout {
	return layout{uint64(r.Ptr()), uint64(l.Total), uint64(l.Chunk)}
}

// cut is the size of the pieces and slices in which chunks are moved, and the longest chunk. Pieces are as large as
// queues allow, or small enough that all lanes have work. All ranks find the same: even chunks have the same sizes on
// all of them. Chunks of different sizes get the largest pieces, because a rank may know only some.
func (e *Engine) cut(j *Job) (piece, slice, all int) {
	p := j.Program
	all = max(longest(&j.InL), longest(&j.OutL))
	if j.InL.Off != nil || j.OutL.Off != nil {
		return p.piece, p.slice, all
	}
	minPiece, minSlice := e.minSlice, e.minSlice
	// Over NVLink a post takes longer than the move of 32 KiB, and no step waits for a slice of a message.
	if p.message() && e.LongestDirect() == MaxMessage {
		minPiece, minSlice = 4*minPiece, 8*minSlice
	}
	rounds := max(1, (all+j.lanes()*p.piece-1)/(j.lanes()*p.piece))
	piece = min(p.piece, max(minPiece, roundUp((all+j.lanes()*rounds-1)/(j.lanes()*rounds), 128)))
	slices := max((piece+p.slice-1)/p.slice, min(p.slots/2, someSlices, piece/minSlice))
	return piece, min(p.slice, roundUp((piece+slices-1)/slices, 128)), all
}

// longest is the length of the longest chunk.
func longest(l *engine.Layout) int {
	if l.Off == nil {
		return min(l.Chunk, l.Total)
	}
	n := 0
	for _, x := range l.Len {
		n = max(n, x)
	}
	return n
}

// chunkTable is the table of chunks of different sizes: the offset and length of each. It is empty if all have the same
// length.
func (e *Engine) chunkTable(j *Job) (t table, err error) {
	if j.InL.Off == nil && j.OutL.Off == nil {
		return t, nil
	}
	in, out := j.Program.shape.In, j.Program.shape.Out
	if t, err = e.table(chunkWords*(in+out), nil, j); err != nil {
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

// average queues the division that ends an average of integers.
func (e *Engine) average(k device.Kernel, j *Job) error {
	f := &e.frame
	f.srcs[0] = j.Out
	f.finish = device.Args{Dst: j.Out, Srcs: f.srcs[:], Finish: true}
	return k.Launch(j.Stream, &f.finish)
}

// hashOf tells calls apart, except for their numbers. Kernels mix in the number and put the
// highest bits into flags, above a counter.
func hashOf(s transport.Stamp, words ...uint64) uint64 {
	s = unnumbered(s)
	h := s[0] ^ s[1]*0x9e3779b97f4a7c15
	for _, w := range words {
		h = (h ^ w) * 0xc2b2ae3d27d4eb4f
		h ^= h >> 32
	}
	return h * 0x9e3779b97f4a7c15
}
