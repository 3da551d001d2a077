package fifo

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The explorer of a Space tries all interleavings of a host, a device, graphs that
// capture work and die, an abort and a Close. The host's numbers are the code's own
// ledger; the rest is a model of engine/grid. A fault breaks one rule on purpose.

const (
	modelBytes = 3 // the largest ring
	modelJobs  = 6 // in the device's queue
)

// A deviceJob is a copy of a launch's bytes to the ring, or a kernel that reads them. A
// kernel with graph set reads the graph's own memory, storage[at].
type deviceJob struct {
	kernel, graph bool
	id, at, n     uint8
	token         uint8
}

// A modelGraph is a captured launch.
type modelGraph struct {
	id, at uint8 // id 0: there is none
	queued uint8 // replays that have not ended
	dead   bool  // destroyed by its user
}

type spaceState struct {
	ledger
	word          uint8 // what the device has stored
	stage, memory [modelBytes]uint8
	storage       [2]uint8 // memory of graphs: the launch that each byte belongs to
	graphs        [2]modelGraph
	queue         [modelJobs]deviceJob
	queued, calls uint8
	last          uint8 // the last token that was committed
	want          uint8 // bytes that the host waits for
	fails         bool  // the launch that it waits for will fail
	refused       bool  // a wait has ended with an error
	aborted       bool
	closing, gone bool // Close waits; the ring's memory is given back
}

type spaceModel struct {
	capacity uint64
	calls    uint8 // of the host
	alone    bool  // peers never come: no kernel of a collective ends but by an abort
	aborts   bool
	fault    string

	wrong string
}

func (m *spaceModel) check(ok bool, format string, args ...any) {
	if !ok && m.wrong == "" {
		m.wrong = fmt.Sprintf(format, args...)
	}
}

func (s *spaceState) push(j deviceJob) { s.queue[s.queued], s.queued = j, s.queued+1 }

func (s *spaceState) pop(i uint8) (j deviceJob) {
	j = s.queue[i]
	copy(s.queue[i:], s.queue[i+1:])
	s.queue[modelJobs-1] = deviceJob{}
	s.queued--
	return j
}

// fit is the ledger's fit, or a wrong one.
func (m *spaceModel) fit(l *ledger, n uint64) (end uint64, ok bool) {
	switch m.fault {
	case "a reservation goes on at the beginning":
		return l.produced + n, l.produced+n-l.consumed <= l.capacity
	case "what is left out does not count":
		end, live := l.start(n)+n, l.produced-l.consumed
		return end, live+n <= l.capacity
	case "an empty ring leaves out nothing":
		end := l.start(n) + n
		return end, end-l.consumed <= l.capacity
	case "room is one byte more":
		l.capacity++
		defer func() { l.capacity-- }()
	}
	return l.fit(n)
}

// reserve is one look of the host for room, and the launch if there is some.
func (m *spaceModel) reserve(s *spaceState) {
	m.check(s.retire(uint64(s.word)), "token %d of %d", s.word, s.produced)
	n := s.want
	end, ok := m.fit(&s.ledger, uint64(n))
	if !ok {
		if s.aborted {
			s.refused, s.want = true, 0
		}
		return
	}
	s.want = 0
	at := uint8((end - uint64(n)) % s.capacity)
	id := s.calls
	for i := at; i < at+n; i++ {
		m.check(i < uint8(s.capacity), "bytes %d to %d of %d", at, at+n, s.capacity)
		if i < modelBytes {
			s.stage[i] = id
		}
	}
	s.push(deviceJob{id: id, at: at, n: n})
	if s.fails {
		if m.fault == "a failed launch is committed" {
			s.commit(end)
		}
		return
	}
	s.push(deviceJob{kernel: true, id: id, at: at, n: n, token: uint8(end)})
	s.commit(end)
	s.last = uint8(end)
	if m.fault == "a launch is done when it is queued" {
		s.word = s.last
	}
}

// capture makes a graph with a launch of one byte, if there is room for one.
func (m *spaceModel) capture(s *spaceState, g int) {
	at := 0
	if s.storage[at] != 0 {
		at = 1
	}
	if s.storage[at] != 0 {
		return
	}
	s.storage[at] = s.calls
	s.graphs[g] = modelGraph{id: s.calls, at: uint8(at)}
	switch m.fault {
	case "captured work counts":
		if end, ok := m.fit(&s.ledger, 1); ok {
			s.commit(end)
		}
	case "a captured table lies where a launch may go":
		s.graphs[g].at = uint8(s.produced%s.capacity) + 10
		s.memory[s.produced%s.capacity] = s.calls
	}
}

// run carries out job i of the device's queue.
func (m *spaceModel) run(s *spaceState, i uint8) {
	j := s.pop(i)
	over := s.aborted || s.gone
	reads := !over || m.fault == "a kernel that is told that all is over reads"
	switch {
	case !j.kernel:
		m.check(!s.gone, "launch %d is copied to a ring that is gone", j.id)
		copy(s.memory[j.at:], s.stage[j.at:j.at+j.n])
		return
	case j.graph:
		g := &s.graphs[0]
		if g.id != j.id {
			g = &s.graphs[1]
		}
		g.queued--
		m.free(s, g)
		m.check(!reads || !s.gone, "a replay of %d reads what peers have given back", j.id)
		if at := j.at; reads && at >= 10 {
			m.check(s.memory[at-10] == j.id, "a replay of %d reads what %d has", j.id, s.memory[at-10])
		} else if reads {
			m.check(s.storage[at] == j.id || g.id == 0, "a replay of %d reads what %d has", j.id, s.storage[at])
		}
	case reads:
		for i := j.at; i < j.at+j.n; i++ {
			m.check(!s.gone && s.memory[i] == j.id, "launch %d reads what %d has", j.id, s.memory[i])
		}
	}
	if j.token != 0 && !(over && m.fault == "an aborted kernel stores no token") {
		s.word = j.token
	}
}

