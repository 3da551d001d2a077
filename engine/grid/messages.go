// Messages: sends and receives side by side.

package grid

import (
	"fmt"
	"slices"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels/collective"
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
	first    int // of the current part
	next     int // of the part after it
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

// noteRounds is how often a message of notes may fill all slots of its lanes. Longer messages take less time in slices;
// 2 MiB take 15 µs as notes and 24 µs in slices, on two H100s.
const noteRounds = 3

// short is the greatest length of a message that goes as notes, -1 if none does. The blocks for a message to and one
// from each other rank must all run at once. If the blocks of all lanes do, a lane may have several notes of a message.
// All ranks find the same.
func (e *Engine) short(p *Program) int {
	if p.note == 0 {
		return -1
	}
	lanes := e.noteBlocks(p.note) / (2 * max(1, e.ranks-1))
	if p.lanes <= lanes {
		return p.note * p.lanes * p.slots * noteRounds
	}
	return p.note * max(1, lanes)
}

// noteBlocks is how many blocks for notes of a number of bytes run at once.
func (e *Engine) noteBlocks(bytes int) int {
	return e.mail.blocks * maxThreads / noteThreads(bytes)
}

func noteThreads(bytes int) int { return roundUp(lines(bytes)*lineLanes, 32) + 32 }

// RunMessages queues sends and receives that happen side by side, so ranks may send messages of any size in any order.
// Messages to the same peer, or from the same peer, keep their order. Each job's program is a single step that sends a
// chunk or receives one, of a schedule with nothing else (Shape{In: 1} or Shape{Out: 1}). All jobs are on one stream;
// of their Events the first job's is recorded. Run carries out such a job by RunMessages, so the peer may call either.
//
// There may be any number of jobs. They become one launch, of at most as many blocks as
// run at once on the device; more than its table or its blocks hold become several, one
// after the other. All ranks put messages in the same order for that: first the first
// message of each way, by sender, then by receiver; then the second ones. A rank may cut
// this order anywhere: of all messages that have not arrived, the first in the order is
// in the current launch of both its ranks.
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
	if err := e.sort(jobs); err != nil {
		return err
	}
	slices.Sort(e.order)
	return e.messages(e.pairwise(jobs[0].Stamp), jobs[0])
}

// Inline reports whether so many sends and receives need no room in the ring, wherever they go.
func (e *Engine) Inline(messages int) bool {
	n := part{ways: messages, messages: messages}.words()
	return n <= len(messagesArgs{}.word) && 8*n <= e.tables.args
}

// atOnce reports whether one launch holds all messages of a job whose steps are independent. Several launches would
// carry out some messages whole before others, and a peer that takes one step after the other, a piece at a time, would
// wait for the others.
func (e *Engine) atOnce(j *Job) bool {
	p := j.Program
	all := part{ways: len(p.ends) + 1, messages: len(p.steps), lanes: j.lanes()}
	return all.words() <= e.tables.most(j) && all.ways*all.lanes <= e.mostTasks()
}

// runIndependent queues a job, whose steps are all independent, as messages: of one launch, unless the job has an Each.
// Then those of all ranks are messages, and have an order, as in RunMessages.
func (e *Engine) runIndependent(j *Job) error {
	if err := e.sort([]*Job{j}); err != nil {
		return err
	}
	if j.Each != nil {
		slices.Sort(e.order)
	}
	return e.messages(e.collective(j), j)
}

