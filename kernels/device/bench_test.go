package device

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// BenchmarkCombine measures on a GPU, by events, the bytes that memory moves a
// second: one write and k reads. "copy" is the driver's own copy.
func BenchmarkCombine(b *testing.B) {
	if !gputest.OnGPU() {
		b.Skip("the emulator's time says nothing: set REQUIRE=cuda on a machine with a GPU")
	}
	d := gputest.Driver(b)
	_, ctx := gputest.Context(b, d, 0)
	n := 1 << 30
	require.NoError(b, cuda.With(d, ctx, func() error {
		c, err := New(d, ctx)
		require.NoError(b, err)
		defer c.Close()
		var all [MaxSources + 1]mem.Region
		data := make([]byte, 64<<20)
		fill(rand.New(rand.NewPCG(1, 2)), kernels.Float32, data)
		for i := range all {
			p, err := d.MemAlloc(n + 16)
			require.NoError(b, err)
			defer d.MemFree(p)
			for at := 0; at < n; at += len(data) {
				require.NoError(b, cuda.Write(d, p+uintptr(at), data))
			}
			all[i] = mem.Device(int(c.device), p, n+16)
		}
		slice := func(n int, off int) (r []mem.Region) {
			for _, x := range all {
				r = append(r, x.Slice(off, n))
			}
			return r
		}
		run := func(name string, moved int, f func(s cuda.Stream) error) {
			b.Run(name, func(b *testing.B) {
				require.NoError(b, cuda.With(d, ctx, func() error { onEvents(b, d, moved, f); return nil }))
			})
		}
		run("copy", 2*n, func(s cuda.Stream) error { return d.MemcpyAsync(all[0].Ptr(), all[1].Ptr(), n, s) })
		for _, ty := range kernels.Types() {
			k, err := c.Kernel(reducer(b, ty, kernels.Sum, 2))
			require.NoError(b, err)
			for _, sources := range []int{1, 2, 4, 8} {
				r := slice(n, 0)
				run(fmt.Sprintf("%v/k=%d", ty, sources), (sources+1)*n, func(s cuda.Stream) error {
					return k.Launch(s, &Args{Dst: r[8], Srcs: r[:sources]})
				})
			}
		}
		for _, ty := range []kernels.DataType{kernels.Float32, kernels.BFloat16, kernels.Int8} {
			k, err := c.Kernel(reducer(b, ty, kernels.Sum, 2))
			require.NoError(b, err)
			r := slice(n, 0)
			run(fmt.Sprintf("unlike/%v/k=2", ty), 3*n, func(s cuda.Stream) error {
				return k.Launch(s, &Args{Dst: all[8].Slice(ty.Size(), n), Srcs: r[:2]})
			})
			run(fmt.Sprintf("inplace/%v/k=2", ty), 3*n, func(s cuda.Stream) error {
				return k.Launch(s, &Args{Dst: r[0], Srcs: r[:2]})
			})
			for _, small := range []int{4 << 10, 256 << 10, 4 << 20, 64 << 20} {
				r := slice(small, 0)
				run(fmt.Sprintf("small/%v/%dKiB/k=2", ty, small>>10), 3*small, func(s cuda.Stream) error {
					return k.Launch(s, &Args{Dst: r[8], Srcs: r[:2]})
				})
			}
		}
		for _, op := range []kernels.RedOp{kernels.Prod, kernels.Max, kernels.Avg} {
			for _, ty := range kernels.Types() {
				k, err := c.Kernel(reducer(b, ty, op, 3))
				require.NoError(b, err)
				r := slice(n, 0)
				run(fmt.Sprintf("%v/%v/k=2", op, ty), 3*n, func(s cuda.Stream) error {
					return k.Launch(s, &Args{Dst: r[8], Srcs: r[:2], Contributions: 3, Finish: true})
				})
			}
		}
		return nil
	}))
}

// onEvents reports the bandwidth of f, which moves the given number of bytes.
func onEvents(b *testing.B, d cuda.Driver, moved int, f func(s cuda.Stream) error) {
	s, err := d.StreamCreate(cuda.StreamNonBlocking, 0)
	require.NoError(b, err)
	defer d.StreamDestroy(s)
	var at [2]cuda.Event
	for i := range at {
		at[i], err = d.EventCreate(cuda.EventDefault)
		require.NoError(b, err)
		defer d.EventDestroy(at[i])
	}
	require.NoError(b, f(s))
	require.NoError(b, d.EventRecord(at[0], s))
	for range b.N {
		if err := f(s); err != nil {
			b.Fatal(err)
		}
	}
	require.NoError(b, d.EventRecord(at[1], s))
	require.NoError(b, d.StreamSynchronize(s))
	ms, err := d.EventElapsedTime(at[0], at[1])
	require.NoError(b, err)
	each := float64(ms) / 1e3 / float64(b.N)
	b.ReportMetric(float64(moved)/each/1e9, "GB/s")
	b.ReportMetric(each*1e6, "µs/op")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkLoad measures the first use of a module. With CUDA_CACHE_DISABLE=1
// the driver compiles each time.
func BenchmarkLoad(b *testing.B) {
	if !gputest.OnGPU() {
		b.Skip("the emulator's time says nothing: set REQUIRE=cuda on a machine with a GPU")
	}
	d := gputest.Driver(b)
	_, ctx := gputest.Context(b, d, 0)
	for _, ty := range kernels.Types() {
		for _, op := range []kernels.RedOp{kernels.Sum, kernels.Max, kernels.Avg} {
			r := reducer(b, ty, op, 3)
			b.Run(fmt.Sprintf("%v/%v", ty, op), func(b *testing.B) {
				var took time.Duration
				for range b.N {
					c, err := New(d, ctx)
					require.NoError(b, err)
					start := time.Now()
					k, err := c.Kernel(r)
					require.NoError(b, err)
					took += time.Since(start)
					_ = k
					require.NoError(b, c.Close())
				}
				b.ReportMetric(took.Seconds()*1e3/float64(b.N), "ms/load")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
