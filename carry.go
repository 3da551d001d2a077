package ringo

import (
	"context"
	"fmt"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/sched"
)

// Do carries out a call and returns when this rank's part is done: its result
// is complete and its memory is the caller's again. It allocates nothing after
// the first call of a kind. An error is an *Error; one that wraps ErrInvalid or
// ErrUnsupported leaves the communicator usable, any other ends it on all ranks.
func (c *Comm) Do(call *Call) error {
	if err := call.check(c.rank, c.size); err != nil {
		return c.errorOf(call, 0, err)
	}
	if c.queue.busy() {
		return c.start(call).Wait()
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
	if err := call.check(c.rank, c.size); err != nil {
		p := newPending(call)
		p.finish(c.errorOf(call, 0, err))
		return p
	}
	return c.start(call)
}

// carryOut does a checked call, with c.run held.
func (c *Comm) carryOut(call *Call) error {
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

// prepare fills in a job: its sign, algorithm, program, memory and arithmetic.
func (c *Comm) prepare(j *engine.Job, call *Call) error {
	s := sign{kind: call.Kind, typ: call.Type, count: call.Count, root: -1}
	switch call.Kind {
	case KindSend, KindRecv:
		s.kind = KindSend
	case KindAllGatherv:
		s.count = hashCounts(call.OutCounts)
	case KindAlltoAllv:
		s.count = 0
	}
	j.Reducer = nil
	if call.Kind.Reduces() {
		s.op = call.Op.Kind
		r, err := kernels.NewReducer(call.Type, call.Op, c.size)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		j.Reducer = r
	}
	if s.kind != KindSend { // nothing below can be wrong on this rank alone
		c.seq = max(c.seq+1, 1)
		s.seq = c.seq
	}
	if call.Kind.Rooted() {
		s.root = call.Root
	}

	size := 1
	in, out := 0, 0
	if call.Kind != KindBarrier {
		size = call.Type.Size()
		in, out = call.shape(c.rank, c.size)
	}
	s.algo = c.plan(call.Kind, call.Count*size)
	if c.cfg.trace {
		c.log.Log(context.Background(), levelTrace, call.String(), "subsys", "CALL", "seq", s.seq, "algo", s.algo.String())
	}
	j.Stamp = s.stamp()
	// A Send returns when its message is in the queue, so that two ranks may both
	// send and then receive what fits there.
	j.Lend = s.kind != KindSend

	key := programKey{kind: call.Kind, algo: s.algo, peer: int32(s.root)}
	if s.kind == KindSend {
		key.peer = int32(call.Peer)
	}
	if c.program == nil || key != c.key {
		p, err := c.compile(key)
		if err != nil {
			return err
		}
		c.key, c.program = key, p
	}
	j.Program = c.program

	j.In, j.Out = nil, nil
	if in > 0 {
		j.In = call.In.Bytes()[:in*size]
	}
	if out > 0 {
		j.Out = call.Out.Bytes()[:out*size]
	}
	c.place(j, call, size)
	return nil
}

// place fills in the layouts of a job.
func (c *Comm) place(j *engine.Job, call *Call, size int) {
	shape := j.Program.Shape()
	one := call.Count * size
	switch call.Kind {
	case KindAllReduce, KindReduce, KindBroadcast:
		j.InL = engine.Even(one, shape.In, size) // In and Out have the same chunks
		j.OutL = j.InL
	case KindAllGatherv:
		lens := scaled(call.OutCounts, size)
		j.OutL = engine.Layout{Off: offsets(call.OutCounts, call.OutOffsets, size), Len: lens}
		j.InL = engine.Layout{Total: lens[c.rank], Chunk: lens[c.rank]}
	case KindAlltoAllv:
		j.InL = engine.Layout{Off: offsets(call.InCounts, call.InOffsets, size), Len: scaled(call.InCounts, size)}
		j.OutL = engine.Layout{Off: offsets(call.OutCounts, call.OutOffsets, size), Len: scaled(call.OutCounts, size)}
	default: // chunks are the shares of the ranks
		j.InL = engine.Layout{Total: shape.In * one, Chunk: one}
		j.OutL = engine.Layout{Total: shape.Out * one, Chunk: one}
	}
	if (call.Kind == KindAlltoAll || call.Kind == KindAlltoAllv) && call.In.Overlaps(call.Out) {
		c.spare = append(c.spare[:0], j.In...)
		j.In = c.spare
	}
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
