package gpucomm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/ptx"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

// A spy is a driver that, while it is deaf, writes down what a communicator queues, and queues none of it.
type spy struct {
	cuda.Driver
	names sync.Map // of functions, to the source of each
	deaf  atomic.Bool
	work
}

// work is what a call has queued.
type work struct {
	kernels []string // sources of kernels/cuda, as in ptx.Name
	blocks  []int    // of each kernel
	copies  int
	rings   int // of lingering kernels
}

func (s *spy) ModuleGetFunction(m cuda.Module, name string) (cuda.Function, error) {
	f, err := s.Driver.ModuleGetFunction(m, name)
	source, _, _ := strings.Cut(name, "_")
	if name == ptx.BulkMessages {
		source = name
	}
	s.names.Store(f, source)
	return f, err
}

func (s *spy) LaunchKernel(f cuda.Function, l *cuda.Launch, args []byte) error {
	if !s.deaf.Load() {
		return s.Driver.LaunchKernel(f, l, args)
	}
	source, _ := s.names.Load(f)
	s.kernels, s.blocks = append(s.kernels, source.(string)), append(s.blocks, int(l.Grid.X))
	return nil
}

func (s *spy) MemcpyAsync(dst, src uintptr, n int, stream cuda.Stream) error {
	if !s.deaf.Load() {
		return s.Driver.MemcpyAsync(dst, src, n, stream)
	}
	s.copies++
	return nil
}

func (s *spy) StreamWriteValue64(stream cuda.Stream, at uintptr, value uint64, flags uint32) error {
	if !s.deaf.Load() {
		return s.Driver.StreamWriteValue64(stream, at, value, flags)
	}
	s.rings++
	return nil
}

func (s *spy) StreamWaitValue64(stream cuda.Stream, at uintptr, value uint64, how cuda.WaitFlags) error {
	if !s.deaf.Load() {
		return s.Driver.StreamWaitValue64(stream, at, value, how)
	}
	return nil
}

func (s *spy) StreamWaitValue32(stream cuda.Stream, at uintptr, value uint32, how cuda.WaitFlags) error {
	if !s.deaf.Load() {
		return s.Driver.StreamWaitValue32(stream, at, value, how)
	}
	return nil
}

// nowhere is where memory that nobody touches begins, and how long it is.
const nowhere = 1 << 44

func (s *spy) PointerGetAttribute(a cuda.PointerAttribute, p uintptr) (uint64, error) {
	if p < nowhere || p >= 2*nowhere {
		return s.Driver.PointerGetAttribute(a, p)
	}
	switch a {
	case cuda.PointerMemoryType:
		return cuda.MemoryTypeDevice, nil
	case cuda.PointerRangeStart, cuda.PointerRangeSize:
		return nowhere, nil
	}
	return 0, nil
}

// A guest is rank 0 of a communicator of emulated GPUs, and what explain is told of it.
type guest struct {
	comm    *Comm
	spy     *spy
	ranks   int
	local   int // ranks of a host, 0 for all
	gpus    choice.GPUs
	options choice.Options
	window  mem.Region
	stream  gpu.Stream
}

// windowBytes is the length of a guest's window.
const windowBytes = 16 << 20

// newGuest opens a communicator of random GPUs, links, hosts and settings.
func newGuest(t *testing.T, random *rand.Rand, name string) *guest {
	kind, err := cudaemu.Kind(name)
	require.NoError(t, err)
	x := &guest{ranks: []int{1, 2, 2, 2, 3, 4, 4}[random.IntN(7)],
		gpus: choice.GPUs{Name: kind.Name, Path: transport.OverP2P.String()}}
	hosts := "aaaa"[:x.ranks]
	if x.ranks == 4 && random.IntN(2) == 0 {
		hosts, x.local = "aabb", 2
	}
	link := cuda.NVLink
	if random.IntN(3) == 0 {
		link, x.gpus.Path = cuda.PCIe, transport.OverPCIe.String()
	}
	x.options.InOrder = random.IntN(4) == 0
	x.options.Budget.Policy = choice.Policy(max(0, random.IntN(6)-2))
	switch random.IntN(4) {
	case 0:
		x.options.Budget.Most = 1 + random.IntN(64)
	case 1:
		x.options.Budget.Least = 1 + random.IntN(64)
	}
	shapes := make([]cudaemu.Device, x.ranks)
	for i := range shapes {
		shapes[i] = kind
	}
	x.spy = &spy{Driver: gputest.Driver(t, gputest.Emu(cudaemu.Config{Shapes: shapes,
		Plain: true, Link: func(a, b int) cuda.Link { return link }}))}
	list := gputest.GPUsOf(t, x.spy, x.ranks)
	comms := openHosts(t, bootstrap.Local(x.ranks), hosts, list, func(o *Options) {
		o.Chooser.Budget, o.Chooser.InOrder = x.options.Budget, x.options.InOrder
	})
	x.comm = comms[0]
	x.stream, err = list[0].NewStream()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, list[0].DestroyStream(x.stream)) })
	if x.local == 0 && x.ranks > 1 {
		x.window = registered(t, comms, list)
	}
	return x
}

