package gpu

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/mem"
)

// ways are Configs that force each kind of path.
var ways = map[string]ringo.Config{
	"p2p":         {},
	"host memory": commtest.Under(ringo.Config{}, "RINGO_P2P_DISABLE=1"),
	"bridge":      commtest.Under(ringo.Config{}, "RINGO_P2P_DISABLE=1", "RINGO_SHM_DISABLE=1"),
	"tcp":         {Transport: "socket", SocketNetwork: "tcp", Interface: "lo"},
}

// wayNames are the keys of ways.
var (
	wayNames = []string{"p2p", "host memory", "bridge", "tcp"}
	waysBack = []string{"tcp", "bridge", "host memory", "p2p"} // of which tier.Some takes those that it leaves out above
)

// realTime is a Config.Timeout that tests wait for: long enough for kernels to begin on a busy machine.
const realTime = time.Second / 2

// blames checks that the error of a waiting kernel has a text. On a machine that stops for a second the kernel may not
// have begun.
func blames(t *testing.T, err error, text string) {
	t.Helper()
	if !strings.Contains(err.Error(), "blocks of its kernel have not begun") {
		require.ErrorContains(t, err, text)
	}
}

// waiting is unchecked for tests in which kernels wait for long: that is no deadlock.
func waiting(n int) gputest.Option {
	return gputest.Emu(cudaemu.Config{Devices: n, Plain: !tier.Full() && !need.Required("pcie"), Stall: -1})
}

// eachWay runs f on a communicator of n ranks for each of these kinds of path.
func eachWay(t *testing.T, names []string, n int, timeout time.Duration,
	f func(t *testing.T, list []*gpu.Device, comms []*ringo.Comm)) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			cfg := ways[name]
			list := gputest.GPUs(t, n, waiting(n))
			cfg.Timeout = timeout
			f(t, list, commtest.OnDevices(t, list, cfg))
		})
	}
}

// A peer that never receives is named when the time is over, also by short messages, of which
// some need no receiver before they are done.
func TestDeviceTimeoutOfSends(t *testing.T) {
	tier.Long(t)
	for _, name := range tier.Some(2, []string{"bridge", "host memory", "p2p"}) { // sockets take them all
		t.Run(name, func(t *testing.T) {
			list, cfg := gputest.GPUs(t, 2, waiting(2)), ways[name]
			cfg.Timeout = realTime
			c := commtest.OnDevices(t, list, cfg)[0]
			call := &ringo.Call{Kind: ringo.KindSend, Peer: 1, In: commtest.Alloc(t, list[0], make([]byte, 16)), Count: 4,
				Type: ringo.Float32}
			start := time.Now()
			for range 64 {
				if c.Do(call) != nil {
					break // the time is over already
				}
			}
			err := c.Synchronize(call.Stream)
			require.Less(t, time.Since(start), tier.Patience)
			require.ErrorIs(t, err, ringo.ErrTimeout)
			blames(t, err, "to rank 1 over ")
		})
	}
}

// A peer that never comes is named when the time is over.
func TestDeviceTimeout(t *testing.T) {
	tier.Long(t)
	eachWay(t, tier.Some(2, wayNames), 2, realTime, func(t *testing.T, list []*gpu.Device, comms []*ringo.Comm) {
		x := commtest.Alloc(t, list[0], make([]byte, 4096))
		call := &ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 1024, Type: ringo.Float32}
		start := time.Now()
		err := comms[0].Do(call)
		if err == nil { // the time is not over already
			err = comms[0].Synchronize(call.Stream)
		}
		require.Less(t, time.Since(start), tier.Patience)
		require.ErrorIs(t, err, ringo.ErrTimeout)
		blames(t, err, "AllReduce #1: rank 0")
		blames(t, err, "from rank 1 over ")
		require.Error(t, comms[0].Do(call), "the communicator is dead")
		for _, d := range list {
			require.NoError(t, commtest.Usable(d))
		}
	})
}

// A peer that has closed its communicator is named as soon as another waits for it, and calls
// that need all ranks fail at once.
func TestDeviceLeft(t *testing.T) {
	tier.Long(t)
	eachWay(t, tier.Some(2, waysBack), 2, time.Minute, func(t *testing.T, list []*gpu.Device, comms []*ringo.Comm) {
		x := commtest.Alloc(t, list[0], make([]byte, 4096))
		require.NoError(t, comms[1].Close())
		start := time.Now()
		_, err := comms[0].Split(t.Context(), 0, 0)
		require.Less(t, time.Since(start), tier.Patience)
		require.ErrorContains(t, err, "rank 1 has left")
		require.NoError(t, comms[0].Do(&ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 1024,
			Type: ringo.Float32}))
		err = comms[0].Synchronize(0)
		require.Less(t, time.Since(start), tier.Patience)
		require.ErrorIs(t, err, ringo.ErrLeft)
		blames(t, err, "rank 1 has closed the communicator")
	})
}

