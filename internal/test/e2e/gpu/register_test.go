package gpu

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport/p2p"
)

// register has all ranks register a part of memory of their own.
func register(t testing.TB, comms []*ringo.Comm, memory []ringo.Region, off, n int) []*ringo.Window {
	t.Helper()
	ws := make([]*ringo.Window, len(comms))
	commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) (err error) {
		ws[c.Rank()], err = c.Register(memory[c.Rank()].Slice(off, n))
		return err
	}))
	return ws
}

func closeWindows(t testing.TB, ws []*ringo.Window) {
	t.Helper()
	errs := make([]error, len(ws))
	var wg sync.WaitGroup
	for r, w := range ws {
		wg.Go(func() { errs[r] = w.Close() })
	}
	wg.Wait()
	commtest.NoErrors(t, errs)
}

// mappedPieces is virtual memory of several allocations, as expandable segments are.
func mappedPieces(t testing.TB, d *gpu.Device, pieces int, p cuda.AllocationProp) ringo.Region {
	t.Helper()
	driver := d.Driver()
	base, err := driver.MemAddressReserve(pieces*piece, 0)
	require.NoError(t, err)
	for i := range pieces {
		mapPiece(t, d, base+uintptr(i*piece), p)
	}
	t.Cleanup(func() {
		for i := range pieces {
			require.NoError(t, driver.MemUnmap(base+uintptr(i*piece), piece))
		}
		require.NoError(t, driver.MemAddressFree(base, pieces*piece))
	})
	return mem.Device(d.Number(), base, pieces*piece)
}

const piece = 2 << 20

// mapPiece maps new memory at an address.
func mapPiece(t testing.TB, d *gpu.Device, at uintptr, p cuda.AllocationProp) {
	t.Helper()
	driver := d.Driver()
	p.Device = d.Handle()
	h, err := driver.MemCreate(piece, p)
	require.NoError(t, err)
	require.NoError(t, driver.MemMap(at, piece, h))
	require.NoError(t, driver.MemRelease(h))
	require.NoError(t, driver.MemSetAccess(at, piece, d.Handle()))
}

// Wrong memory of one rank is an error of all ranks, which go on.
func TestRegisterBad(t *testing.T) {
	list := gputest.GPUs(t, 2)
	comms := commtest.OnDevices(t, list, ringo.Config{})
	memory := make([]ringo.Region, len(list))
	for r, d := range list {
		memory[r] = commtest.Alloc(t, d, make([]byte, 4096))
	}
	freed, err := list[1].Alloc(64)
	require.NoError(t, err)
	require.NoError(t, list[1].Free(freed))
	tried := 0
	for _, test := range []struct {
		name   string
		region ringo.Region // of rank 1
		want   string
	}{
		{"host", mem.Host(make([]byte, 64)), "host memory"},
		{"nothing", mem.Device(1, memory[1].Ptr(), 0), "no bytes"},
		{"null", mem.Device(1, 0, 64), "the address is null"},
		{"other device", mem.Device(0, memory[0].Ptr(), 64), "memory of device 0, but the rank's GPU is device 1"},
		{"other device in disguise", mem.Device(1, memory[0].Ptr(), 64),
			"is memory of device 0, but the rank's GPU is device 1"},
		{"freed", freed, "was freed, or is the program's own"},
		{"too long", mem.Device(1, memory[1].Ptr(), 1<<30), "4096 of 1073741824 bytes"},
		{"other length", memory[1].Slice(0, 63), "rank 0 registers 64 bytes, rank 1 registers 63"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if gputest.OnGPU() && test.name == "too long" {
				t.Skip("hardware rounds allocations up")
			}
			for r, err := range commtest.Each(comms, func(c *ringo.Comm) error {
				region := memory[0].Slice(0, 64)
				if c.Rank() == 1 {
					region = test.region
				}
				w, err := c.Register(region)
				require.Nil(t, w)
				return err
			}) {
				var e *ringo.Error
				require.ErrorAs(t, err, &e)
				require.ErrorIs(t, err, ringo.ErrInvalid)
				require.Equal(t, "Register", e.Op)
				require.ErrorContains(t, err, test.want)
				if r == 0 {
					require.ErrorContains(t, err, "rank 1")
				}
			}
			tried++
		})
	}
	ws := register(t, comms, memory, 1024, 1024)
	for _, off := range []int{1024, 2047, 1} {
		for _, err := range commtest.Each(comms, func(c *ringo.Comm) error {
			_, err := c.Register(memory[c.Rank()].Slice(off, 1024))
			return err
		}) {
			require.ErrorIs(t, err, ringo.ErrInvalid)
			require.ErrorContains(t, err, fmt.Sprintf("overlap window #%d,", tried+1))
		}
	}
	closeWindows(t, ws)
	commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error {
		return commtest.CheckCalls(c, commtest.EveryCall(2, 10, ringo.Int32, ringo.Sum))
	}))

	host := commtest.Local(t, 1, ringo.Config{})[0]
	_, err = host.Register(memory[0])
	require.ErrorIs(t, err, ringo.ErrUnsupported)
	require.ErrorContains(t, err, "no rank has a GPU")
}

