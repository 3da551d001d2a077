package host

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/mem"
)

// The v-variants, with ranks that have nothing and with offsets.
func TestVariableCounts(t *testing.T) {
	const n = 4
	comms := commtest.Local(t, n, ringo.Config{SlotBytes: 256, Slots: 4})
	counts := []int{3, 0, 700, 1}
	commtest.Run(t, comms, func(c *commtest.Rank) {
		var want []int32
		for r, k := range counts {
			for i := range k {
				want = append(want, int32(r*1000+i))
			}
		}
		first := 0
		for _, k := range counts[:c.Rank()] {
			first += k
		}
		out := make([]int32, 704)
		require.NoError(c, ringo.AllGatherv(c.Comm, out, slices.Clone(want[first:][:counts[c.Rank()]]), counts))
		require.Equal(c, want, out)
	})
	// Rank r sends r·100+p elements to p, none to rank 1.
	count := func(from, to int) int {
		if to == 1 {
			return 0
		}
		return from*100 + to
	}
	commtest.Run(t, comms, func(c *commtest.Rank) {
		var in, want []int64
		inCounts, outCounts := make([]int, n), make([]int, n)
		for p := range n {
			inCounts[p], outCounts[p] = count(c.Rank(), p), count(p, c.Rank())
			for i := range inCounts[p] {
				in = append(in, int64(c.Rank()<<32|p<<16|i))
			}
			for i := range outCounts[p] {
				want = append(want, int64(p<<32|c.Rank()<<16|i))
			}
		}
		out := make([]int64, len(want))
		require.NoError(c, ringo.AlltoAllv(c.Comm, out, outCounts, in, inCounts))
		require.True(c, slices.Equal(want, out), "all-to-all")
		// Again with gaps between what is received.
		offs := make([]int, n)
		for p := 1; p < n; p++ {
			offs[p] = offs[p-1] + outCounts[p-1] + 5
		}
		gaps := make([]int64, offs[n-1]+outCounts[n-1])
		call := ringo.AlltoAllvOf(gaps, outCounts, in, inCounts)
		call.OutOffsets = offs
		require.NoError(c, c.Do(call))
		for p := range n {
			require.True(c, slices.Equal(want[:outCounts[p]], gaps[offs[p]:][:outCounts[p]]), "all-to-all with offsets")
			want = want[outCounts[p]:]
		}
	})
}

// All ranks have the same bits, and the same from run to run, for random floats
// of all exponents, whatever the algorithm.
func TestSameBits(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		for _, a := range []call.Algo{call.Auto, call.Ring, call.Tree, call.OneShot, call.TwoShot, call.Doubling,
			call.Halving} {
			comms := commtest.Local(t, n, ringo.Config{SlotBytes: 256, Slots: 4, Algo: a.String()})
			for _, count := range []int{1, 7, 1000} {
				var first []float32
				for run := range 3 {
					results := make([][]float32, n)
					commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error {
						rng := rand.New(rand.NewPCG(uint64(c.Rank()), 3))
						x := make([]float32, count)
						for i := range x {
							x[i] = math.Float32frombits(rng.Uint32()) // NaN and infinity included
						}
						results[c.Rank()] = x
						return ringo.AllReduce(c, x, ringo.Sum)
					}))
					if run == 0 {
						first = results[0]
					}
					for r := range n {
						require.Equal(t, mem.Of(first).Bytes(), mem.Of(results[r]).Bytes(), "%v n=%d rank %d run %d", a, n, r, run)
					}
				}
			}
		}
	}
}

func TestUserOp(t *testing.T) {
	comms := commtest.Local(t, 3, ringo.Config{})
	most := ringo.UserOp("most bits", func(_ ringo.DataType, dst, src []byte) {
		for i := range dst {
			dst[i] |= src[i]
		}
	})
	commtest.Run(t, comms, func(c *commtest.Rank) {
		x := []uint8{1 << c.Rank(), 0}
		require.NoError(c, ringo.AllReduce(c.Comm, x, most))
		require.Equal(c, []uint8{7, 0}, x)
	})
}

// Started calls are carried out in order, also among calls that wait.
func TestStart(t *testing.T) {
	comms := commtest.Local(t, 3, ringo.Config{})
	commtest.Run(t, comms, func(c *commtest.Rank) {
		var pending []*ringo.Pending
		var sums [][]int64
		for range 2000 { // more than the queue holds
			x := []int64{1}
			pending, sums = append(pending, c.Start(ringo.AllReduceOf(x, ringo.Sum))), append(sums, x)
			if len(pending)%97 == 0 {
				y := []int64{2}
				require.NoError(c, ringo.AllReduce(c.Comm, y, ringo.Max))
				require.Equal(c, []int64{2}, y)
			}
		}
		for i, p := range pending {
			require.NoError(c, p.Wait())
			require.Equal(c, []int64{3}, sums[i])
		}
	})
}

