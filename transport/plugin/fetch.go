package plugin

import "fmt"

// A fetch is the payload that comes by itself and that the receiver waits for.
type fetch struct {
	stage   stage
	to      span
	gpu     bool    // memory of a GPU: it must be flushed
	flushed uintptr // the request of that
}

// A stage is how far a fetch is.
type stage uint8

const (
	nothing  stage = iota // to fetch, or not any more
	wanted                // a receive is to be posted
	coming                // it is posted
	unseen                // the payload is here, and is to be flushed
	flushing              // that has begun
)

// get waits until the payload that comes by itself is in its place.
func (c *recvConn) get(to span, gpu bool) error {
	c.mu.Lock()
	if c.fetch.stage == nothing {
		c.fetch = fetch{stage: wanted, to: to, gpu: gpu}
	}
	c.mu.Unlock()
	return c.await(c.released.Load()+1, func() bool { return c.fetch.stage == nothing })
}

// fetchOn takes a fetch to its next stage, if it can. It is called with mu held.
func (c *recvConn) fetchOn() (moved bool) {
	q, f := c.direct, &c.fetch
	var r Result
	function := fnIrecv
	switch f.stage {
	case wanted:
		var request uintptr
		if request, r = q.call.irecv(f.to); r == 0 && request != 0 {
			q.begun(request)
			f.stage, moved = coming, true
		}
	case coming:
		var n int
		function = fnTest
		moved, n, r = q.next()
		switch {
		case !moved:
		case n != f.to.n:
			e := c.t.lib.failed("irecv", fmt.Errorf("a payload of %d bytes came for a slot of %d", n, f.to.n))
			e.Device, e.Peer = c.dev.String(), c.peer
			c.err = e
		case f.gpu:
			f.stage = unseen
		default:
			f.stage = nothing
		}
	case unseen:
		function = fnIflush
		if f.flushed, r = q.call.iflush(f.to); r == 0 {
			f.stage, moved = flushing, true
		}
	case flushing:
		function = fnTest
		if moved = f.flushed == 0; !moved {
			moved, _, r = q.call.test(f.flushed)
		}
		if moved {
			f.stage = nothing
		}
	}
	if r != 0 {
		c.fail(function, r)
	}
	return moved && c.err == nil
}
