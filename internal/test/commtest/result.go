package commtest

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// data is what rank r contributes: small whole numbers, so that sums and
// products are exact in all types and every order.
func data(t ringo.DataType, op kernels.Kind, r, count int, seed uint64) []byte {
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

// encode appends a number to bytes that no other goroutine has.
//
//go:norace
func encode(b []byte, t ringo.DataType, v float32) []byte {
	switch t {
	case ringo.Int8, ringo.Uint8:
		return append(b, byte(v))
	case ringo.Int32, ringo.Uint32:
		return append(b, bytesOf(uint32(v))...)
	case ringo.Int64, ringo.Uint64:
		return append(b, bytesOf(uint64(v))...)
	case ringo.Float16:
		return append(b, bytesOf(kernels.NewF16(v))...)
	case ringo.BFloat16:
		return append(b, bytesOf(kernels.NewBF16(v))...)
	case ringo.Float32:
		return append(b, bytesOf(v)...)
	case ringo.Float64:
		return append(b, bytesOf(float64(v))...)
	case ringo.Float8E4M3:
		return append(b, byte(kernels.NewF8E4M3(v)))
	}
	return append(b, byte(kernels.NewF8E5M2(v)))
}

func bytesOf[T any](v T) []byte { return bytes.Clone(mem.Of([]T{v}).Bytes()) }

// oracle computes what a collective must give rank r, straight from its
// definition.
func oracle(t *testing.T, call *ringo.Call, ins [][]byte, r int) []byte {
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
	case ringo.KindAllReduce:
		return sum
	case ringo.KindReduce:
		if r == call.Root {
			return sum
		}
		return nil
	case ringo.KindBroadcast:
		return ins[call.Root]
	case ringo.KindAllGather:
		return bytes.Join(ins, nil)
	case ringo.KindReduceScatter:
		return sum[r*share : (r+1)*share]
	case ringo.KindAlltoAll:
		var out []byte
		for _, in := range ins {
			out = append(out, in[r*share:(r+1)*share]...)
		}
		return out
	case ringo.KindGather:
		if r == call.Root {
			return bytes.Join(ins, nil)
		}
		return nil
	case ringo.KindScatter:
		return ins[call.Root][r*share : (r+1)*share]
	}
	panic(call.Kind)
}

func head(b []byte) []byte { return b[:min(len(b), 64)] }

// Collectives are the kinds of collectives that move data, without those with counts by rank.
var Collectives = []ringo.Kind{ringo.KindAllReduce, ringo.KindReduce, ringo.KindBroadcast, ringo.KindAllGather,
	ringo.KindReduceScatter, ringo.KindAlltoAll, ringo.KindGather, ringo.KindScatter}
