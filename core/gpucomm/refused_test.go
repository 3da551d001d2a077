// What is refused, and small parts of a Comm.

package gpucomm

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/trace"
)

// Ranks without a GPU are named in the same words on all ranks.
func TestWithout(t *testing.T) {
	none, some := paths.Profile{}, paths.Profile{GPU: "x"}
	require.Empty(t, without([]paths.Profile{some, some}))
	require.Equal(t, "no rank has a GPU: set Config.Device", without([]paths.Profile{none, none}))
	require.Equal(t, "rank 1 has no GPU: set Config.Device on all ranks or on none",
		without([]paths.Profile{some, none, some, none}))
}

// Answers of kernels add up, sorted and each rank once, until another operation is under way.
func TestRoll(t *testing.T) {
	var r roll
	require.Empty(t, r.awaited())
	r.add([]int{3, 1})
	before := r.awaited()
	r.add([]int{2, 1, 0})
	require.Equal(t, []int{0, 1, 2, 3}, r.awaited())
	require.Equal(t, []int{1, 3}, before, "who has it keeps it")
	r.missed = []int{3}
	r.end()
	require.Empty(t, r.awaited())
	require.Nil(t, r.missed)
	require.True(t, r.asked.IsZero())
}

// refused wants a call to be refused for its arguments alone: the communicator goes on.
func refused(t *testing.T, g *Comm, c *call.Call, says ...string) {
	t.Helper()
	err := g.do(c)
	require.ErrorIs(t, err, call.ErrInvalid)
	for _, s := range says {
		require.ErrorContains(t, err, s)
	}
	require.NoError(t, g.Life.Err())
}

// Memory and streams that a call may not be on.
func TestCallsRefused(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	list := gputest.GPUs(t, 2)
	g := open(t, list[:1], nil)[0]
	d := g.Device.Driver()
	all := memories(t, list, 64)
	x := all[0]
	reduce := func(in, out mem.Region, s gpu.Stream) *call.Call {
		return &call.Call{Kind: call.AllReduce, In: in, Out: out, Count: 4, Type: kernels.Float32, Stream: s}
	}
	require.NoError(t, g.do(reduce(x, x, 0)))
	refused(t, g, reduce(x.Slice(2, 16), x, 0), "In: ", "is no multiple of the element's 4 bytes: align it")
	refused(t, g, reduce(x, x.Slice(1, 16), 0), "Out: ", "is no multiple of the element's 4 bytes: align it")
	refused(t, g, reduce(all[1], x, 0), "memory of device 1, but the rank's GPU is device 0")
	refused(t, g, reduce(x, all[1], 0), "memory of device 1, but the rank's GPU is device 0")
	refused(t, g, reduce(mem.Device(0, 0x100000, 64), x, 0), "In: ")
	refused(t, g, reduce(x, mem.Device(0, 0x100000, 64), 0), "Out: ")
	scaled := reduce(x, x, 0)
	scaled.Op = kernels.PreMulSumAt(mem.Device(0, 0x100000, 4))
	refused(t, g, scaled, "Op.At: ")

	freed, err := g.Device.Alloc(64)
	require.NoError(t, err)
	require.NoError(t, g.Device.Write(freed, make([]byte, 64)))
	require.NoError(t, g.do(reduce(freed, freed, 0)))
	require.NoError(t, g.Device.Synchronize(0))
	require.NoError(t, g.Device.Free(freed))
	refused(t, g, reduce(freed, freed, 0), "In: ")

	other, err := list[1].NewStream()
	require.NoError(t, err)
	defer list[1].DestroyStream(other)
	refused(t, g, reduce(x, x, other), "is not of device 0's primary context: make it with device 0 current")
	own, err := g.Device.NewStream()
	require.NoError(t, err)
	require.NoError(t, g.do(reduce(x, x, own)))
	require.NoError(t, g.Device.Synchronize(own))
	require.NoError(t, g.Device.With(func() error {
		require.NoError(t, d.StreamBeginCapture(own, cuda.CaptureGlobal))
		require.Error(t, d.CtxSynchronize(), "breaks it")
		return nil
	}))
	refused(t, g, reduce(x, x, own), "the capture of stream ",
		" on device 0 is broken: end it, and look at the first error since it began")
	require.NoError(t, g.Device.With(func() error {
		_,
			err := d.StreamEndCapture(own)
		require.Error(t, err)
		return nil
	}))
	require.NoError(t, g.do(reduce(x, x, own)))
	require.NoError(t, g.Device.Synchronize(own))
	require.NoError(t, g.Device.DestroyStream(own))
	if _, emulated := d.(*cudaemu.Machine); emulated { // a real driver looks into the memory that the stream was in
		refused(t, g, reduce(x, x, own), "stream ")
	}

	// Streams are remembered, the newest of them.
	var handles []gpu.Stream
	for range maxKnown + 3 {
		s, err := g.Device.NewStream()
		require.NoError(t, err)
		defer g.Device.DestroyStream(s)
		handles = append(handles, s)
		for range 2 {
			require.NoError(t, g.do(reduce(x, x, s)))
		}
	}
	require.Len(t, g.admission.streams, maxKnown)
	for i, s := range g.admission.streams {
		require.Equal(t, handles[i+3], s.handle)
	}
	g.admission.asks = true
	require.NoError(t, g.do(reduce(x, x, 0)))
	require.Empty(t, g.admission.streams)
	require.Equal(t, []mem.Region{x}, g.admission.memory)
}