// Where windows have no effect everything works as without.
func TestRegisterNoEffect(t *testing.T) {
	for name, want := range map[string]string{
		"host memory": "ranks 0 and 1 do not reach each other's memory: rank 0: RINGO_P2P_DISABLE is set",
		"bridge": "ranks 0 and 1 do not reach each other's memory: rank 0: RINGO_P2P_DISABLE is set; rank 0: " +
			"RINGO_SHM_DISABLE is set",
	} {
		t.Run(name, func(t *testing.T) {
			list := gputest.GPUs(t, 2)
			cfg := ways[name]
			cfg.Algo = "window"
			comms := commtest.OnDevices(t, list, cfg)
			memory := commtest.Memories(t, list, 64)
			ws := register(t, comms, memory, 0, 64)
			for _, w := range ws {
				require.Equal(t, want, w.Reason())
			}
			commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error {
				x := memory[c.Rank()]
				if err := c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 16, Type: ringo.Int32}); err != nil {
					return err
				}
				return c.Synchronize(0)
			}))
			closeWindows(t, ws)
		})
	}
	list := gputest.GPUs(t, 1)
	comms := commtest.OnDevices(t, list, ringo.Config{})
	ws := register(t, comms, commtest.Memories(t, list, 64), 0, 64)
	require.Equal(t, "the communicator has one rank", ws[0].Reason())
	closeWindows(t, ws)
}

// Virtual memory of several pieces is registered as it is. Memory that another process
// could not map has an effect within one process all the same.
func TestRegisterMapped(t *testing.T) {
	list := gputest.GPUs(t, 2)
	comms := commtest.OnDevices(t, list, ringo.Config{})
	const piece = 2 << 20
	memory := make([]ringo.Region, 2)
	for r, d := range list {
		memory[r] = mappedPieces(t, d, 3, cuda.AllocationProp{})
	}
	ws := register(t, comms, memory, piece-64, piece+128)
	require.Empty(t, ws[0].Reason())
	closeWindows(t, ws)
}

