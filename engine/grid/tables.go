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
	memory  *memory
	control *Control
	rank    sched.Rank

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
	maxArgsBytes = 8 * inlineWords
	inlineWords  = 448 // of a table in a kernel's arguments
	headWords    = 2   // before a table in the ring, on the host alone: the call's stamp
	wayWords     = 2
	messageWords = 6
	chunkWords   = 2
)

// leastFIFO is the length of the smallest ring: half of it holds what one collective needs, at
// most a message to and one from each rank, or the chunks of a v-variant. One thread may queue
// the calls of all ranks, and must not wait in the middle of one for ranks that come after.
func leastFIFO(ranks int) int {
	return 8 * 2 * (headWords + 2*ranks*max(wayWords+messageWords, chunkWords))
}

func (s *tables) open(o *Options) (err error) {
	n := roundUp(max(o.FIFOBytes, leastFIFO(o.Ranks)), 8)
	if s.args = min(o.ArgsBytes, maxArgsBytes); s.args == 0 {
		s.args = maxArgsBytes
	}
	s.guard = o.Guard
	s.space = fifo.NewSpace(n, &s.control.words.consumed)
	s.graphs = map[uint64][]graphTable{}
	if s.pinned, err = s.memory.store.HostAlloc(n); err != nil {
		return err
	}
	s.ring = pinnedSlice[uint64](s.pinned, n/8)
	return nil
}

func (s *tables) close() {
	if s.pinned != 0 {
		s.memory.store.FreeHost(s.pinned)
	}
	s.pinned, s.ring = 0, nil
}

// most returns how many words a table may have, so that the host can fill one while
// the device has another.
func (s *tables) most(captured bool) int {
	if captured {
		return 1 << 28
	}
	return max(len(s.ring)/2-headWords, s.args/8)
}

// inline reports whether a table of so many words fits into a kernel's arguments.
func (s *tables) inline(words int) bool { return words <= inlineWords && 8*words <= s.args }

// table finds room for the n words of a call's table. inline is the space for a table in the kernel's arguments. table
// may wait for kernels that run.
func (s *tables) table(n int, inline []uint64, stamp transport.Stamp, capture uint64) (t table, err error) {
	switch {
	case n <= len(inline) && 8*n <= s.args:
		return table{words: inline[:n]}, nil
	case capture != 0:
		return s.graphTable(n, capture)
	}
	if s.device == 0 {
		if s.device, err = s.carveLater(8 * len(s.ring)); err != nil {
			return table{}, err
		}
	}
	words, off, token, err := s.reserve(n, stamp)
	return table{words, uint64(s.device) + uint64(off), token}, err
}

// carveLater is memory.carve while streams may be capturing.
func (s *tables) carveLater(n int) (p uintptr, err error) {
	err = s.memory.quietly(func() (err error) {
		p, err = s.memory.carve(n)
		return err
	})
	return p, err
}

// reserve finds room in the ring for n words of a call, at byte off.
func (s *tables) reserve(n int, stamp transport.Stamp) (words []uint64, off int, token uint64, err error) {
	if off, token, err = s.space.Reserve(8*(headWords+n), s.guard); err != nil {
		return nil, 0, 0, s.full(err)
	}
	w := s.ring[off/8:][:headWords+n]
	w[0], w[1] = stamp[0], stamp[1]
	return w[headWords:], off + 8*headWords, token, nil
}

// graphTable finds memory for the table of a captured call. Forget takes it back.
func (s *tables) graphTable(n int, capture uint64) (t table, err error) {
	g := graphTable{class: bits.Len(uint(8*n - 1))}
	if free := &s.free[g.class]; len(*free) > 0 {
		g.at, *free = (*free)[len(*free)-1], (*free)[:len(*free)-1]
	} else if g.at, err = s.carveLater(1 << g.class); err != nil {
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
func (s *tables) Forget(capture uint64) {
	for _, g := range s.graphs[capture] {
		s.free[g.class] = append(s.free[g.class], g.at)
	}
	delete(s.graphs, capture)
}

// upload brings a table that has been filled to the device, before a kernel that is queued on a stream.
func (s *tables) upload(t table, stream cuda.Stream) error {
	switch {
	case t.token != 0:
		from := s.pinned + (uintptr(t.at) - s.device)
		return s.memory.driver.MemcpyAsync(uintptr(t.at), from, 8*len(t.words), stream)
	case t.at != 0:
		return s.memory.quietly(func() error { return s.memory.write(uintptr(t.at), bytesOf(t.words)) })
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

func (s *tables) full(err error) error {
	off, ok := s.space.Oldest()
	if !ok {
		return err
	}
	w := s.ring[off/8:]
	started, finished := s.control.Progress()
	return &FullError{Rank: s.rank, Oldest: transport.Stamp{w[0], w[1]}, Running: started > finished, Err: err}
}
