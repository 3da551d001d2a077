package ringo

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/choice"
	"github.com/ringo-go/ringo/internal/race"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

func TestMain(m *testing.M) {
	if run := os.Getenv("RINGO_TEST_RANK"); run != "" {
		os.Exit(rankMain(run))
	}
	if race.Enabled {
		_ = flag.Set("rapid.checks", "20")
	}
	goleak.VerifyTestMain(m)
}

// local is a communicator of n goroutines, closed at the end of the test.
func local(t testing.TB, n int, cfg Config) []*Comm {
	comms, err := OpenLocal(n, cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, c := range comms {
			require.NoError(t, c.Close())
		}
	})
	return comms
}

// each runs f on all ranks at once and gives the errors by rank.
func each(comms []*Comm, f func(c *Comm) error) []error {
	errs := make([]error, len(comms))
	var wg sync.WaitGroup
	for i, c := range comms {
		wg.Go(func() { errs[i] = f(c) })
	}
	wg.Wait()
	return errs
}

func noErrors(t testing.TB, errs []error) {
	t.Helper()
	for r, err := range errs {
		require.NoError(t, err, "rank %d", r)
	}
}

// data is what rank r contributes: small whole numbers, so that sums and
// products are exact in all types and every order.
func data(t DataType, op kernels.Kind, r, count int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, uint64(r)))
	out := make([]byte, 0, count*t.Size())
	for range count {
		v := float32(rng.IntN(3))
		if op == kernels.KindProd {
			v = float32(1 + rng.IntN(2))
		}
		out = encode(out, t, v)
	}
	return out
}

func encode(b []byte, t DataType, v float32) []byte {
	switch t {
	case Int8, Uint8:
		return append(b, byte(v))
	case Int32, Uint32:
		return append(b, bytesOf(uint32(v))...)
	case Int64, Uint64:
		return append(b, bytesOf(uint64(v))...)
	case Float16:
		return append(b, bytesOf(kernels.NewF16(v))...)
	case BFloat16:
		return append(b, bytesOf(kernels.NewBF16(v))...)
	case Float32:
		return append(b, bytesOf(v)...)
	case Float64:
		return append(b, bytesOf(float64(v))...)
	case Float8E4M3:
		return append(b, byte(kernels.NewF8E4M3(v)))
	}
	return append(b, byte(kernels.NewF8E5M2(v)))
}

func bytesOf[T any](v T) []byte { return bytes.Clone(mem.Of([]T{v}).Bytes()) }

// oracle computes what a collective must give rank r, straight from its
// definition.
func oracle(t *testing.T, call *Call, ins [][]byte, r int) []byte {
	n, size := len(ins), call.Type.Size()
	share := call.Count * size
	var sum []byte
	if call.Kind.Reduces() {
		red, err := kernels.NewReducer(call.Type, call.Op, n)
		require.NoError(t, err)
		sum = make([]byte, len(ins[0]))
		red.Load(sum, ins[0])
		for _, in := range ins[1:] {
			red.CombineIn(sum, sum, in)
		}
		red.Finish(sum)
	}
	switch call.Kind {
	case KindAllReduce:
		return sum
	case KindReduce:
		if r == call.Root {
			return sum
		}
		return nil
	case KindBroadcast:
		return ins[call.Root]
	case KindAllGather:
		return bytes.Join(ins, nil)
	case KindReduceScatter:
		return sum[r*share : (r+1)*share]
	case KindAlltoAll:
		var out []byte
		for _, in := range ins {
			out = append(out, in[r*share:(r+1)*share]...)
		}
		return out
	case KindGather:
		if r == call.Root {
			return bytes.Join(ins, nil)
		}
		return nil
	case KindScatter:
		return ins[call.Root][r*share : (r+1)*share]
	}
	panic(call.Kind)
}

