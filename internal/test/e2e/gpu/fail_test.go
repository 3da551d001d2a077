package ringo

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/gputest"
	"github.com/ringo-go/ringo/internal/race"
	"github.com/ringo-go/ringo/mem"
)

// ways are Configs that force each kind of path.
var ways = map[string]Config{
	"p2p":         {},
	"host memory": {noP2P: "off"},
	"bridge":      {noP2P: "off", noSHM: "off"},
	"tcp":         {Transport: "socket", SocketNetwork: "tcp", Interface: "lo"},
}

// eachWay runs f on a communicator of n ranks for each kind of path.
func eachWay(t *testing.T, n int, timeout time.Duration, f func(t *testing.T, list []*gpu.Device, comms []*Comm)) {
	for name, cfg := range ways {
		t.Run(name, func(t *testing.T) {
			list := devices(t, n)
			cfg.Timeout = timeout
			f(t, list, onDevices(t, list, cfg))
		})
	}
}

// usable checks that a device still does what it is told.
func usable(d *gpu.Device) error {
	want := []byte("still here")
	r, err := d.Alloc(len(want))
	if err != nil {
		return err
	}
	got := make([]byte, len(want))
	if err := errors.Join(d.Write(r, want), d.Read(got, r), d.Free(r)); err != nil {
		return err
	}
	if string(got) != string(want) {
		return fmt.Errorf("the device reads %q", got)
	}
	return nil
}

// A peer that never receives is named when the time is over, also by short messages, of which
// some need no receiver before they are done.
func TestDeviceTimeoutOfSends(t *testing.T) {
	for _, name := range []string{"p2p", "host memory", "bridge"} { // sockets take them all
		t.Run(name, func(t *testing.T) {
			list, cfg := devices(t, 2), ways[name]
			cfg.Timeout = 300 * time.Millisecond
			c := onDevices(t, list, cfg)[0]
			call := &Call{Kind: KindSend, Peer: 1, In: alloc(t, list[0], make([]byte, 16)), Count: 4, Type: Float32}
			start := time.Now()
			for range 64 {
				require.NoError(t, c.Do(call))
			}
			err := c.Synchronize(call.Stream)
			require.Less(t, time.Since(start), race.Soon(2*time.Second))
			require.ErrorIs(t, err, ErrTimeout)
			require.ErrorContains(t, err, "to rank 1 over ")
		})
	}
}

// A peer that never comes is named when the time is over.
func TestDeviceTimeout(t *testing.T) {
	eachWay(t, 2, 300*time.Millisecond, func(t *testing.T, list []*gpu.Device, comms []*Comm) {
		x := alloc(t, list[0], make([]byte, 4096))
		call := &Call{Kind: KindAllReduce, In: x, Out: x, Count: 1024, Type: Float32}
		start := time.Now()
		require.NoError(t, comms[0].Do(call))
		err := comms[0].Synchronize(call.Stream)
		require.Less(t, time.Since(start), race.Soon(2*time.Second))
		require.ErrorIs(t, err, ErrTimeout)
		require.ErrorContains(t, err, "AllReduce #1: rank 0")
		require.ErrorContains(t, err, "from rank 1 over ")
		require.Error(t, comms[0].Do(call), "the communicator is dead")
		for _, d := range list {
			require.NoError(t, usable(d))
		}
	})
}

// Close waits for what is queued, but not for ever.
func TestDeviceCloseAlone(t *testing.T) {
	eachWay(t, 2, 300*time.Millisecond, func(t *testing.T, list []*gpu.Device, comms []*Comm) {
		x := alloc(t, list[0], make([]byte, 4096))
		require.NoError(t, comms[0].Do(&Call{Kind: KindAllReduce, In: x, Out: x, Count: 1024, Type: Float32}))
		start := time.Now()
		require.NoError(t, comms[0].Close())
		require.Less(t, time.Since(start), race.Soon(3*time.Second))
		require.ErrorIs(t, comms[0].Err(), ErrTimeout)
		require.NoError(t, usable(list[0]))
	})
}

