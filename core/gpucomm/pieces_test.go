// Calls in pieces, shares or phases, beside the same calls in one.

package gpucomm

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// roomOf is the bytes of each rank, half for In and half for Out.
const roomOf = 256 << 10

// An arena is ranks with memory for calls.
type arena struct {
	comms  []*Comm
	memory []mem.Region
}

// results are the Outs of all ranks after a call; with inPlace these lie in the Ins. Numbers are of many sizes, so that
// sums depend on the order.
func (a *arena) results(t *testing.T, c call.Call, inPlace bool) [][]byte {
	t.Helper()
	n := len(a.comms)
	all := make([][]byte, n)
	each(t, a.comms, func(g *Comm) error {
		c, r := c, g.Life.Rank
		rng := rand.New(rand.NewPCG(1, uint64(r)))
		in, out := c.Shape(r, n)
		data := make([]byte, 0, in*c.Type.Size())
		for range in {
			x := rng.IntN(1 << 16)
			if c.Type == kernels.BFloat16 { // of either sign, between 1/16 and 16
				x = x&0x807f | (123+x>>7&7)<<7
			}
			data = append(data, byte(x), byte(x>>8), byte(x>>16), byte(x>>24))[:len(data)+c.Type.Size()]
		}
		c.In, c.Out = a.memory[r].Slice(0, len(data)), a.memory[r].Slice(roomOf/2, out*c.Type.Size())
		if inPlace {
			c.Out = c.In.Slice(0, c.Out.Len())
			if c.Kind == call.ReduceScatter {
				c.Out = c.In.Slice(r*c.Out.Len(), c.Out.Len())
			}
		}
		if err := errors.Join(g.Device.Write(c.In, data), g.do(&c), g.Device.Synchronize(0)); err != nil {
			return err
		}
		if c.Kind != call.Reduce || r == c.Root {
			all[r] = make([]byte, c.Out.Len())
		}
		return g.Device.Read(all[r], c.Out.Slice(0, len(all[r])))
	})
	return all
}

// openArena opens a communicator with the ranks on hosts, a letter each.
func openArena(t *testing.T, hosts string, list []*gpu.Device, change func(*Options)) *arena {
	return &arena{openHosts(t, bootstrap.Local(len(list)), hosts, list, change), memories(t, list, roomOf)}
}

var inOrder = []kernels.RedOp{kernels.Sum, kernels.Prod, kernels.Avg, kernels.PreMulSum(0.3)}

// Much data for one rank, in order of rank, is combined in shares: in place and out of place, in several pieces, with
// something left over. The bits are those of one kernel.
func TestShares(t *testing.T) {
	const from = 4 << 10
	list := gputest.GPUs(t, 3)
	whole := openArena(t, "aaa", list, func(o *Options) { o.Chooser.InOrder = true })
	shares := openArena(t, "aaa", list, func(o *Options) {
		o.Chooser.InOrder, o.Chooser.SharesFrom, o.Chooser.SharesPiece = true, from, 3*2048
	})
	for i, op := range inOrder {
		for _, inPlace := range []bool{false, true} {
			c := call.Call{Kind: call.Reduce, Count: 7001 - i, Type: kernels.BFloat16, Op: op, Root: 1}
			require.Equal(t, whole.results(t, c, inPlace), shares.results(t, c, inPlace), "%v", &c)
		}
	}
	by := func(bytes int, op kernels.Kind) choice.Answer {
		return shares.comms[0].Chooser().Choose(choice.Question{Kind: call.Reduce, Bytes: bytes, Type: kernels.BFloat16,
			Op: op, OnGPU: true})
	}
	require.Equal(t, choice.ByShares, by(from, kernels.KindAvg).By)
	require.Equal(t, call.TwoShot, by(from, kernels.KindAvg).Algo)
	require.Equal(t, call.Direct, by(from/2, kernels.KindAvg).Algo)
	require.NotEqual(t, call.TwoShot, by(from, kernels.KindMax).Algo, "in any order")
}

// Contributions that are more than a rank has room for are combined in pieces, with the same bits.
func TestPieces(t *testing.T) {
	list := gputest.GPUs(t, 2)
	steps := func(o *Options) { o.Chooser.InOrder, o.Chooser.Forced = true, call.Steps }
	whole, pieces := openArena(t, "aa", list, steps), openArena(t, "aa", list, steps)
	for _, g := range pieces.comms {
		require.NoError(t, g.workplace.open())
		r := g.workplace.reduction
		r.ScratchBytes, r.Whole = 4<<10, 1<<10
	}
	for i, kind := range []call.Kind{call.AllReduce, call.Reduce, call.ReduceScatter} {
		for j, op := range []kernels.RedOp{kernels.Avg, kernels.PreMulSum(0.7)} {
			c := call.Call{Kind: kind, Count: 7001, Type: kernels.BFloat16, Op: op, Root: 1}
			inPlace := (i+j)%2 == 0
			require.Equal(t, whole.results(t, c, inPlace), pieces.results(t, c, inPlace), "%v", &c)
		}
	}
}

