package gpu

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// A batch of small all-reduces has the bits of single calls and takes a kernel or two,
// also if the calls are on several streams or are captured.
func TestGroupOfReductions(t *testing.T) {
	tier.Long(t)
	const bytes, count = 1 << 16, 48
	type test struct {
		n    int
		t    ringo.DataType
		op   ringo.RedOp
		most int // kernels
	}
	for _, test := range tier.Some(3, []test{{2, ringo.BFloat16, ringo.Sum, 3}, {3, ringo.Int8, ringo.Max, 3},
		{4, ringo.Float32, ringo.Avg, 3}, {2, ringo.Int32, ringo.Avg, 3}}) {
		t.Run(fmt.Sprint(test.n, test.t, test.op), func(t *testing.T) {
			list, driver := countedDevices(t, test.n)
			comms := commtest.OnDevices(t, list, ringo.Config{Timeout: 20 * time.Second})
			single, grouped := commtest.Memories(t, list, bytes), commtest.Memories(t, list, bytes)
			rng := rand.New(rand.NewPCG(1, 2))
			size := test.t.Size()
			streams := make([][]gpu.Stream, test.n)
			for r, d := range list {
				data := make([]byte, bytes)
				for i := range data {
					if i%size == size-1 {
						data[i] = byte(rng.IntN(70))
					}
				}
				require.NoError(t, errors.Join(d.Write(single[r], data), d.Write(grouped[r], data)))
				streams[r] = []gpu.Stream{commtest.Stream(t, d), commtest.Stream(t, d)}
			}
			calls := func(x ringo.Region, s []gpu.Stream) (all []*ringo.Call) {
				at := 0
				for i := range count {
					k := i * 37 % 300 * size
					in, out := x.Slice(at, k), x.Slice(at+k+i%3*size, k)
					if i%5 == 0 {
						out = in
					}
					at += 2*k + 3*size
					all = append(all, &ringo.Call{Kind: ringo.KindAllReduce, In: in, Out: out, Count: k / size, Type: test.t,
						Op: test.op, Stream: s[i*len(s)/count]})
				}
				return all
			}
			together := func(r int, s []gpu.Stream) error {
				g := ringo.NewGroup()
				for _, call := range calls(grouped[r], s) {
					g.Add(comms[r], call)
				}
				return g.Run()
			}
			synchronize := func(c *ringo.Comm) error {
				return errors.Join(c.Synchronize(streams[c.Rank()][0]), c.Synchronize(streams[c.Rank()][1]))
			}
			// compare has single calls, and f, carry out the same.
			compare := func(f func(c *commtest.Rank)) {
				t.Helper()
				commtest.Run(t, comms, func(c *commtest.Rank) {
					for _, call := range calls(single[c.Rank()], streams[c.Rank()][:1]) {
						require.NoError(c, c.Do(call))
					}
					require.NoError(c, synchronize(c.Comm))
				})
				before := driver.n.Load()
				commtest.Run(t, comms, f)
				commtest.NoErrors(t, commtest.Each(comms, synchronize))
				if !need.Required("pcie") { // without lines there are no shared kernels
					require.LessOrEqual(t, int(driver.n.Load()-before), test.n*test.most)
				}
				for r, d := range list {
					require.Equal(t, commtest.Read(t, d, single[r]), commtest.Read(t, d, grouped[r]), "rank %d", r)
				}
			}
			compare(func(c *commtest.Rank) { // streams are a rank's own business
				require.NoError(c, together(c.Rank(), streams[c.Rank()][:1+c.Rank()%2]))
			})
			compare(func(c *commtest.Rank) {
				s := streams[c.Rank()]
				g, err := c.Device().Capture(s[0], func() error { return together(c.Rank(), s[:1]) })
				require.NoError(c, err)
				require.NoError(c, errors.Join(g.Launch(s[0]), c.Synchronize(s[0]), g.Close()))
			})
			compare(func(c *commtest.Rank) { // one goroutine drives all
				if c.Rank() > 0 {
					return
				}
				g := ringo.NewGroup()
				for r := range list {
					for _, call := range calls(grouped[r], streams[r]) {
						g.Add(comms[r], call)
					}
				}
				require.NoError(c, g.Run())
			})
		})
	}
}

// A launches is a driver that counts launches, and does nothing else for them once it is muted.
type launches struct {
	cuda.Driver
	n     atomic.Int64
	muted atomic.Bool
}

func (d *launches) LaunchKernel(f cuda.Function, l *cuda.Launch, args []byte) error {
	d.n.Add(1)
	if d.muted.Load() {
		return nil
	}
	return d.Driver.LaunchKernel(f, l, args)
}

// countedDevices is devices, with their driver.
func countedDevices(t testing.TB, n int) ([]*gpu.Device, *launches) {
	t.Helper()
	driver := &launches{Driver: gputest.Driver(t, gputest.Devices(n), gputest.Warm())}
	return gputest.GPUsOf(t, driver, n), driver
}