// Confirmed memory is kept in order, none twice, and all is forgotten when there is too much.
func TestKnownRegions(t *testing.T) {
	at := func(addr, n int) mem.Region { return mem.Device(0, uintptr(addr), n) }
	var k admission
	for _, r := range []mem.Region{at(300, 100), at(100, 50), at(200, 100), at(150, 10)} {
		k.add(r)
	}
	require.Equal(t, []mem.Region{at(100, 50), at(150, 10), at(200, 100), at(300, 100)}, k.memory)
	for r, has := range map[mem.Region]bool{
		at(100, 50): true, at(100, 51): false, at(149, 1): true, at(99, 2): false, at(160, 1): false, at(199, 1): false,
		at(200, 100): true, at(399, 1): true, at(400, 1): false, at(290, 20): false,
	} {
		require.Equal(t, has, k.has(r), "%v", r)
	}
	k.add(at(140, 100))
	require.Equal(t, []mem.Region{at(140, 100), at(300, 100)}, k.memory, "what overlaps it was freed")
	k.memory = nil
	for i := range maxMemory {
		k.add(at(1000+i, 1))
		require.Len(t, k.memory, i+1)
	}
	k.add(at(1, 1))
	require.Equal(t, []mem.Region{at(1, 1)}, k.memory)
}

// Calls of a group that go together: small sums of one type and operator, as many as a batch takes.
func TestAlike(t *testing.T) {
	list := gputest.GPUs(t, 2)
	g := open(t, list, nil)[0]
	x := memories(t, list, 1<<20)[0]
	small := func(change func(*call.Call)) *call.Call {
		c := &call.Call{Kind: call.AllReduce, In: x, Out: x, Count: 16, Type: kernels.Float32}
		if change != nil {
			change(c)
		}
		return c
	}
	times := func(n int) (list []*call.Call) {
		for range n {
			list = append(list, small(nil))
		}
		return list
	}
	for want, calls := range map[int][][]*call.Call{
		1: {
			times(1), {small(func(c *call.Call) { c.Kind = call.Broadcast }), small(nil)},
			{small(func(c *call.Call) { c.Count = 1 << 18 }), small(nil)},
			{small(func(c *call.Call) { c.Op.Kind = kernels.KindPreMulSum }), small(nil)},
			{small(func(c *call.Call) { c.Op.Kind = kernels.KindUser }), small(nil)},
			{small(func(c *call.Call) { c.In, c.Out = mem.Host(make([]byte, 64)), mem.Host(make([]byte, 64)) }), small(nil)},
			{small(nil), small(func(c *call.Call) { c.Type = kernels.Int32 })},
			{small(nil), small(func(c *call.Call) { c.Op = kernels.RedOp{Kind: kernels.KindMax} })},
		},
		3: {append(times(3), small(func(c *call.Call) { c.Type = kernels.Int32 })),
			append(times(3), small(func(c *call.Call) { c.Kind = call.Reduce }))},
		maxBatch: {times(maxBatch), times(maxBatch + 1)},
	} {
		for _, list := range calls {
			require.Equal(t, want, g.Alike(list))
		}
	}
}

