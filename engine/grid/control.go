package grid

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// ErrAborted says that a kernel was told to end while it waited for a peer.
var ErrAborted = errors.New("aborted while waiting")

// A Control is a rank's control block: pinned host memory through which kernels
// are stopped and tell what they do. Its methods may be called from any goroutine
// also after the Engine is closed; they do not call the driver.
type Control struct {
	host   uintptr
	device uint64

	mu      sync.RWMutex    // held by free alone, shared by all that look at the words
	words   *controlWords   // guarded by mu
	awaited []atomic.Uint32 // guarded by mu; by rank: not 0 if a kernel has waited for it since Ask
}

const controlBytes = 256 // without awaited

// Values of controlWords.wish: what waiting kernels are to do.
const (
	toEnd = 1
	toSay = 2 // for whom they wait
)

// controlWords is namespace control of kernels/cuda/comm.h.
type controlWords struct {
	wish     atomic.Uint32
	gone     atomic.Uint32
	_        [14]uint32
	started  atomic.Uint64
	finished atomic.Uint64
	consumed atomic.Uint64
	_        [5]uint64
	kind     atomic.Uint32
	peer     int32
	phase    uint32
	_        uint32
	bytes    uint64
	mine     transport.Stamp
	theirs   transport.Stamp
	their    uint64
}

func newControl(d cuda.Driver, s *cuda.Store, ranks int) (*Control, error) {
	n := controlBytes + 4*ranks
	p, err := s.HostAlloc(n)
	if err != nil {
		return nil, err
	}
	clear(pinnedSlice[byte](p, n))
	c := &Control{host: p, words: pinnedAt[controlWords](p),
		awaited: pinnedSlice[atomic.Uint32](p+controlBytes, ranks)}
	q, err := d.MemHostGetDevicePointer(p)
	if err != nil {
		s.FreeHost(p)
		return nil, err
	}
	c.device = uint64(q)
	return c, nil
}

func (c *Control) free(s *cuda.Store) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.host != 0 {
		s.FreeHost(c.host)
	}
	c.host, c.words, c.awaited = 0, new(controlWords), nil
}

// Abort ends kernels that wait, within some ms, and those that are yet to start.
// Their results are undefined, and the queues are of no use any more.
func (c *Control) Abort() {
	c.mu.RLock()
	defer c.mu.RUnlock()
	c.words.wish.Store(toEnd)
}

// Ask makes kernels that wait say for whom, see Awaited, until AskNoMore. Each does within a ms.
func (c *Control) Ask() {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for i := range c.awaited {
		c.awaited[i].Store(0)
	}
	c.words.wish.CompareAndSwap(0, toSay)
}

// Awaited are the ranks for which kernels have waited since Ask.
func (c *Control) Awaited() (ranks []int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for rank := range c.awaited {
		if c.awaited[rank].Load() != 0 {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// AskNoMore ends Ask.
func (c *Control) AskNoMore() {
	c.mu.RLock()
	defer c.mu.RUnlock()
	c.words.wish.CompareAndSwap(toSay, 0)
}

// Gone says that a rank has left the communicator. Direct kernels then wait no longer for lines of that rank that hold
// no data, which in a small broadcast the root waits for. For data they still wait.
func (c *Control) Gone(rank int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if rank < 32 { // more ranks than direct kernels have
		c.words.gone.Or(1 << rank)
	}
}

// Aborted reports whether kernels were told to end, by Abort or by a kernel that
// found a mismatch.
func (c *Control) Aborted() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.words.wish.Load() == toEnd
}

// Progress counts operations that have started and that have finished, replays of
// graphs included. A kernel that was aborted has finished too.
func (c *Control) Progress() (started, finished uint64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	finished = c.words.finished.Load()
	return c.words.started.Load(), finished
}

// Consumed is the token of the last kernel that had one and has ended. Kernels end in
// the order in which they are launched, so those before it have ended too.
func (c *Control) Consumed() uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.words.consumed.Load()
}

// Stamp is the stamp of the first operation that failed, once Fault returns an error.
func (c *Control) Stamp() transport.Stamp {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.words.mine
}

// Fault is the error of the first kernel that failed: a *engine.StepError that
// wraps *engine.MismatchError or ErrAborted; nil if none failed.
func (c *Control) Fault() error {
	const (
		aborted   = 1
		receiving = 2
	)
	c.mu.RLock()
	defer c.mu.RUnlock()
	w := c.words
	kind := w.kind.Load()
	if kind == 0 {
		return nil
	}
	e := &engine.StepError{Peer: sched.Rank(w.peer), Phase: "send", Err: ErrAborted}
	if w.phase == receiving {
		e.Phase = "recv"
	}
	if kind != aborted {
		e.Err = &engine.MismatchError{Want: w.mine, Got: w.theirs, WantBytes: int(w.bytes), GotBytes: int(w.their)}
	}
	return e
}
