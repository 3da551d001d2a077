package sim

import (
	"fmt"

	"github.com/ringo-go/ringo/sched"
)

// A world is a run under way. A rank is carried on until it must wait; the rank
// that makes it ready again makes it ready. The order of ready ranks
// does not matter, because every time is computed from the times of what it
// depends on. Only ports that ranks share serve in the order of time: a rank that
// wants one waits among the requests, and the earliest goes on when no other rank can.
type world struct {
	s     sched.Schedule
	m     Model
	sym   symmetry
	ranks []rank // of which those that stand for others are carried along
	queues
	ready    rankQueue
	requests requests

	nodes                    []int32 // of each rank, if Model.Nodes says
	buses, cardsOut, cardsIn []port  // by node, of links that are shared

	rounds  int32
	pieces  [2]piece        // of full length, and of the last round
	skipped float64         // rounds that are not carried out
	steps   int64           // of a round, of all ranks
	depth   uint32          // pieces that fit into a queue
	ends    []float64       // when the last rank ends each round
	sent    [2][kinds]int64 // messages of either length over each kind of link
	limit   float64         // on the clock of a rank
	wrong   error

	written []sched.Step // of ranks, one after the other
	begins  []int32      // where those of each rank begin, of the first node's if it stands for all; -1: not written yet

	check func(done int64) error // called every checkSteps steps; nil for never
	done  int64                  // steps

	see    func(Timed) // nil for nobody
	waited float64     // for room, of the step under way
}

// checkSteps is the number of steps between two checks of the context, about 10 ms.
const checkSteps = 1 << 16

// A rank takes 64 bytes and two entries of 4 bytes in lists. Of a run only ranks and
// their queues grow with the number of ranks.
type rank struct {
	clock    float64 // when its core is free
	out      float64 // when its port out is free
	in       port
	step     int32
	steps    int32
	round    int32
	sendTo   int32 // queue it sent to last, likely the next too; -1 for none
	recvFrom int32 // the same for receiving
	waits    int32 // queue it waits for, or ready, inTurn, ended
}

const (
	ready  = -1
	inTurn = -2
	ended  = -3
)

// A piece is the costs of a message that depend on its length alone.
type piece struct {
	bytes  float64
	slices float64
	link   [kinds]cost
	reduce float64 // of a slice
	copy   float64
}

type cost struct {
	Link
	slice, all             float64 // of the port
	sharedSlice, sharedAll float64
}

func (m *Model) newPiece(bytes int64) piece {
	p := piece{bytes: float64(bytes), slices: 1}
	if n := (bytes + int64(m.SlotBytes) - 1) / int64(m.SlotBytes); n > 1 {
		p.slices = float64(n)
	}
	slice := p.bytes / p.slices
	p.reduce, p.copy = slice*m.Reduce, slice*m.Copy
	for k := range kinds {
		c := cost{Link: m.link(k)}
		if c.Bandwidth > 0 {
			c.slice, c.all = slice/c.Bandwidth, p.bytes/c.Bandwidth
		}
		if c.Shared > 0 {
			c.sharedSlice, c.sharedAll = slice/c.Shared, p.bytes/c.Shared
		}
		p.link[k] = c
	}
	return p
}

// run carries all ranks to their end.
func (w *world) run() error {
	for r := range w.ranks {
		if w.sym.rep(int32(r)) == int32(r) {
			w.ready.push(int32(r))
		}
	}
	for {
		for w.ready.n > 0 && w.wrong == nil {
			w.carry(w.ready.pop(), false)
		}
		if len(w.requests) == 0 || w.wrong != nil {
			break
		}
		w.carry(w.requests.pop().rank, true)
	}
	if w.wrong != nil {
		return w.wrong
	}
	return w.checkEnd()
}

// carry does steps of rank r until it must wait. granted says that it is the
// earliest of those that want a shared port.
func (w *world) carry(r int32, granted bool) {
	st := &w.ranks[r]
	st.waits = ready
	for {
		for st.step == st.steps {
			w.ends[st.round] = max(w.ends[st.round], st.end())
			st.step = 0
			st.round++
			if st.round == w.rounds {
				st.waits = ended
				return
			}
			if w.late(st) {
				w.wrong = errLate
				return
			}
		}
		if !w.move(r, st, w.stepOf(r, st.step), granted) {
			return
		}
		if st.clock > w.limit {
			w.wrong = errLate
			return
		}
		granted = false
		st.step++
		if w.done++; w.done%checkSteps == 0 && w.check != nil {
			if w.wrong = w.check(w.done); w.wrong != nil {
				return
			}
		}
	}
}

// end is the time at which a rank and its messages are done.
func (st *rank) end() float64 { return max(st.clock, st.out) }

// node is the one that a rank is on.
func (w *world) node(r int32) int {
	if len(w.nodes) > 0 {
		return int(w.nodes[r])
	}
	return int(r) / w.m.NodeRanks
}

// queue finds a queue that the rank did not use last.
func (w *world) queue(src, dst int32) int32 {
	at := w.find(src, dst)
	w.list[at].kind = w.kindOf(src, dst)
	return at
}

// wake puts the rank that stands for r into the line if it waits for queue q.
func (w *world) wake(r, q int32) {
	r = w.sym.rep(r)
	if st := &w.ranks[r]; st.waits == q {
		st.waits = ready
		w.ready.push(r)
	}
}

// valid refuses a peer that does not exist.
func (w *world) valid(r int32, peer sched.Rank) bool {
	if peer >= 0 && int(peer) < len(w.ranks) {
		return true
	}
	w.wrong = fmt.Errorf("sim: step %d of rank %d names rank %d of %d", w.ranks[r].step, r, peer, len(w.ranks))
	return false
}