// Close waits for what is queued, but not for ever, and says so.
func TestDeviceCloseAlone(t *testing.T) {
	tier.Long(t)
	eachWay(t, tier.Some(3, wayNames), 2, realTime, func(t *testing.T, list []*gpu.Device, comms []*ringo.Comm) {
		x := commtest.Alloc(t, list[0], make([]byte, 4096))
		err := comms[0].Do(&ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 1024, Type: ringo.Float32})
		start := time.Now()
		if closed := comms[0].Close(); err == nil {
			err = closed
		} // else the time was over already
		require.ErrorIs(t, err, ringo.ErrTimeout)
		require.NoError(t, comms[0].Close(), "it has said so once")
		require.Less(t, time.Since(start), tier.Patience)
		require.ErrorIs(t, comms[0].Err(), ringo.ErrTimeout)
		require.NoError(t, commtest.Usable(list[0]))
	})
}

// Abort ends kernels within 100 ms, and those of other ranks as soon as they have
// heard of it, which takes as long again.
func TestDeviceAbort(t *testing.T) {
	tier.Long(t)
	eachWay(t, tier.Some(2, waysBack), 3, time.Minute, func(t *testing.T, list []*gpu.Device, comms []*ringo.Comm) {
		for r := range 2 {
			x := commtest.Alloc(t, list[r], make([]byte, 4096))
			require.NoError(t, comms[r].Do(&ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 1024,
				Type: ringo.Float32}))
		}
		time.Sleep(20 * time.Millisecond)
		var took [2]time.Duration
		var errs [2]error
		var wg sync.WaitGroup
		start := time.Now()
		for r := range took {
			wg.Go(func() {
				errs[r] = comms[r].Device().Synchronize(0)
				took[r] = time.Since(start)
			})
		}
		go comms[0].Abort(errors.New("enough"))
		wg.Wait()
		limit := 100 * time.Millisecond
		if !gputest.OnGPU() {
			limit = tier.Patience // the emulator takes its time
		}
		require.Less(t, took[0], limit)
		require.Less(t, took[1], 3*limit)
		require.NoError(t, errors.Join(errs[:]...))
		require.ErrorIs(t, comms[0].Synchronize(0), ringo.ErrAborted)
		require.ErrorContains(t, comms[1].Synchronize(0), "enough")
		for _, d := range list {
			require.NoError(t, commtest.Usable(d))
		}
	})
}

// Ranks that call different things find out, and name both calls.
func TestDeviceMismatchEachWay(t *testing.T) {
	tier.Long(t)
	eachWay(t, tier.Some(2, wayNames), 2, 10*time.Second, func(t *testing.T, list []*gpu.Device, comms []*ringo.Comm) {
		errs := make([]error, 2)
		var wg sync.WaitGroup
		for r, c := range comms {
			x := commtest.Alloc(t, list[r], make([]byte, 4096))
			require.NoError(t, c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 1000 + r, Type: ringo.Float32}))
			wg.Go(func() { errs[r] = c.Synchronize(0) })
		}
		wg.Wait()
		require.ErrorContains(t, errors.Join(errs...), "count 1000")
		require.ErrorContains(t, errors.Join(errs...), "count 1001")
		for r, err := range errs {
			require.Error(t, err, "rank %d", r)
			require.NotErrorIs(t, err, ringo.ErrTimeout)
		}
	})
}

// A rank that is a collective ahead: the ranks find the first call in which they differ, on
// the GPU, or at the next Barrier if it was a call on host memory.
func TestDeviceMismatchApart(t *testing.T) {
	tier.Long(t)
	eachWay(t, tier.Some(2, wayNames), 2, 10*time.Second,
		func(t *testing.T, list []*gpu.Device, comms []*ringo.Comm) { apart(t, list, comms, false) })
	eachWay(t, tier.Some(2, wayNames), 2, 10*time.Second,
		func(t *testing.T, list []*gpu.Device, comms []*ringo.Comm) { apart(t, list, comms, true) })
}

func apart(t *testing.T, list []*gpu.Device, comms []*ringo.Comm, onHost bool) {
	ahead := ringo.Call{Kind: ringo.KindBroadcast, Root: 1, Count: 3, Type: ringo.Int32} // does not wait for rank 0
	if ahead.In = mem.Of([]int32{1, 2, 3}); !onHost {
		ahead.In = commtest.Alloc(t, list[1], ahead.In.Bytes())
	}
	ahead.Out = ahead.In
	require.NoError(t, comms[1].Do(&ahead))
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for r, c := range comms {
		x := commtest.Alloc(t, list[r], make([]byte, 4096))
		errs[r] = c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 1000, Type: ringo.Float32})
		wg.Go(func() {
			if errs[r] == nil { // else the other rank was quick to find it
				errs[r] = c.Synchronize(0)
			}
			if onHost {
				errs[r] = errors.Join(errs[r], ringo.Barrier(c))
			}
		})
	}
	wg.Wait()
	for r, err := range errs {
		require.Error(t, err, "rank %d", r)
		require.NotErrorIs(t, err, ringo.ErrTimeout)
	}
	both := errors.Join(errs...)
	require.ErrorIs(t, both, ringo.ErrMismatch)
	require.ErrorContains(t, both, "AllReduce #1 (count 1000, float32, sum)")
	require.ErrorContains(t, both, "Broadcast #1 (count 3, int32, root 1)")
}