// Ranks that do not all come to Register get an error.
func TestRegisterApart(t *testing.T) {
	tier.Long(t)
	t.Run("late", func(t *testing.T) {
		list := gputest.GPUs(t, 2)
		const patience = time.Second
		comms, err := ringo.OpenLocal(2, ringo.Config{Devices: list, JoinTimeout: patience})
		for try := 0; err != nil && try < 10; try++ { // the machine is busy
			comms, err = ringo.OpenLocal(2, ringo.Config{Devices: list, JoinTimeout: patience})
		}
		require.NoError(t, err)
		defer comms[1].Close()
		defer comms[0].Close()
		_, err = comms[0].Register(commtest.Alloc(t, list[0], make([]byte, 64)))
		require.ErrorIs(t, err, ringo.ErrTimeout)
		require.ErrorContains(t, err, fmt.Sprintf("not all ranks came within %v", patience))
		require.Eventually(t, func() bool { return comms[1].Failure() != nil }, tier.Patience, time.Millisecond)
		_, err = comms[1].Register(commtest.Alloc(t, list[1], make([]byte, 64)))
		require.ErrorIs(t, err, ringo.ErrPeer)
		require.Error(t, comms[0].Err())
	})
	t.Run("abort", func(t *testing.T) {
		list := gputest.GPUs(t, 2)
		comms := commtest.OnDevices(t, list, ringo.Config{})
		time.AfterFunc(20*time.Millisecond, func() { comms[0].Abort(errors.New("enough")) })
		start := time.Now()
		_, err := comms[0].Register(commtest.Alloc(t, list[0], make([]byte, 64)))
		require.ErrorIs(t, err, ringo.ErrAborted)
		require.ErrorContains(t, err, "enough")
		require.Less(t, time.Since(start), tier.Patience)
	})
	t.Run("death", func(t *testing.T) {
		list := gputest.GPUs(t, 2)
		var dialled sync.Map // what connects rank 1 with the others
		comms := commtest.OnHosts(t, list, func(r int) ringo.Config {
			return ringo.Config{Sockets: &ringo.Sockets{Dial: func(ctx context.Context, network, address string) (net.Conn,
				error) {
				c, err := new(net.Dialer).DialContext(ctx, network, address)
				if err == nil && r == 1 {
					dialled.Store(c, true)
				}
				return c, err
			}}}
		})
		time.AfterFunc(20*time.Millisecond, func() {
			dialled.Range(func(c, _ any) bool { return c.(net.Conn).Close() == nil })
		})
		_, err := comms[0].Register(commtest.Alloc(t, list[0], make([]byte, 64)))
		require.ErrorIs(t, err, ringo.ErrPeer)
		require.ErrorContains(t, err, "rank 1")
		comms[1].Abort(nil) // it does not know that it is dead
	})
	for name, other := range map[string]func(c *ringo.Comm, w *ringo.Window) error{
		"close": func(_ *ringo.Comm, w *ringo.Window) error { return w.Close() },
		"split": func(c *ringo.Comm, _ *ringo.Window) error { _, err := c.Split(context.Background(), 0, 0); return err },
		"leave": func(c *ringo.Comm, _ *ringo.Window) error { return c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			list := gputest.GPUs(t, 2)
			comms := commtest.OnDevices(t, list, ringo.Config{JoinTimeout: tier.Patience})
			memory := commtest.Memories(t, list, 128)
			ws := register(t, comms, memory, 0, 64)
			errs := commtest.Each(comms, func(c *ringo.Comm) error {
				if c.Rank() == 1 {
					return other(c, ws[1])
				}
				_, err := c.Register(memory[0].Slice(64, 64))
				return err
			})
			require.Error(t, errs[0])
			require.Error(t, comms[0].Err())
			if name == "close" {
				require.ErrorIs(t, errs[0], ringo.ErrMismatch)
				require.ErrorContains(t, errs[0], "rank 0 calls Register")
				require.ErrorContains(t, errs[0], "rank 1 calls Window.Close")
			}
		})
	}
}

// Communicators with open windows are closed, aborted, in any order; the memory
// can be registered with several.
func TestRegisterCloseOrder(t *testing.T) {
	list := gputest.GPUs(t, 2)
	memory := commtest.Memories(t, list, 256)
	var all []*ringo.Comm
	var open [][]*ringo.Window
	for i := range 3 {
		comms := commtest.OnDevices(t, list, ringo.Config{})
		all = append(all, comms...)
		open = append(open, register(t, comms, memory, 0, 64+i), register(t, comms, memory, 128, 64))
	}
	closeWindows(t, open[0])
	all[2].Abort(nil)
	for _, i := range rand.Perm(len(all)) {
		require.NoError(t, all[i].Close())
	}
	for _, ws := range open {
		for _, w := range ws {
			w.Close() // does nothing
		}
	}
}

// Memory that windows cannot have is refused, with the error of package p2p inside.
func TestRegisterErrorKinds(t *testing.T) {
	list := gputest.GPUs(t, 1)
	comms := commtest.OnDevices(t, append(list, list...), ringo.Config{})
	errs := commtest.Each(comms, func(c *ringo.Comm) error {
		_, err := c.Register(mem.Device(0, 0, 8))
		return err
	})
	var e *p2p.SegmentError
	require.ErrorAs(t, errs[1], &e)
	require.Equal(t, 1, e.Rank)
	require.NotEmpty(t, e.Remedy)
}