// messages queues the messages of all ways, in the order of e.order, for a job or others
// like it.
func (e *Engine) messages(c comm, j *Job) error {
	m, _, err := e.kernel(nil)
	if err != nil {
		return err
	}
	for e.at = 0; len(e.order) > 0; c.fresh = 0 {
		p := e.nextPart(e.tables.most(j))
		f := &e.frame
		a := &f.messages
		t, err := e.table(p.words(), a.word[:], j)
		if err != nil {
			return err
		}
		e.pack(t.words)
		a.comm, a.ends, a.table, a.ways, a.lanes = c, uint64(e.endTable), t.at, uint32(p.ways), uint32(p.lanes)
		a.token = t.token
		tasks, kernel := p.ways*p.lanes, m.messages
		f.launch = cuda.Launch{Stream: j.Stream}
		if n, only := e.longestNote(); only && tasks <= e.noteBlocks(n) {
			kernel = m.notes
			f.launch.Grid.X, f.launch.Block.X = uint32(tasks), uint32(noteThreads(n))
		} else {
			blocks := e.blocksFor(tasks, j)
			shared := (tasks + blocks - 1) / blocks * (portBytes + taskBytes)
			f.launch.Grid.X = uint32(blocks)
			b, err := e.bulkModule(nil, shared)
			if err != nil {
				return err
			}
			if b != nil && e.aligned() {
				kernel = b.messages
				e.bulkBlock(nil, shared)
			} else {
				f.launch.Block.X, f.launch.Shared = uint32(e.threads+otherThreads), shared
			}
		}
		event := j.Event
		if len(e.order) > 0 {
			event = 0
		}
		if err := e.launch(kernel, t, cuda.ArgsOf(a), event); err != nil {
			return err
		}
	}
	return nil
}

// blocksFor is how many blocks carry out tasks of j or of jobs like j: no more than j may have, but enough for the
// shared memory of all tasks. Ranks may have different numbers.
func (e *Engine) blocksFor(tasks int, j *Job) int {
	most := e.blocks
	if !j.Program.message() {
		most = j.most(most)
	}
	each := e.maxShared / (portBytes + taskBytes)
	return max(min(tasks, most), (tasks+each-1)/each)
}

// A part is the messages of one launch.
type part struct{ ways, messages, lanes int }

// words is the length of its table.
func (p part) words() int { return p.ways*wayWords + p.messages*messageWords }

// mostTasks is how many tasks a launch may have.
func (e *Engine) mostTasks() int { return e.blocks * (e.maxShared / (portBytes + taskBytes)) }

// nextPart takes as many messages as fit into one launch, in the order of e.order. A message of this rank to itself is
// sent and received in the same launch.
func (e *Engine) nextPart(mostWords int) (p part) {
	mostTasks := e.mostTasks()
	for i := range e.ways {
		e.ways[i].first = e.ways[i].next
	}
	for len(e.order) > 0 {
		for e.at < len(e.order) {
			n, q := 1, p
			if e.at+1 < len(e.order) && pairOf(e.order[e.at]) == pairOf(e.order[e.at+1]) {
				n = 2
			}
			for _, x := range e.order[e.at : e.at+n] {
				y := &e.ways[uint32(x)]
				if y.next == y.first {
					q.ways++
				}
				q.messages++
				q.lanes = max(q.lanes, y.lanesOf(&y.messages[y.next]))
			}
			if p.messages > 0 && (q.words() > mostWords || q.ways*q.lanes > mostTasks) {
				return p
			}
			for _, x := range e.order[e.at : e.at+n] {
				e.ways[uint32(x)].next++
			}
			p, e.at = q, e.at+n
		}
		e.at = 0
		e.order = slices.DeleteFunc(e.order, func(x uint64) bool {
			y := &e.ways[uint32(x)]
			return y.next == len(y.messages)
		})
	}
	return p
}

// lanesOf is how many lanes a message has something for.
func (y *way) lanesOf(x *message) int { return min(y.lanes, max(1, (x.n+x.piece-1)/x.piece)) }

