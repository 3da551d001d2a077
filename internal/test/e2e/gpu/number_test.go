package gpu

import (
	"bytes"
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
	c      *ringo.Comm
	d      *gpu.Device
	call   ringo.Call
	want   []byte
	spare  mem.Region
	stream gpu.Stream
	graphs []*gpu.Graph
}

func (x *numbered) capture() error {
	g, err := x.d.Capture(x.stream, func() error { return x.c.Do(&x.call) })
	x.graphs = append(x.graphs, g)
	return err
}

// exchange is a group of two messages to and from the other rank, which have no number.
func (x *numbered) exchange() error {
	g := ringo.NewGroup()
	peer, n := 1-x.c.Rank(), x.spare.Len()
	g.Add(x.c, &ringo.Call{Kind: ringo.KindSend, In: x.call.In.Slice(0, n), Count: n, Type: ringo.Uint8, Peer: peer,
		Stream: x.stream})
	g.Add(x.c, &ringo.Call{Kind: ringo.KindRecv, Out: x.spare, Count: n, Type: ringo.Uint8, Peer: peer, Stream: x.stream})
	return g.Run()
}

// kept clears Out, has run carry out the call, and compares Out.
func (x *numbered) kept(run func() error) error {
	got := make([]byte, len(x.want))
	err := errors.Join(x.d.Write(x.call.Out, make([]byte, x.call.Out.Len())), run(), x.c.Synchronize(x.stream),
		x.d.Read(got, x.call.Out))
	if err == nil && !bytes.Equal(got, x.want) {
		err = fmt.Errorf("rank %d: the result is wrong", x.c.Rank())
	}
	return err
}

func (x *numbered) close() error {
	var errs []error
	for _, g := range x.graphs {
		errs = append(errs, g.Close())
	}
	return errors.Join(append(errs, x.d.DestroyStream(x.stream))...)
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
			ranks := make([]numbered, n)
			for r, c := range comms {
				call := ringo.Call{Kind: test.kind, Count: count, Type: ringo.Int32}
				in, out := call.Shape(r, n)
				call.In, call.Out = memory[r].Slice(0, 4*in), memory[r].Slice(2048, 4*out)
				data := make([]int32, in)
				for i := range data {
					data[i] = int32(100*r + i)
				}
				require.NoError(t, list[r].Write(call.In, mem.Of(data).Bytes()))
				s, err := list[r].NewStream()
				require.NoError(t, err)
				ranks[r] = numbered{c: c, d: list[r], call: call, want: make([]byte, 4*out), spare: memory[r].Slice(4000, 96),
					stream: s}
				defer func() { require.NoError(t, ranks[r].close()) }()
			}
			all := func(f func(x *numbered) error) {
				t.Helper()
				commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error { return f(&ranks[c.Rank()]) }))
			}
			all(func(x *numbered) error { // the right result; calls on host memory have numbers of their own
				host, data := x.call, make([]byte, x.call.In.Len())
				err := x.d.Read(data, host.In)
				host.In, host.Out, host.Stream = mem.Host(data), mem.Host(x.want), 0
				return errors.Join(err, x.c.Do(&host))
			})
			for r := range ranks {
				ranks[r].call.Stream = ranks[r].stream
			}
			eager := func(x *numbered) error { return x.kept(func() error { return x.c.Do(&x.call) }) }

			require.NoError(t, ranks[0].capture()) // and throws it away
			require.NoError(t, ranks[0].graphs[0].Close())
			ranks[0].graphs = nil
			all(eager)
			all((*numbered).capture)
			require.NoError(t, ranks[0].capture()) // never replayed
			for range 2 {
				all(eager)
				all(func(x *numbered) error { return x.kept(func() error { return x.graphs[0].Launch(x.stream) }) })
				all(func(x *numbered) error { return errors.Join(x.exchange(), x.c.Synchronize(x.stream)) })
			}
			const next = 6 // 3 calls and 2 replays came before
			errs := commtest.Each(comms, func(c *ringo.Comm) error {
				x := ranks[c.Rank()]
				if c.Rank() == 1 {
					x.call.Kind, x.call.Count, x.call.Out = ringo.KindReduceScatter, 8, x.spare
				}
				return errors.Join(c.Do(&x.call), c.Synchronize(x.stream))
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
		})
	}
}