// Abort ends kernels within 100 ms, and those of other ranks as soon as they have
// heard of it, which takes as long again.
func TestDeviceAbort(t *testing.T) {
	eachWay(t, 3, time.Minute, func(t *testing.T, list []*gpu.Device, comms []*Comm) {
		for r := range 2 {
			x := alloc(t, list[r], make([]byte, 4096))
			require.NoError(t, comms[r].Do(&Call{Kind: KindAllReduce, In: x, Out: x, Count: 1024, Type: Float32}))
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
			limit = race.Soon(3 * time.Second) // the emulator takes its time
		}
		require.Less(t, took[0], limit)
		require.Less(t, took[1], 3*limit)
		require.NoError(t, errors.Join(errs[:]...))
		require.ErrorIs(t, comms[0].Synchronize(0), ErrAborted)
		require.ErrorContains(t, comms[1].Synchronize(0), "enough")
		for _, d := range list {
			require.NoError(t, usable(d))
		}
	})
}

// Ranks that call different things find out, and name both calls.
func TestDeviceMismatchEachWay(t *testing.T) {
	eachWay(t, 2, 10*time.Second, func(t *testing.T, list []*gpu.Device, comms []*Comm) {
		errs := make([]error, 2)
		var wg sync.WaitGroup
		for r, c := range comms {
			x := alloc(t, list[r], make([]byte, 4096))
			require.NoError(t, c.Do(&Call{Kind: KindAllReduce, In: x, Out: x, Count: 1000 + r, Type: Float32}))
			wg.Go(func() { errs[r] = c.Synchronize(0) })
		}
		wg.Wait()
		require.ErrorContains(t, errors.Join(errs...), "count 1000")
		require.ErrorContains(t, errors.Join(errs...), "count 1001")
		for r, err := range errs {
			require.Error(t, err, "rank %d", r)
			require.NotErrorIs(t, err, ErrTimeout)
		}
	})
}

// A rank that is a collective ahead: the ranks find the first call in which they differ, on
// the GPU, or at the next Barrier if it was a call on host memory.
func TestDeviceMismatchApart(t *testing.T) {
	eachWay(t, 2, 10*time.Second, func(t *testing.T, list []*gpu.Device, comms []*Comm) { apart(t, list, comms, false) })
	eachWay(t, 2, 10*time.Second, func(t *testing.T, list []*gpu.Device, comms []*Comm) { apart(t, list, comms, true) })
}

func apart(t *testing.T, list []*gpu.Device, comms []*Comm, onHost bool) {
	ahead := Call{Kind: KindBroadcast, Root: 1, Count: 3, Type: Int32} // does not wait for rank 0
	if ahead.In = mem.Of([]int32{1, 2, 3}); !onHost {
		ahead.In = alloc(t, list[1], ahead.In.Bytes())
	}
	ahead.Out = ahead.In
	require.NoError(t, comms[1].Do(&ahead))
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for r, c := range comms {
		x := alloc(t, list[r], make([]byte, 4096))
		errs[r] = c.Do(&Call{Kind: KindAllReduce, In: x, Out: x, Count: 1000, Type: Float32})
		wg.Go(func() {
			if errs[r] == nil { // else the other rank was quick to find it
				errs[r] = c.Synchronize(0)
			}
			if onHost {
				errs[r] = errors.Join(errs[r], Barrier(c))
			}
		})
	}
	wg.Wait()
	for r, err := range errs {
		require.Error(t, err, "rank %d", r)
		require.NotErrorIs(t, err, ErrTimeout)
	}
	both := errors.Join(errs...)
	require.ErrorIs(t, both, ErrMismatch)
	require.ErrorContains(t, both, "AllReduce #1 (count 1000, float32, sum)")
	require.ErrorContains(t, both, "Broadcast #1 (count 3, int32, root 1)")
}

