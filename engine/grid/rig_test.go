package grid

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// A rig is the ranks of a communicator in this process, on as many devices as
// there are, with plain memory that all of them reach.
type rig struct {
	t        testing.TB
	d        cuda.Driver
	board    Board
	ranks    []*member
	devices  []cuda.Device
	programs map[string][]*Program
	closed   bool
}

type member struct {
	rank   sched.Rank
	dev    cuda.Device
	ctx    cuda.Context
	stream cuda.Stream
	memory uintptr
	engine *Engine
	free   []uintptr        // memory of works
	graphs []cuda.GraphExec // until close
}

// small is a board for the emulator: what is large elsewhere takes several rounds.
func small(ranks int) Board {
	g := Geometry{Lanes: 2, Slots: 4, SlotBytes: 256, NoteBytes: 256}
	return Board{Ranks: ranks, MailBytes: 128, Near: g, Far: Geometry{Lanes: 2, Slots: 2, SlotBytes: 256, NoteBytes: 128}}
}

func options(ranks int) Options { return Options{Ranks: ranks, Threads: 64, MinSlice: 128} }

// beside has a test that waits for real time run beside others, but on a GPU, which they would share.
func beside(t *testing.T) {
	if !gputest.OnGPU() {
		t.Parallel()
	}
}

// emulated is a driver with at least n devices, joined by NVLink unless c says otherwise.
func emulated(t testing.TB, n int, c cudaemu.Config) cuda.Driver {
	t.Helper()
	if c.Devices = n; c.Link == nil {
		c.Link = link(0)
	}
	return gputest.Driver(t, gputest.Devices(n), gputest.Warm(), gputest.Emu(c))
}

// unchecked reports whether the emulator looks for no races: in some cases, but in the full tier.
func unchecked(some bool) bool { return some && !tier.Full() }

// link is the link of all devices by a seed: NVLink, or for odd ones PCIe.
func link(seed uint64) func(a, b int) cuda.Link {
	if seed%2 == 1 {
		return gputest.PCIe
	}
	return func(a, b int) cuda.Link { return cuda.NVLink }
}

// carried is a board as links carry it: over some of them no notes go, and lines in mailboxes
// may tear.
func carried(t testing.TB, d cuda.Driver, devices int, board Board) Board {
	t.Helper()
	for i := range devices {
		link, err := cuda.LinkBetween(d, 0, cuda.Device(i))
		require.NoError(t, err)
		if !link.Whole() {
			board.Torn, board.Near.NoteBytes, board.Far.NoteBytes = true, 0, 0
		}
	}
	return board
}

// newRig has a rank on each of the first devices.
func newRig(t testing.TB, d cuda.Driver, board Board, o Options) *rig {
	t.Helper()
	return newRigOn(t, d, board.Ranks, carried(t, d, board.Ranks, board), o)
}

func newRigOn(t testing.TB, d cuda.Driver, devices int, board Board, o Options) *rig {
	t.Helper()
	r := &rig{t: t, d: d, board: board, programs: map[string][]*Program{}}
	contexts := map[cuda.Device]cuda.Context{}
	for i := range devices {
		dev, err := d.DeviceGet(i)
		require.NoError(t, err)
		ctx, err := d.DevicePrimaryCtxRetain(dev)
		require.NoError(t, err)
		contexts[dev] = ctx
		r.devices = append(r.devices, dev)
	}
	var memory []uint64
	for i := range board.Ranks {
		m := &member{rank: sched.Rank(i), dev: r.devices[i%len(r.devices)]}
		m.ctx = contexts[m.dev]
		r.ranks = append(r.ranks, m)
		r.with(m, func() (err error) {
			for peer, ctx := range contexts {
				if err := d.CtxEnablePeerAccess(ctx); peer != m.dev && !errors.Is(err, cuda.ErrPeerAccessAlreadyEnabled) {
					require.NoError(t, err)
				}
			}
			if m.stream, err = d.StreamCreate(cuda.StreamNonBlocking, 0); err != nil {
				return err
			}
			if m.memory, err = d.MemAlloc(board.Bytes()); err != nil {
				return err
			}
			if err = d.MemsetD8Async(m.memory, 0, board.Zero(), m.stream); err != nil {
				return err
			}
			for p := range board.Ranks { // headers are read before they are written where ranks disagree
				g := board.Geometry(sched.Rank(p), m.rank)
				for l := range g.Lanes {
					at := m.memory + uintptr(board.Queues(sched.Rank(p), m.rank)+l*g.QueueBytes()+g.Slots*g.SlotBytes)
					if err = d.MemsetD8Async(at, 0, g.QueueBytes()-g.Slots*g.SlotBytes, m.stream); err != nil {
						return err
					}
				}
			}
			memory = append(memory, uint64(m.memory))
			return d.StreamSynchronize(m.stream)
		})
	}
	for _, m := range r.ranks {
		var err error
		o.Rank = m.rank
		m.engine, err = New(d, m.ctx, m.dev, board.Links(m.rank, memory), o)
		require.NoError(t, err)
	}
	t.Cleanup(r.close)
	return r
}