// registered registers memory of all ranks, and returns rank 0's.
func registered(t *testing.T, comms []*Comm, list []*gpu.Device) mem.Region {
	memory := make([]mem.Region, len(list))
	for r, d := range list {
		var err error
		memory[r], err = d.AllocMapped(windowBytes)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, d.Free(memory[r])) })
	}
	ws := register(t, comms, memory, 0, windowBytes)
	t.Cleanup(func() { closeAll(t, comms, ws) })
	require.Empty(t, ws[0].Reason())
	return memory[0]
}

// call makes a random call, and has explain say what it does.
func (x *guest) call(t *testing.T, random *rand.Rand) (*call.Call, choice.Choice) {
	kinds := []call.Kind{call.AllReduce, call.AllGather, call.ReduceScatter, call.Broadcast, call.AlltoAll, call.Reduce,
		call.Gather, call.Scatter}
	c := &call.Call{Kind: kinds[random.IntN(len(kinds))], Type: kernels.Float32, Count: 1 << random.IntN(27)}
	c.Count += c.Count / 4 * random.IntN(4)
	x.options.Algo = "auto"
	if random.IntN(3) == 0 {
		algo := call.Ring + call.Algo(random.IntN(int(call.Algos-call.Ring)))
		x.options.Algo = algo.String()
	}
	x.gpus.Row, x.gpus.Registered = 0, false
	if sums := c.Kind == call.AllReduce || c.Kind == call.ReduceScatter; sums && c.Count%64 == 0 && c.Count <= 1<<22 &&
		random.IntN(4) == 0 {
		c.Norm, x.gpus.Row = &call.Norm{Row: 64, Epsilon: 1e-5}, 64*4
	}
	in, out := c.Shape(0, x.ranks)
	at := mem.Device(x.comm.Device.Number(), nowhere, 4*(in+out))
	if c.Norm == nil && !x.window.IsNil() && 4*(in+out) <= windowBytes && random.IntN(2) == 0 {
		at, x.gpus.Registered = x.window, true
	}
	c.In, c.Out = at.Slice(0, 4*in), at.Slice(4*in, 4*out)
	if c.Norm != nil {
		c.Norm.Weight, c.Norm.Normed = mem.Device(x.comm.Device.Number(), nowhere*3/2, 64*4), c.Out
		c.Out = mem.Region{}
	}
	said, err := choice.ExplainGPU(c.Kind, x.ranks, x.local, c.Bytes(), 0, x.gpus, x.options)
	require.NoError(t, err)
	return c, said
}

// do has rank 0 queue a call, and returns what it queued.
func (x *guest) do(t *testing.T, c *call.Call) work {
	x.comm.Chooser().Forced, _ = call.ParseAlgo(x.options.Algo)
	x.spy.work = work{}
	x.spy.deaf.Store(true)
	err := x.comm.do(c)
	x.spy.deaf.Store(false)
	require.NoError(t, err)
	return x.spy.work
}

