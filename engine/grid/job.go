package grid

import (
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// A Job is one operation.
type Job struct {
	Program   *Program
	In, Out   mem.Region
	InL, OutL engine.Layout
	Reducer   *kernels.Reducer // nil where nothing is reduced
	Scalar    uintptr          // device address of PreMulSum's scalar, 0 for Reducer's own
	// Early: each rank multiplies its own data by its own scalar, and rounds, before the data are sent. Otherwise
	// all ranks have the same scalar. Only RunDirect looks at it.
	Early bool
	// Stamp names the call. The high half of its first word is not looked at: kernels
	// put the number of the collective there, which the device counts as they run, so
	// launches and replays of graphs stay in step with what other ranks run.
	Stamp transport.Stamp
	// Each is engine.Job's. The program's steps must be independent, and go as messages on all ranks.
	Each func(s transport.Stamp, bytes int) transport.Stamp
	// Continues: the job belongs to the same call as the job before it, and has that call's number. Messages have
	// no number.
	Continues bool
	// More: a further job of the call follows. That job, not this one, ends an average of integers by its division.
	More bool
	// Blocks is the most blocks that carry the job out, the same on all ranks; 0 for as many
	// as there is work for. Messages do not look at it.
	Blocks int
	Stream cuda.Stream
	// Event is recorded on Stream behind the last kernel, but not by RunCopies, and for a schedule only where
	// steps go as messages; 0 for none.
	Event cuda.Event
	// Capture is the id of the capture of Stream, which is unique in the process, 0 if it is not captured. What a
	// captured job needs on the device belongs to the graph until Forget.
	Capture uint64
}

// most returns how many of a number of blocks, or of lanes, the job may have.
func (j *Job) most(n int) int {
	if j.Blocks > 0 {
		return min(n, j.Blocks)
	}
	return n
}

// lanes returns how many lanes the job has.
func (j *Job) lanes() int {
	if j.Program.message() { // its queues are shared with other messages
		return j.Program.lanes
	}
	return j.most(j.Program.lanes)
}

// unit returns the bytes of an element, 1 where nothing is reduced.
func (j *Job) unit() int {
	if j.Reducer == nil {
		return 1
	}
	return j.Reducer.Type().Size()
}

// even reports whether all chunks have the same length.
func (j *Job) even() bool { return j.InL.Off == nil && j.OutL.Off == nil }

// data returns the source, destination and length of a step's data.
func (j *Job) data(st *step) (src, dst uint64, n int) {
	if st.dst != uint8(sched.None) {
		off, k := j.OutL.Extent(int(st.dstChunk))
		dst, n = uint64(j.Out.Ptr())+uint64(off), k
	}
	if st.src != uint8(sched.None) {
		off, k := j.InL.Extent(int(st.srcChunk))
		src, n = uint64(j.In.Ptr())+uint64(off), k
	}
	return src, dst, n
}

// disjoint reports that no step writes memory that another one reads. It may be false
// where In and Out overlap.
func (j *Job) disjoint() bool {
	if !j.In.Overlaps(j.Out) {
		return true
	}
	steps := j.Program.steps
	for i := range steps {
		_, dst, n := j.data(&steps[i])
		for k := range steps {
			src, _, m := j.data(&steps[k])
			if i != k && dst != 0 && src != 0 && dst < src+uint64(m) && src < dst+uint64(n) {
				return false
			}
		}
	}
	return true
}

// evenly reports whether all chunks begin at multiples of 16 bytes.
func evenly(at uint64, l *engine.Layout) bool {
	if l.Off == nil && l.Total > l.Chunk {
		at |= uint64(l.Chunk)
	}
	for _, off := range l.Off {
		at |= uint64(off)
	}
	return at%16 == 0
}

// inVectors reports whether all chunks lie in vectors of 16 bytes.
func inVectors(r mem.Region, l *engine.Layout) bool {
	return l.Total%16 == 0 && evenly(uint64(r.Ptr()), l)
}

// someSlices are the slices of a piece, if it is long enough.
const someSlices = 4

// cut returns the size of the pieces and slices in which chunks are moved, and the longest chunk. Pieces are as large as
// queues allow, or small enough that all lanes have work. All ranks find the same: even chunks have the same sizes on
// all of them. Chunks of different sizes get the largest pieces, because a rank may know only some.
func (b *base) cut(j *Job) (piece, slice, all int) {
	p := j.Program
	all = max(longest(&j.InL), longest(&j.OutL))
	if !j.even() {
		return p.piece, p.slice, all
	}
	minPiece, minSlice := b.minSlice, b.minSlice
	// Over NVLink a post takes longer than the move of 32 KiB, and no step waits for a slice of a message.
	if p.message() && b.whole {
		minPiece, minSlice = 4*minPiece, 8*minSlice
	}
	rounds := max(1, (all+j.lanes()*p.piece-1)/(j.lanes()*p.piece))
	piece = min(p.piece, max(minPiece, roundUp((all+j.lanes()*rounds-1)/(j.lanes()*rounds), 128)))
	slices := max((piece+p.slice-1)/p.slice, min(p.slots/2, someSlices, piece/minSlice))
	return piece, min(p.slice, roundUp((piece+slices-1)/slices, 128)), all
}

// longest returns the length of the longest chunk.
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