// abort ends kernels that wait, and those that are yet to come.
func (r *rig) abort() {
	for _, m := range r.ranks {
		if m.engine != nil {
			m.engine.Control().Abort()
		}
	}
}

// close ends all kernels and frees everything. It ignores errors, since a test may lose a context.
func (r *rig) close() {
	if r.closed {
		return
	}
	r.closed = true
	r.abort()
	for _, m := range r.ranks {
		_ = cuda.With(r.d, m.ctx, func() error {
			_ = r.d.StreamSynchronize(m.stream)
			return nil
		})
	}
	for _, m := range r.ranks {
		_ = m.engine.Close()
		_ = cuda.With(r.d, m.ctx, func() error {
			_ = r.d.StreamDestroy(m.stream)
			for _, x := range m.graphs {
				_ = r.d.GraphExecDestroy(x)
			}
			for _, p := range append(m.free, m.memory) {
				_ = r.d.MemFree(p)
			}
			return nil
		})
	}
	for _, dev := range r.devices {
		_ = r.d.DevicePrimaryCtxRelease(dev)
	}
}

// sub is a subtest with the rig. After one that failed there are no others, for
// the queues are of no use then.
func (r *rig) sub(name string, f func()) {
	r.t.Helper()
	whole := r.t.(*testing.T)
	ok := whole.Run(name, func(t *testing.T) {
		r.t = t
		f()
	})
	if r.t = whole; !ok {
		whole.FailNow()
	}
}

// with calls f with a rank's context current.
func (r *rig) with(m *member, f func() error) {
	r.t.Helper()
	require.NoError(r.t, cuda.With(r.d, m.ctx, f), "rank %d", m.rank)
}

// wipe clears the ranks' memory, for tests in which a rank reads what no other has written.
func (r *rig) wipe() {
	r.t.Helper()
	for _, m := range r.ranks {
		r.with(m, func() error { return r.d.MemsetD8Async(m.memory, 0, r.board.Bytes(), m.stream) })
	}
	r.sync()
}

// patience is how long operations of a test may take before it ends them: where
// one rank fails the others wait for it, and a GPU says nothing of that.
func patience() time.Duration {
	if gputest.OnGPU() {
		return 5 * time.Second
	}
	return time.Minute
}

func (r *rig) sync() {
	r.t.Helper()
	defer time.AfterFunc(patience(), r.abort).Stop()
	for _, m := range r.ranks {
		r.with(m, func() error { return r.d.StreamSynchronize(m.stream) })
	}
}

// program compiles a schedule for all ranks, once.
func (r *rig) program(name string, s sched.Schedule) []*Program {
	r.t.Helper()
	if p := r.programs[name]; p != nil {
		return p
	}
	var all []*Program
	for _, m := range r.ranks {
		p, err := m.engine.Compile(s, m.rank)
		require.NoError(r.t, err)
		all = append(all, p)
	}
	r.programs[name] = all
	return all
}

// An image is memory of an operation on a rank's device: as it is at the start, and as it should be in the end.
type image struct {
	m           *member
	at          uintptr
	fresh, want []byte
}

// A work is an operation of all ranks.
type work struct {
	name   string
	jobs   []Job // by rank, where each has one
	images []image
	queue  func(m *member) error // on a rank's stream, with its context current
}

func (w *work) base() *work { return w }

// A worker is a work, or has one.
type worker interface{ base() *work }

