package ringo

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/gputest"
	"github.com/ringo-go/ringo/mem"
)

func init() {
	gpuWork["windowcheck"], gpuWork["windowloop"], gpuWork["windowleave"] = windowCheck, windowLoop, windowLeave
}

// inWindows lays a call out as all ranks of a collective in windows have to: In and
// Out begin where the root's do. In place the smaller one is part of the larger one.
func inWindows(c *Comm, call Call, in, out Region, inPlace bool) Call {
	as, n, size := c.Rank(), c.Size(), call.Type.Size()
	if call.Kind.Rooted() {
		as = call.Root
	}
	root := call
	root.Root = as // of the rank whose shape it is
	give, get := root.Shape(as, n)
	call.In, call.Out = in.Slice(0, give*size), out.Slice(0, get*size)
	share := as * call.Count * size
	switch {
	case !inPlace:
	case give > get:
		call.Out = call.In.Slice(share, get*size)
	case get > give:
		call.In = call.Out.Slice(share, give*size)
	default:
		call.In = call.Out
	}
	return call
}

// compareInWindows makes every call on memory in windows, twice, and compares with
// what another communicator makes of other memory; without, with what this one makes
// of the host's.
func compareInWindows(c, other *Comm, in, out Region, calls []Call, route call.Algo) error {
	d := c.Device()
	rng := rand.New(rand.NewPCG(uint64(c.Rank()), 7))
	for _, call := range calls {
		for _, inPlace := range []bool{false, true} {
			call := inWindows(c, call, in, out, inPlace)
			size := call.Type.Size()
			give, get := call.Shape(c.Rank(), c.Size())
			data, want, got := make([]byte, give*size), make([]byte, get*size), make([]byte, get*size)
			for i := range data {
				if i%size == size-1 { // small numbers, also as floats
					data[i] = byte(rng.IntN(4))
				}
			}
			if err := expect(c, other, call, data, want); err != nil {
				return err
			}
			for range 2 {
				if err := errors.Join(d.Write(call.Out, bytes.Repeat([]byte{0xee}, call.Out.Len())), d.Write(call.In, data)); err != nil {
					return err
				}
				if err := errors.Join(c.Do(&call), c.Synchronize(0), d.Read(got, call.Out)); err != nil {
					return err
				}
				if !bytes.Equal(got, want) {
					return fmt.Errorf("rank %d: %v is wrong, in place: %v", c.Rank(), &call, inPlace)
				}
			}
			serves := slices.Contains(c.DeviceAlgorithms(call.Kind, call.Bytes(), true), route.String())
			if ans := c.gpu.Answer(&call); ans.Algo != route && serves {
				return fmt.Errorf("rank %d: %v was carried out by %v", c.Rank(), &call, ans.Algo)
			}
		}
	}
	return nil
}

// expect makes a call out of place, elsewhere.
func expect(c, other *Comm, call Call, data, want []byte) error {
	if other == nil {
		call.In, call.Out = mem.Host(data), mem.Host(want)
		return c.Do(&call)
	}
	d := other.Device()
	in, err := d.Alloc(len(data) + 1)
	if err != nil {
		return err
	}
	out, err := d.Alloc(len(want) + 1)
	if err != nil {
		return err
	}
	call.In, call.Out = in, out
	return errors.Join(d.Write(in, data), other.Do(&call), other.Synchronize(0), d.Read(want, out), d.Free(in), d.Free(out))
}

// windowCalls are those that windows can do something for.
func windowCalls(count int, t DataType, op RedOp, root int) (calls []Call) {
	for k := KindAllReduce; k < KindSend; k++ {
		calls = append(calls, Call{Kind: k, Count: count, Type: t, Op: op, Root: root})
	}
	return calls
}

// Collectives in windows have the results that they have elsewhere, in place and out
// of place, in one window and across two.
func TestWindowCalls(t *testing.T) {
	for _, test := range []struct {
		name  string
		route call.Algo
		n     int
	}{{"window", call.Window, 3}, {"copies", call.Copies, 2}} {
		t.Run(test.name, func(t *testing.T) {
			list := devices(t, test.n)
			comms, others := onDevices(t, list, Config{Algo: test.name}), onDevices(t, list, Config{Algo: "twoshot"})
			const half = 4 << 10
			memory := memories(t, list, 2*half)
			compare := func(calls ...[]Call) {
				noErrors(t, each(comms, func(c *Comm) error {
					x := memory[c.Rank()]
					return compareInWindows(c, others[c.Rank()], x.Slice(0, half), x.Slice(half, half), slices.Concat(calls...), test.route)
				}))
			}
			whole := register(t, comms, memory, 0, 2*half)
			compare(windowCalls(7, Uint8, Max, 0), windowCalls(130, BFloat16, Avg, 0))
			closeWindows(t, whole)
			register(t, comms, memory, half, half)
			register(t, comms, memory, 0, half)
			compare(windowCalls(301, Int32, Sum, test.n-1))
		})
	}
}

