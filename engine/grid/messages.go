// Messages: sends and receives side by side.

package grid

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/transport"
)

// messagesArgs is struct MessagesArgs of kernels/cuda/messages.h.
type messagesArgs struct {
	comm
	ends, table uint64
	ways, lanes uint32
	word        [inlineWords]uint64
}

// A way is a list of messages to one peer, or from one, or of copies, in order.
type way struct {
	kind     wayKind
	end      int // in ends.at
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

// messages carries out sends and receives side by side, and so the steps of schedules that are independent.
type messages struct {
	*bulk
	args  messagesArgs
	ways  []way    // of the current messages
	wayOf []int32  // by way.slot: index into ways, from 1
	order []uint64 // ways that have messages left; key of way, then index into ways
	at    int      // in order
	one   [1]*Job  // the jobs of a call for one
}

func (s *messages) open(*Options) error {
	s.wayOf = make([]int32, 2*s.ranks+1)
	return nil
}

// noteRounds is how often a message of notes may fill all slots of its lanes. Longer messages take less time in slices;
// 2 MiB take 15 µs as notes and 24 µs in slices, on two H100s.
const noteRounds = 3

// short is the greatest length of a message that goes as notes, -1 if none does. The blocks for a message to and one
// from each other rank must all run at once. If the blocks of all lanes do, a lane may have several notes of a message.
// All ranks find the same.
func (s *messages) short(p *Program) int {
	if p.note == 0 {
		return -1
	}
	lanes := s.noteBlocks(p.note) / (2 * max(1, s.ranks-1))
	if p.lanes <= lanes {
		return p.note * p.lanes * p.slots * noteRounds
	}
	return p.note * max(1, lanes)
}

// noteBlocks is how many blocks for notes of a number of bytes run at once.
func (s *messages) noteBlocks(bytes int) int {
	return s.directBlocks * maxThreads / noteThreads(bytes)
}

func noteThreads(bytes int) int { return roundUp(lines(bytes)*lineLanes, 32) + 32 }

// RunMessages queues sends and receives that happen side by side, so ranks may send messages of any size in any order.
// Messages to the same peer, or from the same peer, keep their order. Each job's program is a single step that sends a
// chunk or receives one, of a schedule with nothing else (Shape{In: 1} or Shape{Out: 1}). All jobs are on one stream;
// of their Events the first job's is recorded.
//
// There may be any number of jobs. They become one launch, of at most as many blocks as
// run at once on the device; more than its table or its blocks hold become several, one
// after the other. All ranks put messages in the same order for that: first the first
// message of each way, by sender, then by receiver; then the second ones. A rank may cut
// this order anywhere: of all messages that have not arrived, the first in the order is
// in the current launch of both its ranks.
func (s *messages) RunMessages(jobs []*Job) error {
	if len(jobs) == 0 {
		return nil
	}
	for _, j := range jobs {
		if err := s.check(j); err != nil {
			return err
		}
		if !j.Program.message() || j.Stream != jobs[0].Stream {
			return fmt.Errorf("grid: jobs that run together are single sends and receives on one stream")
		}
	}
	if err := s.sort(jobs); err != nil {
		return err
	}
	slices.Sort(s.order)
	return s.launchParts(s.pairwise(jobs[0].Stamp), jobs[0])
}

// Inline reports whether so many sends and receives need no room in the ring, wherever they go.
func (s *messages) Inline(messages int) bool {
	return s.inline(part{ways: messages, messages: messages}.words())
}

// atOnce reports whether one launch holds all messages of a job whose steps are independent. Several launches would
// carry out some messages whole before others, and a peer that takes one step after the other, a piece at a time, would
// wait for the others.
func (s *messages) atOnce(j *Job) bool {
	p := j.Program
	all := part{ways: len(p.ends) + 1, messages: len(p.steps), lanes: j.lanes()}
	return all.words() <= s.most(j.Capture != 0) && all.ways*all.lanes <= s.mostTasks()
}

// RunSideBySide queues a job, whose steps are all independent, as messages: of one launch, unless the job has an Each.
// Then those of all ranks are messages, and have an order, as in RunMessages.
func (s *messages) RunSideBySide(j *Job) error {
	if !j.Program.independent {
		return errors.New("grid: the program's steps depend on each other")
	}
	if err := s.check(j); err != nil {
		return err
	}
	s.one[0] = j
	if err := s.sort(s.one[:]); err != nil {
		return err
	}
	if j.Each != nil {
		slices.Sort(s.order)
	}
	return s.launchParts(s.collective(j), j)
}

// launchParts queues the messages of all ways, in the order of s.order, for a job or others
// like it.
func (s *messages) launchParts(c comm, j *Job) error {
	m, _, err := s.kernel(nil)
	if err != nil {
		return err
	}
	for s.at = 0; len(s.order) > 0; c.fresh = 0 {
		p := s.nextPart(s.most(j.Capture != 0))
		a := &s.args
		t, err := s.table(p.words(), a.word[:], j.Stamp, j.Capture)
		if err != nil {
			return err
		}
		all := s.pack(t.words)
		a.comm, a.ends, a.table, a.ways, a.lanes = c, uint64(s.ends.at), t.at, uint32(p.ways), uint32(p.lanes)
		a.token = t.token
		kernel, err := s.kernelFor(m, &all, p.ways*p.lanes, j)
		if err != nil {
			return err
		}
		if err := s.launch(kernel, t, cuda.ArgsOf(a), only(len(s.order) == 0, j.Event)); err != nil {
			return err
		}
	}
	return nil
}

// kernelFor returns the kernel for the tasks of the current part, and sets its grid.
func (s *messages) kernelFor(m *module, p *packed, tasks int, j *Job) (cuda.Function, error) {
	if p.notes && tasks <= s.noteBlocks(p.longest) {
		s.shape(tasks, noteThreads(p.longest), 0, j.Stream)
		return m.notes, nil
	}
	blocks := s.blocksFor(tasks, j)
	shared := (tasks + blocks - 1) / blocks * (portBytes + taskBytes)
	s.shape(blocks, s.threads+otherThreads, shared, j.Stream)
	b, _, err := s.bulkModule(nil, shared)
	if err != nil || b == nil || !p.aligned {
		return m.messages, err
	}
	s.block(nil, shared)
	return b.messages, nil
}

// blocksFor is how many blocks carry out tasks of j or of jobs like j: no more than j may have, but enough for the
// shared memory of all tasks. Ranks may have different numbers.
func (s *messages) blocksFor(tasks int, j *Job) int {
	most := s.blocks
	if !j.Program.message() {
		most = j.most(most)
	}
	each := s.maxShared / (portBytes + taskBytes)
	return max(min(tasks, most), (tasks+each-1)/each)
}

// A part is the messages of one launch.
type part struct{ ways, messages, lanes int }

// words is the length of its table.
func (p part) words() int { return p.ways*wayWords + p.messages*messageWords }

// mostTasks is how many tasks a launch may have.
func (s *messages) mostTasks() int { return s.blocks * (s.maxShared / (portBytes + taskBytes)) }

// nextPart takes as many messages as fit into one launch, in the order of s.order. A message of this rank to itself is
// sent and received in the same launch.
func (s *messages) nextPart(mostWords int) (p part) {
	mostTasks := s.mostTasks()
	for i := range s.ways {
		s.ways[i].first = s.ways[i].next
	}
	for len(s.order) > 0 {
		for s.at < len(s.order) {
			n, q := 1, p
			if s.at+1 < len(s.order) && pairOf(s.order[s.at]) == pairOf(s.order[s.at+1]) {
				n = 2
			}
			for _, x := range s.order[s.at : s.at+n] {
				y := &s.ways[uint32(x)]
				if y.next == y.first {
					q.ways++
				}
				q.messages++
				q.lanes = max(q.lanes, y.lanesOf(&y.messages[y.next]))
			}
			if p.messages > 0 && (q.words() > mostWords || q.ways*q.lanes > mostTasks) {
				return p
			}
			for _, x := range s.order[s.at : s.at+n] {
				s.ways[uint32(x)].next++
			}
			p, s.at = q, s.at+n
		}
		s.at = 0
		s.order = slices.DeleteFunc(s.order, func(x uint64) bool {
			y := &s.ways[uint32(x)]
			return y.next == len(y.messages)
		})
	}
	return p
}

// lanesOf is how many lanes a message has something for.
func (y *way) lanesOf(x *message) int { return min(y.lanes, max(1, (x.n+x.piece-1)/x.piece)) }

// A packed is what the messages of a part have in common.
type packed struct {
	notes   bool // all go as notes
	longest int  // bytes of a note
	aligned bool // all begin at multiples of 16 bytes
}

// pack encodes the messages of the current part as the kernel reads them.
func (s *messages) pack(w []uint64) packed {
	k, first, all := 0, 0, packed{notes: true, aligned: true}
	for i := range s.ways {
		if y := &s.ways[i]; y.first < y.next {
			n := y.next - y.first
			w[k], w[k+1] = uint64(y.end)|uint64(y.lanes)<<32|uint64(y.kind)<<48, uint64(first)|uint64(n)<<32
			k, first = k+wayWords, first+n
		}
	}
	for i := range s.ways {
		y := &s.ways[i]
		for _, x := range y.messages[y.first:y.next] {
			cut := uint64(x.piece) | uint64(x.slice)<<32
			if x.note {
				cut |= 1 << 63
				all.longest = max(all.longest, min(x.n, x.piece))
			}
			all.notes = all.notes && x.note
			all.aligned = all.aligned && ((x.src|x.dst)%16 == 0 || s.uneven)
			w[k], w[k+1], w[k+2], w[k+3], w[k+4], w[k+5] = x.src, x.dst, uint64(x.n), x.stamp[0], x.stamp[1], cut
			k += messageWords
		}
	}
	return all
}

// taskBytes is the size of a Task of kernels/cuda/messages.h.
const taskBytes = 40

// sort groups the steps of jobs into ways, in the order in which they first occur, and makes sure that the lanes that
// their launches may use have memory.
func (s *messages) sort(jobs []*Job) error {
	lanes := 1
	for i := range s.ways {
		s.wayOf[s.ways[i].slot(s.ranks)] = 0
	}
	s.ways, s.order = s.ways[:0], s.order[:0]
	for _, j := range jobs {
		piece, slice, n := s.cut(j)
		note := j.Program.message() && n <= s.short(j.Program)
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
			y := s.way(j, st)
			y.messages = append(y.messages, message{src, dst, n, stamp, piece, slice, note})
			lanes = max(lanes, y.lanesOf(&y.messages[len(y.messages)-1]))
		}
	}
	for _, j := range jobs {
		if err := lanesFor(j.Program.needs, min(j.lanes(), lanes)); err != nil {
			return err
		}
	}
	return nil
}

