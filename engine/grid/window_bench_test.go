package grid

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/sched"
)

// What TestWindowShapes measures, as lists with commas; sizes end in K, M or G.
var (
	windowFlag   = flag.String("window", "", "measure these collectives in windows, in graphs, over shapes of grids")
	windowSizes  = flag.String("wsizes", "1M,4M,16M,64M,256M,1G", "bytes of the longest buffer")
	windowBlocks = flag.String("wblocks", "32,64,96,128", "blocks; 0: as the engine chooses")
	windowTiles  = flag.String("wtiles", "8K,32K,64K", "bytes of a tile")
	windowBy     = flag.String("wby", "window,copies,steps,direct", "by what")
	windowBest   = flag.Int("wbest", 3, "how many of the best shapes to print")
)

// TestWindowShapes measures on GPUs, a rank each:
//
//	REQUIRE=cuda go test -run TestWindowShapes -window twoshot,allgather
func TestWindowShapes(t *testing.T) {
	if *windowFlag == "" {
		t.Skip("-window measures on GPUs")
	}
	d := emulated(t, 2, cudaemu.Config{Plain: true})
	n, err := d.DeviceGetCount()
	require.NoError(t, err)
	n = min(n, MaxDirect)
	fmt.Printf("%d ranks, bfloat16; µs, busbw in GB/s, and blocks × tile; =: in place; |: own copy beside\n", n)
	for _, folder := range strings.Split(*ptxFolders, ",") {
		r := newRig(t, d, DefaultBoard(n), Options{Ranks: n})
		for _, m := range r.ranks {
			m.engine.text = textOf(folder)
		}
		largest := slices.Max(sizes(*windowSizes))
		w := r.room(largest)
		for _, name := range strings.Split(*windowFlag, ",") {
			for _, size := range sizes(*windowSizes) {
				x := windowTrial{named(t, name), size, w}
				for _, by := range strings.Split(*windowBy, ",") {
					if line := r.windowShapes(x, by); line != "" {
						fmt.Printf("%-8s %-13s %10d %-7s%s\n", folder, name, size, by, line)
					}
				}
			}
		}
		r.close()
	}
}

// room gives each rank two buffers in a window.
func (r *rig) room(size int) *Window {
	w := &Window{Bytes: 2 * size}
	for _, m := range r.ranks {
		r.with(m, func() error {
			p, err := r.d.MemAlloc(w.Bytes)
			require.NoError(r.t, err)
			m.free = append(m.free, p)
			w.At = append(w.At, uint64(p))
			return r.d.MemsetD8Async(p, 0, w.Bytes, m.stream)
		})
	}
	return w
}

// A windowTrial is a collective with buffers in the halves of a window; the longer
// has size bytes.
type windowTrial struct {
	d    Direct
	size int
	w    *Window
}

// one is RunDirect's bytes.
func (x *windowTrial) one() int {
	switch x.d {
	case TwoShot, Reduce, Broadcast:
		return x.size
	}
	return x.size / len(x.w.At)
}

// factor is the bus bandwidth a byte.
func (x *windowTrial) factor() float64 {
	n := float64(len(x.w.At))
	switch x.d {
	case TwoShot:
		return 2 * (n - 1) / n
	case Reduce, Broadcast:
		return 1
	}
	return (n - 1) / n
}

// job is the operation on a rank, and the places.
func (x *windowTrial) job(m *member, inPlace bool) (j Job, in, out WindowOffset) {
	n, rank, one := len(x.w.At), int(m.rank), x.one()
	elements := directTrial{d: x.d, count: one}
	inBytes, outBytes, inAt, outAt := elements.elements(rank, n)
	in, out = WindowOffset{x.w, 0}, WindowOffset{x.w, x.w.Bytes / 2}
	if !inPlace {
		inAt, outAt = 0, 0
	} else {
		out.Offset = 0
	}
	at := uintptr(x.w.At[rank])
	j = Job{
		In:    mem.Device(int(m.dev), at+uintptr(in.Offset+inAt), inBytes),
		Out:   mem.Device(int(m.dev), at+uintptr(out.Offset+outAt), outBytes),
		Stamp: [2]uint64{1 << 32, 2}, Stream: m.stream,
	}
	if x.d.Reduces() {
		j.Reducer, _ = kernels.NewReducer(kernels.BFloat16, kernels.Sum, n)
	}
	return j, in, out
}

