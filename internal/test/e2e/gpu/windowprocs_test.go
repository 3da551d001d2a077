package gpu

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/mem"
)

// windowMemory is 64 KiB of device memory, allocated or mapped, and how to give it back.
func windowMemory(d *gpu.Device, mapped bool) (r ringo.Region, free func() error, err error) {
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
	// The memory lies in both pieces.
	return mem.Device(d.Number(), base+piece-n/2, n), func() error {
		return errors.Join(driver.MemUnmap(base, piece), driver.MemUnmap(base+piece, piece),
			driver.MemAddressFree(base, 2*piece))
	}, driver.MemSetAccess(base, 2*piece, d.Handle())
}

// windowCheck makes calls in windows of both kinds of memory, and in two windows of
// one allocation.
func windowCheck(c *ringo.Comm) int {
	fail := func(what string, err error) int {
		fmt.Println("error:", what, err)
		return 3
	}
	by := new(commtest.Algos)
	c, err := c.SplitWith(context.Background(), 0, c.Rank(), ringo.Config{Device: c.Device(), Observer: by})
	if err != nil {
		return fail("split", err)
	}
	defer c.Close()
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
		if err := compareInWindows(c, nil, x.Slice(0, half), x.Slice(half, half),
			windowCalls(1001, ringo.Int32, ringo.Sum, 1), by, call.Window); err != nil {
			return fail("calls", err)
		}
		if err := errors.Join(a.Close(), b.Close(), free()); err != nil {
			return fail("close", err)
		}
	}
	return 0
}

// windowLeave leaves the communicator with windows open, and frees the memory then.
func windowLeave(c *ringo.Comm) int {
	x, free, err := windowMemory(c.Device(), c.Rank() > 0)
	if err != nil {
		fmt.Println("error:", err)
		return 3
	}
	if err = c.Device().Write(x, make([]byte, x.Len())); err == nil {
		_, err = c.Register(x)
	}
	for i := 0; i < 3 && err == nil; i++ {
		err = c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 1000, Type: ringo.Float32, Op: ringo.Avg})
	}
	if err = errors.Join(err, c.Close(), free()); err != nil {
		fmt.Println("error:", err)
		return 3
	}
	return 0
}

// windowLoop works in a window until a peer dies.
func windowLoop(c *ringo.Comm) int {
	d := c.Device()
	x, free, err := windowMemory(d, false)
	var w *ringo.Window
	if err == nil {
		if w, err = c.Register(x); err == nil {
			err = d.Write(x, make([]byte, x.Len()))
		}
	}
	fmt.Println("ready")
	if err == nil {
		err = average(c, x)
	}
	fmt.Println("error:", err)
	if w != nil {
		fmt.Println("window:", w.Close())
	}
	if err := errors.Join(c.Close(), free()); err != nil { // after a failure others may use the window until then
		fmt.Println("free:", err)
		return 5
	}
	if errors.Is(err, ringo.ErrPeer) {
		return 3
	}
	return 4
}

// TestWindowProcesses has a process for each rank. Processes that see one GPU each reach each other's memory as those
// that see all.
func TestWindowProcesses(t *testing.T) {
	tier.Long(t)
	if gputest.OnGPU() {
		gputest.GPUs(t, 2)
	}
	for _, test := range tier.Some(2, [][]string{{"windowcheck", commtest.Alone}, {"windowcheck"}, {"windowleave"}}) {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			for r, cmd := range commtest.Processes(t, 2, test[0], append(test[1:], "RINGO_ALGO=window")...) {
				require.NoError(t, cmd.Wait(), "rank %d: %s", r, commtest.Output(cmd))
				if test[0] == "windowcheck" {
					require.Contains(t, commtest.Output(cmd), `mapped false: ""`)
					require.Contains(t, commtest.Output(cmd), `mapped true: ""`)
				}
			}
		})
	}
}

// A process that is killed while others use its window ends them within 2 s, and
// they name it.
func TestWindowKilled(t *testing.T) {
	tier.Long(t)
	if gputest.OnGPU() {
		gputest.GPUs(t, 2)
	}
	for _, victim := range tier.Some(2, []int{0, 2}) {
		t.Run(fmt.Sprint(victim), func(t *testing.T) {
			cmds := commtest.Processes(t, 3, "windowloop", "RINGO_ALGO=window")
			for _, cmd := range cmds {
				commtest.Await(t, cmd, "ready")
			}
			time.Sleep(time.Duration(rand.IntN(tier.Count(100, 400))) * time.Millisecond)
			commtest.Kill(t, cmds, victim, fmt.Sprintf("rank %d died", victim))
		})
	}
}
