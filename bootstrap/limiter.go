package bootstrap

import (
	"sync"
	"time"
)

// limiter lets a burst of lines through and then one a second.
type limiter struct {
	mu      sync.Mutex
	tokens  float64
	last    time.Time
	dropped int
}

const burst = 10

func (l *limiter) allow(now time.Time) (dropped int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last.IsZero() {
		l.tokens = burst
	} else {
		l.tokens = min(burst, l.tokens+now.Sub(l.last).Seconds())
	}
	l.last = now
	if l.tokens < 1 {
		l.dropped++
		return 0, false
	}
	l.tokens--
	dropped, l.dropped = l.dropped, 0
	return dropped, true
}
