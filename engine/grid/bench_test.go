package grid

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/ptx"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/sched"
)

// What TestGeometry measures, as lists with commas; sizes end in K, M or G.
var (
	geometry   = flag.Bool("geometry", false, "measure operations in graphs over shapes of queues")
	shapes     = flag.String("shapes", "64/64K/4/512", "lanes / bytes of a slot / slots / threads, or default")
	minSlice   = flag.String("minslice", "8K", "least bytes of a slice")
	sizesFlag  = flag.String("sizes", "1M,64M,1G", "bytes of the operation")
	typesFlag  = flag.String("types", "float32", "data types")
	what       = flag.String("what", "ring allreduce", "operations")
	blocksFlag = flag.String("together", "0", "blocks of what runs together; -1: steps run in their order")
	nearFlag   = flag.String("near", "", "lanes / bytes of a slot / slots of the default board, to the next rank")
	farFlag    = flag.String("far", "", "the same, to others")
	noteFlag   = flag.Int("note", 4<<10, "bytes of notes")
	bulkFlag   = flag.Int("bulk", 0, "bytes of a tile of bulk copies; 0: threads copy")
	ptxFolders = flag.String("ptx", "", "folders with other texts of the kernels, to compare")
)

func sizes(s string) (all []int) {
	for _, x := range strings.Split(s, ",") {
		shift := strings.IndexByte("KMG", x[len(x)-1])
		n, err := strconv.Atoi(strings.TrimRight(x, "KMG"))
		if err != nil {
			panic(err)
		}
		all = append(all, n<<(10*(shift+1)))
	}
	return all
}

// A measured is an operation that TestGeometry measures; factor is how many bytes a rank sends for each byte of it.
type measured struct {
	schedule func(n int) sched.Schedule
	factor   func(n float64) float64
	shares   bool
	reduces  bool
}

var measures = map[string]measured{
	"ring allreduce": {func(n int) sched.Schedule { return ring.AllReduce{N: n} },
		func(n float64) float64 { return 2 * (n - 1) / n }, false, true},
	"ring allgather": {func(n int) sched.Schedule { return ring.AllGather{N: n} },
		func(n float64) float64 { return (n - 1) / n }, true, false},
	"ring reducescatter": {func(n int) sched.Schedule { return ring.ReduceScatter{N: n} },
		func(n float64) float64 { return (n - 1) / n }, true, true},
	"ring broadcast": {func(n int) sched.Schedule { return ring.Broadcast{N: n} }, func(float64) float64 { return 1 },
		false, false},
	"ring reduce": {func(n int) sched.Schedule { return ring.Reduce{N: n} }, func(float64) float64 { return 1 },
		false, true},
	"sendrecv": {func(n int) sched.Schedule { return nil }, func(float64) float64 { return 1 }, false, false},
	"alltoall": {func(n int) sched.Schedule { return direct.AlltoAll{N: n} },
		func(n float64) float64 { return (n - 1) / n }, true, false},
	"twoshot": {func(n int) sched.Schedule { return direct.TwoShot{N: n} },
		func(n float64) float64 { return 2 * (n - 1) / n }, false, true},
}

// TestGeometry measures on all GPUs of the machine, a rank each:
//
//	REQUIRE=cuda go test -run TestGeometry -geometry [-shapes 64/64K/4/512 …]
//
// Without REQUIRE it runs on the emulator, to see that it does.
func TestGeometry(t *testing.T) {
	if !*geometry {
		t.Skip("-geometry measures on GPUs")
	}
	d := emulated(t, 2, cudaemu.Config{Plain: true})
	n, err := d.DeviceGetCount()
	require.NoError(t, err)
	fmt.Printf("%d ranks; µs and busbw in GB/s\n", n)
	for _, folder := range strings.Split(*ptxFolders, ",") {
		for _, shape := range strings.Split(*shapes, ",") {
			board, th := DefaultBoard(n), 0
			board.Near, board.Far = shaped(board.Near, *nearFlag), shaped(board.Far, *farFlag)
			if shape != "default" {
				v := sizes(strings.ReplaceAll(shape, "/", ","))
				g := Geometry{Lanes: v[0], SlotBytes: v[1], Slots: v[2], NoteBytes: *noteFlag}
				board, th = Board{Ranks: n, MailBytes: 128, Near: g, Far: g}, v[3]
			}
			for _, least := range sizes(*minSlice) {
				for _, blocks := range sizes(*blocksFlag) {
					r := newRig(t, d, board, Options{Ranks: n, Threads: th, MinSlice: least, Blocks: max(0, blocks),
						Bulk: *bulkFlag > 0, TileBytes: max(0, *bulkFlag)})
					r.inOrder = blocks < 0
					for _, m := range r.ranks {
						m.engine.text = textOf(folder)
					}
					for _, name := range strings.Split(*what, ",") {
						for _, ty := range strings.Split(*typesFlag, ",") {
							line := fmt.Sprintf("%-5s %s %s %-15s least %dK blocks %d:", folder, name, ty, shape, least>>10, blocks)
							for _, size := range sizes(*sizesFlag) {
								µs := r.measure(name, ty, size)
								line += fmt.Sprintf("  %8.1f %5.1f", µs, measures[name].factor(float64(n))*float64(size)/µs/1e3)
							}
							fmt.Println(line)
						}
					}
					r.close()
				}
			}
		}
	}
}

