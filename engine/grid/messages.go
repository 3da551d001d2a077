package grid

import (
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// messagesArgs is struct MessagesArgs of kernels/cuda/messages.h.
type messagesArgs struct {
	comm
	ends, table uint64
	ways, lanes uint32
	word        [448]uint64
}

// A way is a list of messages to one peer, or from one, or of copies, in order.
type way struct {
	kind     wayKind
	end      int // in Engine.endTable
	lanes    int
	messages []message
}

type wayKind int

const (
	receives wayKind = iota
	sends
	copies
)

// A message is struct Message of kernels/cuda/messages.h.
type message struct {
	src, dst     uint64 // on this device; src is 0 in a receive, dst in a send
	n            int
	stamp        transport.Stamp
	piece, slice int
	note         bool
}

// maxNote is the greatest NoteBytes.
const maxNote = 8 << 10

// short is the greatest length of a message that goes as notes, -1 if none does. The
// blocks for a message to and one from each other rank must all run at once. All ranks
// find the same.
func (e *Engine) short(p *Program) int {
	if p.note == 0 {
		return -1
	}
	blocks := e.noteBlocks(p.note)
	return p.note * max(1, min(p.lanes, blocks/(2*max(1, e.ranks-1))))
}

// noteBlocks is how many blocks for notes of a number of bytes run at once.
func (e *Engine) noteBlocks(bytes int) int {
	return e.mail.blocks * maxThreads / noteThreads(bytes)
}

func noteThreads(bytes int) int { return roundUp(lines(bytes)*lineLanes, 32) + 32 }

// RunMessages queues sends and receives that happen side by side, so ranks may send
// messages of any size in any order. Messages to the same peer, or from the same peer,
// keep their order. Each job's program is a single step that sends a chunk or receives
// one, of a schedule with nothing else (Shape{In: 1} or Shape{Out: 1}). All jobs are on
// one stream and become one launch, of at most as many blocks as run at once on the
// device. Run carries out such a job by RunMessages, so the peer may call either.
func (e *Engine) RunMessages(jobs []*Job) error {
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
	return e.messages(e.pairwise(jobs[0].Stamp), jobs)
}

// messages queues jobs, whose steps are all independent, as messages.
func (e *Engine) messages(c comm, jobs []*Job) error {
	m, _, err := e.kernel(nil)
	if err != nil {
		return err
	}
	ways := e.sort(jobs)
	f := &e.frame
	a := &f.messages
	a.comm, a.ends, a.table, a.ways, a.lanes = c, uint64(e.endTable), 0, uint32(len(ways)), 0
	for _, y := range ways {
		for _, x := range y.messages {
			a.lanes = max(a.lanes, uint32(min(y.lanes, max(1, (x.n+x.piece-1)/x.piece))))
		}
	}
	for _, j := range jobs {
		if err := j.Program.lanesFor(min(j.Program.lanes, int(a.lanes))); err != nil {
			return err
		}
	}
	w := e.pack(ways)
	if copy(a.word[:], w) < len(w) {
		if err := e.writeWords(w, jobs[0].Stream); err != nil {
			return err
		}
		a.table = uint64(e.table)
	}
	tasks := len(ways) * int(a.lanes)
	f.launch = cuda.Launch{Stream: jobs[0].Stream}
	if n, only := longestNote(ways); only && tasks <= e.noteBlocks(n) {
		f.launch.Grid.X, f.launch.Block.X = uint32(tasks), uint32(noteThreads(n))
		return e.driver.LaunchKernel(m.notes, &f.launch, cuda.ArgsOf(a))
	}
	blocks := min(tasks, e.blocks)
	f.launch.Grid.X, f.launch.Block.X = uint32(blocks), uint32(e.threads+otherThreads)
	f.launch.Shared = (tasks + blocks - 1) / blocks * (portBytes + taskBytes)
	if f.launch.Shared > e.maxShared {
		return &TooLongError{Steps: len(jobs), Peers: tasks, Bytes: f.launch.Shared, Have: e.maxShared}
	}
	return e.driver.LaunchKernel(m.messages, &f.launch, cuda.ArgsOf(a))
}

// pack encodes ways and their messages as the kernel reads them.
func (e *Engine) pack(ways []way) []uint64 {
	w, first := e.words[:0], 0
	for _, y := range ways {
		w = append(w, uint64(y.end)|uint64(y.lanes)<<32|uint64(y.kind)<<48, uint64(first)|uint64(len(y.messages))<<32)
		first += len(y.messages)
	}
	for _, y := range ways {
		for _, x := range y.messages {
			cut := uint64(x.piece) | uint64(x.slice)<<32
			if x.note {
				cut |= 1 << 63
			}
			w = append(w, x.src, x.dst, uint64(x.n), x.stamp[0], x.stamp[1], cut)
		}
	}
	e.words = w
	return w
}

// longestNote is the length of the longest note, and whether all messages are notes.
func longestNote(ways []way) (n int, only bool) {
	for _, y := range ways {
		for _, x := range y.messages {
			if !x.note {
				return 0, false
			}
			n = max(n, min(x.n, x.piece))
		}
	}
	return n, true
}

// taskBytes is the size of a Task of kernels/cuda/messages.h.
const taskBytes = 40

// lines is the number of lines of a message.
func lines(n int) int { return max(1, (n+lineData-1)/lineData) }

// sort groups the steps of jobs into ways, in the order in which they first occur.
func (e *Engine) sort(jobs []*Job) []way {
	e.ways = e.ways[:0]
	for _, j := range jobs {
		piece, slice, n := e.cut(j)
		note := j.Program.message() && n <= e.short(j.Program)
		if note {
			piece, slice = j.Program.note, j.Program.note
		}
		for i := range j.Program.steps {
			st := &j.Program.steps[i]
			src, dst, n := j.span(st)
			y := e.way(j.Program, st)
			y.messages = append(y.messages, message{src, dst, n, unnumbered(j.Stamp), piece, slice, note})
		}
	}
	return e.ways
}

// way is the way that a step belongs to.
func (e *Engine) way(p *Program, st *step) *way {
	kind, end := copies, 0
	switch {
	case st.recv >= 0:
		kind, end = receives, int(p.ends[st.recv].peer)
	case st.send >= 0:
		kind, end = sends, int(p.ends[st.send].peer)+e.ranks
	}
	for i := range e.ways {
		if y := &e.ways[i]; y.kind == kind && y.end == end {
			return y
		}
	}
	if len(e.ways) < cap(e.ways) { // keep the memory of its messages
		e.ways = e.ways[:len(e.ways)+1]
	} else {
		e.ways = append(e.ways, way{})
	}
	y := &e.ways[len(e.ways)-1]
	y.kind, y.end, y.lanes, y.messages = kind, end, p.lanes, y.messages[:0]
	return y
}

// span is the source, destination and length of a step's data.
func (j *Job) span(st *step) (src, dst uint64, n int) {
	if st.dst != uint8(sched.None) {
		off, k := j.OutL.Span(int(st.dstChunk))
		dst, n = uint64(j.Out.Ptr())+uint64(off), k
	}
	if st.src != uint8(sched.None) {
		off, k := j.InL.Span(int(st.srcChunk))
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
		_, dst, n := j.span(&steps[i])
		for k := range steps {
			src, _, m := j.span(&steps[k])
			if i != k && dst != 0 && src != 0 && dst < src+uint64(m) && src < dst+uint64(n) {
				return false
			}
		}
	}
	return true
}
