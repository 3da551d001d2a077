package bridge

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/fifo"
)

// The stages of a wait for a kernel. A goroutine polls by itself for less than a µs. Then one
// goroutine polls for all waits of the Bridge: at first it only yields, and when nothing has
// come for about a ms, it pauses, the longer the more time has passed without an event.
const (
	eagerPolls = 200
	yields     = 4096
	minSleep   = 20 * time.Microsecond
	maxSleep   = 20 * time.Millisecond
	vigilSleep = 200 * time.Microsecond // in place of maxSleep, see Vigilant
	idleShare  = 64                     // a pause is this part of the idle time
)

// A sleeper is a goroutine that may wait for a kernel's counter to be at least n.
type sleeper struct {
	word  *atomic.Uint64
	n     uint64
	awake chan struct{} // holds one
}

func newSleeper(word *atomic.Uint64) *sleeper {
	return &sleeper{word: word, awake: make(chan struct{}, 1)}
}

// await returns when a sleeper's counter is at least n, or when the Bridge ends.
func (b *Bridge) await(s *sleeper, n uint64) error {
	for range eagerPolls {
		if s.word.Load() >= n {
			return nil
		}
	}
	b.mu.Lock()
	s.n = n
	b.asleep = append(b.asleep, s)
	b.attend()
	b.mu.Unlock()
	<-s.awake
	if s.word.Load() >= n {
		return nil
	}
	return b.ended()
}

// attend has a goroutine poll, with mu held.
func (b *Bridge) attend() {
	switch {
	case !b.polls:
		b.polls = true
		b.work.Go(b.poll)
	case len(b.asleep) == 1:
		b.Wake()
	}
}

// ended is the reason to stop waiting, nil if there is none.
func (b *Bridge) ended() error {
	if b.closed.Load() {
		return fifo.ErrClosed
	}
	return b.cfg.Guard.Aborted()
}

// poll polls for all sleepers, and moves the slots of placed lanes, until the Bridge ends.
func (b *Bridge) poll() {
	timer := time.NewTimer(minSleep)
	defer timer.Stop()
	var idle time.Time // when the pauses began
	for vain := 0; ; {
		woken, left, lanes, ended := b.rouse()
		if ended {
			return
		}
		moved := b.move(lanes)
		switch {
		case woken > 0 || moved:
			vain = 0
			runtime.Gosched()
		case left == 0 && len(lanes) == 0:
			<-b.wake
			vain = 0
		case vain < yields:
			runtime.Gosched()
			if vain++; vain == yields {
				idle = time.Now()
			}
		default:
			longest := maxSleep
			if b.vigilant.Load() {
				longest = vigilSleep
			}
			timer.Reset(min(max(minSleep, time.Since(idle)/idleShare), longest))
			select {
			case <-timer.C:
			case <-b.wake:
				vain = 0
			}
		}
	}
}

// rouse wakes the sleepers whose counter has reached n, or all of them at the Bridge's end.
func (b *Bridge) rouse() (woken, left int, lanes []*lane, ended bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ended = b.ended() != nil
	for _, s := range b.asleep {
		if ended || s.word.Load() >= s.n {
			s.awake <- struct{}{}
			woken++
		} else {
			b.asleep[left] = s
			left++
		}
	}
	clear(b.asleep[left:])
	b.asleep = b.asleep[:left]
	b.polls = !ended
	return woken, left, b.lanes, ended
}

// Wake announces a kernel that may use the queues: polling begins again at once.
func (b *Bridge) Wake() {
	select {
	case b.wake <- struct{}{}:
	default: // announced already
	}
}

// Vigilant has polling go on at short periods, for kernels that nobody announces: those of
// graphs.
func (b *Bridge) Vigilant(on bool) {
	b.vigilant.Store(on)
	b.Wake()
}