// An operation is a work by a schedule.
type operation struct {
	trial
	work
}

// prepare makes an operation; it is not started.
func (r *rig) prepare(x trial, seed uint64) *operation {
	r.t.Helper()
	o := &operation{trial: x, work: work{name: x.String()}}
	o.queue = func(m *member) error { return carry(m.engine, &o.jobs[m.rank]) }
	programs := r.program(x.name, x.schedule)
	rnd := rand.New(rand.NewPCG(seed, 7))
	var red *kernels.Reducer
	if x.op != nil {
		var err error
		red, err = kernels.NewReducer(x.t, *x.op, len(r.ranks))
		require.NoError(r.t, err)
	}
	host := make([]engine.Job, len(r.ranks))
	for i, m := range r.ranks {
		images, in, out, inL, outL := x.buffers(m.rank, rnd)
		want := make([][]byte, len(images))
		for k := range images {
			want[k] = bytes.Clone(images[k])
		}
		j := Job{Program: programs[i], InL: inL, OutL: outL, Reducer: red, Stamp: transport.Stamp{1, seed}, Stream: m.stream}
		host[i] = engine.Job{In: in(want), Out: out(want), InL: inL, OutL: outL, Reducer: red, Stamp: j.Stamp}
		var at []uintptr
		for _, image := range images {
			at = append(at, r.alloc(m, len(image)+256)+256-guard)
		}
		region := func(part []byte) mem.Region {
			for k := range images {
				if b := mem.Host(part); b.Len() > 0 && b.Overlaps(mem.Host(images[k])) {
					return mem.Device(int(m.dev), at[k]+b.Ptr()-mem.Host(images[k]).Ptr(), b.Len())
				}
			}
			return mem.Device(int(m.dev), at[0], 0)
		}
		j.In, j.Out = region(in(images)), region(out(images))
		if x.scalar {
			j.Scalar = r.scalar(m, red)
		}
		o.jobs = append(o.jobs, j)
		for k := range images {
			o.images = append(o.images, image{m, at[k], images[k], want[k]})
		}
	}
	onHost(r.t, x.schedule, host)
	if red != nil && red.Finishes() {
		for i := range host {
			red.Finish(host[i].Out)
		}
	}
	return o
}

// alloc returns n bytes of a rank's device, until free.
func (r *rig) alloc(m *member, n int) (p uintptr) {
	r.t.Helper()
	r.with(m, func() (err error) {
		p, err = r.d.MemAlloc(max(1, n))
		return err
	})
	m.free = append(m.free, p)
	return p
}

// upload returns a copy of b on a rank's device, until free; it begins skip bytes behind its memory.
func (r *rig) upload(m *member, b []byte, skip int) mem.Region {
	r.t.Helper()
	p := r.alloc(m, len(b)+skip) + uintptr(skip)
	if len(b) > 0 {
		r.with(m, func() error { return cuda.Write(r.d, p, b) })
	}
	return mem.Device(int(m.dev), p, len(b))
}

// scalar returns the address of a reducer's scalar on a rank's device.
func (r *rig) scalar(m *member, red *kernels.Reducer) uintptr {
	one := make([]byte, 16)
	red.Load(one[:red.Type().Size()], unit(red.Type()))
	return r.upload(m, one, 0).Ptr()
}

// reset puts the memory of works as it was at the start.
func (r *rig) reset(all ...worker) {
	r.t.Helper()
	for _, w := range all {
		for _, i := range w.base().images {
			if len(i.fresh) > 0 {
				r.with(i.m, func() error { return cuda.Write(r.d, i.at, i.fresh) })
			}
		}
	}
}

// run queues works on all ranks, one after the other.
func (r *rig) run(all ...worker) { r.runOn(r.ranks, all...) }

func (r *rig) runOn(ranks []*member, all ...worker) {
	r.t.Helper()
	for _, w := range all {
		for _, m := range ranks {
			r.with(m, func() error { return w.base().queue(m) })
		}
	}
}

// check compares the memory of works with what it should be.
func (r *rig) check(all ...worker) {
	r.t.Helper()
	for _, w := range all {
		require.NoError(r.t, r.wrong(w))
	}
}

