package grid

import (
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
)

// togetherArgs is struct TogetherArgs of kernels/cuda/together.h.
type togetherArgs struct {
	comm
	ends, table uint64
	ways, lanes uint32
	word        [448]uint64
}

// A way is the messages of a group to, or from, one peer.
type way struct {
	end   int // in Engine.endTable
	x     *end
	lanes int
	jobs  []*Job
}

// RunTogether queues sends and receives that happen side by side, so that ranks
// may exchange messages of any size in any order; those with one peer in one
// direction keep theirs. Each job's program is a single step that sends a chunk
// or receives one, of a schedule with nothing else (Shape{In: 1} or Shape{Out: 1}).
// The jobs are on one stream. Run gives such a job here by itself, so it does not
// matter which of the two the peer calls.
//
// All jobs are one launch, of as many blocks as the device runs at once at most.
func (e *Engine) RunTogether(jobs []*Job) error {
	if len(jobs) == 0 {
		return nil
	}
	for _, j := range jobs {
		if err := j.check(e.dev); err != nil {
			return err
		}
		if !j.Program.message() || j.Stream != jobs[0].Stream {
			return fmt.Errorf("grid: jobs that run together are single sends and receives on one stream")
		}
	}
	m, _, err := e.kernel(nil)
	if err != nil {
		return err
	}
	ways := e.sort(jobs)
	f := &e.frame
	a := &f.group
	a.comm = e.comm(jobs[0].Stamp)
	a.sign = 0 // the ranks of other messages are at other calls
	a.ends, a.table, a.ways, a.lanes = uint64(e.endTable), 0, uint32(len(ways)), 0
	w, first := e.words[:0], 0
	for i := range ways {
		y := &ways[i]
		w = append(w, uint64(y.end)|uint64(y.lanes)<<32|uint64(y.end/e.ranks)<<48, uint64(first)|uint64(len(y.jobs))<<32)
		first += len(y.jobs)
	}
	for i := range ways {
		for _, j := range ways[i].jobs {
			at, n := j.message()
			x := ways[i].x
			half := int(x.slots / 2 * x.slotBytes)
			piece, slice := e.parts(n, ways[i].lanes, int(x.slots), int(x.slotBytes), half)
			w = append(w, at, uint64(n), j.Stamp[0], j.Stamp[1], uint64(piece)|uint64(slice)<<32)
			a.lanes = max(a.lanes, uint32(min(ways[i].lanes, max(1, (n+piece-1)/piece))))
		}
	}
	e.words = w
	if copy(a.word[:], w) < len(w) {
		if err := e.writeWords(w, jobs[0].Stream); err != nil {
			return err
		}
		a.table = uint64(e.table)
	}
	tasks := len(ways) * int(a.lanes)
	blocks := min(tasks, e.blocks)
	f.launch = cuda.Launch{
		Grid:   cuda.Dim3{X: uint32(blocks)},
		Block:  cuda.Dim3{X: uint32(e.threads + otherThreads)},
		Shared: (tasks + blocks - 1) / blocks * (portBytes + taskBytes),
		Stream: jobs[0].Stream,
	}
	if f.launch.Shared > e.maxShared {
		return &TooLongError{Steps: len(jobs), Peers: tasks, Bytes: f.launch.Shared, Have: e.maxShared}
	}
	return e.driver.LaunchKernel(m.together, &f.launch, cuda.ArgsOf(a))
}

// taskBytes is the size of a Task of kernels/cuda/together.h.
const taskBytes = 40

// sort finds the ways of jobs, in the order in which they first occur.
func (e *Engine) sort(jobs []*Job) []way {
	ways := e.ways[:0]
next:
	for _, j := range jobs {
		x := &j.Program.ends[0]
		at := int(x.peer)
		if j.Program.steps[0].send >= 0 {
			at += e.ranks
		}
		for i := range ways {
			if ways[i].end == at {
				ways[i].jobs = append(ways[i].jobs, j)
				continue next
			}
		}
		if len(ways) < cap(ways) { // keep the memory of its jobs
			ways = ways[:len(ways)+1]
		} else {
			ways = append(ways, way{})
		}
		y := &ways[len(ways)-1]
		y.end, y.x, y.lanes = at, x, int(j.Program.geometry.Lanes)
		y.jobs = append(y.jobs[:0], j)
	}
	e.ways = ways
	return ways
}

// message is where the message of a job is, and its length.
func (j *Job) message() (at uint64, n int) {
	r, l, st := j.In, &j.InL, &j.Program.steps[0]
	c := st.srcChunk
	if st.send < 0 {
		r, l, c = j.Out, &j.OutL, st.dstChunk
	}
	off, n := l.Span(int(c))
	return uint64(r.Ptr()) + uint64(off), n
}