// try makes one collective on all ranks, in or out of place, and compares.
func try(t *testing.T, comms []*Comm, call Call, inPlace bool, shift int) {
	n, size := len(comms), call.Type.Size()
	ins := make([][]byte, n)
	outs := make([][]byte, n)
	calls := make([]Call, n)
	for r := range n {
		in, out := call.Shape(r, n)
		full := in
		if call.Kind == KindBroadcast || call.Kind == KindScatter {
			full, _ = call.Shape(call.Root, n)
		}
		ins[r] = data(call.Type, call.Op.Kind, r, full, 7)
		outs[r] = bytes.Repeat([]byte{0xa5}, out*size+shift)[shift:]
		mine := append(make([]byte, shift), ins[r][:in*size]...)[shift:]
		calls[r] = call
		calls[r].In, calls[r].Out = mem.Host(mine), mem.Host(outs[r])
		if !inPlace {
			continue
		}
		share := r * call.Count * size
		switch call.Kind {
		case KindAllGather, KindGather:
			if out > 0 {
				copy(outs[r][share:], mine)
				calls[r].In = mem.Host(outs[r][share : share+in*size])
			}
		case KindReduceScatter, KindScatter:
			if in > 0 {
				outs[r] = mine[share : share+out*size]
				calls[r].Out = mem.Host(outs[r])
			}
		default:
			if in > 0 && out > 0 {
				copy(outs[r], mine)
				calls[r].In = mem.Host(outs[r])
			}
		}
	}
	noErrors(t, each(comms, func(c *Comm) error { return c.Do(&calls[c.Rank()]) }))
	for r := range n {
		want := oracle(t, &call, ins, r)
		require.True(t, bytes.Equal(want, outs[r]), "%v, rank %d of %d, in place %v, shift %d:\nwant %x\n got %x",
			call.String(), r, n, inPlace, shift, head(want), head(outs[r]))
	}
}

func head(b []byte) []byte { return b[:min(len(b), 64)] }

var collectives = []Kind{KindAllReduce, KindReduce, KindBroadcast, KindAllGather, KindReduceScatter, KindAlltoAll, KindGather, KindScatter}

// Every collective, with every algorithm, at sizes around its seams: no element,
// fewer than ranks, one slot, a piece and more than a queue.
func TestCollectives(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 8} {
		cfg := Config{SlotBytes: 256, Slots: 4}
		for a := range call.Algos {
			cfg.Algo = a.String()
			name := fmt.Sprintf("n=%d/%v", n, a)
			t.Run(name, func(t *testing.T) {
				comms := local(t, n, cfg)
				for _, kind := range collectives {
					if !hasAlgo(kind, a) {
						continue
					}
					for _, count := range []int{0, 1, 3, n, 63, 64, 65, 129, 1000, 3001} {
						for _, root := range []int{0, n / 2, n - 1} {
							op := Call{Kind: kind, Count: count, Type: Int32, Op: Sum, Root: root}
							try(t, comms, op, count%2 == 0, 0)
							try(t, comms, op, count%2 == 1, 0)
							if !kind.Rooted() {
								break
							}
						}
					}
				}
			})
		}
	}
}

func hasAlgo(kind Kind, a call.Algo) bool {
	return a == call.Auto || choice.Key{Kind: kind, Algo: a}.Exists(choice.Blocks(8, 0))
}

// Every type with every operator, at odd counts and unaligned starts. With four
// ranks averages are exact in all types and every order.
func TestTypesAndOperators(t *testing.T) {
	comms := local(t, 4, Config{SlotBytes: 256, Slots: 4})
	for _, typ := range kernels.Types() {
		for _, op := range []RedOp{Sum, Prod, Max, Min, Avg, BitAnd, BitOr, BitXor, PreMulSum(2)} {
			if _, err := kernels.NewReducer(typ, op, 4); err != nil {
				continue
			}
			t.Run(fmt.Sprintf("%v/%v", typ, op), func(t *testing.T) {
				for _, kind := range []Kind{KindAllReduce, KindReduce, KindReduceScatter} {
					for _, count := range race.Some(2, []int{500, 1, 37}) {
						try(t, comms, Call{Kind: kind, Count: count, Type: typ, Op: op}, false, count%3)
						try(t, comms, Call{Kind: kind, Count: count, Type: typ, Op: op}, true, count%2)
					}
				}
			})
		}
	}
}