// What all ranks do together is refused when the communicator has failed, and calls while it is suspended.
func TestTogether(t *testing.T) {
	list := gputest.GPUs(t, 2)
	comms := open(t, list, nil)
	memory := memories(t, list, 64)
	reduce := func(g *Comm) error {
		x := memory[g.Life.Rank]
		return errors.Join(g.do(&call.Call{Kind: call.AllReduce, In: x, Out: x, Count: 4, Type: kernels.Float32}),
			g.Device.Synchronize(0))
	}
	each(t, comms, reduce)
	f := comms[0].Footprint()
	fixed, mapped := f.Bytes()
	require.Positive(t, fixed)
	require.ErrorContains(t, f.Resume(), "the communicator is not suspended")
	each(t, comms, func(g *Comm) error { return g.Footprint().Suspend() })
	require.ErrorIs(t, f.Suspend(), errSuspended)
	refused(t, comms[0], &call.Call{Kind: call.AllReduce, In: memory[0], Out: memory[0], Count: 4, Type: kernels.Float32},
		"the communicator is suspended: call Resume on all ranks")
	again, kept := f.Bytes()
	require.Equal(t, []int{fixed, mapped}, []int{again, kept})
	each(t, comms, func(g *Comm) error { return g.Footprint().Resume() })
	each(t, comms, reduce)
	var none *Footprint
	fixed, mapped = none.Bytes()
	require.Zero(t, fixed+mapped)
	require.NoError(t, errors.Join(none.Suspend(), none.Resume()))

	comms[0].Life.FailIn("Test", errors.New("the roof is down"))
	for _, g := range comms[:1] {
		_, err := g.Register(memory[0])
		require.ErrorContains(t, err, "the communicator has failed before: ")
		require.ErrorContains(t, err, "the roof is down")
		require.ErrorContains(t, g.Footprint().Suspend(), "the communicator has failed before: ")
	}
}

// A window's memory of all ranks is in one range of addresses, if it is of the virtual-memory API.
func TestFlat(t *testing.T) {
	list := gputest.GPUs(t, 2)
	comms := open(t, list, nil)
	memory := make([]mem.Region, len(list))
	for r, d := range list {
		var err error
		memory[r], err = d.AllocMapped(2 << 20)
		require.NoError(t, err)
		require.NoError(t, d.Write(memory[r].Slice(0, 8), []byte{byte(r + 1), 2, 3, 4, 5, 6, 7, 8}))
		t.Cleanup(func() { require.NoError(t, d.Free(memory[r])) })
	}
	ws := register(t, comms, memory, 0, 2<<20)
	each(t, comms, func(g *Comm) error {
		f, err := ws[g.Life.Rank].Flat()
		if err != nil || f.Base == 0 {
			return errors.Join(err, errors.New(f.Reason))
		}
		for r := range list {
			got := make([]byte, 1)
			if err := g.Device.Read(got, mem.Device(g.Life.Rank, uintptr(f.Base+uint64(r)*f.Stride), 1)); err != nil {
				return err
			}
			if got[0] != byte(r+1) || f.Stride%(4<<30) != 0 {
				return errors.New("another rank's memory")
			}
		}
		return nil
	})
	for r, w := range ws {
		require.Equal(t, memory[r].Ptr(), w.At(r))
		require.NotZero(t, w.At(1-r))
		require.Zero(t, w.At(2))
		require.Zero(t, w.At(-1))
	}
	closeAll(t, comms, ws)
	for _, w := range ws {
		require.Zero(t, w.At(0), "it is closed")
	}
	plain := register(t, comms, memories(t, list, 4096), 0, 4096)
	each(t, comms, func(g *Comm) error {
		f, err := plain[g.Life.Rank].Flat()
		if f.Base != 0 || f.Reason == "" || strings.HasPrefix(f.Reason, "p2p") {
			err = errors.Join(err, errors.New("memory of MemAlloc has a range: "+f.Reason))
		}
		return err
	})
	closeAll(t, comms, plain)
}