// inPhases has all data of several hosts go in phases.
func inPhases(algo call.Algo) func(*Options) {
	return func(o *Options) { o.Chooser.Forced, o.Chooser.PhasesFrom = algo, 1 }
}

// Large data of several hosts is carried out in phases, each a program of its own: inside the
// hosts, across them, inside. The results are those of one program.
func TestPhases(t *testing.T) {
	for _, test := range tier.Some(2, []struct {
		hosts string
		algo  call.Algo
	}{{"aabb", call.Hier}, {"abab", call.HierLog}, {"abab", call.HierTree}}) {
		t.Run(fmt.Sprint(test.hosts, "/", test.algo), func(t *testing.T) {
			list := gputest.GPUs(t, len(test.hosts), gputest.Unchecked(len(test.hosts)))
			whole := openArena(t, test.hosts, list, func(o *Options) { o.Chooser.Forced = call.Ring })
			phases := openArena(t, test.hosts, list, inPhases(test.algo))
			var calls []call.Call
			for _, count := range []int{1, 1001, tier.Count(10_000, 30_000)} {
				calls = append(calls, call.Call{Kind: call.AllReduce, Count: count, Type: kernels.Int32, Op: kernels.Sum},
					call.Call{Kind: call.AllGather, Count: count, Type: kernels.Uint8})
			}
			for _, c := range append(calls, call.Call{Kind: call.AllReduce, Count: 501, Type: kernels.Int32, Op: kernels.Avg},
				call.Call{Kind: call.AllReduce, Count: 501, Type: kernels.Int32, Op: kernels.PreMulSum(2)},
				call.Call{Kind: call.ReduceScatter, Count: 301, Type: kernels.Int32, Op: kernels.Sum}) {
				require.Equal(t, whole.results(t, c, false), phases.results(t, c, false), "%v", &c)
			}
			programs := 0
			for key := range phases.comms[0].programs.of {
				if key.Phase > 0 {
					programs++
				}
			}
			require.Greater(t, programs, 2, "nothing was carried out in phases")
		})
	}
}

// All phases are loaded before the first is queued: one thread makes the ranks' calls, and loading
// waits for the kernels of the GPU, which wait for the other ranks.
func TestPhasesLoadFirst(t *testing.T) {
	const hosts, count = "aabb", 100
	list := gputest.GPUs(t, len(hosts))
	a := openArena(t, hosts, list, inPhases(call.Hier))
	for r, g := range a.comms {
		x := a.memory[r].Slice(0, 4*count)
		require.NoError(t, g.do(&call.Call{Kind: call.AllReduce, In: x, Out: x, Count: count, Type: kernels.Int32,
			Op: kernels.Avg}))
	}
	each(t, a.comms, func(g *Comm) error { return g.Device.Synchronize(0) })
}

// A graph replays the phases of a call, beside eager calls.
func TestPhasesInGraph(t *testing.T) {
	const hosts, count = "abab", 1000
	list := gputest.GPUs(t, len(hosts))
	a := openArena(t, hosts, list, inPhases(call.Hier))
	each(t, a.comms, func(g *Comm) error {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		d, x := g.Device, a.memory[g.Life.Rank].Slice(0, 4*count)
		s, err := d.NewStream()
		if err != nil {
			return err
		}
		sum := &call.Call{Kind: call.AllReduce, In: x, Out: x, Count: count, Type: kernels.Int32, Stream: s}
		if err := d.Write(x, bytes.Repeat([]byte{1, 0, 0, 0}, count)); err != nil {
			return err
		}
		graph, err := d.Capture(s, func() error { return g.do(sum) })
		for range 2 {
			if err == nil {
				err = errors.Join(graph.Launch(s), g.do(sum))
			}
		}
		got := make([]byte, 4*count)
		err = errors.Join(err, d.Synchronize(s), d.Read(got, x))
		if !bytes.Equal(bytes.Repeat([]byte{0, 1, 0, 0}, count), got) { // 4 × 4 × 4 × 4
			err = errors.Join(err, fmt.Errorf("rank %d: %v", g.Life.Rank, got[:16]))
		}
		return errors.Join(err, graph.Close(), d.DestroyStream(s))
	})
}