// Part of the memory in no window: as without windows.
func TestWindowPartly(t *testing.T) {
	list := devices(t, 2)
	comms := onDevices(t, list, Config{Algo: "window"})
	memory := memories(t, list, 4096)
	defer closeWindows(t, register(t, comms, memory, 0, 1024))
	for _, test := range []struct {
		name    string
		in, out int
		want    bool
		kind    Kind
	}{
		{"both", 0, 512, true, KindAllReduce},
		{"out beyond the end", 0, 516, false, KindAllReduce},
		{"out elsewhere", 0, 2048, false, KindAllReduce},
		{"in elsewhere", 2048, 0, false, KindAllReduce},
		{"in is not reached", 2048, 0, true, KindAllGather},
		{"out is not reached", 0, 2048, true, KindReduceScatter},
	} {
		t.Run(test.name, func(t *testing.T) {
			noErrors(t, each(comms, func(c *Comm) error {
				x := memory[c.Rank()]
				op := &Call{Kind: test.kind, In: x.Slice(test.in, x.Len()-test.in), Out: x.Slice(test.out, x.Len()-test.out), Count: 128, Type: Float32, Op: Sum}
				if got := c.gpu.Answer(op).Algo == call.Window; got != test.want {
					return fmt.Errorf("rank %d: in windows: %v", c.Rank(), got)
				}
				return errors.Join(c.Do(op), c.Synchronize(0))
			}))
		})
	}
}

// The ranks' memory may be aligned differently.
func TestWindowAlignment(t *testing.T) {
	list := devices(t, 2)
	comms, others := onDevices(t, list, Config{Algo: "window"}), onDevices(t, list, Config{Algo: "twoshot"})
	memory := memories(t, list, 8192+64)
	for _, off := range [][2]int{{0, 4}, {8, 2}, {16, 6}} {
		parts := []Region{memory[0].Slice(off[0], 8192), memory[1].Slice(off[1], 8192)}
		ws := register(t, comms, parts, 0, 8192)
		noErrors(t, each(comms, func(c *Comm) error {
			x := parts[c.Rank()]
			return compareInWindows(c, others[c.Rank()], x.Slice(0, 4096), x.Slice(4096, 4096), windowCalls(99, BFloat16, Sum, 1), call.Window)
		}))
		closeWindows(t, ws)
	}
}

// Ranks may share a GPU.
func TestWindowShared(t *testing.T) {
	one := devices(t, 1)[0]
	list := []*gpu.Device{one, one, one}
	comms := onDevices(t, list, Config{Algo: "window", Timeout: 20 * time.Second})
	memory := memories(t, list, 4096)
	ws := register(t, comms, memory, 0, 4096)
	streams := make([]gpu.Stream, len(list))
	for r, c := range comms { // one goroutine drives all
		var err error
		streams[r], err = one.NewStream()
		require.NoError(t, err)
		defer one.DestroyStream(streams[r])
		require.NoError(t, one.Write(memory[r], mem.Of([]int64{int64(r + 1), 5}).Bytes()))
		require.NoError(t, c.Do(&Call{Kind: KindAllReduce, In: memory[r], Out: memory[r], Count: 2, Type: Int64, Stream: streams[r]}))
		time.Sleep(5 * time.Millisecond)
	}
	for r, c := range comms {
		require.NoError(t, c.Synchronize(streams[r]))
		got := make([]int64, 2)
		require.NoError(t, one.Read(mem.Of(got).Bytes(), memory[r]))
		require.Equal(t, []int64{6, 15}, got)
	}
	closeWindows(t, ws)
}

// Finding memory in windows is for every call, and costs nothing worth mentioning.
func TestWindowAnswerAllocates(t *testing.T) {
	list := devices(t, 2)
	comms := onDevices(t, list, Config{Algo: "window"})
	memory := memories(t, list, 4096)
	defer closeWindows(t, register(t, comms, memory, 0, 4096))
	call := &Call{Kind: KindAllReduce, In: memory[0], Out: memory[0], Count: 8, Type: Float32, Op: Sum}
	require.Zero(t, testing.AllocsPerRun(100, func() { comms[0].gpu.Answer(call) }))
}

