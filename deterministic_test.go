package ringo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/internal/race"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

var exact = Config{Deterministic: call.RankOrder}

// with is exact but for what f changes.
func with(f func(c *Config)) Config {
	c := exact
	f(&c)
	return c
}

// value is an element as a float64.
func value(t DataType, b []byte) float64 {
	switch t {
	case Float16:
		return float64(kernels.F16(binary.NativeEndian.Uint16(b)).Float32())
	case BFloat16:
		return float64(kernels.BF16(binary.NativeEndian.Uint16(b)).Float32())
	case Float32:
		return float64(math.Float32frombits(binary.NativeEndian.Uint32(b)))
	case Float64:
		return math.Float64frombits(binary.NativeEndian.Uint64(b))
	case Float8E4M3:
		return float64(kernels.F8E4M3(b[0]).Float32())
	}
	return float64(kernels.F8E5M2(b[0]).Float32())
}

// element is x in a type's format, rounded to nearest even, NaNs alike.
func element(b []byte, t DataType, x float64) []byte {
	switch {
	case t == Float64 && x != x:
		return append(b, bytesOf(uint64(math.MaxInt64))...)
	case t == Float64:
		return append(b, bytesOf(x)...)
	case t == Float32 && x != x:
		return append(b, bytesOf(uint32(math.MaxInt32))...)
	}
	return encode(b, t, float32(x))
}

// folded is the definition: what the ranks contribute, one after the other.
func folded(t DataType, op RedOp, scales []float64, ins [][]byte) (out []byte) {
	n, size := len(ins), t.Size()
	step := func(x float64) float64 { // of the arithmetic
		if t == Float64 {
			return x
		}
		return float64(float32(x))
	}
	for at := 0; at < len(ins[0]); at += size {
		var sum float64
		for r, in := range ins {
			x := value(t, in[at:at+size])
			switch op.Kind {
			case kernels.KindAvg:
				x = step(x * step(1/float64(n)))
			case kernels.KindPreMulSum: // is rounded before it is sent
				x = value(t, element(nil, t, step(x*step(scales[r]))))
			}
			switch {
			case r == 0:
				sum = x
			case op.Kind == kernels.KindProd:
				sum = step(sum * x)
			default:
				sum = step(sum + x)
			}
		}
		out = element(out, t, sum)
	}
	return out
}

// A trial is a reduction with random data.
type trial struct {
	kind    Kind
	typ     DataType
	op      RedOp
	count   int
	root    int
	inPlace bool
	seed    uint64
}

func (x trial) String() string {
	return fmt.Sprintf("%v of %d %v, %v, root %d, in place %v, seed %d", x.kind, x.count, x.typ, x.op, x.root, x.inPlace, x.seed)
}

// scale of a rank in a PreMulSum: not the same for all.
func (x trial) scale(r int) float64 { return x.op.Scale * float64(r+1) / 3 }

// ins are what ranks contribute: numbers of very different size, whose sum depends
// on the order in which they are added.
func (x trial) ins(n int) [][]byte {
	ins := make([][]byte, n)
	for r := range ins {
		rng := rand.New(rand.NewPCG(x.seed, uint64(r)))
		in, _ := (&Call{Kind: x.kind, Count: x.count}).Shape(r, n)
		for range in {
			ins[r] = element(ins[r], x.typ, math.Ldexp(rng.Float64()-0.5, rng.IntN(12)-4))
		}
	}
	return ins
}

// wants is what every rank must get, nil for none.
func (x trial) wants(ins [][]byte) [][]byte {
	scales := make([]float64, len(ins))
	for r := range scales {
		scales[r] = x.scale(r)
	}
	all := folded(x.typ, x.op, scales, ins)
	outs := make([][]byte, len(ins))
	share := x.count * x.typ.Size()
	for r := range outs {
		switch {
		case x.kind == KindReduceScatter:
			outs[r] = all[r*share : (r+1)*share]
		case x.kind == KindAllReduce || r == x.root:
			outs[r] = all
		}
	}
	return outs
}

// call is a rank's call; in is its memory, out as well unless it is in place.
func (x trial) call(r, n int, in, out Region) Call {
	c := Call{Kind: x.kind, In: in, Out: out, Count: x.count, Type: x.typ, Op: x.op, Root: x.root}
	if x.op.Kind == kernels.KindPreMulSum {
		c.Op = PreMulSum(x.scale(r))
	}
	if x.inPlace {
		share := x.count * x.typ.Size()
		if c.Out = in; x.kind == KindReduceScatter {
			c.Out = in.Slice(r*share, share)
		}
	}
	return c
}

