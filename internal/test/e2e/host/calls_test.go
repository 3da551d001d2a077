package ringo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// The v-variants, with ranks that have nothing and with offsets.
func TestVariableCounts(t *testing.T) {
	const n = 4
	comms := local(t, n, Config{SlotBytes: 256, Slots: 4})
	counts := []int{3, 0, 700, 1}
	noErrors(t, each(comms, func(c *Comm) error {
		in := make([]int32, counts[c.Rank()])
		for i := range in {
			in[i] = int32(c.Rank()*1000 + i)
		}
		out := make([]int32, 704)
		if err := AllGatherv(c, out, in, counts); err != nil {
			return err
		}
		var want []int32
		for r, k := range counts {
			for i := range k {
				want = append(want, int32(r*1000+i))
			}
		}
		if !slices.Equal(want, out) {
			return errors.New("all-gather: wrong")
		}
		return nil
	}))
	// Rank r sends r·100+p elements to p, none to rank 1.
	count := func(from, to int) int {
		if to == 1 {
			return 0
		}
		return from*100 + to
	}
	noErrors(t, each(comms, func(c *Comm) error {
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
		if err := AlltoAllv(c, out, outCounts, in, inCounts); err != nil {
			return err
		}
		if !slices.Equal(want, out) {
			return errors.New("all-to-all: wrong")
		}
		// Again with gaps between what is received.
		offs := make([]int, n)
		for p := 1; p < n; p++ {
			offs[p] = offs[p-1] + outCounts[p-1] + 5
		}
		gaps := make([]int64, offs[n-1]+outCounts[n-1])
		call := AlltoAllvOf(gaps, outCounts, in, inCounts)
		call.OutOffsets = offs
		if err := c.Do(call); err != nil {
			return err
		}
		at := 0
		for p := range n {
			if !slices.Equal(want[at:at+outCounts[p]], gaps[offs[p]:offs[p]+outCounts[p]]) {
				return errors.New("all-to-all with offsets: wrong")
			}
			at += outCounts[p]
		}
		return nil
	}))
}