// windowShapes measures a collective over shapes of its grid, the best first.
func (r *rig) windowShapes(x windowTrial, by string) (line string) {
	type result struct {
		µs    float64
		shape string
	}
	var all []result
	measure := func(shape string, run func(m *member) func() error) {
		all = append(all, result{r.timeWindow(x, run), shape})
	}
	e := r.ranks[0].engine
	windowed := func(m *member, inPlace, copies bool) func() error {
		j, in, out := x.job(m, inPlace)
		run := m.engine.RunWindow
		if copies {
			run = m.engine.RunCopies
		}
		require.NoError(r.t, m.engine.PrepareWindow(nil))
		require.NoError(r.t, m.engine.PrepareWindow(j.Reducer))
		if copies && x.d == TwoShot {
			require.NoError(r.t, m.engine.Prepare(j.Reducer))
			j.Program = r.program("reduce-scatter", ring.ReduceScatter{N: len(r.ranks)})[m.rank]
		}
		r.resources(m, j.Reducer)
		return func() error { return run(&j, x.d, in, out, 0, x.one()) }
	}
	setShape := func(f func(d Direct, ranks, bytes int) windowShape) {
		for _, m := range r.ranks {
			m.engine.gates.shape = f
		}
	}
	switch by {
	case "window":
		for _, b := range sizes(*windowBlocks) {
			for _, tile := range sizes(*windowTiles) {
				shape := fmt.Sprintf("%dx%dK", b, tile>>10)
				setShape(func(Direct, int, int) windowShape { return windowShape{b, maxThreads, tile} })
				if b == 0 {
					setShape(shapeOf)
					s := shapeOf(x.d, len(r.ranks), x.one())
					shape = fmt.Sprintf("%dx%dK", s.blocks, s.tile>>10)
				}
				measure(shape, func(m *member) func() error { return windowed(m, false, false) })
			}
		}
		setShape(shapeOf)
	case "copies":
		if !e.CanCopy(x.d) {
			return ""
		}
		for _, inPlace := range []bool{false, true}[:1+only(x.d == AllGather || x.d == TwoShot, 1)] {
			for _, from := range []int{0, 8 << 30}[:2-only(inPlace || x.d == TwoShot, 1)] {
				for _, m := range r.ranks {
					m.engine.gates.aside.from = from
				}
				measure(strings.Repeat("=", only(inPlace, 1))+strings.Repeat("|", only(from == 0 && !inPlace, 1)),
					func(m *member) func() error { return windowed(m, inPlace, true) })
			}
		}
	case "direct":
		if x.one() > 64<<20 {
			return ""
		}
		measure("", func(m *member) func() error {
			j, _, _ := x.job(m, false)
			require.NoError(r.t, m.engine.PrepareDirect(j.Reducer))
			return func() error { return m.engine.RunDirect(&j, x.d, 0, x.one()) }
		})
	case "steps":
		s := map[Direct]sched.Schedule{
			TwoShot: ring.AllReduce{N: len(r.ranks)}, ReduceScatter: ring.ReduceScatter{N: len(r.ranks)},
			AllGather: ring.AllGather{N: len(r.ranks)},
			Broadcast: ring.Broadcast{N: len(r.ranks)}, Reduce: ring.Reduce{N: len(r.ranks)},
			AllToAll: direct.AlltoAll{N: len(r.ranks)},
		}[x.d]
		if s == nil {
			return ""
		}
		programs := r.program(x.d.String(), s)
		measure("", func(m *member) func() error {
			j, _, _ := x.job(m, false)
			j.Program = programs[m.rank]
			shape := j.Program.Shape()
			j.InL, j.OutL = engine.Even(x.size, shape.In, 2), engine.Even(x.size, shape.Out, 2)
			if one := x.one(); one < x.size {
				j.InL, j.OutL = engine.Layout{Total: shape.In * one, Chunk: one}, engine.Layout{Total: shape.Out * one, Chunk: one}
			}
			require.NoError(r.t, m.engine.Prepare(j.Reducer))
			return func() error { return m.engine.Run(&j) }
		})
	}
	slices.SortFunc(all, func(x, y result) int { return cmp.Compare(x.µs, y.µs) })
	for _, y := range all[:min(*windowBest, len(all))] {
		line += fmt.Sprintf("  %.1f %.1f %s", y.µs, x.factor()*float64(x.size)/y.µs/1e3, y.shape)
	}
	return line
}

// resources prints once what a kernel takes.
func (r *rig) resources(m *member, red *kernels.Reducer) {
	if r.told || red == nil {
		return
	}
	r.told = true
	k, _, err := m.engine.module(red, "window")
	require.NoError(r.t, err)
	registers, err := r.d.FuncGetAttribute(cuda.FuncRegisters, k.run)
	require.NoError(r.t, err)
	local, err := r.d.FuncGetAttribute(cuda.FuncLocalBytes, k.run)
	require.NoError(r.t, err)
	fmt.Printf("%d registers, %d bytes of local memory\n", registers, local)
}

// timeWindow is the time of an operation in a graph that holds some, in µs.
func (r *rig) timeWindow(x windowTrial, prepare func(m *member) func() error) float64 {
	reps := max(3, min(30, 64<<20/x.size))
	if !gputest.OnGPU() {
		reps = 1
	}
	return r.timeGraphs(reps, func(_ int, m *member) func() error { return prepare(m) })
}
