package auth

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A Log writes lines that strangers can cause: a burst of 10, and then one a
// second. A line after others that were left out says how many ("suppressed").
// The nil Log is silent.
type Log struct {
	to *slog.Logger

	mu         sync.Mutex
	tokens     float64
	last       time.Time
	suppressed int
}

const burst = 10

// NewLog returns a Log that writes to l, or the nil Log if l is nil.
func NewLog(l *slog.Logger) *Log {
	if l == nil {
		return nil
	}
	return &Log{to: l, tokens: burst, last: time.Now()}
}

// Warn writes a line, or counts it.
func (l *Log) Warn(msg string, args ...any) { l.write(slog.LevelWarn, msg, args) }

// Info is Warn at level Info.
func (l *Log) Info(msg string, args ...any) { l.write(slog.LevelInfo, msg, args) }

func (l *Log) write(level slog.Level, msg string, args []any) {
	if l == nil || !l.to.Enabled(context.Background(), level) {
		return
	}
	suppressed, ok := l.allow(time.Now())
	if !ok {
		return
	}
	if suppressed > 0 {
		args = append(args, "suppressed", suppressed)
	}
	l.to.Log(context.Background(), level, msg, args...)
}

func (l *Log) allow(now time.Time) (suppressed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens = min(burst, l.tokens+now.Sub(l.last).Seconds())
	l.last = now
	if l.tokens < 1 {
		l.suppressed++
		return 0, false
	}
	l.tokens--
	suppressed, l.suppressed = l.suppressed, 0
	return suppressed, true
}
