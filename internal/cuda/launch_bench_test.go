//go:build linux && (amd64 || arm64) && !ringo_nogpu

package cuda

import (
	"flag"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/dl"
	"github.com/ringo-go/ringo/internal/test/must"
	"github.com/ringo-go/ringo/internal/test/need"
)

var loopLibrary = flag.String("loop", "", "testdata/loop.c as a library, for machines without gcc")

// BenchmarkLaunch compares launches from Go and from C, alternately: on the real
// driver with REQUIRE=cuda, else on the fake one, where a launch itself takes
// some 20 ns. What counts is over-ns/launch.
func BenchmarkLaunch(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	path := *loopLibrary
	if path == "" {
		path = build(b, "loop.c")
	}
	lib := must.Get(dl.Open(path))
	loop := must.Get(lib.Sym("loop"))

	var d *libcuda
	f, s := Function(44), Stream(1)
	wait := func() {}
	if need.Required("cuda") {
		d, f, s = launchable(b)
		wait = func() { require.NoError(b, d.StreamSynchronize(s)) }
	} else {
		d = openFake(b).Driver.(*libcuda)
	}
	fn := must.Get(d.addr(cuLaunchKernel))

	const n = 256 // launches in a row, fewer than the driver's queue holds
	var args struct {
		a, b uintptr
		n    uint32
	}
	l := Launch{Block: Dim3{X: 32}, Stream: s}
	params := ArgsOf(&args)
	fromGo := func() float64 {
		t := time.Now()
		for range n {
			if err := d.LaunchKernel(f, &l, params); err != nil {
				b.Fatal(err)
			}
		}
		return float64(time.Since(t).Nanoseconds()) / n
	}
	fromC := func() float64 {
		ns := dl.Call(loop, fn, uintptr(f), uintptr(s), uintptr(unsafe.Pointer(&args)), uintptr(len(params)), n)
		require.Positive(b, int(ns))
		return float64(ns) / n
	}
	var inGo, inC []float64
	for b.Loop() {
		inGo = append(inGo, fromGo())
		wait()
		inC = append(inC, fromC())
		wait()
	}
	median := func(x []float64) float64 { slices.Sort(x); return x[len(x)/2] }
	b.ReportMetric(median(inGo), "go-ns/launch")
	b.ReportMetric(median(inC), "c-ns/launch")
	b.ReportMetric(median(inGo)-median(inC), "over-ns/launch")
}

// launchable is a kernel that does nothing with 20 bytes of parameters, and a stream.
func launchable(b *testing.B) (*libcuda, Function, Stream) {
	driver := must.Get(Open(os.Getenv("RINGO_CUDA_LIBRARY")))
	d := driver.(*libcuda)
	ctx := must.Get(d.DevicePrimaryCtxRetain(0))
	require.NoError(b, d.CtxPushCurrent(ctx))
	m, err := d.ModuleLoadData([]byte(`.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing(.param .u64 a, .param .u64 b, .param .u32 n) { ret; }
`))
	require.NoError(b, err)
	f := must.Get(d.ModuleGetFunction(m, "nothing"))
	s := must.Get(d.StreamCreate(StreamNonBlocking, 0))
	b.Cleanup(func() {
		require.NoError(b, d.StreamDestroy(s))
		require.NoError(b, d.ModuleUnload(m))
	})
	return d, f, s
}