// Ranks whose groups differ find out.
func TestGroupsDiffer(t *testing.T) {
	if need.Required("pcie") {
		t.Skip("without lines there are no shared kernels, and groups may differ")
	}
	list := gputest.GPUs(t, 2)
	comms := commtest.OnDevices(t, list, ringo.Config{Timeout: 20 * time.Second})
	memory := commtest.Memories(t, list, 4096)
	errs := commtest.Each(comms, func(c *ringo.Comm) error {
		x, g := memory[c.Rank()], ringo.NewGroup()
		for i := range 3 {
			call := &ringo.Call{Kind: ringo.KindAllReduce, In: x.Slice(256*i, 256), Out: x.Slice(256*i, 256), Count: 64,
				Type: ringo.Float32}
			if g.Add(c, call); c.Rank() == 1 {
				if err := g.Run(); err != nil {
					return err
				}
			}
		}
		return errors.Join(g.Run(), c.Synchronize(0))
	})
	for _, err := range errs {
		require.ErrorIs(t, errors.Join(errs...), ringo.ErrMismatch)
		require.Error(t, err)
	}
	require.ErrorContains(t, errors.Join(errs...), "ranks disagree on the group of AllReduce(count 64, float32, sum)")
}

// BenchmarkGroupEnqueue is what a group of 1,000 all-reduces of 4 KiB costs the host, per
// call and without the launches.
func BenchmarkGroupEnqueue(b *testing.B) {
	const calls, bytes = 1000, 4 << 10
	list, driver := countedDevices(b, 2)
	comms := commtest.OnDevices(b, list, ringo.Config{})
	memory := commtest.Memories(b, list, calls*bytes)
	s, err := list[0].NewStream()
	require.NoError(b, err)
	defer list[0].DestroyStream(s)
	driver.muted.Store(true)
	g, all := ringo.NewGroup(), make([]ringo.Call, calls)
	for i := range all {
		x := memory[0].Slice(i*bytes, bytes)
		all[i] = ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: bytes / 4, Type: ringo.Float32, Stream: s}
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range all {
			g.Add(comms[0], &all[i])
		}
		if err := g.Run(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/calls, "ns/call")
}

// A communicator's only rank copies, and does nothing in place. Only a reduction that scales needs a kernel.
func TestLoneRankLaunchesNothing(t *testing.T) {
	list, driver := countedDevices(t, 1)
	c := commtest.OnDevices(t, list, ringo.Config{})[0]
	memory := commtest.Memories(t, list, 1024)[0]
	in, out := memory.Slice(0, 256), memory.Slice(256, 256)
	want := bytes.Repeat([]byte{1, 2, 3, 4}, 64)
	require.NoError(t, list[0].Write(in, want))
	before := driver.n.Load()
	for _, kind := range commtest.Collectives {
		call := &ringo.Call{Kind: kind, In: in, Out: out, Count: 64, Type: ringo.Float32}
		require.NoError(t, list[0].Write(out, make([]byte, 256)))
		require.NoError(t, c.Do(call), kind)
		require.NoError(t, c.Synchronize(0))
		require.Equal(t, want, commtest.Read(t, list[0], out), kind)
		call.In = out
		require.NoError(t, c.Do(call), kind)
	}
	require.Equal(t, before, driver.n.Load())
}

// A lone rank's data lie at their offsets too, in place and where its two buffers overlap.
func TestLoneRankWithOffsets(t *testing.T) {
	list := gputest.GPUs(t, 1)
	c := commtest.OnDevices(t, list, ringo.Config{})[0]
	memory := commtest.Memories(t, list, 256)[0]
	in, out := memory.Slice(0, 128), memory.Slice(128, 128)
	data := make([]byte, 256)
	for i := range data {
		data[i] = byte(i)
	}
	for _, test := range []struct {
		name     string
		call     ringo.Call
		from, to int
	}{
		{"all-gather", ringo.Call{Kind: ringo.KindAllGatherv, In: in.Slice(0, 12), Out: out.Slice(0, 32),
			OutOffsets: []int{5}}, 0, 128 + 20},
		{"all-gather in place", ringo.Call{Kind: ringo.KindAllGatherv, In: out.Slice(20, 12), Out: out.Slice(0, 32),
			OutOffsets: []int{5}}, 128 + 20, 128 + 20},
		{"all-to-all", ringo.Call{Kind: ringo.KindAlltoAllv, In: in.Slice(0, 32), Out: out.Slice(0, 24), InCounts: []int{3},
			InOffsets: []int{5}, OutOffsets: []int{3}}, 20, 128 + 12},
		{"all-to-all in place", ringo.Call{Kind: ringo.KindAlltoAllv, In: in.Slice(0, 32), Out: in.Slice(0, 32),
			InCounts: []int{3}, InOffsets: []int{5}, OutOffsets: []int{4}}, 20, 16},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.NoError(t, list[0].Write(memory, data))
			call := test.call
			call.OutCounts, call.Type = []int{3}, ringo.Float32
			require.NoError(t, c.Do(&call))
			require.NoError(t, c.Synchronize(0))
			want, got := bytes.Clone(data), make([]byte, 256)
			copy(want[test.to:], data[test.from:test.from+12])
			require.NoError(t, list[0].Read(got, memory))
			require.Equal(t, want, got)
		})
	}
}