// A graph that was captured in windows is replayed.
func TestWindowGraph(t *testing.T) {
	for _, name := range []string{"window", "copies"} {
		t.Run(name, func(t *testing.T) {
			list := devices(t, 2)
			comms := onDevices(t, list, Config{Algo: name})
			memory := memories(t, list, 4096)
			ws := register(t, comms, memory, 0, 4096)
			noErrors(t, each(comms, func(c *Comm) error {
				d, x := c.Device(), memory[c.Rank()]
				s, err := d.NewStream()
				if err != nil {
					return err
				}
				call := &Call{Kind: KindAllGather, In: x.Slice(2048, 1024), Out: x.Slice(0, 2048), Count: 1024, Type: Uint8, Stream: s}
				if err := errors.Join(c.Do(call), c.Synchronize(s)); err != nil { // loads the kernels
					return err
				}
				g, err := d.Capture(s, func() error { return c.Do(call) })
				if err != nil {
					return err
				}
				got := make([]byte, 2048)
				for i := range 3 {
					if err := d.Write(call.In, bytes.Repeat([]byte{byte(10*i + c.Rank())}, 1024)); err != nil {
						return err
					}
					if err := errors.Join(g.Launch(s), c.Synchronize(s), d.Read(got, call.Out)); err != nil {
						return err
					}
					if want := append(bytes.Repeat([]byte{byte(10 * i)}, 1024), bytes.Repeat([]byte{byte(10*i + 1)}, 1024)...); !bytes.Equal(got, want) {
						return fmt.Errorf("replay %d is wrong", i)
					}
				}
				return errors.Join(g.Close(), d.DestroyStream(s))
			}))
			closeWindows(t, ws)
		})
	}
}

// Ranks whose memory is at different places are told so, by both calls' names.
func TestWindowMismatch(t *testing.T) {
	for _, test := range []struct {
		name string
		at   [2]int // of the ranks
		want string
	}{
		{"other offset", [2]int{0, 128}, "with In and Out at 0 of window #1,|with In and Out at 128 of window #1,"},
		{"other window", [2]int{0, 2048}, "with In and Out at 0 of window #1,|with In and Out at 0 of window #2,"},
		{"in none", [2]int{0, 5120}, "with In and Out at 0 of window #1,|in no window,"},
	} {
		t.Run(test.name, func(t *testing.T) {
			list := devices(t, 2)
			comms := onDevices(t, list, Config{Algo: "window", Timeout: 20 * time.Second})
			memory := memories(t, list, 8192)
			register(t, comms, memory, 0, 2048)
			register(t, comms, memory, 2048, 2048)
			errs := each(comms, func(c *Comm) error {
				x := memory[c.Rank()].Slice(test.at[c.Rank()], 1024)
				return errors.Join(c.Do(&Call{Kind: KindAllReduce, In: x, Out: x, Count: 256, Type: Float32}), c.Synchronize(0))
			})
			named := 0
			for r, err := range errs {
				require.Error(t, err, "rank %d", r)
				if errors.Is(err, ErrMismatch) {
					require.ErrorContains(t, err, strings.Split(test.want, "|")[r])
					require.ErrorContains(t, err, "ranks disagree on the memory: rank ")
					require.Equal(t, 2, strings.Count(err.Error(), "AllReduce #1 (count 256, float32, sum)"), err.Error())
					named++
				}
			}
			require.NotZero(t, named)
		})
	}
}

// windowMemory is 64 KiB of device memory, allocated or mapped, and how to give it back.
func windowMemory(d *gpu.Device, mapped bool) (r Region, free func() error, err error) {
	const n = 64 << 10
	if !mapped {
		r, err = d.Alloc(n)
		return r, func() error { return d.Free(r) }, err
	}
	const piece = 2 << 20
	driver := d.Driver()
	base, err := driver.MemAddressReserve(2*piece, 0)
	if err != nil {
		return r, nil, err
	}
	for i := range uintptr(2) {
		h, err := driver.MemCreate(piece, cuda.AllocationProp{Device: d.Handle(), Shareable: true})
		if err != nil {
			return r, nil, err
		}
		if err := errors.Join(driver.MemMap(base+i*piece, piece, h), driver.MemRelease(h)); err != nil {
			return r, nil, err
		}
	}
	// It lies in both.
	return mem.Device(d.Number(), base+piece-n/2, n), func() error {
		return errors.Join(driver.MemUnmap(base, piece), driver.MemUnmap(base+piece, piece), driver.MemAddressFree(base, 2*piece))
	}, driver.MemSetAccess(base, 2*piece, d.Handle())
}

