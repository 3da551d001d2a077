package plugin

// maxRequests is how many sends, receives and flushes a comm may have outstanding: what NCCL
// promises plugins (NCCL_NET_MAX_REQUESTS).
const maxRequests = 32

// A queue is the messages of one comm, in order. The plugin has messages done to posted-1.
type queue struct {
	call     *caller
	requests []uintptr // by number
	posted   uint64
	done     uint64

	known bool    // the messages' memory is registered
	mr    uintptr // the plugin's name for the registration
}

func newQueue(c *caller, most int) *queue {
	return &queue{call: c, requests: make([]uintptr, most)}
}

// full reports whether the plugin has as many messages as it takes.
func (q *queue) full() bool { return q.posted-q.done >= uint64(len(q.requests)) }

// begun notes the request of the next message.
func (q *queue) begun(request uintptr) {
	q.requests[q.posted%uint64(len(q.requests))] = request
	q.posted++
}

// next asks whether the oldest message is done, and how many bytes it had.
func (q *queue) next() (done bool, n int, r Result) {
	if q.done == q.posted {
		return false, 0, 0
	}
	if done, n, r = q.call.test(q.requests[q.done%uint64(len(q.requests))]); done {
		q.done++
	}
	return done, n, r
}

// close gives the registration back and closes the comm by function closing.
func (q *queue) close(h *half, closing int) (errs []error) {
	if q.call.comm == 0 {
		return nil
	}
	if q.known {
		errs = append(errs, h.result(fnDeregMr, q.call.deregister(q.mr)))
	}
	return append(errs, h.result(closing, q.call.close(closing)))
}
