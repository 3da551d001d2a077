package plugin

// maxRequests is how many sends or receives a comm may have outstanding: what NCCL promises
// plugins (NCCL_NET_MAX_REQUESTS).
const maxRequests = 32

// A queue is the messages of one comm, in order. Those numbered done to posted-1 are with the
// plugin.
type queue struct {
	call     *caller
	requests []uintptr // by number
	posted   uint64
	done     uint64

	ring   uintptr // the registration of the ring
	others []registration
}

// A registration is memory that is registered with the comm of a queue.
type registration struct {
	region *region
	mr     uintptr
}

func newQueue(c *caller, slots int) *queue {
	return &queue{call: c, requests: make([]uintptr, min(slots, maxRequests))}
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

// close gives all registrations back and closes the comm by the function that does.
func (q *queue) close(h *half, closing int) (errs []error) {
	if q.call.comm == 0 {
		return nil
	}
	if q.ring != 0 {
		errs = append(errs, h.result(fnDeregMr, q.call.deregister(q.ring)))
	}
	for _, k := range q.others {
		errs = append(errs, h.result(fnDeregMr, q.call.deregister(k.mr)))
	}
	return append(errs, h.result(closing, q.call.close(closing)))
}
