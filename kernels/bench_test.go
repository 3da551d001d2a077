package kernels

import (
	"fmt"
	"testing"
)

var benchSizes = []struct {
	name string
	n    int
}{{"16K", 16 << 10}, {"1M", 1 << 20}, {"64M", 64 << 20}}

// benchmark runs f for operands of each size; MB/s count one of the operands.
func benchmark(b *testing.B, t DataType, f func(dst, x []byte)) {
	for _, size := range benchSizes {
		b.Run(size.name, func(b *testing.B) {
			if testing.Short() && size.n > 1<<20 {
				b.Skip("making the operands takes long")
			}
			dst, x := make([]byte, size.n), make([]byte, size.n)
			for i := range size.n / t.Size() { // up to 1 or so: sums round but do not overflow
				for j := range t.Size() {
					x[i*t.Size()+j] = byte(0x38 + 0x80*(i&1) + i*j>>3&7)
				}
			}
			b.SetBytes(int64(size.n))
			for b.Loop() {
				f(dst, x)
			}
		})
	}
}

// BenchmarkCombine is dst = dst ⊕ pre(x), see CombineIn, for each implementation.
func BenchmarkCombine(b *testing.B) {
	for _, impl := range implementations() {
		for _, t := range Types() {
			for _, op := range []RedOp{Sum, Max, Avg} {
				r, err := newReducer(t, op, 3, impl)
				if err != nil {
					b.Fatal(err)
				}
				b.Run(fmt.Sprintf("%s/%v/%v", impl.name, t, op), func(b *testing.B) {
					benchmark(b, t, func(dst, x []byte) { r.CombineIn(dst, dst, x) })
				})
			}
		}
	}
}

// BenchmarkCopy is Go's copy, to compare the other benchmarks with.
func BenchmarkCopy(b *testing.B) {
	benchmark(b, Int8, func(dst, x []byte) { copy(dst, x) })
}

// BenchmarkSmall is the cost of a call with few bytes.
func BenchmarkSmall(b *testing.B) {
	for _, n := range []int{8, 64, 100, 1024} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r, err := NewReducer(Float32, Sum, 2)
			if err != nil {
				b.Fatal(err)
			}
			x := make([]byte, n)
			for b.Loop() {
				r.Combine(x, x, x)
			}
		})
	}
}

// BenchmarkFinish divides a sum of integers.
func BenchmarkFinish(b *testing.B) {
	for _, t := range []DataType{Int8, Int32, Int64, Uint64} {
		r, err := NewReducer(t, Avg, 3)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(t.String(), func(b *testing.B) {
			benchmark(b, t, func(dst, _ []byte) { r.Finish(dst) })
		})
	}
}

// BenchmarkNewReducer is the time to find a cached Reducer, which each operation does once.
func BenchmarkNewReducer(b *testing.B) {
	for _, op := range []RedOp{Sum, Avg, PreMulSum(0.5)} {
		b.Run(op.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := NewReducer(Float32, op, 8); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCombineAll combines four sources; MB/s count one of them.
func BenchmarkCombineAll(b *testing.B) {
	for _, t := range []DataType{Float32, BFloat16, Float16, Float8E4M3} {
		for _, op := range []RedOp{Sum, Avg} {
			r, err := NewReducer(t, op, 4)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%v/%v", t, op), func(b *testing.B) {
				benchmark(b, t, func(dst, x []byte) { r.CombineAll(dst, [][]byte{x, x, x, x}, ^uint64(0), true) })
			})
		}
	}
}
