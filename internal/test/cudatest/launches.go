package cudatest

import (
	"encoding/binary"
	"math"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/must"
)

type storeArgs struct {
	p uintptr
	v uint32
}

func testThreads(e *env) {
	f := e.kernel("threads")
	const blocks, threads = 5, 70
	p := e.alloc(4 * blocks * threads)
	l := cuda.Launch{Grid: cuda.Dim3{X: blocks}, Block: cuda.Dim3{X: threads}, Stream: e.stream()}
	args := struct{ out uintptr }{p}
	e.noErr(e.d.LaunchKernel(f, &l, cuda.ArgsOf(&args)))
	args.out = 0 // they were copied
	e.noErr(e.d.StreamSynchronize(l.Stream))
	got := e.words(p, blocks*threads)
	for i, v := range got {
		require.EqualValues(e, 1000*(i/threads)+i%threads, v)
	}
}

func testVectors(e *env) {
	f := e.kernel("add4")
	const n = 1000 // groups of four
	floats := func(of func(i int) float32) uintptr {
		w := make([]uint32, 4*n)
		for i := range w {
			w[i] = math.Float32bits(of(i))
		}
		p := e.alloc(16 * n)
		e.put(p, w...)
		return p
	}
	args := struct {
		out, a, b uintptr
		n         uint32
	}{e.alloc(16 * n), floats(func(i int) float32 { return float32(i) }),
		floats(func(i int) float32 { return float32(i) / 3 }), n}
	l := cuda.Launch{Grid: cuda.Dim3{X: (n + 127) / 128}, Block: cuda.Dim3{X: 128}}
	e.noErr(e.d.LaunchKernel(f, &l, cuda.ArgsOf(&args)))
	e.noErr(e.d.CtxSynchronize())
	for i, w := range e.words(args.out, 4*n) {
		require.Equal(e, math.Float32bits(float32(i)+float32(i)/3), w, "element %d", i)
	}
}

func testParameters(e *env) {
	f := e.kernel("params")
	out := e.alloc(64)
	args := struct {
		a   uint8
		b   uint64
		c   uint16
		d   uint32
		e   [3]uint32
		f   uint8
		out uintptr
	}{0x11, 0x2222222222222222, 0x3333, 0x44444444, [3]uint32{0x55, 0x66, 0x77}, 0x88, out}
	e.noErr(e.d.LaunchKernel(f, &cuda.Launch{}, cuda.ArgsOf(&args)))
	e.noErr(e.d.CtxSynchronize())
	b := make([]byte, 64)
	e.noErr(e.d.MemcpyDtoH(b, out))
	for i, want := range []uint64{0x11, 0x2222222222222222, 0x3333, 0x44444444, 0x55, 0x66, 0x77, 0x88} {
		require.Equal(e, want, binary.LittleEndian.Uint64(b[8*i:]), "parameter %d", i)
	}
	e.noErr(e.d.LaunchKernel(e.kernel("nothing"), &cuda.Launch{}, nil))
	e.noErr(e.d.CtxSynchronize())
}

func testSharedMemory(e *env) {
	f := e.kernel("reverse")
	const n = 256
	p := e.alloc(4 * n)
	w := make([]uint32, n)
	for i := range w {
		w[i] = uint32(i)
	}
	e.put(p, w...)
	args := struct{ data uintptr }{p}
	l := cuda.Launch{Block: cuda.Dim3{X: n}, Shared: 4 * n}
	e.noErr(e.d.LaunchKernel(f, &l, cuda.ArgsOf(&args)))
	e.noErr(e.d.CtxSynchronize())
	for i, v := range e.words(p, n) {
		require.EqualValues(e, n-1-i, v)
	}

	// More than 48 KiB has to be allowed first.
	most := must.Get(e.d.DeviceGetAttribute(cuda.AttrMaxSharedPerBlockOptin, e.dev))
	l.Shared = most
	e.is(e.d.LaunchKernel(f, &l, cuda.ArgsOf(&args)), cuda.ErrInvalidValue)
	e.noErr(e.d.FuncSetAttribute(f, cuda.FuncMaxDynamicShared, most))
	e.noErr(e.d.LaunchKernel(f, &l, cuda.ArgsOf(&args)))
	e.noErr(e.d.CtxSynchronize())
	require.EqualValues(e, 0, e.words(p, n)[0], "reversed twice")
	e.is(e.d.FuncSetAttribute(f, cuda.FuncMaxDynamicShared, most+1), cuda.ErrInvalidValue)
}

func testCooperative(e *env) {
	f := e.kernel("meet")
	sms := must.Get(e.d.DeviceGetAttribute(cuda.AttrMultiprocessorCount, e.dev))
	per := must.Get(e.d.OccupancyMaxActiveBlocksPerMultiprocessor(f, 1024, 0))
	counter := e.alloc(64)
	e.put(counter, 0)
	args := struct{ counter uintptr }{counter}
	l := cuda.Launch{Grid: cuda.Dim3{X: uint32(sms * per)}, Block: cuda.Dim3{X: 1024}, Cooperative: true}
	l.Block.X = 1 // each block counts once; far fewer threads than would fit
	e.noErr(e.d.LaunchKernel(f, &l, cuda.ArgsOf(&args)))
	e.noErr(e.d.CtxSynchronize())
	require.Equal(e, []uint32{l.Grid.X}, e.words(counter, 1))

	l.Block.X = 1024
	l.Grid.X++
	e.is(e.d.LaunchKernel(f, &l, cuda.ArgsOf(&args)), cuda.ErrCooperativeLaunchTooLarge)
}

func testBadLaunches(e *env) {
	f := e.kernel("nothing")
	for name, l := range map[string]cuda.Launch{
		"block too large": {Block: cuda.Dim3{X: 2048}},
		"block too deep":  {Block: cuda.Dim3{Z: 65}},
		"grid too high":   {Grid: cuda.Dim3{Y: 65536}},
		"too much shared": {Shared: 1 << 20},
	} {
		err := e.d.LaunchKernel(f, &l, nil)
		require.Error(e, err, name)
		e.is(err, cuda.ErrInvalidValue)
		require.Contains(e, err.Error(), "grid", name)
	}
	testParameterSizes(e)
	e.is(e.d.LaunchKernel(0, &cuda.Launch{}, nil), cuda.ErrInvalidHandle, cuda.ErrInvalidValue)
	e.noErr(e.d.LaunchKernel(f, &cuda.Launch{}, nil)) // nothing of that did harm
	e.noErr(e.d.CtxSynchronize())
}

// testParameterSizes launches with more and fewer bytes of parameters than the
// kernel takes. The real driver refuses more, but takes fewer and lets the kernel
// read what happens to be there; since CUDA 12.4 it can be asked beforehand.
func testParameterSizes(e *env) {
	f := e.kernel("ignore") // takes 12 bytes; a Go struct of such fields has 16
	launch := func(n int) error { return e.d.LaunchKernel(f, &cuda.Launch{}, make([]byte, n)) }
	e.noErr(launch(12))
	for _, n := range []int{0, 8, 11, 16, 4096} {
		err := launch(n)
		if v, _ := e.d.DriverGetVersion(); err == nil && n < 12 && v < 12040 {
			continue
		}
		e.is(err, cuda.ErrLaunchOutOfResources)
	}
	e.is(launch(1<<16), cuda.ErrLaunchOutOfResources, cuda.ErrInvalidValue)
	e.noErr(e.d.CtxSynchronize())
}