// TestExplained compares what choice.ExplainGPU says of GPUs that need not be there, from V100 to H200, with what rank
// 0 of a communicator of emulated ones queues: kernels, their blocks, bulk copies, lingering kernels, phases, copies.
func TestExplained(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("its GPUs are emulated")
	}
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[string]int{} // carrier, bulk copies, lingers, phases
	for range tier.Count(8, 40) {
		for _, name := range []string{"v100", "t4", "a100", "l4", "h100", "h200"} {
			t.Run(name, func(t *testing.T) {
				x := newGuest(t, random, name)
				for range tier.Count(60, 200) {
					c, said := x.call(t, random)
					about := fmt.Sprintf("%v on %d ranks, %d a host, %+v, %+v: %+v", c, x.ranks, x.local, x.gpus, x.options, said)
					x.compare(t, x.do(t, c), &said, about)
					q := choice.QuestionOf(c)
					q.OnGPU, q.Registered = true, x.gpus.Registered
					is := x.comm.Chooser().Choose(q)
					require.Equal(t, is.Algo.String(), said.Algo, about)
					require.True(t, strings.HasPrefix(said.Reason, is.Why), about)
					require.Equal(t, is.By == choice.BySchedule || is.By == choice.ByFold, said.Schedule != nil, about)
					if said.Lingers { // not in a graph
						c.Stream, said.Lingers = x.stream, false
						graph, err := x.comm.Device.Capture(c.Stream, func() error { x.compare(t, x.do(t, c), &said, about); return nil })
						require.NoError(t, err)
						require.NoError(t, graph.Close())
						said.Lingers = true
					}
					carrier, _, _ := strings.Cut(said.Carrier, " kernel")
					seen[fmt.Sprintf("%s %v %v %d", carrier, said.Bulk, said.Lingers, said.Phases)]++
				}
			})
		}
	}
	for _, what := range []string{"steps false false 0", "steps true false 0", "steps true true 0",
		"steps false false 3"} {
		require.Positive(t, seen[what], "%s: %v", what, seen)
	}
	require.Greater(t, len(seen), 10, "%v", seen)
}

// compare compares what a call has queued with what was said.
func (x *guest) compare(t *testing.T, w work, said *choice.Choice, about string) {
	t.Helper()
	about = fmt.Sprintf("%s\nqueued %+v", about, w)
	count := func(sources ...string) (n int) {
		for _, k := range w.kernels {
			if slices.Contains(sources, k) {
				n++
			}
		}
		return n
	}
	steps, bulk := count("run", "bulk", "messages", ptx.BulkMessages), count("bulk", ptx.BulkMessages) > 0
	carrier, _, one := strings.Cut(said.Carrier, " kernel ")
	switch carrier {
	case "copy":
		require.Empty(t, w.kernels, about)
		require.LessOrEqual(t, w.copies, 1, about)
		return
	case "direct", "norm", "window":
		require.True(t, one, about)
		require.Equal(t, 1, count(carrier)+count("loose"), about)
		require.Equal(t, []int{said.Blocks}, w.blocks, about)
		require.Zero(t, w.copies, about)
	case "direct kernels in shares":
		require.Equal(t, len(w.kernels), count("direct"), about)
		require.Greater(t, len(w.kernels), 1, about)
	case "copy engines":
		require.GreaterOrEqual(t, count("window"), 2, about)
		require.Positive(t, w.copies, about)
	case "steps":
		require.Equal(t, len(w.kernels), steps, about)
		require.Equal(t, max(1, said.Phases), steps, about)
	default:
		require.Equal(t, choice.ByFold.String(), said.Carrier, about)
		require.Equal(t, x.ranks > 1, steps > 0, about)
		require.Positive(t, count("combine", "rows"), about)
	}
	large := said.Bytes%16 == 0 && said.Bytes >= 4096*x.ranks // so chunks begin at multiples of 16 bytes
	if large || bulk {
		require.Equal(t, said.Bulk && steps > 0, bulk, about)
	}
	require.Equal(t, said.Lingers, w.rings > 0, about)
	for i, blocks := range w.blocks {
		if w.kernels[i] != "combine" && w.kernels[i] != "rows" && said.Carrier != choice.ByFold.String() {
			require.LessOrEqual(t, blocks, said.Blocks, about)
		}
		if (w.kernels[i] == "run" || w.kernels[i] == "bulk") && said.Algo == "ring" && x.local == 0 && said.Bytes >= 256<<20 {
			require.Equal(t, said.Blocks, blocks, about)
		}
	}
}