// free gives back what a graph owns, when it is destroyed and runs no more.
func (m *spaceModel) free(s *spaceState, g *modelGraph) {
	if g.dead && g.queued == 0 {
		s.storage[g.at%10] = 0
		*g = modelGraph{}
	}
}

// next is every state that may follow s.
func (m *spaceModel) next(s spaceState) (all []spaceState) {
	do := func(f func(n *spaceState)) {
		n := s
		f(&n)
		all = append(all, n)
	}
	if s.want > 0 {
		do(m.reserve)
	}
	if s.queued > 0 {
		j := s.queue[0]
		if !j.kernel || !m.alone || s.aborted || s.gone {
			do(func(n *spaceState) { m.run(n, 0) })
		}
		for i := uint8(1); i < s.queued && m.fault == "launches of two streams have no order"; i++ {
			if s.queue[i].kernel && s.queue[i-1].id == s.queue[i].id && !s.queue[i-1].kernel && i == 3 {
				do(func(n *spaceState) { m.run(n, 2); m.run(n, 2) })
			}
		}
	}
	if m.aborts && !s.aborted {
		do(func(n *spaceState) { n.aborted = true })
	}
	if s.closing && !s.gone && (s.queued == 0 || m.fault == "Close does not wait") {
		do(func(n *spaceState) { n.gone = true })
	}
	if s.want > 0 || s.calls == m.calls {
		return all
	}
	call := func(f func(n *spaceState)) {
		do(func(n *spaceState) { n.calls++; f(n) })
	}
	room := s.queued+2 <= modelJobs
	if !s.closing && !s.refused {
		for n := uint8(1); n <= uint8(m.capacity) && room; n++ {
			call(func(s *spaceState) { s.want, s.fails = n, false; m.reserve(s) })
			call(func(s *spaceState) { s.want, s.fails = n, true; m.reserve(s) })
		}
		call(func(s *spaceState) { s.closing = true })
	}
	for g := range s.graphs {
		switch x := &s.graphs[g]; {
		case x.id == 0 && !s.closing:
			call(func(s *spaceState) { m.capture(s, g) })
		case x.id != 0 && !x.dead:
			if room && (!s.closing || s.gone) { // a user may replay after Close
				call(func(s *spaceState) {
					s.push(deviceJob{kernel: true, graph: true, id: x.id, at: x.at})
					s.graphs[g].queued++
				})
			}
			call(func(s *spaceState) {
				s.graphs[g].dead = true
				if m.fault == "a graph's memory is free when its user has destroyed it" {
					s.storage[x.at] = 0
				}
				m.free(s, &s.graphs[g])
			})
		}
	}
	return all
}

// explore visits all states and returns their number, and what was wrong.
func (m *spaceModel) explore() (int, string) {
	start := spaceState{ledger: ledger{capacity: m.capacity}}
	seen := map[spaceState]bool{start: true}
	for todo := []spaceState{start}; len(todo) > 0 && m.wrong == ""; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		m.oldest(s)
		stuck := true
		for _, n := range m.next(s) {
			stuck = stuck && n == s
			if !seen[n] {
				seen[n] = true
				todo = append(todo, n)
			}
		}
		if !stuck {
			continue
		}
		m.check(s.want == 0, "deadlock: the host waits for %d bytes: produced %d, consumed %d", s.want,
			s.produced, s.consumed)
		m.check(s.queued == 0, "deadlock: the device does not end launch %d", s.queue[0].id)
		m.check(s.word == s.last, "all has ended, and the device is done with %d of %d", s.word, s.last)
	}
	return len(seen), m.wrong
}

// oldest compares the code's oldest launch with the first in the device's queue.
func (m *spaceModel) oldest(s spaceState) {
	if !s.retire(uint64(s.word)) || m.fault != "" {
		return
	}
	for _, j := range s.queue[:s.queued] {
		if j.token != 0 {
			m.check(s.first()%s.capacity == uint64(j.at), "the oldest launch is at %d, not at %d", j.at, s.first()%s.capacity)
			return
		}
	}
}

func spaceModels(yield func(m spaceModel)) {
	for capacity := uint64(1); capacity <= modelBytes; capacity++ {
		for _, m := range []spaceModel{{calls: 5}, {calls: 4, aborts: true}, {calls: 4, aborts: true, alone: true}} {
			m.capacity = capacity
			yield(m)
		}
	}
}

func TestSpaceModel(t *testing.T) {
	total := 0
	spaceModels(func(m spaceModel) {
		n, wrong := m.explore()
		require.Empty(t, wrong, "%+v", m)
		total += n
	})
	t.Logf("%d states", total)
}

// Each rule, broken on purpose, makes the explorer fail.
func TestSpaceModelFindsFaults(t *testing.T) {
	for _, fault := range []string{
		"a reservation goes on at the beginning",
		"what is left out does not count",
		"an empty ring leaves out nothing",
		"room is one byte more",
		"a failed launch is committed",
		"captured work counts", // NVIDIA/nccl #1251
		"a captured table lies where a launch may go",
		"a graph's memory is free when its user has destroyed it",
		"launches of two streams have no order",
		"a launch is done when it is queued",
		"an aborted kernel stores no token",
		"a kernel that is told that all is over reads",
		"Close does not wait",
	} {
		t.Run(fault, func(t *testing.T) {
			found := ""
			spaceModels(func(m spaceModel) {
				m.fault = fault
				if found == "" {
					_, found = m.explore()
				}
			})
			require.NotEmpty(t, found)
			t.Log(found)
		})
	}
}
