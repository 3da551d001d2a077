package gpu

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/mem"
)

// inWindows lays a call out as all ranks of a collective in windows have to: In and
// Out begin where the root's do. In place the smaller one is part of the larger one.
func inWindows(c *ringo.Comm, call ringo.Call, in, out ringo.Region, inPlace bool) ringo.Call {
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

// compareInWindows makes every call on memory in windows, twice, and compares with the
// results of the communicator other on other memory; if other is nil, with the results
// of c on host memory.
func compareInWindows(c, other *ringo.Comm, in, out ringo.Region, calls []ringo.Call, by *commtest.Algos,
	route call.Algo) error {
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
				if err := errors.Join(d.Write(call.Out, bytes.Repeat([]byte{0xee}, call.Out.Len())),
					d.Write(call.In, data)); err != nil {
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
			if algo := by.Last(c.Rank()); algo != route.String() && serves {
				return fmt.Errorf("rank %d: %v was carried out by %s", c.Rank(), &call, algo)
			}
		}
	}
	return nil
}

// expect makes a call out of place, elsewhere.
func expect(c, other *ringo.Comm, call ringo.Call, data, want []byte) error {
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
	return errors.Join(d.Write(in, data), other.Do(&call), other.Synchronize(0), d.Read(want, out), d.Free(in),
		d.Free(out))
}

// windowCalls are the calls that can profit from windows.
func windowCalls(count int, t ringo.DataType, op ringo.RedOp, root int) (calls []ringo.Call) {
	for k := ringo.KindAllReduce; k < ringo.KindSend; k++ {
		calls = append(calls, ringo.Call{Kind: k, Count: count, Type: t, Op: op, Root: root})
	}
	return calls
}

// Collectives in windows have the results that they have elsewhere, in place and out
// of place, in one window and across two.
func TestWindowCalls(t *testing.T) {
	tier.Long(t)
	for _, test := range []struct {
		name  string
		route call.Algo
		n     int
	}{{"window", call.Window, 3}, {"copies", call.Copies, 2}} {
		t.Run(test.name, func(t *testing.T) {
			list := gputest.GPUs(t, test.n, gputest.NVLink())
			by := new(commtest.Algos)
			comms, others := commtest.OnDevices(t, list, ringo.Config{Algo: test.name, Observer: by}),
				commtest.OnDevices(t, list, ringo.Config{Algo: "twoshot"})
			const half = 4 << 10
			memory := commtest.Memories(t, list, 2*half)
			compare := func(calls ...[]ringo.Call) {
				commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error {
					x := memory[c.Rank()]
					return compareInWindows(c, others[c.Rank()], x.Slice(0, half), x.Slice(half, half), slices.Concat(calls...),
						by, test.route)
				}))
			}
			whole := register(t, comms, memory, 0, 2*half)
			compare(windowCalls(130, ringo.BFloat16, ringo.Avg, 0))
			if tier.Full() {
				compare(windowCalls(7, ringo.Uint8, ringo.Max, 0))
			}
			closeWindows(t, whole)
			register(t, comms, memory, half, half)
			register(t, comms, memory, 0, half)
			compare(windowCalls(301, ringo.Int32, ringo.Sum, test.n-1))
		})
	}
}

// A call with a part of its memory in no window is carried out as without windows.
func TestWindowPartly(t *testing.T) {
	list := gputest.GPUs(t, 2)
	by := new(commtest.Algos)
	comms := commtest.OnDevices(t, list, ringo.Config{Algo: "window", Observer: by})
	memory := commtest.Memories(t, list, 4096)
	defer closeWindows(t, register(t, comms, memory, 0, 1024))
	for _, test := range []struct {
		name    string
		in, out int
		want    bool
		kind    ringo.Kind
	}{
		{"both", 0, 512, true, ringo.KindAllReduce},
		{"out beyond the end", 0, 516, false, ringo.KindAllReduce},
		{"out elsewhere", 0, 2048, false, ringo.KindAllReduce},
		{"in elsewhere", 2048, 0, false, ringo.KindAllReduce},
		{"in is not reached", 2048, 0, true, ringo.KindAllGather},
		{"out is not reached", 0, 2048, true, ringo.KindReduceScatter},
	} {
		t.Run(test.name, func(t *testing.T) {
			commtest.Run(t, comms, func(c *commtest.Rank) {
				x := memory[c.Rank()]
				require.NoError(c, errors.Join(c.Do(&ringo.Call{Kind: test.kind, In: x.Slice(test.in, x.Len()-test.in),
					Out: x.Slice(test.out, x.Len()-test.out), Count: 128, Type: ringo.Float32, Op: ringo.Sum}), c.Synchronize(0)))
				require.Equal(c, test.want, by.Last(c.Rank()) == call.Window.String(), by.Last(c.Rank()))
			})
		})
	}
}

