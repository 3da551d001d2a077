package gpu

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// A footprint is what a process has in use.
type footprint struct {
	goroutines, descriptors int
	memory                  []int // bytes, of each GPU
}

func (f footprint) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %d bytes of GPUs", f.goroutines, f.descriptors, f.memory)
}

// footprintOf measures the process and its GPUs. What the emulator itself needs does not count.
func footprintOf(list []*gpu.Device) (f footprint, err error) {
	f.goroutines = runtime.NumGoroutine()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return f, err
	}
	for _, file := range files {
		if to, _ := os.Readlink("/proc/self/fd/" + file.Name()); strings.HasPrefix(to, "socket:") ||
			strings.HasPrefix(to, "/memfd:ringo") && !strings.HasPrefix(to, "/memfd:ringo-emu") {
			f.descriptors++
		}
	}
	for _, d := range list {
		free, total, err := d.Memory()
		if err != nil {
			return f, err
		}
		f.memory = append(f.memory, total-free)
	}
	return f, nil
}

// since is what has come to be in use since a footprint.
func (f footprint) since(before footprint) footprint {
	d := footprint{goroutines: f.goroutines - before.goroutines, descriptors: f.descriptors - before.descriptors}
	for i := range f.memory {
		d.memory = append(d.memory, f.memory[i]-before.memory[i])
	}
	return d
}

// settled is the footprint once it fits, or after 5 s: goroutines that have done their work
// may need a moment to end.
func settled(t testing.TB, list []*gpu.Device, fits func(footprint) bool) footprint {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		f, err := footprintOf(list)
		require.NoError(t, err)
		if fits(f) || time.Now().After(end) {
			return f
		}
	}
}

// smallCalls makes small calls of all ranks, which may be driven by one thread.
func smallCalls(t testing.TB, list []*gpu.Device, comms []*ringo.Comm, memory []ringo.Region) {
	t.Helper()
	for _, kind := range []ringo.Kind{ringo.KindAllReduce, ringo.KindBroadcast, ringo.KindAllReduce} {
		for r, c := range comms {
			require.NoError(t, c.Do(&ringo.Call{Kind: kind, In: memory[r], Out: memory[r], Count: memory[r].Len() / 4,
				Type: ringo.Float32}))
		}
	}
	for r, c := range comms {
		require.NoError(t, list[r].Synchronize(0))
		require.NoError(t, c.Err())
	}
}

// Communicators that have done small calls only cost their process little, and leave nothing
// behind.
func TestFootprint(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("descriptors are counted in /proc")
	}
	for _, n := range tier.Some(2, []int{1, 50, 10}) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			list := gputest.GPUs(t, 2, gputest.Unchecked(2))
			memory := []ringo.Region{commtest.Alloc(t, list[0], make([]byte, 1024)),
				commtest.Alloc(t, list[1], make([]byte, 1024))}
			before := settled(t, list, func(footprint) bool { return true })
			all := make([][]*ringo.Comm, n)
			for i := range all {
				all[i] = commtest.OnDevices(t, list, ringo.Config{})
				smallCalls(t, list, all[i], memory)
			}
			fits := func(f footprint) bool {
				f = f.since(before)
				return f.goroutines <= 1 && f.descriptors == 0 && max(f.memory[0], f.memory[1]) <= 12<<20*n // one watcher for all
			}
			f := settled(t, list, fits)
			t.Logf("%d communicators of 2 ranks: %v", n, f.since(before))
			require.True(t, fits(f), "%v", f.since(before))
			for _, comms := range all {
				for _, c := range comms {
					require.NoError(t, c.Close())
				}
			}
			f = settled(t, list, func(f footprint) bool { return f.since(before).goroutines <= 0 })
			left := f.since(before)
			left.goroutines = max(0, left.goroutines) // of tests before, some may end meanwhile
			left.descriptors = max(0, left.descriptors)
			if gputest.OnGPU() && max(left.memory[0], left.memory[1]) <= 32<<20 { // the driver may keep a little
				left.memory = []int{0, 0}
			}
			require.Equal(t, footprint{memory: []int{0, 0}}, left, "after Close")
		})
	}
}

