package gpu

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/mem"
)

// A numbered is one rank in a test of numbers, with the call that it makes, captures and replays.
type numbered struct {
	*commtest.Rank
	call   ringo.Call
	want   []byte
	spare  mem.Region
	graphs []*gpu.Graph
}

func (x *numbered) eager() { require.NoError(x, x.Do(&x.call)) }

func (x *numbered) replay() { require.NoError(x, x.graphs[0].Launch(x.call.Stream)) }

func (x *numbered) capture() {
	g, err := x.Device().Capture(x.call.Stream, func() error { return x.Do(&x.call) })
	require.NoError(x, err)
	x.graphs = append(x.graphs, g)
}

// exchange is a group of two messages to and from the other rank, which have no number.
func (x *numbered) exchange() {
	g := ringo.NewGroup()
	peer, n := 1-x.Rank.Rank(), x.spare.Len()
	g.Add(x.Comm, &ringo.Call{Kind: ringo.KindSend, In: x.call.In.Slice(0, n), Count: n, Type: ringo.Uint8, Peer: peer,
		Stream: x.call.Stream})
	g.Add(x.Comm, &ringo.Call{Kind: ringo.KindRecv, Out: x.spare, Count: n, Type: ringo.Uint8, Peer: peer,
		Stream: x.call.Stream})
	require.NoError(x, errors.Join(g.Run(), x.Synchronize(x.call.Stream)))
}

// kept clears Out, has run carry out the call, and compares Out.
func (x *numbered) kept(run func()) {
	d := x.Device()
	require.NoError(x, d.Write(x.call.Out, make([]byte, x.call.Out.Len())))
	run()
	require.NoError(x, x.Synchronize(x.call.Stream))
	require.Equal(x, x.want, commtest.Read(x, d, x.call.Out.Slice(0, len(x.want))))
}

// A rank that throws a capture away, or never replays one that its peer has not made, stays
// in step: later calls and replays are right with every algorithm, and where the ranks
// disagree, the number of both calls counts only calls that have run.
func TestNumbersOfWhatRan(t *testing.T) {
	const n, count = 2, 64
	type test struct {
		name   string
		cfg    ringo.Config
		kind   ringo.Kind
		window bool
	}
	for _, test := range tier.Some(2, []test{
		{"direct", ringo.Config{}, ringo.KindAllReduce, false},
		{"direct to one", ringo.Config{}, ringo.KindReduce, false},
		{"ring", ringo.Config{Algo: "ring"}, ringo.KindAllReduce, false},
		{"side by side", ringo.Config{Algo: "steps"}, ringo.KindAlltoAll, false},
		{"order of rank", ringo.Config{Algo: "steps", Deterministic: "rank order"}, ringo.KindAllReduce, false},
		{"order of rank to one", ringo.Config{Deterministic: "rank order"}, ringo.KindReduce, false},
		{"window", ringo.Config{Algo: "window"}, ringo.KindAllReduce, true},
		{"copies", ringo.Config{Algo: "copies"}, ringo.KindAllReduce, true},
		{"copies alone", ringo.Config{Algo: "copies"}, ringo.KindAllGather, true},
	}) {
		t.Run(test.name, func(t *testing.T) {
			test.cfg.Timeout = 20 * time.Second
			list := gputest.GPUs(t, n)
			comms := commtest.OnDevices(t, list, test.cfg)
			memory := commtest.Memories(t, list, 4096)
			if test.window {
				defer closeWindows(t, register(t, comms, memory, 0, 4096))
			}
			ranks := make([]*numbered, n)
			all := func(f func(x *numbered)) {
				t.Helper()
				commtest.Run(t, comms, func(c *commtest.Rank) {
					x := ranks[c.Comm.Rank()]
					x.Rank = c
					f(x)
				})
			}
			streams := commtest.Streams(t, list)
			for r := range comms {
				call := ringo.Call{Kind: test.kind, Count: count, Type: ringo.Int32, Stream: streams[r]}
				in, out := call.Shape(r, n)
				call.In, call.Out = memory[r].Slice(0, 4*in), memory[r].Slice(2048, 4*out)
				ranks[r] = &numbered{call: call, want: make([]byte, 4*out), spare: memory[r].Slice(4000, 96)}
			}
			all(func(x *numbered) { // the right result; calls on host memory have numbers of their own
				data := make([]int32, x.call.In.Len()/4)
				for i := range data {
					data[i] = int32(100*x.Comm.Rank() + i)
				}
				host := x.call
				host.In, host.Out, host.Stream = mem.Of(data), mem.Of(x.want), 0
				require.NoError(x, errors.Join(x.Device().Write(x.call.In, host.In.Bytes()), x.Do(&host)))
			})

			ranks[0].capture() // and throws it away
			require.NoError(t, ranks[0].graphs[0].Close())
			ranks[0].graphs = nil
			all(func(x *numbered) { x.kept(x.eager) })
			all((*numbered).capture)
			ranks[0].capture() // never replayed
			for range 2 {
				all(func(x *numbered) { x.kept(x.eager) })
				all(func(x *numbered) { x.kept(x.replay) })
				all((*numbered).exchange)
			}
			const next = 6 // 3 calls and 2 replays came before
			errs := commtest.Each(comms, func(c *ringo.Comm) error {
				call := ranks[c.Rank()].call
				if c.Rank() == 1 {
					call.Kind, call.Count, call.Out = ringo.KindReduceScatter, 8, ranks[1].spare
				}
				return errors.Join(c.Do(&call), c.Synchronize(call.Stream))
			})
			named := 0
			for _, err := range errs {
				require.Error(t, err)
				says := func(text string) bool { return strings.Contains(err.Error(), text) }
				if says(fmt.Sprintf("rank 0 calls %v #%d (count %d,", test.kind, next, count)) &&
					says(fmt.Sprintf("rank 1 calls ReduceScatter #%d (count 8,", next)) {
					named++
				}
			}
			require.NotZero(t, named, "both calls are named: %v", errs)
			for _, x := range ranks {
				for _, g := range x.graphs {
					require.NoError(t, g.Close())
				}
			}
		})
	}
}