// Neighbours exchange in a group without an order, far more than a queue holds,
// and with themselves.
func TestGroupExchange(t *testing.T) {
	const n, count = 4, 20000
	comms := commtest.Local(t, n, ringo.Config{SlotBytes: 256, Slots: 4})
	from := func(r int) []int32 {
		x := make([]int32, count)
		for i := range x {
			x[i] = int32(r + i)
		}
		return x
	}
	commtest.Run(t, comms, func(c *commtest.Rank) {
		r := c.Rank()
		left, self, out := make([]int32, count), make([]int32, count), from(r)
		recv := []*ringo.Call{ringo.RecvOf(left, (r+n-1)%n), ringo.RecvOf(self, r)}
		send := []*ringo.Call{ringo.SendOf(out, (r+1)%n), ringo.SendOf(out, r)}
		calls := []*ringo.Call{send[0], recv[0], send[1], recv[1]}
		if r%2 == 0 {
			calls = slices.Concat(recv, send)
		}
		sum, g := []int32{1}, ringo.NewGroup()
		for _, call := range append(calls, ringo.AllReduceOf(sum, ringo.Sum)) {
			g.Add(c.Comm, call)
		}
		require.NoError(c, g.Run())
		require.Equal(c, []int32{n}, sum)
		require.True(c, slices.Equal(self, out) && slices.Equal(left, from((r+n-1)%n)))
	})
}

// Two ranks that both send and then receive what fits in a queue do not wait for
// each other, whatever the transport.
func TestSendBeforeRecv(t *testing.T) {
	for _, transport := range []string{"inproc", "shm", "socket"} {
		t.Run(transport, func(t *testing.T) {
			comms := commtest.Local(t, 2, ringo.Config{Transport: transport, Timeout: 10 * time.Second})
			commtest.Run(t, comms, func(c *commtest.Rank) {
				peer := 1 - c.Rank()
				for _, count := range []int{0, 1, 100_000} {
					out, in := slices.Repeat([]float32{float32(c.Rank())}, count), make([]float32, count)
					require.NoError(c, ringo.Send(c.Comm, out, peer))
					require.NoError(c, ringo.Recv(c.Comm, in, peer))
					require.True(c, slices.Equal(slices.Repeat([]float32{float32(peer)}, count), in))
					g := ringo.NewGroup()
					g.Add(c.Comm, ringo.SendOf(out, peer))
					g.Add(c.Comm, ringo.RecvOf(in, peer))
					require.NoError(c, g.Run())
				}
			})
		})
	}
}

// One goroutine drives all ranks of a process with a group.
func TestGroupOfComms(t *testing.T) {
	comms := commtest.Local(t, 4, ringo.Config{})
	g := ringo.NewGroup()
	data := make([][]float64, 4)
	for r, c := range comms {
		data[r] = []float64{float64(r), 1}
		g.Add(c, ringo.AllReduceOf(data[r], ringo.Sum))
	}
	require.NoError(t, g.Run())
	for _, d := range data {
		require.Equal(t, []float64{6, 4}, d)
	}
}

func TestSplit(t *testing.T) {
	comms := commtest.Local(t, 5, ringo.Config{})
	commtest.Run(t, comms, func(c *commtest.Rank) {
		color := c.Rank() % 2
		if c.Rank() == 4 {
			color = ringo.NoColor
		}
		part, err := c.Split(context.Background(), color, -c.Rank())
		require.NoError(c, err)
		if part == nil {
			require.Equal(c, 4, c.Rank())
			return
		}
		defer part.Close()
		require.Equal(c, []int{2, 1 - c.Rank()/2}, []int{part.Size(), part.Rank()})
		x := []int32{int32(c.Rank())}
		require.NoError(c, ringo.AllReduce(part, x, ringo.Sum))
		require.Equal(c, int32(2+2*(c.Rank()%2)), x[0])
	})
}