// wrong says what is wrong with the results of a work, nil if nothing is.
func (r *rig) wrong(w worker) error {
	r.t.Helper()
	r.sync()
	for _, m := range r.ranks {
		require.NoError(r.t, m.engine.Control().Fault())
	}
	return r.differs(w)
}

// differs is wrong without a look at whether kernels have failed.
func (r *rig) differs(w worker) error {
	for _, i := range w.base().images {
		if len(i.want) == 0 {
			continue
		}
		got := make([]byte, len(i.want))
		if err := cuda.With(r.d, i.m.ctx, func() error { return r.d.MemcpyDtoH(got, i.at) }); err != nil {
			return err
		}
		for at := range got {
			if got[at] != i.want[at] {
				return fmt.Errorf("%s: rank %d: byte %d of %d is %x, want %x", w.base().name, i.m.rank, at, len(got), got[at],
					i.want[at])
			}
		}
	}
	return nil
}

// inTurn carries out works one after the other, with nothing waited for between.
func (r *rig) inTurn(all ...worker) {
	r.t.Helper()
	r.reset(all...)
	r.run(all...)
	r.check(all...)
}

// once carries out a work and frees its memory.
func (r *rig) once(w worker) {
	r.t.Helper()
	r.inTurn(w)
	r.free()
}

func (r *rig) try(x trial, seed uint64) {
	r.t.Helper()
	r.once(r.prepare(x, seed))
}

// free frees the memory of works.
func (r *rig) free() {
	r.t.Helper()
	for _, m := range r.ranks {
		r.with(m, func() error {
			var errs []error
			for _, p := range m.free {
				errs = append(errs, r.d.MemFree(p))
			}
			m.free = nil
			return errors.Join(errs...)
		})
	}
}

// capture makes a graph of what f queues on a rank's stream, until close.
func (r *rig) capture(m *member, f func(m *member) error) (x cuda.GraphExec) {
	r.t.Helper()
	r.with(m, func() error {
		require.NoError(r.t, r.d.StreamBeginCapture(m.stream, cuda.CaptureThreadLocal))
		require.NoError(r.t, f(m))
		g, err := r.d.StreamEndCapture(m.stream)
		require.NoError(r.t, err)
		x, err = r.d.GraphInstantiate(g, 0)
		require.NoError(r.t, err)
		return r.d.GraphDestroy(g)
	})
	m.graphs = append(m.graphs, x)
	return x
}

// destroy ends a graph before close does.
func (r *rig) destroy(m *member, x cuda.GraphExec) {
	m.graphs = slices.DeleteFunc(m.graphs, func(o cuda.GraphExec) bool { return o == x })
	r.with(m, func() error { return r.d.GraphExecDestroy(x) })
}

// captured makes a graph of works for each rank.
func (r *rig) captured(all ...worker) (graphs []cuda.GraphExec) {
	r.t.Helper()
	for _, m := range r.ranks {
		graphs = append(graphs, r.capture(m, func(m *member) error {
			for _, w := range all {
				if err := w.base().queue(m); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	return graphs
}

// launch launches a graph on each rank.
func (r *rig) launch(graphs []cuda.GraphExec) {
	r.t.Helper()
	for i, m := range r.ranks {
		r.with(m, func() error { return r.d.GraphLaunch(graphs[i], m.stream) })
	}
}

// mix has replays of a graph of works between works that are not captured, three times.
func (r *rig) mix(captured, eager []worker) {
	r.t.Helper()
	graphs := r.captured(captured...)
	for range 3 {
		r.reset(captured...)
		r.reset(eager...)
		r.run(eager[0])
		r.launch(graphs)
		r.run(eager[1:]...)
		r.check(captured...)
		r.check(eager...)
	}
	for _, m := range r.ranks {
		started, finished := m.engine.Control().Progress()
		require.GreaterOrEqual(r.t, started, uint64(3*(len(captured)+len(eager))))
		require.Equal(r.t, started, finished)
	}
}

// carry queues a job for a schedule as a communicator does that has few lanes. Jobs of middle sizes may linger.
func carry(e *Engine, j *Job) error {
	f, err := e.Facts(j)
	if err != nil {
		return err
	}
	bytes := max(j.InL.Total, j.OutL.Total)
	ans := choice.Answer{Bulk: true, Lingers: 64 <= bytes && bytes <= 4000}
	return e.Run(j, ans.Way(&f))
}