// All ranks have the same bits, and the same from run to run, for random floats
// of all exponents, whatever the algorithm.
func TestSameBits(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		for _, a := range []call.Algo{call.Auto, call.Ring, call.Tree, call.OneShot, call.TwoShot, call.Doubling, call.Halving} {
			comms := local(t, n, Config{SlotBytes: 256, Slots: 4, Algo: a.String()})
			for _, count := range []int{1, 7, 1000} {
				var first []float32
				for run := range 3 {
					results := make([][]float32, n)
					noErrors(t, each(comms, func(c *Comm) error {
						rng := rand.New(rand.NewPCG(uint64(c.Rank()), 3))
						x := make([]float32, count)
						for i := range x {
							x[i] = math.Float32frombits(rng.Uint32()) // NaN and infinity included
						}
						results[c.Rank()] = x
						return AllReduce(c, x, Sum)
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
	comms := local(t, 3, Config{})
	most := UserOp("most bits", func(_ DataType, dst, src []byte) {
		for i := range dst {
			dst[i] |= src[i]
		}
	})
	noErrors(t, each(comms, func(c *Comm) error {
		x := []uint8{1 << c.Rank(), 0}
		if err := AllReduce(c, x, most); err != nil {
			return err
		}
		if x[0] != 7 || x[1] != 0 {
			return errors.New("wrong")
		}
		return nil
	}))
}

// Started calls are carried out in order, also among calls that wait.
func TestStart(t *testing.T) {
	comms := local(t, 3, Config{})
	noErrors(t, each(comms, func(c *Comm) error {
		x := []int64{1}
		var pending []*Pending
		for range 2000 { // more than the queue holds
			pending = append(pending, c.Start(AllReduceOf(x, Sum)))
			x = []int64{1}
			if len(pending)%97 == 0 {
				y := []int64{2}
				if err := AllReduce(c, y, Max); err != nil || y[0] != 2 {
					return errors.New("a call among started ones went wrong")
				}
			}
		}
		for _, p := range pending {
			if err := p.Wait(); err != nil {
				return err
			}
			if v := mem.Of([]int64{3}); string(v.Bytes()) != string(p.call.Out.Bytes()) {
				return errors.New("wrong sum")
			}
		}
		return nil
	}))
}

// Neighbours exchange in a group without an order, far more than a queue holds,
// and with themselves.
func TestGroupExchange(t *testing.T) {
	const n, count = 4, 20000
	comms := local(t, n, Config{SlotBytes: 256, Slots: 4})
	noErrors(t, each(comms, func(c *Comm) error {
		r := c.Rank()
		out := make([]int32, count)
		for i := range out {
			out[i] = int32(r + i)
		}
		left, self := make([]int32, count), make([]int32, count)
		g := NewGroup()
		if r%2 == 0 {
			g.Add(c, RecvOf(left, (r+n-1)%n))
			g.Add(c, RecvOf(self, r))
			g.Add(c, SendOf(out, (r+1)%n))
			g.Add(c, SendOf(out, r))
		} else {
			g.Add(c, SendOf(out, (r+1)%n))
			g.Add(c, RecvOf(left, (r+n-1)%n))
			g.Add(c, SendOf(out, r))
			g.Add(c, RecvOf(self, r))
		}
		sum := []int32{1}
		g.Add(c, AllReduceOf(sum, Sum))
		if err := g.Run(); err != nil {
			return err
		}
		if sum[0] != n || !slices.Equal(self, out) || left[5] != int32((r+n-1)%n+5) || left[count-1] != int32((r+n-1)%n+count-1) {
			return errors.New("wrong")
		}
		return nil
	}))
}

// Two ranks that both send and then receive what fits in a queue do not wait for
// each other, whatever the transport.
func TestSendBeforeRecv(t *testing.T) {
	for _, transport := range []string{"inproc", "shm", "socket"} {
		t.Run(transport, func(t *testing.T) {
			comms := local(t, 2, Config{Transport: transport, Timeout: 10 * time.Second})
			noErrors(t, each(comms, func(c *Comm) error {
				peer := 1 - c.Rank()
				for _, count := range []int{1, 100_000} {
					out, in := make([]float32, count), make([]float32, count)
					out[count-1] = float32(c.Rank() + 1)
					if err := Send(c, out, peer); err != nil {
						return err
					}
					if err := Recv(c, in, peer); err != nil {
						return err
					}
					if in[count-1] != float32(peer+1) {
						return errors.New("wrong")
					}
					g := NewGroup()
					g.Add(c, SendOf(out, peer))
					g.Add(c, RecvOf(in, peer))
					if err := g.Run(); err != nil {
						return err
					}
				}
				return nil
			}))
		})
	}
}

// One goroutine drives all ranks of a process with a group.
func TestGroupOfComms(t *testing.T) {
	comms := local(t, 4, Config{})
	g := NewGroup()
	data := make([][]float64, 4)
	for r, c := range comms {
		data[r] = []float64{float64(r), 1}
		g.Add(c, AllReduceOf(data[r], Sum))
	}
	require.NoError(t, g.Run())
	for _, d := range data {
		require.Equal(t, []float64{6, 4}, d)
	}
}

// Send and Recv outside of groups, of all sizes that fit in a queue and more.
func TestSendRecv(t *testing.T) {
	comms := local(t, 2, Config{SlotBytes: 256, Slots: 4})
	for _, count := range []int{0, 1, 100, 5000} {
		noErrors(t, each(comms, func(c *Comm) error {
			x := make([]uint8, count)
			if c.Rank() == 0 {
				for i := range x {
					x[i] = byte(i)
				}
				return Send(c, x, 1)
			}
			if err := Recv(c, x, 0); err != nil {
				return err
			}
			for i := range x {
				if x[i] != byte(i) {
					return errors.New("wrong")
				}
			}
			return nil
		}))
	}
}

func TestSplit(t *testing.T) {
	comms := local(t, 5, Config{})
	noErrors(t, each(comms, func(c *Comm) error {
		color := c.Rank() % 2
		if c.Rank() == 4 {
			color = NoColor
		}
		part, err := c.Split(context.Background(), color, -c.Rank())
		if err != nil || part == nil {
			return err
		}
		defer part.Close()
		if part.Size() != 2 || part.Rank() != 1-c.Rank()/2 {
			return errors.New("wrong place")
		}
		x := []int32{int32(c.Rank())}
		if err := AllReduce(part, x, Sum); err != nil {
			return err
		}
		if want := int32(2 + 2*(c.Rank()%2)); x[0] != want {
			return errors.New("wrong sum")
		}
		return nil
	}))
}

// Wrong arguments are found on the spot and leave the communicator usable.
func TestInvalid(t *testing.T) {
	comms := local(t, 2, Config{})
	x := make([]float32, 8)
	r := mem.Of(x)
	cases := map[string]Call{
		"nil":          {Kind: KindAllReduce, Count: 1, Type: Float32},
		"short in":     {Kind: KindAllReduce, In: r, Out: r, Count: 9, Type: Float32},
		"short out":    {Kind: KindAllGather, In: r, Out: r, Count: 8, Type: Float32},
		"negative":     {Kind: KindAllReduce, In: r, Out: r, Count: -1, Type: Float32},
		"huge":         {Kind: KindAllReduce, In: r, Out: r, Count: math.MaxInt, Type: Float32},
		"type":         {Kind: KindAllReduce, In: r, Out: r, Count: 1, Type: 99},
		"op":           {Kind: KindAllReduce, In: r, Out: r, Count: 1, Type: Float32, Op: RedOp{Kind: 77}},
		"op of type":   {Kind: KindAllReduce, In: r, Out: r, Count: 1, Type: Float32, Op: BitAnd},
		"kind":         {Kind: 99},
		"root":         {Kind: KindBroadcast, In: r, Out: r, Count: 1, Type: Float32, Root: 2},
		"peer":         {Kind: KindSend, In: r, Count: 1, Type: Float32, Peer: -1},
		"overlap":      {Kind: KindAllReduce, In: r.Slice(0, 16), Out: r.Slice(4, 16), Count: 4, Type: Float32},
		"counts":       {Kind: KindAllGatherv, In: r, Out: r, Type: Float32, OutCounts: []int{1}},
		"device":       {Kind: KindAllReduce, In: mem.Device(0, 4096, 64), Out: r, Count: 1, Type: Float32},
		"own share":    {Kind: KindAlltoAllv, In: r, Out: r, Type: Float32, InCounts: []int{1, 1}, OutCounts: []int{2, 2}},
		"neg. offsets": {Kind: KindAlltoAllv, In: r, Out: r, Type: Float32, InCounts: []int{1, 1}, OutCounts: []int{1, 1}, OutOffsets: []int{-1, 0}},
	}
	for name, call := range cases {
		t.Run(name, func(t *testing.T) {
			for _, c := range comms {
				err := c.Do(&call)
				var e *Error
				require.ErrorAs(t, err, &e)
				require.True(t, errors.Is(err, ErrInvalid) || errors.Is(err, ErrUnsupported), err)
				require.Equal(t, err.Error(), c.Start(&call).Wait().Error())
				g := NewGroup()
				g.Add(c, &call)
				require.Error(t, g.Run())
			}
		})
	}
	noErrors(t, each(comms, func(c *Comm) error { return AllReduce(c, []int8{1}, Sum) }))
	_, err := OpenLocal(0, Config{})
	require.ErrorIs(t, err, ErrInvalid)
	_, err = OpenLocal(1, Config{Algo: "quantum"})
	require.ErrorIs(t, err, ErrInvalid)
	_, err = OpenLocal(1, Config{Transport: "pigeon"})
	require.ErrorIs(t, err, ErrInvalid)
	_, err = Open(context.Background(), Config{})
	require.ErrorIs(t, err, ErrInvalid)
	_, err = Open(context.Background(), Config{ID: &bootstrap.ID{}, Rank: 3, Size: 2})
	require.ErrorIs(t, err, ErrInvalid)
}

// Ranks that disagree hear so, with both calls named.
func TestMismatch(t *testing.T) {
	x := func() []float32 { return make([]float32, 64) }
	cases := map[string]struct {
		zero, one *Call
		want      string
	}{
		"count": {AllReduceOf(x()[:3], Sum), AllReduceOf(x()[:5], Sum), "AllReduce #1 (count 3, float32, sum)"},
		"op":    {AllReduceOf(x(), Sum), AllReduceOf(x(), Max), "AllReduce #1 (count 64, float32, max)"},
		"kind":  {AllReduceOf(x(), Sum), BroadcastOf(x(), 0), "Broadcast #1 (count 64, float32, root 0)"},
		"type":  {AllReduceOf(x(), Sum), AllReduceOf(make([]int32, 64), Sum), "int32"},
		"root":  {BroadcastOf(x(), 0), BroadcastOf(x(), 1), ""},
		"empty": {AllReduceOf(x()[:0], Sum), AllReduceOf(x(), Sum), "AllReduce #1 (count 0"},
		"v":     {AllGathervOf(x(), x()[:3], []int{3, 4}), AllGathervOf(x(), x()[:4], []int{2, 4}), "counts"},
		"size":  {SendOf(x(), 1), RecvOf(x()[:9], 0), "count 64"},
	}
	for name, tc := range cases {
		for _, over := range []string{"inproc", "socket"} {
			tryMismatch(t, name, over, tc.zero, tc.one, tc.want)
		}
	}
}

func tryMismatch(t *testing.T, name, over string, zero, one *Call, want string) {
	t.Run(name+"/"+over, func(t *testing.T) {
		comms := local(t, 2, Config{Timeout: 2 * time.Second, Transport: over})
		errs := each(comms, func(c *Comm) error {
			call := []*Call{zero, one}[c.Rank()]
			if err := c.Do(call); err != nil {
				return err
			}
			return Barrier(c)
		})
		all := errors.Join(errs...)
		for _, err := range errs {
			require.Error(t, err)
		}
		if name == "root" { // both send, nobody receives: only the next call meets
			return
		}
		require.ErrorIs(t, all, ErrMismatch)
		require.ErrorContains(t, all, want)
	})
}

// A rank that never comes ends the wait of the others at the deadline, and the
// error says whom they waited for.
func TestTimeout(t *testing.T) {
	comms := local(t, 2, Config{Timeout: 200 * time.Millisecond})
	require.NoError(t, errors.Join(each(comms, Barrier)...))
	start := time.Now()
	err := AllReduce(comms[0], []int32{1}, Sum)
	require.ErrorIs(t, err, ErrTimeout)
	require.ErrorContains(t, err, "recv from rank 1 over inproc")
	require.Less(t, time.Since(start), 5*time.Second)
	require.Eventually(t, func() bool { return comms[1].Err() != nil }, 5*time.Second, time.Millisecond)
	late := AllReduce(comms[1], []int32{1}, Sum)
	require.ErrorIs(t, late, ErrTimeout)
	require.ErrorContains(t, late, "rank 1 never entered it; rank 0 waited in it for 2")
	for _, err := range []error{err, late, comms[0].Err(), comms[1].Err()} {
		var e *Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, []int{1}, e.Culprits)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.ErrorContains(t, AllReduce(comms[0], []int32{1}, Sum), "has failed before")
}

// Abort ends what runs on all ranks and always returns.
func TestAbort(t *testing.T) {
	comms := local(t, 4, Config{})
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for r := range 3 {
		wg.Go(func() { errs[r] = comms[r].Start(AllReduceOf(make([]int32, 1<<20), Sum)).Wait() })
	}
	time.Sleep(20 * time.Millisecond)
	reason := errors.New("had enough")
	comms[0].Abort(reason)
	wg.Wait()
	require.ErrorIs(t, errs[0], ErrAborted)
	require.ErrorIs(t, errs[0], reason)
	for r := 1; r < 3; r++ {
		require.ErrorIs(t, errs[r], ErrPeer)
		require.ErrorContains(t, errs[r], "had enough")
	}
	require.ErrorIs(t, Barrier(comms[3]), ErrPeer)
	require.Error(t, comms[3].Err())
}

func TestClosed(t *testing.T) {
	comms := local(t, 2, Config{})
	p := comms[0].Start(&Call{Kind: KindBarrier})
	require.NoError(t, Barrier(comms[1]))
	require.NoError(t, comms[0].Close())
	require.NoError(t, p.Wait())
	require.ErrorIs(t, Barrier(comms[0]), ErrClosed)
	require.ErrorIs(t, comms[0].Start(&Call{Kind: KindBarrier}).Wait(), ErrClosed)
	require.NoError(t, comms[0].Close())
	// Who goes on without it hears of it and does not hang.
	require.Error(t, Barrier(comms[1]))
}

// The data path allocates nothing after the first call of a kind.
func TestNoAllocations(t *testing.T) {
	comms := local(t, 2, Config{})
	for _, count := range []int{1, 1000, 100000} {
		data := [][]float32{make([]float32, count), make([]float32, count)}
		calls := []*Call{AllReduceOf(data[0], Sum), AllReduceOf(data[1], Sum)}
		stop := make(chan struct{})
		var wg sync.WaitGroup
		const runs = 50
		wg.Go(func() {
			for range runs + 2 {
				comms[1].Do(calls[1])
			}
			close(stop)
		})
		comms[0].Do(calls[0])
		avg := testing.AllocsPerRun(runs, func() { comms[0].Do(calls[0]) })
		<-stop
		wg.Wait()
		require.Zero(t, avg, "count %d", count)
	}
}

func TestTypeOf(t *testing.T) {
	require.Equal(t, Float32, TypeOf[float32]())
	require.Equal(t, BFloat16, TypeOf[kernels.BF16]())
	require.Equal(t, Float8E5M2, TypeOf[kernels.F8E5M2]())
	require.Equal(t, Int8, TypeOf[int8]())
}

// The functions on slices describe the calls that they say.
func TestSliceFunctions(t *testing.T) {
	const n = 3
	comms := local(t, n, Config{})
	noErrors(t, each(comms, func(c *Comm) error {
		r := int32(c.Rank())
		check := func(what string, err error, got, want []int32) error {
			if err == nil && !slices.Equal(got, want) {
				err = errors.New("wrong")
			}
			if err != nil {
				return fmt.Errorf("%s: %v: %w", what, got, err)
			}
			return nil
		}
		at := func(root int, want ...int32) []int32 {
			if c.Rank() == root {
				return want
			}
			return make([]int32, len(want))
		}
		one, three := make([]int32, 1), make([]int32, n)
		sum, all := make([]int32, 1), make([]int32, n)
		shares, mine := make([]int32, 1), make([]int32, 1)
		data := []int32{r*10 + 7}
		p := c.Start(BroadcastOf(data, 2))
		<-p.Done()
		return errors.Join(
			check("broadcast", p.Wait(), data, []int32{27}),
			check("reduce", Reduce(c, one, []int32{r + 1}, Sum, 1), one, at(1, 6)),
			check("reduce-scatter", ReduceScatter(c, sum, []int32{r, r + 1, r + 2}, Max), sum, []int32{2 + r}),
			check("all-to-all", AlltoAll(c, all, []int32{r * 10, r*10 + 1, r*10 + 2}), all, []int32{r, 10 + r, 20 + r}),
			check("gather", Gather(c, three, []int32{r + 5}, 2), three, at(2, 5, 6, 7)),
			check("scatter", Scatter(c, shares, []int32{4, 5, 6}, 0), shares, []int32{4 + r}),
			check("all-gather", AllGather(c, three, []int32{r}), three, []int32{0, 1, 2}),
			check("broadcast", Broadcast(c, mine, 0), mine, []int32{0}),
		)
	}))
}
