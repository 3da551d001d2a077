package trace

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// Log is an Observer that writes a record, at slog.LevelDebug, when a call has ended: how long it took and for whom it
// waited the longest. It is what RINGO_DEBUG=TRACE asks for.
func Log(l *slog.Logger) Observer { return &logger{l} }

type logger struct{ log *slog.Logger }

func (l *logger) Begin(*Call) {}

func (l *logger) End(c *Call) {
	attrs := []slog.Attr{slog.String("subsys", "CALL"), slog.Duration("took", time.Duration(c.End-c.Start))}
	if w := c.waitedFor(3); w != "" {
		attrs = append(attrs, slog.String("waited for", w))
	}
	if c.Err != nil {
		attrs = append(attrs, slog.Any("err", c.Err))
	}
	l.log.LogAttrs(context.Background(), slog.LevelDebug, c.Title()+" ended", attrs...)
}

// waitedFor says for which ranks the call waited the longest: "rank 2 3.1ms, rank 0 12µs".
func (c *Call) waitedFor(most int) string {
	order := make([]int, 0, len(c.Waits))
	for r, d := range c.Waits {
		if d > 0 {
			order = append(order, r)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(c.Waits[b] - c.Waits[a]) })
	var words []string
	for _, r := range order[:min(most, len(order))] {
		words = append(words, fmt.Sprintf("rank %d %v", r, spell(c.Waits[r])))
	}
	return strings.Join(words, ", ")
}