// Memory for queues comes when a call needs it, while kernels of peers wait: here one thread
// drives both ranks, and the kernel of rank 0 waits when rank 1 needs memory of its GPU.
func TestQueuesComeLate(t *testing.T) {
	list := gputest.GPUs(t, 2, gputest.Unchecked(2))
	memory := []ringo.Region{commtest.Alloc(t, list[0], make([]byte, 1024)),
		commtest.Alloc(t, list[1], commtest.Floats(make([]float32, 256)))}
	large := []ringo.Region{commtest.Alloc(t, list[0], commtest.Floats(make([]float32, 1<<18))),
		commtest.Alloc(t, list[1], commtest.Floats(slices.Repeat([]float32{3}, 1<<18)))}
	before, err := footprintOf(list)
	require.NoError(t, err)
	comms := commtest.OnDevices(t, list, ringo.Config{})
	memoryOf := func() []int {
		f, err := footprintOf(list)
		require.NoError(t, err)
		return f.since(before).memory
	}
	opened := memoryOf()
	do := func(rank int, c *ringo.Call) {
		t.Helper()
		c.Type = ringo.Float32
		require.NoError(t, comms[rank].Do(c))
	}
	do(0, &ringo.Call{Kind: ringo.KindAllReduce, In: memory[0], Out: memory[0], Count: 256})
	do(1, &ringo.Call{Kind: ringo.KindSend, In: memory[1], Count: 256, Peer: 0})
	for r, n := range memoryOf() {
		require.LessOrEqual(t, n, opened[r]+2<<20, "a page for a small message, on one GPU")
	}
	do(1, &ringo.Call{Kind: ringo.KindAllReduce, In: memory[1], Out: memory[1], Count: 256})
	do(0, &ringo.Call{Kind: ringo.KindRecv, Out: memory[0], Count: 256, Peer: 1})

	do(0, &ringo.Call{Kind: ringo.KindAllReduce, In: memory[0], Out: memory[0], Count: 256})
	do(1, &ringo.Call{Kind: ringo.KindSend, In: large[1], Count: 1 << 18, Peer: 0})
	require.Greater(t, memoryOf()[0], opened[0]+2<<20, "more for a large one")
	do(1, &ringo.Call{Kind: ringo.KindAllReduce, In: memory[1], Out: memory[1], Count: 256})
	do(0, &ringo.Call{Kind: ringo.KindRecv, Out: large[0], Count: 1 << 18, Peer: 1})
	for r, c := range comms {
		require.NoError(t, c.Synchronize(0), "rank %d", r)
	}
	got := make([]byte, large[0].Len())
	require.NoError(t, list[0].Read(got, large[0]))
	require.Equal(t, commtest.Floats(slices.Repeat([]float32{3}, 1<<18)), got)
}

// Where the driver cannot map memory later on one of the GPUs, all queues are allocated when
// the communicator is opened, and all works as elsewhere.
func TestQueuesAllocatedAtOnce(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("a fault of the emulator")
	}
	list := gputest.GPUs(t, 2,
		gputest.Emu(cudaemu.Config{Devices: 2, Plain: true,
			Faults: []cudaemu.Injection{{Call: "cuMemCreate", Device: 2, Chance: 1, Result: cuda.Result(801)}}}))
	before, err := footprintOf(list)
	require.NoError(t, err)
	comms := commtest.OnDevices(t, list, ringo.Config{Algo: "ring"})
	f, err := footprintOf(list)
	require.NoError(t, err)
	for _, n := range f.since(before).memory {
		require.Greater(t, n, 12<<20)
	}
	x := []ringo.Region{commtest.Alloc(t, list[0], commtest.Floats([]float32{1, 2})),
		commtest.Alloc(t, list[1], commtest.Floats([]float32{10, 20}))}
	for r, c := range comms {
		require.NoError(t, c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: x[r], Out: x[r], Count: 2, Type: ringo.Float32}))
	}
	for r, c := range comms {
		require.NoError(t, c.Synchronize(0))
		got := make([]byte, 8)
		require.NoError(t, list[r].Read(got, x[r]))
		require.Equal(t, commtest.Floats([]float32{11, 22}), got)
	}
}