// Wrong arguments are found on the spot and leave the communicator usable.
func TestInvalid(t *testing.T) {
	comms := commtest.Local(t, 2, ringo.Config{})
	x := make([]float32, 8)
	r := mem.Of(x)
	cases := map[string]ringo.Call{
		"nil":        {Kind: ringo.KindAllReduce, Count: 1, Type: ringo.Float32},
		"op":         {Kind: ringo.KindAllReduce, In: r, Out: r, Count: 1, Type: ringo.Float32, Op: ringo.RedOp{Kind: 77}},
		"op of type": {Kind: ringo.KindAllReduce, In: r, Out: r, Count: 1, Type: ringo.Float32, Op: ringo.BitAnd},
		"device":     {Kind: ringo.KindAllReduce, In: mem.Device(0, 4096, 64), Out: r, Count: 1, Type: ringo.Float32},
	}
	for name, call := range cases {
		t.Run(name, func(t *testing.T) {
			for _, c := range comms {
				err := c.Do(&call)
				var e *ringo.Error
				require.ErrorAs(t, err, &e)
				require.True(t, errors.Is(err, ringo.ErrInvalid) || errors.Is(err, ringo.ErrUnsupported), err)
				require.Equal(t, err.Error(), c.Start(&call).Wait().Error())
				g := ringo.NewGroup()
				g.Add(c, &call)
				require.Error(t, g.Run())
			}
		})
	}
	commtest.NoErrors(t, commtest.Each(comms,
		func(c *ringo.Comm) error { return ringo.AllReduce(c, []int8{1}, ringo.Sum) }))
	_, err := ringo.OpenLocal(0, ringo.Config{})
	require.ErrorIs(t, err, ringo.ErrInvalid)
	_, err = ringo.OpenLocal(1, ringo.Config{Algo: "quantum"})
	require.ErrorIs(t, err, ringo.ErrInvalid)
	_, err = ringo.OpenLocal(1, ringo.Config{Transport: "pigeon"})
	require.ErrorIs(t, err, ringo.ErrInvalid)
	_, err = ringo.Open(context.Background(), ringo.Config{})
	require.ErrorIs(t, err, ringo.ErrInvalid)
	_, err = ringo.Open(context.Background(), ringo.Config{ID: &bootstrap.ID{}, Rank: 3, Size: 2})
	require.ErrorIs(t, err, ringo.ErrInvalid)
}

// Ranks that disagree get an error that names both calls.
func TestMismatch(t *testing.T) {
	x := func() []float32 { return make([]float32, 64) }
	cases := map[string]struct {
		zero, one *ringo.Call
		want      string
	}{
		"count": {ringo.AllReduceOf(x()[:3], ringo.Sum), ringo.AllReduceOf(x()[:5], ringo.Sum),
			"AllReduce #1 (count 3, float32, sum)"},
		"op": {ringo.AllReduceOf(x(), ringo.Sum), ringo.AllReduceOf(x(), ringo.Max),
			"AllReduce #1 (count 64, float32, max)"},
		"kind":  {ringo.AllReduceOf(x(), ringo.Sum), ringo.BroadcastOf(x(), 0), "Broadcast #1 (count 64, float32, root 0)"},
		"type":  {ringo.AllReduceOf(x(), ringo.Sum), ringo.AllReduceOf(make([]int32, 64), ringo.Sum), "int32"},
		"root":  {ringo.BroadcastOf(x(), 0), ringo.BroadcastOf(x(), 1), ""},
		"empty": {ringo.AllReduceOf(x()[:0], ringo.Sum), ringo.AllReduceOf(x(), ringo.Sum), "AllReduce #1 (count 0"},
		"v": {ringo.AllGathervOf(x(), x()[:3], []int{3, 4}), ringo.AllGathervOf(x(), x()[:4], []int{2, 4}),
			"that of rank 0 is 3 on rank 0 and 2 on rank 1"},
		"size": {ringo.SendOf(x(), 1), ringo.RecvOf(x()[:9], 0), "receives 9 elements of float32, rank 0 sends 64"},
	}
	for name, tc := range cases {
		for _, cfg := range []ringo.Config{{Transport: "inproc"}, {Transport: "socket"}, commtest.Exact} {
			tryMismatch(t, name, cfg, tc.zero, tc.one, tc.want)
		}
	}
}

func tryMismatch(t *testing.T, name string, cfg ringo.Config, zero, one *ringo.Call, want string) {
	t.Run(name+"/"+cfg.Transport+cfg.Deterministic, func(t *testing.T) {
		cfg.Timeout = tier.Patience
		comms := commtest.Local(t, 2, cfg)
		errs := commtest.Each(comms, func(c *ringo.Comm) error {
			call := []*ringo.Call{zero, one}[c.Rank()]
			if err := c.Do(call); err != nil {
				return err
			}
			return ringo.Barrier(c)
		})
		all := errors.Join(errs...)
		for _, err := range errs {
			require.Error(t, err)
		}
		if name == "root" { // both send, nobody receives: only the next call meets
			return
		}
		require.ErrorIs(t, all, ringo.ErrMismatch)
		require.ErrorContains(t, all, want)
	})
}