// The ranks' memory may be aligned differently.
func TestWindowAlignment(t *testing.T) {
	list := gputest.GPUs(t, 2)
	by := new(commtest.Algos)
	comms, others := commtest.OnDevices(t, list, ringo.Config{Algo: "window", Observer: by}),
		commtest.OnDevices(t, list, ringo.Config{Algo: "twoshot"})
	memory := commtest.Memories(t, list, 8192+64)
	for _, off := range tier.Some(2, [][2]int{{0, 4}, {8, 2}, {16, 6}}) {
		parts := []ringo.Region{memory[0].Slice(off[0], 8192), memory[1].Slice(off[1], 8192)}
		ws := register(t, comms, parts, 0, 8192)
		commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error {
			x := parts[c.Rank()]
			return compareInWindows(c, others[c.Rank()], x.Slice(0, 4096), x.Slice(4096, 4096),
				windowCalls(99, ringo.BFloat16, ringo.Sum, 1), by, call.Window)
		}))
		closeWindows(t, ws)
	}
}

// Ranks whose memory is at different places get an error that names both calls.
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
			list := gputest.GPUs(t, 2)
			comms := commtest.OnDevices(t, list, ringo.Config{Algo: "window", Timeout: 20 * time.Second})
			memory := commtest.Memories(t, list, 8192)
			register(t, comms, memory, 0, 2048)
			register(t, comms, memory, 2048, 2048)
			errs := commtest.Each(comms, func(c *ringo.Comm) error {
				x := memory[c.Rank()].Slice(test.at[c.Rank()], 1024)
				return errors.Join(c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 256, Type: ringo.Float32}),
					c.Synchronize(0))
			})
			named := 0
			for r, err := range errs {
				require.Error(t, err, "rank %d", r)
				if errors.Is(err, ringo.ErrMismatch) {
					require.ErrorContains(t, err, strings.Split(test.want, "|")[r])
					require.ErrorContains(t, err, "ranks disagree on the memory: rank ")
					require.Regexp(t, `rank . calls AllReduce #(\d+) \(count 256, float32, sum\) .*, rank . calls AllReduce #\d+ \(count 256, float32, sum\) `, err.Error())
					named++
				}
			}
			require.NotZero(t, named)
		})
	}
}

