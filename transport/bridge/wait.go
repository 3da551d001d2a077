package bridge

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/fifo"
)

// The first stages of a wait for a kernel; and the period of polling for those asleep,
// which grows with the time in which nothing happened.
const (
	eagerPolls = 200
	yieldTime  = time.Millisecond
	minSleep   = 20 * time.Microsecond
	maxSleep   = 20 * time.Millisecond
	vigilSleep = 200 * time.Microsecond // instead, see Vigilant
	idleShare  = 64                     // the period is this part of the idle time
)

// A sleeper waits for a kernel's counter to be at least n.
type sleeper struct {
	word  *atomic.Uint64
	n     uint64
	awake chan struct{}
}

// await returns when a kernel's counter is at least n, or when the Bridge ends.
func (b *Bridge) await(word *atomic.Uint64, n uint64) error {
	for range eagerPolls {
		if word.Load() >= n {
			return nil
		}
	}
	for start := time.Now(); time.Since(start) < yieldTime; runtime.Gosched() {
		if word.Load() >= n {
			return nil
		}
		if err := b.ended(); err != nil {
			return err
		}
	}
	s := &sleeper{word, n, make(chan struct{})}
	b.mu.Lock()
	b.asleep = append(b.asleep, s)
	if !b.polls {
		b.polls = true
		b.work.Go(b.poll)
	}
	b.mu.Unlock()
	<-s.awake
	if word.Load() >= n {
		return nil
	}
	return b.ended()
}

// ended is the reason to stop waiting, nil if there is none.
func (b *Bridge) ended() error {
	if b.closed.Load() {
		return fifo.ErrClosed
	}
	return b.cfg.Guard.Aborted()
}

// poll polls for all sleepers as long as there are any.
func (b *Bridge) poll() {
	timer := time.NewTimer(minSleep)
	defer timer.Stop()
	for idle := time.Now(); ; {
		woken, left := b.rouse()
		if left == 0 {
			return
		}
		if woken > 0 {
			idle = time.Now()
		}
		longest := maxSleep
		if b.vigilant.Load() {
			longest = vigilSleep
		}
		timer.Reset(min(max(minSleep, time.Since(idle)/idleShare), longest))
		select {
		case <-timer.C:
		case <-b.wake:
			idle = time.Now()
		}
	}
}

// rouse wakes the sleepers whose counter has arrived, or all of them at the end.
func (b *Bridge) rouse() (woken, left int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ended := b.ended() != nil
	for _, s := range b.asleep {
		if ended || s.word.Load() >= s.n {
			close(s.awake)
			woken++
		} else {
			b.asleep[left] = s
			left++
		}
	}
	clear(b.asleep[left:])
	b.asleep = b.asleep[:left]
	b.polls = left > 0
	return woken, left
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