// windowCheck makes calls in windows of both kinds of memory, and in two windows of
// one allocation.
func windowCheck(c *Comm) int {
	fail := func(what string, err error) int {
		fmt.Println("error:", what, err)
		return 3
	}
	for _, mapped := range []bool{false, true} {
		x, free, err := windowMemory(c.Device(), mapped)
		if err != nil {
			return fail("memory", err)
		}
		half := x.Len() / 2
		a, err := c.Register(x.Slice(0, half))
		if err != nil {
			return fail("register", err)
		}
		b, err := c.Register(x.Slice(half, half))
		if err != nil {
			return fail("register", err)
		}
		fmt.Printf("mapped %v: %q\n", mapped, a.Reason())
		if err := compareInWindows(c, nil, x.Slice(0, half), x.Slice(half, half), windowCalls(1001, Int32, Sum, 1), call.Window); err != nil {
			return fail("calls", err)
		}
		if err := errors.Join(a.Close(), b.Close(), free()); err != nil {
			return fail("close", err)
		}
	}
	return 0
}

// windowLeave leaves the communicator with windows open, and frees the memory then.
func windowLeave(c *Comm) int {
	x, free, err := windowMemory(c.Device(), c.Rank() > 0)
	if err != nil {
		fmt.Println("error:", err)
		return 3
	}
	if err = c.Device().Write(x, make([]byte, x.Len())); err == nil {
		_, err = c.Register(x)
	}
	for i := 0; i < 3 && err == nil; i++ {
		err = c.Do(&Call{Kind: KindAllReduce, In: x, Out: x, Count: 1000, Type: Float32, Op: Avg})
	}
	if err = errors.Join(err, c.Close(), free()); err != nil {
		fmt.Println("error:", err)
		return 3
	}
	return 0
}

// windowLoop works in a window until a peer dies.
func windowLoop(c *Comm) int {
	d := c.Device()
	x, free, err := windowMemory(d, false)
	var w *Window
	if err == nil {
		if w, err = c.Register(x); err == nil {
			err = d.Write(x, make([]byte, x.Len()))
		}
	}
	fmt.Println("ready")
	for err == nil {
		for i := 0; i < 3 && err == nil; i++ {
			err = c.Do(&Call{Kind: KindAllReduce, In: x, Out: x, Count: 10000, Type: Float32, Op: Avg})
		}
		if err == nil {
			err = c.Synchronize(0)
		}
	}
	fmt.Println("error:", err)
	if w != nil {
		fmt.Println("window:", w.Close())
	}
	if err := free(); err != nil {
		fmt.Println("free:", err)
		return 5
	}
	if errors.Is(err, ErrPeer) {
		return 3
	}
	return 4
}

// Each rank is a process.
func TestWindowProcesses(t *testing.T) {
	for _, work := range []string{"windowcheck", "windowleave"} {
		t.Run(work, func(t *testing.T) {
			if gputest.OnGPU() {
				devices(t, 2)
			}
			for r, cmd := range processes(t, 2, work, "RINGO_ALGO=window") {
				require.NoError(t, cmd.Wait(), "rank %d: %s", r, output(cmd))
				if work == "windowcheck" {
					require.Contains(t, output(cmd), `mapped false: ""`)
					require.Contains(t, output(cmd), `mapped true: ""`)
				}
			}
		})
	}
}

// A process that is killed while others use its window ends them within 2 s, and
// they name it.
func TestWindowKilled(t *testing.T) {
	if gputest.OnGPU() {
		devices(t, 2)
	}
	for _, victim := range []int{0, 2} {
		t.Run(fmt.Sprint(victim), func(t *testing.T) {
			cmds := processes(t, 3, "windowloop", "RINGO_ALGO=window")
			time.Sleep(time.Duration(500+rand.IntN(500)) * time.Millisecond)
			require.NoError(t, cmds[victim].Process.Signal(syscall.SIGKILL))
			start := time.Now()
			for r, cmd := range cmds {
				err := cmd.Wait()
				if r == victim {
					continue
				}
				var exit *exec.ExitError
				require.ErrorAs(t, err, &exit, "rank %d", r)
				if !strings.Contains(output(cmd), "Open: ") { // so early
					require.Equal(t, 3, exit.ExitCode(), "rank %d: %s", r, output(cmd))
				}
				require.Contains(t, output(cmd), fmt.Sprintf("rank %d died", victim))
			}
			limit := 2 * time.Second
			if !gputest.OnGPU() {
				limit *= 2 // emulated kernels of three processes end slowly on few cores
			}
			require.Less(t, time.Since(start), limit)
		})
	}
}