// pack encodes the messages of the current part as the kernel reads them.
func (e *Engine) pack(w []uint64) {
	k, first := 0, 0
	for i := range e.ways {
		if y := &e.ways[i]; y.first < y.next {
			n := y.next - y.first
			w[k], w[k+1] = uint64(y.end)|uint64(y.lanes)<<32|uint64(y.kind)<<48, uint64(first)|uint64(n)<<32
			k, first = k+wayWords, first+n
		}
	}
	for i := range e.ways {
		y := &e.ways[i]
		for _, x := range y.messages[y.first:y.next] {
			cut := uint64(x.piece) | uint64(x.slice)<<32
			if x.note {
				cut |= 1 << 63
			}
			w[k], w[k+1], w[k+2], w[k+3], w[k+4], w[k+5] = x.src, x.dst, uint64(x.n), x.stamp[0], x.stamp[1], cut
			k += messageWords
		}
	}
}

// longestNote is the length of the current part's longest note, and whether all of its
// messages are notes.
func (e *Engine) longestNote() (n int, only bool) {
	for i := range e.ways {
		y := &e.ways[i]
		for k := y.first; k < y.next; k++ {
			x := &y.messages[k]
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
func lines(n int) int { return collective.Lines(n) }

// sort groups the steps of jobs into ways, in the order in which they first occur, and makes sure that the lanes that
// their launches may use have memory.
func (e *Engine) sort(jobs []*Job) error {
	lanes := 1
	for i := range e.ways {
		e.wayOf[e.ways[i].slot(e.ranks)] = 0
	}
	e.ways, e.order = e.ways[:0], e.order[:0]
	for _, j := range jobs {
		piece, slice, n := e.cut(j)
		note := j.Program.message() && n <= e.short(j.Program)
		if note {
			piece, slice = j.Program.note, j.Program.note
		}
		stamp := unnumbered(j.Stamp)
		for i := range j.Program.steps {
			st := &j.Program.steps[i]
			src, dst, n := j.data(st)
			if st.recv < 0 && src == dst { // the data lie there already
				if dst = 0; st.send < 0 {
					continue
				}
			}
			if j.Each != nil {
				stamp = unnumbered(j.Each(j.Stamp, n))
			}
			y := e.way(j, st)
			y.messages = append(y.messages, message{src, dst, n, stamp, piece, slice, note})
			lanes = max(lanes, y.lanesOf(&y.messages[len(y.messages)-1]))
		}
	}
	for _, j := range jobs {
		if err := j.Program.lanesFor(min(j.lanes(), lanes)); err != nil {
			return err
		}
	}
	return nil
}

// way is the way that a step belongs to.
func (e *Engine) way(j *Job, st *step) *way {
	p, x := j.Program, way{kind: copies, lanes: j.lanes()}
	key := uint64(1)<<32 - 1 // position in the order of all ranks: sender, receiver, and which of the two this rank is
	switch me := int(e.rank); {
	case st.recv >= 0:
		from := int(p.ends[st.recv].peer)
		x.kind, x.end = receives, from
		key = uint64(from*e.ranks+me)<<1 | 1
	case st.send >= 0:
		to := int(p.ends[st.send].peer)
		x.kind, x.end = sends, to+e.ranks
		key = uint64(me*e.ranks+to) << 1
	}
	at := &e.wayOf[x.slot(e.ranks)]
	if *at > 0 {
		return &e.ways[*at-1]
	}
	if len(e.ways) < cap(e.ways) { // keep the memory of its messages
		e.ways = e.ways[:len(e.ways)+1]
		x.messages = e.ways[len(e.ways)-1].messages[:0]
		e.ways[len(e.ways)-1] = x
	} else {
		e.ways = append(e.ways, x)
	}
	e.order = append(e.order, key<<32|uint64(len(e.ways)-1))
	*at = int32(len(e.ways))
	return &e.ways[len(e.ways)-1]
}

// slot is a way's index in Engine.wayOf.
func (y *way) slot(ranks int) int {
	if y.kind == copies {
		return 2 * ranks
	}
	return y.end
}

// pairOf is the sender and the receiver of an entry of Engine.order.
func pairOf(x uint64) uint64 { return x >> 33 }

// data is the source, destination and length of a step's data.
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