// A rank that never comes ends the wait of the others at the deadline, and the
// error says whom they waited for.
func TestTimeout(t *testing.T) {
	comms := commtest.Local(t, 2, ringo.Config{Timeout: 200 * time.Millisecond})
	require.NoError(t, errors.Join(commtest.Each(comms, func(c *ringo.Comm) error { // connects them, however long it takes
		return c.Do(&ringo.Call{Kind: ringo.KindBarrier, Timeout: tier.Patience})
	})...))
	start := time.Now()
	err := ringo.AllReduce(comms[0], []int32{1}, ringo.Sum)
	require.ErrorIs(t, err, ringo.ErrTimeout)
	require.ErrorContains(t, err, "recv from rank 1 over inproc")
	require.Less(t, time.Since(start), tier.Patience)
	require.Eventually(t, func() bool { return comms[1].Failure() != nil }, tier.Patience, time.Millisecond)
	late := ringo.AllReduce(comms[1], []int32{1}, ringo.Sum)
	require.ErrorIs(t, late, ringo.ErrTimeout)
	require.Regexp(t, `rank 1 never entered it; rank 0 waited in it for [\d.]+m?s`, late.Error())
	for _, err := range []error{err, late, comms[0].Err(), comms[1].Err()} {
		var e *ringo.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, []int{1}, e.Culprits)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.ErrorContains(t, ringo.AllReduce(comms[0], []int32{1}, ringo.Sum), "has failed before")
}

// Abort ends what runs on all ranks and always returns.
func TestAbort(t *testing.T) {
	comms := commtest.Local(t, 4, ringo.Config{})
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for r := range 3 {
		wg.Go(func() { errs[r] = comms[r].Start(ringo.AllReduceOf(make([]int32, 1<<20), ringo.Sum)).Wait() })
	}
	time.Sleep(20 * time.Millisecond)
	reason := errors.New("had enough")
	comms[0].Abort(reason)
	wg.Wait()
	require.ErrorIs(t, errs[0], ringo.ErrAborted)
	require.ErrorIs(t, errs[0], reason)
	for r := 1; r < 3; r++ {
		require.ErrorIs(t, errs[r], ringo.ErrPeer)
		require.ErrorContains(t, errs[r], "had enough")
	}
	require.ErrorIs(t, ringo.Barrier(comms[3]), ringo.ErrPeer)
	require.Error(t, comms[3].Err())
}

func TestClosed(t *testing.T) {
	comms := commtest.Local(t, 2, ringo.Config{})
	p := comms[0].Start(&ringo.Call{Kind: ringo.KindBarrier})
	require.NoError(t, ringo.Barrier(comms[1]))
	require.NoError(t, comms[0].Close())
	require.NoError(t, p.Wait())
	require.ErrorIs(t, ringo.Barrier(comms[0]), ringo.ErrClosed)
	require.ErrorIs(t, comms[0].Start(&ringo.Call{Kind: ringo.KindBarrier}).Wait(), ringo.ErrClosed)
	require.NoError(t, comms[0].Close())
	// A rank that goes on gets the error and does not hang.
	require.Error(t, ringo.Barrier(comms[1]))
}

// The functions on slices make the calls that they are named after.
func TestSliceFunctions(t *testing.T) {
	const n = 3
	comms := commtest.Local(t, n, ringo.Config{})
	commtest.Run(t, comms, func(rank *commtest.Rank) {
		c, r := rank.Comm, int32(rank.Rank())
		check := func(what string, err error, got []int32, want ...int32) {
			require.NoError(rank, err, what)
			require.Equal(rank, want, got, what)
		}
		at := func(root int, want ...int32) []int32 {
			if c.Rank() == root {
				return want
			}
			return make([]int32, len(want))
		}
		one, three := make([]int32, 1), make([]int32, n)
		data := []int32{r*10 + 7}
		p := c.Start(ringo.BroadcastOf(data, 2))
		<-p.Done()
		check("broadcast", p.Wait(), data, 27)
		check("reduce", ringo.Reduce(c, one, []int32{r + 1}, ringo.Sum, 1), one, at(1, 6)...)
		check("gather", ringo.Gather(c, three, []int32{r + 5}, 2), three, at(2, 5, 6, 7)...)
		check("reduce-scatter", ringo.ReduceScatter(c, one, []int32{r, r + 1, r + 2}, ringo.Max), one, 2+r)
		check("all-to-all", ringo.AlltoAll(c, three, []int32{r * 10, r*10 + 1, r*10 + 2}), three, r, 10+r, 20+r)
		check("scatter", ringo.Scatter(c, one, []int32{4, 5, 6}, 0), one, 4+r)
		check("all-gather", ringo.AllGather(c, three, []int32{r}), three, 0, 1, 2)
		check("broadcast", ringo.Broadcast(c, one, 0), one, 4)
	})
}