// onHost carries a trial out on host memory.
func (x trial) onHost(comms []*Comm) error {
	n := len(comms)
	ins := x.ins(n)
	wants := x.wants(ins)
	for r, err := range each(comms, func(c *Comm) error {
		r := c.Rank()
		out := make([]byte, len(wants[r]))
		call := x.call(r, n, mem.Host(bytes.Clone(ins[r])), mem.Host(out))
		if err := c.Do(&call); err != nil {
			return err
		}
		return x.compare(r, wants[r], call.Out.Bytes())
	}) {
		if err != nil {
			return fmt.Errorf("rank %d of %d: %w", r, n, err)
		}
	}
	return nil
}

func (x trial) compare(r int, want, got []byte) error {
	size := x.typ.Size()
	if want == nil || bytes.Equal(want, got[:len(want)]) {
		return nil
	}
	for at := 0; at < len(want); at += size {
		if w, g := want[at:at+size], got[at:at+size]; !bytes.Equal(w, g) {
			return fmt.Errorf("%v: rank %d: element %d is %x (%g), want %x (%g)", x, r, at/size, g, value(x.typ, g), w, value(x.typ, w))
		}
	}
	return nil
}

// orderedOps are the reductions whose bits depend on the order.
var orderedOps = []RedOp{Sum, Prod, Avg, PreMulSum(0.3)}

var (
	floatTypes = []DataType{Float16, Float32, Float64, BFloat16, Float8E4M3, Float8E5M2}
	reductions = []Kind{KindAllReduce, KindReduce, KindReduceScatter}
)

// trials are all reductions of n ranks, with counts in turn.
func trials(n int, counts ...int) (all []trial) {
	for _, kind := range reductions {
		for _, typ := range floatTypes {
			for _, op := range orderedOps {
				i := len(all)
				all = append(all, trial{kind, typ, op, counts[i%len(counts)], i % n, i/len(counts)%2 == 1, uint64(i)})
			}
		}
	}
	return all
}

// TestDeterministic: the same bits over every transport, for all sizes and
// whatever algorithm is asked for, and they are those of a plain loop.
func TestDeterministic(t *testing.T) {
	for _, tc := range []struct {
		name string
		n    int
		cfg  Config
	}{
		{"inproc", 3, exact},
		{"inproc, 2 ranks", 2, exact},
		{"inproc, 9 ranks", 9, exact},
		{"small queues, ring", 4, with(func(c *Config) { c.SlotBytes, c.Slots, c.Algo = 256, 4, "ring" })},
		{"shm", 3, with(func(c *Config) { c.Transport = "shm" })},
		{"unix", 3, with(func(c *Config) { c.Transport = "socket" })},
		{"tcp, tree", 4, with(func(c *Config) { c.Transport, c.SocketNetwork, c.Interface, c.Algo = "socket", "tcp", "lo", "tree" })},
	} {
		t.Run(tc.name, func(t *testing.T) {
			comms := local(t, tc.n, tc.cfg)
			all := race.Some(3, trials(tc.n, 1, 77, 0, 2500, 9001))
			for i := 0; i < len(all); i += 5 - 4*(tc.n&1) { // all of them, or some
				require.NoError(t, all[i].onHost(comms))
			}
		})
	}
}

// Data larger than the shares that are held at a time.
func TestDeterministicPieces(t *testing.T) {
	comms := local(t, 3, exact)
	for _, c := range comms {
		r := c.host.Reduction()
		r.Whole, r.RoomFor = 1<<10, 12<<10
	}
	for i, kind := range reductions {
		for _, inPlace := range []bool{false, true} {
			x := trial{kind, BFloat16, PreMulSum(0.9), 20_001, 1, inPlace, uint64(i)}
			require.NoError(t, x.onHost(comms))
		}
	}
}

// TestDeterministicRandom tries what nobody thought of.
func TestDeterministicRandom(t *testing.T) {
	groups := map[int][]*Comm{}
	for _, n := range []int{2, 3, 5, 8} {
		groups[n] = local(t, n, with(func(c *Config) { c.SlotBytes, c.Slots = 1024, 4 }))
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{2, 3, 5, 8}).Draw(t, "ranks")
		x := trial{
			kind:    rapid.SampledFrom(reductions).Draw(t, "kind"),
			typ:     rapid.SampledFrom(floatTypes).Draw(t, "type"),
			op:      rapid.SampledFrom(orderedOps).Draw(t, "op"),
			count:   rapid.IntRange(0, 3000).Draw(t, "count"),
			root:    rapid.IntRange(0, n-1).Draw(t, "root"),
			inPlace: rapid.Bool().Draw(t, "in place"),
			seed:    rapid.Uint64().Draw(t, "seed"),
		}
		if err := x.onHost(groups[n]); err != nil {
			t.Fatal(err)
		}
	})
}