// Several communicators on the same devices, with work under way, are closed in
// any order by one goroutine.
func TestDeviceCloseOrder(t *testing.T) {
	list := devices(t, 2)
	var all []*Comm
	var streams []gpu.Stream
	for _, way := range []string{"p2p", "host memory", "bridge", "tcp"} {
		all = append(all, onDevices(t, list, ways[way])...)
	}
	for i, c := range all {
		s, err := list[i%2].NewStream()
		require.NoError(t, err)
		streams = append(streams, s)
		x := alloc(t, list[i%2], make([]byte, 40000))
		for range 3 {
			require.NoError(t, c.Do(&Call{Kind: KindAllReduce, In: x, Out: x, Count: 10000, Type: Float32, Stream: s}))
		}
	}
	for _, i := range rand.Perm(len(all)) {
		require.NoError(t, all[i].Close())
		require.NoError(t, all[i].Close())
		require.ErrorIs(t, all[i].Do(&Call{Kind: KindBarrier, In: mem.Device(i%2, 0, 0)}), ErrClosed)
	}
	for i, s := range streams {
		require.NoError(t, list[i%2].DestroyStream(s))
	}
}

// Ranks that share a GPU, each on a stream of its own, whose first operations
// come apart: what one rank still has to load must not wait for the other's
// kernel.
func TestDeviceShared(t *testing.T) {
	for name, cfg := range ways {
		t.Run(name, func(t *testing.T) {
			one := devices(t, 1)[0]
			list := []*gpu.Device{one, one, one}
			cfg.Timeout = 20 * time.Second
			comms := onDevices(t, list, cfg)
			require.Contains(t, strings.Join(comms[0].Paths(), "\n"), "GPU memory: up to 3 ranks share a GPU")
			streams := make([]gpu.Stream, len(list))
			for r := range streams {
				var err error
				streams[r], err = one.NewStream()
				require.NoError(t, err)
				defer one.DestroyStream(streams[r])
			}
			var want int64
			for r := range list {
				want += int64(r + 1)
			}
			for _, kind := range []Kind{KindAllReduce, KindAllGather, KindAlltoAll} {
				outs := make([]mem.Region, len(list))
				for r, c := range comms {
					in := alloc(t, one, mem.Of([]int64{int64(r + 1), int64(r + 1), int64(r + 1)}).Bytes())
					outs[r] = alloc(t, one, make([]byte, 3*8*3))
					require.NoError(t, c.Do(&Call{Kind: kind, In: in, Out: outs[r], Count: 1, Type: Int64, Stream: streams[r]}))
					time.Sleep(10 * time.Millisecond)
				}
				for r, c := range comms {
					require.NoError(t, c.Synchronize(streams[r]))
					got := make([]int64, 3)
					require.NoError(t, one.Read(mem.Of(got).Bytes(), outs[r]))
					if kind == KindAllReduce {
						require.Equal(t, want, got[0])
					} else {
						require.Equal(t, []int64{1, 2, 3}, got)
					}
				}
			}
		})
	}
}

// A process that is killed while it opens its communicator or afterwards ends the
// others within 2 s, and they name it; their GPUs are usable afterwards. One that
// dies before it has met the others is missed when the time to join is over.
func TestDeviceKilled(t *testing.T) {
	if gputest.OnGPU() {
		devices(t, 2)
	}
	env := map[string][]string{
		"p2p": nil, "host memory": {"RINGO_P2P_DISABLE=1"}, "tcp": {"RINGO_TRANSPORT=socket", "RINGO_SOCKET_NETWORK=tcp", "RINGO_SOCKET_IFNAME=lo"},
	}
	for name, env := range env {
		for round, moment := range []string{"opening", "open", "open"} {
			t.Run(fmt.Sprint(name, "/", round, " ", moment), func(t *testing.T) {
				cmds := processes(t, 3, "gpuloop", append(env, "RINGO_JOIN_TIMEOUT=10s")...)
				victim := rand.IntN(3)
				for _, cmd := range cmds {
					await(t, cmd, moment)
				}
				time.Sleep(time.Duration(20+rand.IntN(400)) * time.Millisecond)
				require.NoError(t, cmds[victim].Process.Signal(syscall.SIGKILL))
				start := time.Now()
				missed := false
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
					if strings.Contains(output(cmd), fmt.Sprintf("did not come within 10s: %d ", victim)) {
						missed = true
						continue
					}
					require.Contains(t, output(cmd), fmt.Sprintf("rank %d died", victim))
				}
				limit := 2 * time.Second
				if !gputest.OnGPU() {
					limit *= 2 // emulated kernels of three processes end slowly on few cores
				}
				if !missed {
					require.Less(t, time.Since(start), limit)
				}
			})
		}
	}
}