// Nothing is left of communicators, however many there were.
func TestManyCommunicators(t *testing.T) {
	tier.Long(t)
	list := gputest.GPUs(t, 2, gputest.Emu(cudaemu.Config{Devices: 2, Plain: true})) // which remembers no accesses
	memory := []ringo.Region{commtest.Alloc(t, list[0], make([]byte, 64)), commtest.Alloc(t, list[1], make([]byte, 64))}
	before := settled(t, list, func(footprint) bool { return true })
	use := func(times, goroutines int) (footprint, uint64) {
		for range times {
			comms, err := ringo.OpenLocal(2, ringo.Config{Devices: list})
			require.NoError(t, err)
			smallCalls(t, list, comms, memory)
			for _, c := range comms {
				require.NoError(t, c.Close())
			}
		}
		f := settled(t, list, func(f footprint) bool { return f.goroutines <= goroutines })
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return f, m.HeapAlloc
	}
	few, heap := use(10, before.goroutines)
	times := tier.Count(20, 60)
	var more []int64 // bytes of the heap, by round: what grows once, as a table does, is not of communicators
	for range 3 {
		many, after := use(times, few.goroutines) // fewer than before: some goroutines of earlier tests have ended
		require.LessOrEqual(t, many.goroutines, few.goroutines)
		require.LessOrEqual(t, many.descriptors, few.descriptors)
		require.Equal(t, few.memory, many.memory)
		more, heap = append(more, int64(after)-int64(heap)), after
		if more[len(more)-1] < int64(times<<10) {
			return
		}
	}
	t.Errorf("%d communicators left %v bytes, want less than a KiB each", times, more)
}

// gpuFootprint makes small calls of a communicator and five that are split from it, and says
// what they cost this process.
func gpuFootprint(c *ringo.Comm) int {
	list, comms := []*gpu.Device{c.Device()}, []*ringo.Comm{c}
	x, err := c.Device().Alloc(1024)
	if err == nil {
		err = c.Device().Write(x, make([]byte, 1024))
	}
	for len(comms) < 6 && err == nil {
		var part *ringo.Comm
		if part, err = c.Split(context.Background(), 0, 0); err == nil {
			comms = append(comms, part)
		}
	}
	for _, c := range comms {
		message := &ringo.Call{Kind: ringo.KindSend, In: x, Count: 16, Type: ringo.Float32, Peer: 1}
		if c.Rank() == 1 {
			message = &ringo.Call{Kind: ringo.KindRecv, Out: x, Count: 16, Type: ringo.Float32, Peer: 0}
		}
		for _, call := range []*ringo.Call{{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 256, Type: ringo.Float32},
			message, {Kind: ringo.KindBroadcast, In: x, Out: x, Count: 256, Type: ringo.Float32}} {
			if err == nil {
				err = c.Do(call)
			}
		}
	}
	if err == nil {
		err = c.Synchronize(0)
	}
	var f footprint
	n := len(comms)
	for end := time.Now().Add(5 * time.Second); err == nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		f, err = footprintOf(list)
		f.goroutines -= 1 + 2 // main's and, mostly, the emulator's
		if f.goroutines <= 2*n+4 && f.descriptors <= 4*n && f.memory[0] <= n*12<<20 {
			fmt.Print("little: ")
			break
		}
	}
	if err == nil {
		err = ringo.Barrier(c)
	}
	fmt.Println(f, err)
	for _, c := range comms[1:] {
		c.Close()
	}
	if err := c.Device().Free(x); err != nil {
		fmt.Println("free:", err)
	}
	return 0
}

// A communicator of two processes costs each of them little: at most two goroutines and four
// descriptors, besides a process's watcher, its doors of GPU and host memory and the second port of its hubs.
func TestFootprintOfProcesses(t *testing.T) {
	tier.Long(t)
	if gputest.OnGPU() || runtime.GOOS != "linux" {
		t.Skip("counts what the emulator leaves, in /proc")
	}
	for r, cmd := range commtest.ProcessesOn(t, 1, 2, "gpufootprint") {
		require.NoError(t, cmd.Wait())
		require.Regexp(t, `little: .* <nil>`, commtest.Output(cmd), "rank %d", r)
		t.Log(commtest.Output(cmd))
	}
}
