package sim

import (
	"fmt"
	"strings"
)

// checkEnd names ranks that did not get to the end, and messages that nobody received.
func (w *world) checkEnd() error {
	var stuck []string
	for r := range w.ranks {
		st := &w.ranks[r]
		if st.waits == ended || w.sym.rep(int32(r)) != int32(r) {
			continue
		}
		q := w.list[st.waits]
		what := fmt.Sprintf("for room in the queue to rank %d", q.dst)
		if q.sent == q.received {
			what = fmt.Sprintf("for a message of rank %d", q.src)
		}
		stuck = append(stuck, fmt.Sprintf("rank %d waits in step %d of %d %s", r, st.step, st.steps, what))
	}
	if n := len(stuck); n > 0 {
		more := ""
		if n > 3 {
			stuck, more = stuck[:3], fmt.Sprintf("; and %d more", n*w.sym.orbit()-3)
		}
		return fmt.Errorf("sim: %w of %d of %d ranks: %s%s", ErrDeadlock, n*w.sym.orbit(), len(w.ranks),
			strings.Join(stuck, "; "), more)
	}
	for _, q := range w.list {
		if q.sent != q.received {
			return fmt.Errorf("sim: rank %d never receives %d messages of rank %d", q.dst, q.sent-q.received, q.src)
		}
	}
	return nil
}