// way is the way that a step belongs to.
func (s *messages) way(j *Job, st *step) *way {
	p, x := j.Program, way{kind: copies, lanes: j.lanes()}
	key := uint64(1)<<32 - 1 // position in the order of all ranks: sender, receiver, and which of the two this rank is
	switch me := int(s.rank); {
	case st.recv >= 0:
		from := int(p.ends[st.recv].peer)
		x.kind, x.end = receives, from
		key = uint64(from*s.ranks+me)<<1 | 1
	case st.send >= 0:
		to := int(p.ends[st.send].peer)
		x.kind, x.end = sends, to+s.ranks
		key = uint64(me*s.ranks+to) << 1
	}
	at := &s.wayOf[x.slot(s.ranks)]
	if *at > 0 {
		return &s.ways[*at-1]
	}
	if len(s.ways) < cap(s.ways) { // keep the memory of its messages
		s.ways = s.ways[:len(s.ways)+1]
		x.messages = s.ways[len(s.ways)-1].messages[:0]
		s.ways[len(s.ways)-1] = x
	} else {
		s.ways = append(s.ways, x)
	}
	s.order = append(s.order, key<<32|uint64(len(s.ways)-1))
	*at = int32(len(s.ways))
	return &s.ways[len(s.ways)-1]
}

// slot is a way's index in messages.wayOf.
func (y *way) slot(ranks int) int {
	if y.kind == copies {
		return 2 * ranks
	}
	return y.end
}

// pairOf is the sender and the receiver of an entry of messages.order.
func pairOf(x uint64) uint64 { return x >> 33 }