// A copy to a peer's memory of Alloc waits for calls on the peer's GPU, and those may wait for
// kernels that wait for this rank. So no collective has copy engines work there, and a put is refused.
func TestCopiesThatStall(t *testing.T) {
	for _, mapped := range []bool{false, true} {
		t.Run(fmt.Sprint("mapped=", mapped), func(t *testing.T) {
			list := gputest.GPUs(t, 2, gputest.Emu(cudaemu.Config{LoadsWait: true}))
			comms := commtest.OnDevices(t, list, ringo.Config{Algo: "copies", Timeout: 30 * time.Second})
			memory := make([]ringo.Region, 2)
			for r, d := range list {
				memory[r] = commtest.Alloc(t, d, make([]byte, 128))
				if mapped {
					memory[r] = commtest.AllocMapped(t, d, make([]byte, 128))
				}
			}
			ws := register(t, comms, memory, 0, 128)
			gather := func(r int) error {
				x := memory[r]
				return comms[r].Do(&ringo.Call{Kind: ringo.KindAllGather, In: x.Slice(64*r, 64), Out: x, Count: 64,
					Type: ringo.Uint8, Stream: gpu.Legacy})
			}
			require.NoError(t, gather(0))
			waits := make(chan error)
			// after the legacy stream's work
			go func() { waits <- list[0].Write(commtest.Alloc(t, list[0], make([]byte, 4)), []byte{1}) }()
			time.Sleep(20 * time.Millisecond)
			require.NoError(t, gather(1))
			require.NoError(t, <-waits)
			for r, c := range comms {
				require.NoError(t, c.Synchronize(gpu.Legacy))
				err := ws[r].Put(memory[r].Slice(64, 8), 1-r, 0, gpu.Legacy)
				if mapped {
					require.NoError(t, err)
					continue
				}
				require.ErrorIs(t, err, ringo.ErrUnsupported)
				require.NoError(t, c.Err())
			}
		})
	}
}

// A program that retires a window may map other memory at its addresses, as sleep modes and expandable segments
// do: peers neither read nor write what was there before, and the new memory may be registered.
func TestWindowRetired(t *testing.T) {
	for _, algo := range []string{"window", "copies"} {
		t.Run(algo, func(t *testing.T) {
			list := gputest.GPUs(t, 2, gputest.NVLink())
			by := new(commtest.Algos)
			comms := commtest.OnDevices(t, list, ringo.Config{Algo: algo, Observer: by, Timeout: 20 * time.Second})
			memory := make([]ringo.Region, 2)
			for r, d := range list {
				memory[r] = mappedPieces(t, d, 1, cuda.AllocationProp{})
			}
			gather := func(round byte) {
				t.Helper()
				for r, d := range list {
					require.NoError(t, d.Write(memory[r].Slice(0, 512), bytes.Repeat([]byte{round + byte(r)}, 512)))
				}
				commtest.Run(t, comms, func(c *commtest.Rank) {
					x := memory[c.Rank()]
					call := &ringo.Call{Kind: ringo.KindAllGather, In: x.Slice(256*c.Rank(), 256), Out: x, Count: 256,
						Type: ringo.Uint8}
					require.NoError(c, errors.Join(c.Do(call), c.Synchronize(0)))
					want := append(bytes.Repeat([]byte{round}, 256), bytes.Repeat([]byte{round + 1}, 256)...)
					require.Equal(c, want, commtest.Read(c, c.Device(), x.Slice(0, 512)))
				})
			}
			old := register(t, comms, memory, 0, piece)
			gather(1)
			require.Equal(t, algo, by.Last(0))
			for _, w := range old {
				w.Retire()
			}
			for r, d := range list {
				require.NoError(t, d.Driver().MemUnmap(memory[r].Ptr(), piece))
				mapPiece(t, d, memory[r].Ptr(), cuda.AllocationProp{})
			}
			gather(5)
			require.NotEqual(t, algo, by.Last(0), "it is in no window")
			again := register(t, comms, memory, 0, piece)
			gather(9)
			require.Equal(t, algo, by.Last(0))
			closeWindows(t, old)
			gather(13)
			closeWindows(t, again)
		})
	}
}

// Ranks get an error if one of them has retired a window.
func TestWindowRetiredByOne(t *testing.T) {
	list := gputest.GPUs(t, 2)
	comms := commtest.OnDevices(t, list, ringo.Config{Algo: "window", Timeout: time.Hour})
	memory := commtest.Memories(t, list, 4096)
	register(t, comms, memory, 0, 4096)[0].Retire()
	began := time.Now()
	errs := commtest.Each(comms, func(c *ringo.Comm) error {
		x := memory[c.Rank()].Slice(0, 1024)
		return errors.Join(c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 256, Type: ringo.Float32}),
			c.Synchronize(0))
	})
	for r, err := range errs {
		require.ErrorContains(t, err, "ranks disagree on the memory", "rank %d", r)
	}
	require.Less(t, time.Since(began), tier.Patience)
}
