package grid

import (
	"fmt"
	"math/bits"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// A table is words that a kernel reads and that depend on the call: chunks of different
// sizes, or the messages of a group. It lies in the kernel's arguments if it fits, else in
// device memory: of an eager call in a bounded ring, see fifo.Space, of a captured one in
// memory that is the graph's. So a graph, which may run never or often, holds nothing of
// the ring, and a full ring is always due to launches that the device has not ended.
type table struct {
	words []uint64 // to be filled
	at    uint64   // address on the device; 0: the words are the arguments'
	token uint64   // 0: not in the ring
}

// tables are the memory in which tables lie. The ring exists twice: the host fills pinned memory, and a copy in the
// caller's stream brings a table to the same offset on the device.
type tables struct {
	space  *fifo.Space
	guard  *fifo.Guard
	args   int     // bytes of a kernel's arguments that hold a table, at most
	device uintptr // 0 before the ring is used
	pinned uintptr
	ring   []uint64 // the pinned memory

	words  []uint64                // of a captured call's table, before it is on the device
	graphs map[uint64][]graphTable // by capture
	free   [64][]uintptr           // of graphs that are gone; 1<<i bytes each
}

// A graphTable is memory of 1<<class bytes for the table of a captured call.
type graphTable struct {
	at    uintptr
	class int
}

const (
	defaultFIFOBytes = 1 << 20
	maxFIFOBytes     = 1 << 30
	maxArgsBytes     = 8 * len(messagesArgs{}.word)
	headWords        = 2 // before a table in the ring, on the host alone: the call's stamp
	wayWords         = 2
	messageWords     = 6
	chunkWords       = 2
)

// leastFIFO is the length of the smallest ring: half of it holds what one collective needs, at
// most a message to and one from each rank, or the chunks of a v-variant. One thread may queue
// the calls of all ranks, and must not wait in the middle of one for ranks that come after.
func leastFIFO(ranks int) int {
	return 8 * 2 * (headWords + 2*ranks*max(wayWords+messageWords, chunkWords))
}

func (t *tables) open(e *Engine, o Options) (err error) {
	n := o.FIFOBytes
	if n == 0 {
		n = defaultFIFOBytes
	}
	n = roundUp(max(n, leastFIFO(e.ranks)), 8)
	if t.args = min(o.ArgsBytes, maxArgsBytes); t.args == 0 {
		t.args = maxArgsBytes
	}
	if t.guard = o.Guard; t.guard == nil {
		t.guard = new(fifo.Guard)
	}
	t.space = fifo.NewSpace(n, &e.control.words.consumed)
	t.graphs = map[uint64][]graphTable{}
	if t.pinned, err = e.store.HostAlloc(n); err != nil {
		return err
	}
	t.ring = ringAt(t.pinned, n/8)
	return nil
}

func (t *tables) close(s *cuda.Store) {
	if t.pinned != 0 {
		s.FreeHost(t.pinned)
	}
	t.pinned, t.ring = 0, nil
}

// most is how many words a table of a job may have, so that the host can fill one while
// the device has another.
func (t *tables) most(j *Job) int {
	if j.Capture != 0 {
		return 1 << 28
	}
	return max(len(t.ring)/2-headWords, t.args/8)
}

// table finds room for the n words of a job's table. inline is the space for a table in the kernel's arguments. table
// may wait for kernels that run.
func (e *Engine) table(n int, inline []uint64, j *Job) (t table, err error) {
	switch {
	case n <= len(inline) && 8*n <= e.tables.args:
		return table{words: inline[:n]}, nil
	case j.Capture != 0:
		return e.graphTable(n, j.Capture)
	}
	if e.tables.device == 0 {
		err = e.quietly(func() (err error) {
			e.tables.device, err = e.carve(8 * len(e.tables.ring))
			return err
		})
		if err != nil {
			return table{}, err
		}
	}
	words, off, token, err := e.reserve(n, j)
	return table{words, uint64(e.tables.device) + uint64(off), token}, err
}

// reserve finds room in the ring for n words of a job, at byte off.
func (e *Engine) reserve(n int, j *Job) (words []uint64, off int, token uint64, err error) {
	if off, token, err = e.tables.space.Reserve(8*(headWords+n), e.tables.guard); err != nil {
		return nil, 0, 0, e.full(err)
	}
	w := e.tables.ring[off/8:][:headWords+n]
	w[0], w[1] = j.Stamp[0], j.Stamp[1]
	return w[headWords:], off + 8*headWords, token, nil
}

// graphTable is memory for the table of a captured call. Forget takes it back.
func (e *Engine) graphTable(n int, capture uint64) (t table, err error) {
	s := &e.tables
	g := graphTable{class: bits.Len(uint(8*n - 1))}
	if free := &s.free[g.class]; len(*free) > 0 {
		g.at, *free = (*free)[len(*free)-1], (*free)[:len(*free)-1]
	} else if err = e.quietly(func() (err error) {
		g.at, err = e.carve(1 << g.class)
		return err
	}); err != nil {
		return t, err
	}
	s.graphs[capture] = append(s.graphs[capture], g)
	if cap(s.words) < n {
		s.words = make([]uint64, n)
	}
	return table{words: s.words[:n], at: uint64(g.at)}, nil
}

// Forget takes back what the captured calls of a graph have on the device. It is called
// when the graph and all that was made of it are destroyed and run no more.
func (e *Engine) Forget(capture uint64) {
	for _, g := range e.tables.graphs[capture] {
		e.tables.free[g.class] = append(e.tables.free[g.class], g.at)
	}
	delete(e.tables.graphs, capture)
}

// launch uploads a table that has been filled, and queues e.frame.launch with args, which name the table.
func (e *Engine) launch(f cuda.Function, t table, args []byte, event cuda.Event) (err error) {
	n := 8 * len(t.words)
	switch {
	case t.token != 0:
		from := e.tables.pinned + (uintptr(t.at) - e.tables.device)
		err = e.driver.MemcpyAsync(uintptr(t.at), from, n, e.frame.launch.Stream)
	case t.at != 0:
		err = e.quietly(func() error { return e.write(uintptr(t.at), bytesOf(t.words)) })
	}
	if err != nil {
		return err
	}
	if err := e.queue(f, args, event); err != nil {
		return err // no kernel will store the token
	}
	if t.token != 0 {
		e.tables.space.Commit(t.token)
	}
	return nil
}

// A FullError says that a call found no room for its table, because the calls before it
// have not ended.
type FullError struct {
	Rank    sched.Rank
	Oldest  transport.Stamp // of the first call in the ring that has not ended on this rank
	Running bool            // a kernel of this rank runs
	Err     error           // of fifo.Space: the counters, and why the wait has ended
}

func (e *FullError) Error() string {
	state := "none of its kernels runs, so its streams wait for other work"
	if e.Running {
		state = "a kernel runs, and waits for other ranks or works"
	}
	return fmt.Sprintf("%v; on rank %d %s", e.Err, e.Rank, state)
}

func (e *FullError) Unwrap() error { return e.Err }

func (e *Engine) full(err error) error {
	off, ok := e.tables.space.Oldest()
	if !ok {
		return err
	}
	w := e.tables.ring[off/8:]
	started, finished := e.control.Progress()
	return &FullError{Rank: e.rank, Oldest: transport.Stamp{w[0], w[1]}, Running: started > finished, Err: err}
}