// The operations of a chain follow each other on whichever streams, and it is there as long as somebody uses it.
func TestChain(t *testing.T) {
	d := gputest.GPUs(t, 1)[0]
	a, leaveA, err := joinChain(nil, d)
	require.NoError(t, err)
	b, leaveB, err := joinChain(nil, d)
	require.NoError(t, err)
	require.Same(t, a, b)
	require.NoError(t, leaveA())
	c, leaveC, err := joinChain(nil, d)
	require.NoError(t, err)
	require.Same(t, a, c)

	require.Same(t, a.recording(5), a.recording(5))
	require.NotSame(t, a.recording(5), a.recording(6))
	a.forget([]uint64{5, 7})
	require.Len(t, a.recordings, 1)
	(*chain)(nil).forget([]uint64{1})

	gate := memories(t, []*gpu.Device{d}, 8)[0]
	var s [3]gpu.Stream
	for i := range s {
		s[i], err = d.NewStream()
		require.NoError(t, err)
		defer d.DestroyStream(s[i])
	}
	driver := d.Driver()
	require.NoError(t, d.With(func() error {
		first, failed, next := &entry{stream: stream{handle: s[0]}}, &entry{stream: stream{handle: s[1]}},
			&entry{stream: stream{handle: s[1]}}
		require.NoError(t, a.begin(first))
		require.NoError(t, driver.StreamWaitValue32(s[0], gate.Ptr(), 1, cuda.WaitEQ))
		require.NoError(t, a.end(first))
		a.leave(first)
		require.NoError(t, a.begin(failed))
		a.leave(failed)
		require.NoError(t, a.begin(next))
		require.NoError(t, a.end(next))
		a.leave(next)
		done, err := driver.StreamQuery(s[1])
		require.NoError(t, err)
		require.False(t, done, "it comes after the other stream's")
		require.NoError(t, driver.StreamWriteValue32(s[2], gate.Ptr(), 1, 0))
		require.NoError(t, driver.StreamSynchronize(s[1]))
		done, err = driver.StreamQuery(s[0])
		require.NoError(t, err)
		require.True(t, done)
		return nil
	}))
	require.NoError(t, errors.Join(leaveB(), leaveC()))
	require.Zero(t, chains.Len(nil))
}

// timing is a driver that knows at which millisecond each event has passed.
type timing struct {
	cuda.Driver
	at map[cuda.Event]float32
}

func (d timing) EventElapsedTime(start, end cuda.Event) (float32, error) {
	a, ok1 := d.at[start]
	b, ok2 := d.at[end]
	if !ok1 || !ok2 {
		return 0, errors.New("not recorded")
	}
	return b - a, nil
}

// When the GPU carried calls out, on the host's clock: not before they were queued, not later than now, and one after
// the other.
func TestClock(t *testing.T) {
	past := trace.Now() - int64(10*time.Second)
	const ms = int64(time.Millisecond)
	d := timing{at: map[cuda.Event]float32{1: 0, 2: 5, 3: 7, 4: 1500, 5: 20000}}
	timed := func(k *gpuClock, begin, end gpu.Event, queued int64) (start, stop int64, p *operation) {
		c := &trace.Call{Queued: queued}
		p = &operation{begin: begin, end: end, n: 1, calls: []observedCall{{Call: c}}}
		k.times(d, p)
		return c.Start, c.End, p
	}
	k := gpuClock{base: 1, at: past}
	start, end, _ := timed(&k, 2, 3, past)
	require.Equal(t, []int64{past + 5*ms, past + 7*ms}, []int64{start, end})
	require.Equal(t, gpuClock{1, past, past + 7*ms}, k)
	start, end, _ = timed(&k, 2, 3, past)
	require.Equal(t, []int64{past + 7*ms, past + 7*ms}, []int64{start, end}, "after the one before")

	k = gpuClock{base: 1, at: past}
	start, end, _ = timed(&k, 2, 3, past+6*ms)
	require.Equal(t, []int64{past + 6*ms, past + 8*ms}, []int64{start, end}, "the clock was slow by 1 ms")
	require.Equal(t, past+ms, k.at)

	k = gpuClock{base: 1, at: past}
	before := trace.Now()
	_, end, _ = timed(&k, 2, 5, past)
	require.LessOrEqual(t, end, trace.Now(), "it has passed")
	require.GreaterOrEqual(t, end, before)

	k = gpuClock{base: 1, at: past}
	_, _, p := timed(&k, 2, 4, past)
	require.Equal(t, []gpu.Event{4, 1}, []gpu.Event{k.base, p.end}, "the base is exchanged for a later event")
	require.Equal(t, past+1500*ms, k.at)

	k = gpuClock{base: 1, at: past}
	for _, unknown := range [][2]gpu.Event{{9, 3}, {2, 9}} {
		start, end, _ = timed(&k, unknown[0], unknown[1], past)
		require.Zero(t, start+end)
		require.Equal(t, gpuClock{base: 1, at: past}, k)
	}
}

// unused names the plan, the GPUs that it is for and those of the communicator.
func TestUnusedPlan(t *testing.T) {
	p := &choice.Plan{}
	f := &choice.Fabric{GPUs: []string{"A", "A"}}
	text := unused(p, f)
	require.True(t, strings.HasPrefix(text, "GPU plan: "+p.Name()+" is not used: it is for "), text)
	require.True(t, strings.HasSuffix(text, "; these are "+f.String()), text)
}
