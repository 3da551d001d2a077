package ringo

import (
	"context"
	"fmt"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// Do carries out a call and returns when this rank's part is done: its result
// is complete and its memory is the caller's again. On a GPU it returns when the
// call is queued on its stream; see Synchronize. It allocates nothing after the
// first call of a kind. An error is an *Error; one that wraps ErrInvalid or
// ErrUnsupported leaves the communicator usable, any other ends it on all ranks.
func (c *Comm) Do(call *Call) error {
	if err := call.check(c.rank, c.size); err != nil {
		return c.errorOf(call, 0, err)
	}
	if c.queue.busy() {
		if !call.onThread() {
			return c.start(call).Wait()
		}
		c.queue.drain()
	}
	c.run.Lock()
	err := c.carryOut(call)
	c.run.Unlock()
	return err
}

// Start begins a call and returns at once; calls are carried out in the order
// they were started. When as many are waiting as the queue holds (1024), Start
// waits for space.
func (c *Comm) Start(call *Call) *Pending {
	err := call.check(c.rank, c.size)
	if err == nil && call.onThread() {
		err = fmt.Errorf("%w: the per-thread stream is this thread's, and what is started is queued by another: use Do, or a stream of your own", ErrInvalid)
	}
	if err != nil {
		p := newPending(call)
		p.finish(c.errorOf(call, 0, err))
		return p
	}
	return c.start(call)
}

// carryOut does a checked call, with c.run held.
func (c *Comm) carryOut(call *Call) error {
	switch {
	case call.onDevice():
		return c.queueOnDevice(call)
	case c.cfg.byRank(call, c.size):
		return c.carryOutByRank(call)
	}
	if err := c.begin(call); err != nil {
		return err
	}
	j := &c.job
	if err := c.prepare(j, call); err != nil {
		return c.fail(call, err)
	}
	if err := c.engine.Run(j); err != nil {
		return c.fail(call, err)
	}
	if j.Reducer != nil && j.Reducer.Finishes() && len(j.Out) > 0 {
		j.Reducer.Finish(j.Out)
	}
	j.In, j.Out = nil, nil // the caller may want it collected
	return nil
}

// begin starts the time of an operation, if there may be one.
func (c *Comm) begin(call *Call) error {
	if f := c.failed.Load(); f != nil {
		return c.errorOf(call, 0, fmt.Errorf("the communicator has failed before: %w", f))
	}
	if err := c.guard.Aborted(); err != nil {
		return c.fail(call, err)
	}
	c.guard.Begin(c.cfg.Timeout)
	return nil
}

// A request is a checked call as an engine needs it.
type request struct {
	stamp   transport.Stamp
	reducer *kernels.Reducer
	op      kernels.Kind
	scalar  uintptr // of a PreMulSum, on the device
	key     programKey
	size    int // of an element
	in, out int // bytes
}

// request numbers a call that an algorithm is to carry out, and finds its arithmetic.
func (c *Comm) request(call *Call, a algo) (r request, err error) {
	s := sign{kind: call.Kind, typ: call.Type, count: call.Count, root: -1, algo: a}
	switch call.Kind {
	case KindSend, KindRecv:
		s.kind = KindSend
	case KindAllGatherv:
		s.count = hashCounts(call.OutCounts)
	case KindAlltoAllv:
		s.count = 0
	}
	if call.Kind.Reduces() {
		s.op, r.op = call.Op.Kind, call.Op.Kind
		if r.reducer, err = kernels.NewReducer(call.Type, call.Op, c.size); err != nil {
			return r, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		if at := call.Op.At; at != nil && !at.IsHost() {
			r.scalar = at.Ptr()
		}
	}
	if s.kind != KindSend { // nothing below can be wrong on this rank alone
		c.seq = max(c.seq+1, 1)
		s.seq = c.seq
	}
	if call.Kind.Rooted() {
		s.root = call.Root
	}
	r.size = 1
	if call.Kind != KindBarrier {
		r.size = call.Type.Size()
		in, out := call.shape(c.rank, c.size)
		r.in, r.out = in*r.size, out*r.size
	}
	if c.cfg.trace {
		c.log.Log(context.Background(), levelTrace, call.String(), "subsys", "CALL", "seq", s.seq, "algo", s.algo.String())
	}
	r.stamp = s.stamp()
	r.key = programKey{kind: call.Kind, algo: s.algo, peer: int32(s.root)}
	if s.kind == KindSend {
		r.key.peer = int32(call.Peer)
	}
	return r, nil
}

// prepare fills in a job: its sign, algorithm, program, memory and arithmetic.
func (c *Comm) prepare(j *engine.Job, call *Call) error {
	r, err := c.request(call, c.plan(call.Kind, call.bytes()))
	if err != nil {
		return err
	}
	if c.program == nil || r.key != c.key {
		p, err := c.compile(r.key)
		if err != nil {
			return err
		}
		c.key, c.program = r.key, p
	}
	j.Program, j.Reducer, j.Stamp = c.program, r.reducer, r.stamp
	// A Send returns when its message is in the queue, so that two ranks may both
	// send and then receive what fits there.
	j.Lend = call.Kind != KindSend && call.Kind != KindRecv
	j.In, j.Out = nil, nil
	if r.in > 0 {
		j.In = call.In.Bytes()[:r.in]
	}
	if r.out > 0 {
		j.Out = call.Out.Bytes()[:r.out]
	}
	j.InL, j.OutL = c.layouts(call, j.Program.Shape(), r.size)
	if call.copiesIn() {
		c.spare = append(c.spare[:0], j.In...)
		j.In = c.spare
	}
	return nil
}

// layouts says where the chunks of In and Out lie.
func (c *Comm) layouts(call *Call, shape sched.Shape, size int) (in, out engine.Layout) {
	one := call.Count * size
	switch call.Kind {
	case KindAllReduce, KindReduce, KindBroadcast:
		in = engine.Even(one, shape.In, size) // In and Out have the same chunks
		return in, in
	case KindAllGatherv:
		lens := scaled(call.OutCounts, size)
		in = engine.Layout{Total: lens[c.rank], Chunk: lens[c.rank]}
		return in, engine.Layout{Off: offsets(call.OutCounts, call.OutOffsets, size), Len: lens}
	case KindAlltoAllv:
		return engine.Layout{Off: offsets(call.InCounts, call.InOffsets, size), Len: scaled(call.InCounts, size)},
			engine.Layout{Off: offsets(call.OutCounts, call.OutOffsets, size), Len: scaled(call.OutCounts, size)}
	}
	// chunks are the shares of the ranks
	return engine.Layout{Total: shape.In * one, Chunk: one}, engine.Layout{Total: shape.Out * one, Chunk: one}
}

// copiesIn reports whether In has to be copied first, for Out is its memory.
func (c *Call) copiesIn() bool {
	return (c.Kind == KindAlltoAll || c.Kind == KindAlltoAllv) && c.In.Overlaps(c.Out)
}

func scaled(counts []int, size int) []int {
	out := make([]int, len(counts))
	for i, n := range counts {
		out[i] = n * size
	}
	return out
}

func offsets(counts, offs []int, size int) []int {
	if offs != nil {
		return scaled(offs, size)
	}
	out := make([]int, len(counts))
	for i := 1; i < len(counts); i++ {
		out[i] = out[i-1] + counts[i-1]*size
	}
	return out
}

// compile finds or makes the program of a key.
func (c *Comm) compile(key programKey) (*engine.Program, error) {
	if p := c.programs[key]; p != nil {
		return p, nil
	}
	p, err := engine.Compile(key.schedule(c.topo), sched.Rank(c.rank), c.links)
	if err == nil {
		c.programs[key] = p
	}
	return p, err
}