// An operator of the caller's own sees the ranks in order, in groups and queues too.
func TestDeterministicUserOp(t *testing.T) {
	const n, count = 5, 7000
	comms := local(t, n, exact)
	digits := UserOp("digits", func(_ DataType, dst, src []byte) {
		for i := 0; i < len(dst); i += 8 {
			v := binary.NativeEndian.Uint64(dst[i:])*10 + binary.NativeEndian.Uint64(src[i:])
			binary.NativeEndian.PutUint64(dst[i:], v)
		}
	})
	noErrors(t, each(comms, func(c *Comm) error {
		x, y := make([]uint64, count), make([]uint64, count)
		for i := range x {
			x[i], y[i] = uint64(c.Rank()+1), uint64(c.Rank()+1)
		}
		started := c.Start(AllReduceOf(x, digits))
		g := NewGroup()
		g.Add(c, AllReduceOf(y, digits))
		if err := g.Run(); err != nil {
			return err
		}
		if err := started.Wait(); err != nil {
			return err
		}
		for i := range x {
			if x[i] != 12345 || y[i] != 12345 {
				return fmt.Errorf("element %d is %d and %d", i, x[i], y[i])
			}
		}
		return nil
	}))
}

func TestDeterministicMismatch(t *testing.T) {
	comms := local(t, 2, exact)
	errs := each(comms, func(c *Comm) error { return AllReduce(c, make([]kernels.BF16, 10+c.Rank()), Avg) })
	for _, err := range errs {
		require.Error(t, err)
	}
	require.Contains(t, errs[0].Error()+errs[1].Error(), "count 11")
}

// Where all orders have the same bits, the fastest algorithm is taken.
func TestDeterministicAllocates(t *testing.T) {
	comms := local(t, 2, exact)
	for _, kind := range reductions {
		x := trial{kind: kind, typ: BFloat16, op: Avg, count: 40_000}
		ins := x.ins(2)
		calls := make([]Call, 2)
		for r := range calls {
			calls[r] = x.call(r, 2, mem.Host(ins[r]), mem.Host(make([]byte, 2*x.count)))
		}
		const runs = 20
		done := make(chan error)
		go func() {
			var err error
			for range runs + 2 {
				if err == nil {
					err = comms[1].Do(&calls[1])
				}
			}
			done <- err
		}()
		var err error
		do := func() { err = errors.Join(err, comms[0].Do(&calls[0])) }
		do()
		require.Less(t, testing.AllocsPerRun(runs, do), 1.0, "%v", kind)
		require.NoError(t, errors.Join(err, <-done))
	}
}

// TestSettingsDiffer: what must be the same on all ranks and is not is an ErrMismatch on all, also where
// one rank names the networks that the other would try anyway.
func TestSettingsDiffer(t *testing.T) {
	for variable, cfgs := range map[string][2]Config{
		"RINGO_NET":           {{Net: "socket"}, {Net: "ib,socket"}},
		"RINGO_NET or NCCL":   {{Net: "plugin,ib,socket"}, {}},
		"RINGO_DETERMINISTIC": {{Deterministic: call.RankOrder}, {}},
	} {
		var errs [2]error
		var wg sync.WaitGroup
		for r, g := range bootstrap.Local(2) {
			wg.Go(func() {
				cfg, err := cfgs[r].fill(func(string) string { return "" })
				if err == nil {
					_, err = open(t.Context(), cfg, g)
				}
				errs[r] = err
			})
		}
		wg.Wait()
		for _, err := range errs {
			require.ErrorIs(t, err, ErrMismatch)
			require.ErrorContains(t, err, variable)
		}
	}
}

func TestDeterministicAgree(t *testing.T) {
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for r, g := range bootstrap.Local(2) {
		wg.Go(func() {
			cfg, err := Config{Deterministic: []string{"", call.RankOrder}[r]}.FromEnv()
			if err == nil {
				_, err = open(t.Context(), cfg, g)
			}
			errs[r] = err
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.ErrorContains(t, err, "RINGO_DETERMINISTIC")
	}
	_, err := Config{Deterministic: "sometimes"}.fill(func(string) string { return "" })
	require.ErrorIs(t, err, ErrInvalid)
	_, err = Explain(KindAllReduce, 4, 0, 64, 0, Config{Deterministic: "sometimes"})
	require.ErrorIs(t, err, ErrInvalid)
	c, err := Config{}.fill(func(name string) string {
		if name == "RINGO_DETERMINISTIC" {
			return call.RankOrder
		}
		return ""
	})
	require.NoError(t, err)
	require.Equal(t, call.RankOrder, c.Deterministic)
}
