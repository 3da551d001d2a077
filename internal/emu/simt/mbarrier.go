package simt

import (
	"fmt"

	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// An mbarrier is a barrier in shared memory. A phase of it ends when all its arrivals were
// made and no bytes of asynchronous copies are missing; the next one begins at once.
//
// Its 8 bytes in memory hold mbarrierMark while it lives. Operations on it count as strong
// loads of them, so that an initialisation that nothing orders with them is a race.
type mbarrier struct {
	block    *block
	at       uint64 // in its shared memory
	expected int    // arrivals of a phase
	pending  int    // arrivals that this phase lacks
	bytes    int    // that this phase lacks; below zero where they came before they were expected
	phase    uint32 // the number of the one that goes on
	coming   weakmem.Clock
	done     weakmem.Clock // released by the phases that have ended
	far      weakmem.Clock // as coming, of threads of other blocks for those of the cluster
	farDone  weakmem.Clock // as done
	by       thread        // initialised it
	fenced   bool          // its initialisation was made visible to bulk copies
	gone     bool          // by mbarrier.inval
}

// A thread is one of a block.
type thread struct{ warp, lane int }

const (
	mbarrierMark = 0x9e3779b97f4a7c15 // any value that data hardly has
	mostArrivals = 1<<20 - 1
	mostBytes    = 1<<20 - 1
)

func (m *mbarrier) String() string {
	return fmt.Sprintf("mbarrier at shared %#x: phase %d lacks %d of %d arrivals and %d bytes", m.at, m.phase, m.pending,
		m.expected, m.bytes)
}

// arrive counts arrivals, which release what is in the clock: of threads of another block, if far. The text says what
// is wrong with them.
func (m *mbarrier) arrive(n int, released weakmem.Clock, far bool) (wrong string) {
	if n < 1 || n > m.pending {
		return fmt.Sprintf("%d arrivals at the %v", n, m)
	}
	m.pending -= n
	to := &m.coming
	if far {
		to = &m.far
	}
	*to = weakmem.Join(*to, released)
	m.flip()
	return ""
}

// expect counts bytes that are to come, or for a negative number have come.
func (m *mbarrier) expect(n int) (wrong string) {
	if m.bytes+n > mostBytes || m.bytes+n < -mostBytes {
		return fmt.Sprintf("%d bytes more at the %v: at most %d can be counted", n, m, mostBytes)
	}
	m.bytes += n
	m.flip()
	return ""
}

// flip begins the next phase if this one is complete.
func (m *mbarrier) flip() {
	if m.pending > 0 || m.bytes != 0 {
		return
	}
	m.phase++
	m.pending = m.expected
	m.done, m.coming = weakmem.Join(m.done, m.coming), weakmem.Clock{}
	m.farDone, m.far = weakmem.Join(m.farDone, m.far), weakmem.Clock{}
}

// token is the opaque state that mbarrier.arrive gives.
func (m *mbarrier) token() uint64 { return uint64(m.phase)<<32 | uint64(m.pending) }

// passed reports whether the phase of a token has ended.
func (m *mbarrier) passed(token uint64) (yes bool, wrong string) {
	switch phase := uint32(token >> 32); phase {
	case m.phase:
		return false, ""
	case m.phase - 1:
		return true, ""
	default:
		return false, fmt.Sprintf("a state of phase %d, which is neither this one nor the one before of the %v", phase, m)
	}
}

// passedParity reports whether the last phase of a parity has ended: it is not the one that
// goes on. Before the first phase, one of parity 1 has.
func (m *mbarrier) passedParity(parity uint64) bool { return uint64(m.phase&1) != parity&1 }