// shaped is a geometry with another shape, if there is one.
func shaped(g Geometry, shape string) Geometry {
	g.NoteBytes = *noteFlag
	if shape != "" {
		v := sizes(strings.ReplaceAll(shape, "/", ","))
		g.Lanes, g.SlotBytes, g.Slots = v[0], v[1], v[2]
	}
	return g
}

// textOf takes texts from a folder where it has them.
func textOf(folder string) textFunc {
	return func(n ptx.Name) ([]byte, error) {
		if text, err := os.ReadFile(filepath.Join(folder, n.String()+".ptx")); folder != "" && err == nil {
			return text, nil
		}
		return ptx.Text(n)
	}
}

// measure is the time of an operation in a graph that holds some, in µs.
func (r *rig) measure(name, ty string, size int) float64 {
	t, d, n := r.t, r.d, len(r.ranks)
	x := measures[name]
	programs := make([]*Program, n)
	shape := sched.Shape{In: 1, Out: 1}
	if s := x.schedule(n); s != nil {
		programs = r.program(name, s)
		shape = programs[0].Shape()
	}
	dt, err := kernels.ParseType(ty)
	require.NoError(t, err)
	var red *kernels.Reducer
	if x.reduces {
		red, err = kernels.NewReducer(dt, kernels.Sum, n)
		require.NoError(t, err)
	}
	inL := engine.Even(size, shape.In, dt.Size())
	outL := inL
	if x.shares {
		one := size / n
		inL, outL = engine.Layout{Total: shape.In * one, Chunk: one}, engine.Layout{Total: shape.Out * one, Chunk: one}
	}
	reps := max(2, min(50, 128<<20/size))
	if !gputest.OnGPU() {
		reps = 2
	}
	outs := make([]uintptr, n)
	best := r.timeGraphs(reps, func(i int, m *member) func() error {
		in, err := d.MemAlloc(size)
		require.NoError(t, err)
		out, err := d.MemAlloc(size)
		require.NoError(t, err)
		m.free = append(m.free, in, out)
		outs[i] = out
		word := math.Float32bits(float32(i + 1))
		if dt == kernels.BFloat16 {
			word = word>>16 | word
		}
		require.NoError(t, d.MemsetD32Async(in, word, size/4, m.stream))
		require.NoError(t, d.MemsetD32Async(out, 0, size/4, m.stream))
		begin := time.Now()
		require.NoError(t, m.engine.Prepare(red))
		if i == 0 && !r.told {
			r.told = true
			k, _, err := m.engine.kernel(red)
			require.NoError(t, err)
			b, err := m.engine.bulkModule(red, 0)
			require.NoError(t, err)
			if b != nil {
				k = b
			}
			registers, err := d.FuncGetAttribute(cuda.FuncRegisters, k.run)
			require.NoError(t, err)
			local, err := d.FuncGetAttribute(cuda.FuncLocalBytes, k.run)
			require.NoError(t, err)
			fmt.Printf("%d registers, %d bytes of local memory, loaded in %v\n", registers, local,
				time.Since(begin).Round(time.Millisecond))
		}
		j := Job{
			Program: programs[i], InL: inL, OutL: outL, Reducer: red, Stamp: [2]uint64{1, 2}, Stream: m.stream,
			In: mem.Device(int(m.dev), in, inL.Total), Out: mem.Device(int(m.dev), out, outL.Total),
		}
		run := func() error { return m.engine.Run(&j) }
		switch {
		case j.Program == nil:
			run = r.sendrecv(m, &j)
		case r.inOrder:
			j.Program.independent = false
		}
		return run
	})
	if name == "ring allreduce" && dt == kernels.Float32 {
		r.checkSums(outs, size)
	}
	for _, m := range r.ranks {
		r.with(m, func() error {
			for _, p := range m.free {
				require.NoError(t, d.MemFree(p))
			}
			m.free = nil
			return nil
		})
	}
	return best
}

// sendrecv is a group of a send to the next rank and a receive from the one before.
func (r *rig) sendrecv(m *member, j *Job) func() error {
	n := len(r.ranks)
	compile := func(s sched.Step) *Program {
		p, err := m.engine.Compile(single{n, s}, m.rank)
		require.NoError(r.t, err)
		return p
	}
	next, before := (m.rank+1)%sched.Rank(n), (m.rank+sched.Rank(n)-1)%sched.Rank(n)
	send, recv := *j, *j
	send.Program = compile(sched.Step{Recv: sched.Nobody, Send: next, Src: sched.Ref{Buf: sched.In}})
	send.Out, send.OutL = mem.Region{}, engine.Layout{}
	recv.Program = compile(sched.Step{Recv: before, Send: sched.Nobody, Dst: sched.Ref{Buf: sched.Out}})
	recv.In, recv.InL = mem.Region{}, engine.Layout{}
	jobs := []*Job{&send, &recv}
	return func() error { return m.engine.RunMessages(jobs) }
}

// checkSums compares the first and last MiB of the results.
func (r *rig) checkSums(outs []uintptr, size int) {
	n := len(r.ranks)
	want := float32(n * (n + 1) / 2)
	for i, m := range r.ranks {
		for _, at := range []int{0, size - min(size, 1<<20)} {
			got := make([]float32, min(size, 1<<20)/4)
			r.with(m, func() error { return r.d.MemcpyDtoH(mem.Of(got).Bytes(), outs[i]+uintptr(at)) })
			for k, v := range got {
				if v != want {
					r.t.Fatalf("rank %d, byte %d: %g, want %g", i, at+4*k, v, want)
				}
			}
		}
	}
}