// Counts of an AlltoAllv that differ by whole slots: the receiver says which.
func TestDeviceCounts(t *testing.T) {
	const few, many = 4096, 8192
	for _, name := range tier.Some(3, wayNames) {
		t.Run(name, func(t *testing.T) {
			cfg, list := ways[name], gputest.GPUs(t, 2, waiting(2))
			cfg.SlotBytes, cfg.Timeout = 1024, tier.Patience
			comms := commtest.OnDevices(t, list, cfg)
			errs := commtest.Each(comms, func(c *ringo.Comm) error {
				counts := [][]int{{3, many, 3, 3}, {3, 3, few, 3}}[c.Rank()]
				x := commtest.Alloc(t, list[c.Rank()], make([]byte, 2*many))
				err := c.Do(&ringo.Call{Kind: ringo.KindAlltoAllv, In: x, Out: x, InCounts: counts[:2], OutCounts: counts[2:],
					Type: ringo.Int8})
				if err == nil {
					err = c.Synchronize(0)
				}
				return err
			})
			require.ErrorIs(t, errs[1], ringo.ErrMismatch)
			require.ErrorContains(t, errs[1], "ranks disagree on the counts of AlltoAllv #1 (int8): rank 1 expects 4096 elements "+
				"of rank 0, which sends 8192; give both the same counts")
		})
	}
}

// Several communicators on the same devices, with work under way, are closed in
// any order by one goroutine.
func TestDeviceCloseOrder(t *testing.T) {
	tier.Long(t)
	list := gputest.GPUs(t, 2, gputest.Unchecked(2))
	var all []*ringo.Comm
	for _, way := range []string{"p2p", "host memory", "bridge", "tcp"} {
		all = append(all, commtest.OnDevices(t, list, ways[way])...)
	}
	for i, c := range all {
		s := commtest.Stream(t, list[i%2])
		x := commtest.Alloc(t, list[i%2], make([]byte, 40000))
		for range 3 {
			require.NoError(t, c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 10000, Type: ringo.Float32,
				Stream: s}))
		}
	}
	for _, i := range rand.Perm(len(all)) {
		require.NoError(t, all[i].Close())
		require.NoError(t, all[i].Close())
		require.ErrorIs(t, all[i].Do(&ringo.Call{Kind: ringo.KindBarrier, In: mem.Device(i%2, 0, 0)}), ringo.ErrClosed)
	}
}

// Ranks share a GPU, each on a stream of its own, and their first operations come
// at different times: a rank that still has to load must not wait for the other's
// kernel.
func TestDeviceShared(t *testing.T) {
	tier.Long(t)
	shared := maps.Clone(ways)
	shared["window"] = ringo.Config{Algo: "window"}
	for name, cfg := range shared {
		t.Run(name, func(t *testing.T) {
			one := gputest.GPUs(t, 1, gputest.Unchecked(1))[0]
			list := []*gpu.Device{one, one, one}
			cfg.Timeout = 20 * time.Second
			comms := commtest.OnDevices(t, list, cfg)
			require.Contains(t, strings.Join(comms[0].Paths(), "\n"), "GPU memory: up to 3 ranks share a GPU")
			streams, memory := commtest.Streams(t, list), commtest.Memories(t, list, 256)
			if name == "window" {
				defer closeWindows(t, register(t, comms, memory, 0, 256))
			}
			for _, kind := range []ringo.Kind{ringo.KindAllReduce, ringo.KindAllGather, ringo.KindAlltoAll} {
				want := []int64{1, 2, 3}
				if kind == ringo.KindAllReduce {
					want = []int64{6}
				}
				for r, c := range comms {
					in := mem.Of(slices.Repeat([]int64{int64(r + 1)}, 3)).Bytes()
					require.NoError(t, one.Write(memory[r].Slice(0, len(in)), in))
					require.NoError(t, c.Do(&ringo.Call{Kind: kind, In: memory[r].Slice(0, 24), Out: memory[r].Slice(128, 24),
						Count: 1, Type: ringo.Int64, Stream: streams[r]}))
					time.Sleep(10 * time.Millisecond)
				}
				for r, c := range comms {
					require.NoError(t, c.Synchronize(streams[r]))
					require.Equal(t, mem.Of(want).Bytes(), commtest.Read(t, one, memory[r].Slice(128, 8*len(want))), "%v", kind)
				}
			}
		})
	}
}

// TestMistakes: ranks that disagree are told so at the latest by Close.
func TestMistakes(t *testing.T) {
	tier.Heavy(t)
	commtest.TestMistakes(t, "mistake", func(t *testing.T) []*ringo.Comm {
		return commtest.OnDevices(t, gputest.GPUs(t, 2), ringo.Config{})
	})
}
