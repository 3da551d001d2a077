// The path of a call: which functions are on the stack when it is launched.

package gpucomm

import (
	"context"
	"errors"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// A stackDriver is a driver that looks who queues kernels and copies.
type stackDriver struct {
	cuda.Driver
	mu      sync.Mutex
	looks   int
	deepest []string // functions without a name on the stack that had the most of them
}

var unnamed = regexp.MustCompile(`^github\.com/ringo-go/ringo/.*\.func[0-9.]+$`)

func (d *stackDriver) look() {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	var found []string
	for more := true; more; {
		var f runtime.Frame
		if f, more = frames.Next(); strings.HasSuffix(f.File, "_test.go") { // which makes the call
			break
		}
		if unnamed.MatchString(f.Function) {
			found = append(found, f.Function)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.looks++; len(found) > len(d.deepest) {
		d.deepest = found
	}
}

func (d *stackDriver) LaunchKernel(f cuda.Function, l *cuda.Launch, args []byte) error {
	d.look()
	return d.Driver.LaunchKernel(f, l, args)
}

func (d *stackDriver) MemcpyAsync(dst, src uintptr, n int, s cuda.Stream) error {
	d.look()
	return d.Driver.MemcpyAsync(dst, src, n, s)
}

// A debugger that stops in a launch shows the path of the call by the names of its functions: at most one of them is a
// function without a name, which finishes rows for package rankorder.
func TestLaunchStack(t *testing.T) {
	const bytes = 1 << 12
	forced := func(a call.Algo) func(*Options) { return func(o *Options) { o.Chooser.Forced = a } }
	inOrder := func(a call.Algo) func(*Options) {
		return func(o *Options) { o.Chooser.Forced, o.Chooser.InOrder = a, true }
	}
	all := func(kind call.Kind) func(*Comm, mem.Region, *Window) error {
		return func(g *Comm, m mem.Region, _ *Window) error {
			return g.do(&call.Call{Kind: kind, In: m, Out: m, Count: 64, Type: kernels.Float32})
		}
	}
	row := func(g *Comm, m mem.Region, _ *Window) error {
		part := func(i int) mem.Region { return m.Slice(i*1024, 1024) }
		return g.do(&call.Call{Kind: call.AllReduce, In: part(0), Out: part(1), Count: 256, Type: kernels.Float32,
			Norm: &call.Norm{Row: 64, Weight: part(2).Slice(0, 256), Normed: part(3)}})
	}
	locked := func(g *Comm, f func() error) error {
		if err := g.Life.Turn.Lock(context.Background()); err != nil {
			return err
		}
		defer g.Life.Turn.Unlock()
		return f()
	}
	for _, test := range []struct {
		name   string
		hosts  string
		change func(*Options)
		window bool
		do     func(*Comm, mem.Region, *Window) error
	}{
		{"kernel", "aa", nil, false, all(call.AllReduce)},
		{"schedule", "aa", forced(call.Ring), false, all(call.AllReduce)},
		{"phases", "aabb", inPhases(call.Hier), false, all(call.AllReduce)},
		{"all-to-all in place", "aa", forced(call.Steps), false, all(call.AlltoAll)},
		{"window", "aa", forced(call.Window), true, all(call.AllReduce)},
		{"copies", "aa", forced(call.Copies), true, all(call.AllReduce)},
		{"in order", "aaa", inOrder(call.Steps), false, all(call.AllReduce)},
		{"in shares", "aaa", func(o *Options) {
			o.Chooser.InOrder, o.Chooser.SharesFrom, o.Chooser.SharesPiece = true, 64, 3*128
		}, false, all(call.Reduce)},
		{"norm", "aa", nil, false, row},
		{"norm in parts", "aaa", inOrder(call.Steps), false, row},
		{"only rank", "a", nil, false, func(g *Comm, m mem.Region, _ *Window) error {
			return g.do(&call.Call{Kind: call.AllReduce, In: m.Slice(0, 256), Out: m.Slice(256, 256), Count: 64,
				Type: kernels.Float32})
		}},
		{"launch order", "aa", func(o *Options) { o.LaunchOrder = true }, false, all(call.AllReduce)},
		{"captured, launch order", "aa", func(o *Options) { o.LaunchOrder = true }, false,
			func(g *Comm, m mem.Region, _ *Window) error {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				s, err := g.Device.NewStream()
				if err != nil {
					return err
				}
				graph, err := g.Device.Capture(s, func() error {
					return g.do(&call.Call{Kind: call.AllReduce, In: m, Out: m, Count: 64, Type: kernels.Float32, Stream: s})
				})
				if err != nil {
					return err
				}
				return errors.Join(graph.Launch(s), g.Device.Synchronize(s), graph.Close(), g.Device.DestroyStream(s))
			}},
		{"batch", "aa", nil, false, func(g *Comm, m mem.Region, _ *Window) error {
			var calls []*call.Call
			for i := range 3 {
				x := m.Slice(i*256, 256)
				calls = append(calls, &call.Call{Kind: call.AllReduce, In: x, Out: x, Count: 64, Type: kernels.Float32})
			}
			return locked(g, func() error { return g.Batch(calls) })
		}},
		{"exchange", "aa", nil, false, func(g *Comm, m mem.Region, _ *Window) error {
			peer := 1 - g.Life.Rank
			return locked(g, func() error {
				return g.Exchange([]*call.Call{
					{Kind: call.Send, In: m.Slice(0, 256), Count: 64, Type: kernels.Float32, Peer: peer},
					{Kind: call.Recv, Out: m.Slice(256, 256), Count: 64, Type: kernels.Float32, Peer: peer},
				})
			})
		}},
		{"put", "aa", nil, true, func(g *Comm, m mem.Region, w *Window) error {
			peer := 1 - g.Life.Rank
			return errors.Join(w.Put(m.Slice(0, 64), peer, 64, 0), w.Signal(peer, 0), w.Wait([]Arrival{{peer, 2}}, 0))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := len(test.hosts)
			d := &stackDriver{Driver: gputest.Driver(t, gputest.Devices(n), gputest.Unchecked(n))}
			list := gputest.GPUsOf(t, d, n)
			comms := openHosts(t, bootstrap.Local(n), test.hosts, list, test.change)
			memory, windows := slices.Clone(memories(t, list, bytes)), make([]*Window, n)
			if test.window {
				for r, dev := range list {
					var err error
					memory[r], err = dev.AllocMapped(bytes)
					require.NoError(t, err)
					require.NoError(t, dev.Write(memory[r], make([]byte, bytes)))
					defer func() { require.NoError(t, dev.Free(memory[r])) }()
				}
				windows = register(t, comms, memory, 0, bytes)
				defer closeAll(t, comms, windows)
			}
			for range 2 { // the first call of a kind connects the ranks too
				d.mu.Lock()
				d.looks, d.deepest = 0, nil
				d.mu.Unlock()
				each(t, comms, func(g *Comm) error {
					r := g.Life.Rank
					return errors.Join(test.do(g, memory[r], windows[r]), g.Device.Synchronize(gpu.Legacy))
				})
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			require.NotZero(t, d.looks)
			require.LessOrEqual(t, len(d.deepest), 1, "%v", d.deepest)
		})
	}
}

// Do lets its caller keep the call on the stack.
func TestCallStaysOnStack(t *testing.T) {
	list := gputest.GPUs(t, 1)
	g, x := open(t, list, nil)[0], memories(t, list, 64)[0]
	do := func(c *call.Call) {
		*c = call.Call{Kind: call.AllReduce, In: x, Out: x, Count: 16, Type: kernels.Float32}
		require.NoError(t, g.Do(c))
	}
	require.NoError(t, g.Life.Turn.Lock(context.Background()))
	defer g.Life.Turn.Unlock()
	kept := new(call.Call)
	least := func(f func()) float64 { // the emulator allocates now and then too
		n := testing.AllocsPerRun(100, f)
		for range 4 {
			n = min(n, testing.AllocsPerRun(100, f))
		}
		return n
	}
	require.LessOrEqual(t, least(func() {
		var c call.Call
		do(&c)
	}), least(func() { do(kept) }))
}
