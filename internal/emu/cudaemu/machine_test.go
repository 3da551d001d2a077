package cudaemu_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/must"
)

// The driver's answers are those of its Config.
func TestConfig(t *testing.T) {
	e := start(t, cudaemu.Config{Shapes: []cudaemu.Device{{Name: "Small", Major: 7, Memory: 1 << 20}, {Bus: 9}},
		DriverVersion: 12020,
		Peers:         func(a, b int) bool { return a > b }})
	name := must.Get(e.DeviceGetName(0))
	require.Equal(t, "Small", name)
	bus := must.Get(e.DeviceGetPCIBusId(1))
	require.Equal(t, "0000:09:00.0", bus)
	v := must.Get(e.DriverGetVersion())
	require.Equal(t, 12020, v)
	for _, c := range []struct {
		a, b cuda.Device
		can  bool
	}{{0, 1, false}, {1, 0, true}, {1, 1, false}} {
		can := must.Get(e.DeviceCanAccessPeer(c.a, c.b))
		require.Equal(t, c.can, can, "%d %d", c.a, c.b)
	}
	e.is(e.CtxEnablePeerAccess(e.ctx[1]), cuda.ErrPeerAccessUnsupported)
	e.is(e.CtxEnablePeerAccess(e.ctx[0]), cuda.ErrPeerAccessUnsupported)
	e.is(e.CtxEnablePeerAccess(77), cuda.ErrInvalidContext)

	none := must.Get(cudaemu.New(cudaemu.Config{Shapes: []cudaemu.Device{}}))
	defer none.Close()
	n := must.Get(none.DeviceGetCount())
	require.Zero(t, n)
}

func TestVersions(t *testing.T) {
	e := start(t, cudaemu.Config{DriverVersion: 11020})
	_, err := e.UserObjectCreate(func() {}, 1)
	e.is(err, cuda.ErrNotFound)
	require.Contains(t, err.Error(), "CUDA 11.3")
	e.is(must.Err(e.StreamGetCaptureInfo(0)), cuda.ErrNotFound)
	ev := e.event(0)
	e.ok(e.EventRecordWithFlags(ev, 0, 0)) // 11.1
	_, err = e.ModuleLoadData([]byte(edited(t, ".version 7.0", ".version 7.3")))
	e.is(err, cuda.ErrUnsupportedPTXVersion)
	require.Contains(t, err.Error(), "up to 7.2")
}

func TestLeaks(t *testing.T) {
	runtime.LockOSThread() // the thread has the current context
	defer runtime.UnlockOSThread()
	m := must.Get(cudaemu.New(cudaemu.Config{}))
	e := &env{TB: t, Machine: m}
	ctx := must.Get(m.DevicePrimaryCtxRetain(0))
	e.ok(m.CtxSetCurrent(ctx))
	defer m.CtxSetCurrent(0)
	must.Get(m.MemAlloc(100))
	s := must.Get(m.StreamCreate(0, 0))
	must.Get(m.EventCreate(0))
	must.Get(m.ModuleLoadData([]byte(ptxText)))
	g := must.Get(m.GraphCreate())
	must.Get(m.GraphInstantiate(g, 0))
	must.Get(m.UserObjectCreate(func() {}, 1))
	must.Get(m.MemAddressReserve(2<<20, 0))
	must.Get(m.MemCreate(2<<20, cuda.AllocationProp{}))
	e.ok(m.StreamBeginCapture(s, cuda.CaptureRelaxed))
	err := m.Close()
	for _, want := range []string{"primary context: retained 1", "100 bytes of MemAlloc", "stream", "1 × event",
		"1 × module",
		"1 × graph", "1 × executable graph", "1 × user object", "1 × reserved", "1 × allocation of cuMemCreate",
		"1 × capture"} {
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, m.Close(), "the second time it does nothing")
	e.is(must.Err(m.MemAlloc(100)), cuda.ErrDeinitialized)

	// Objects that are left in a released context count too.
	m = must.Get(cudaemu.New(cudaemu.Config{}))
	ctx = must.Get(m.DevicePrimaryCtxRetain(0))
	e.ok(m.CtxSetCurrent(ctx))
	must.Get(m.MemHostAlloc(100, 0))
	e.ok(m.DevicePrimaryCtxRelease(0))
	require.ErrorContains(t, m.Close(), "100 bytes of MemHostAlloc")
}

// TestCloseWhileWaiting frees a goroutine that waits for a kernel.
func TestCloseWhileWaiting(t *testing.T) {
	for name, cfg := range map[string]cudaemu.Config{"own goroutine": {Stall: -1}, "lazy": {Stall: -1, Lazy: true}} {
		t.Run(name, func(t *testing.T) {
			m := must.Get(cudaemu.New(cfg))
			e := &env{TB: t, Machine: m, ctx: make([]cuda.Context, 1), modules: map[string][]cuda.Module{}}
			done := make(chan error)
			go func() {
				ctx, _ := m.DevicePrimaryCtxRetain(0)
				done <- cuda.With(m, ctx, func() error {
					p, err := m.MemAlloc(64)
					if err == nil {
						err = m.MemsetD8(p, 0, 64)
					}
					if err != nil {
						return err
					}
					launch(e, "await", 0, &waitArgs{p})
					done <- nil
					return m.CtxSynchronize()
				})
			}()
			require.NoError(t, <-done)
			time.Sleep(5 * time.Millisecond)
			require.Error(t, m.Close())
			e.is(<-done, cuda.ErrDeinitialized)
		})
	}
}

func TestInjection(t *testing.T) {
	e := start(t, cudaemu.Config{Devices: 2, Faults: []cudaemu.Injection{
		{Call: "cuMemAlloc", Nth: 2, Result: cuda.ErrOutOfMemory},
		{Call: "cuStreamCreateWithPriority", Nth: 1, Device: 2, Result: cuda.ErrUnknown},
	}})
	for i, want := range []bool{false, true, false} {
		p, err := e.MemAlloc(16)
		require.Equal(t, want, err != nil, "call %d", i+1)
		if err != nil {
			e.is(err, cuda.ErrOutOfMemory)
			require.Contains(t, err.Error(), "injected")
		} else {
			e.ok(e.MemFree(p))
		}
	}
	e.stream(0)
	e.use(1)
	e.is(must.Err(e.StreamCreate(0, 0)), cuda.ErrUnknown)

	e.use(0)
	f := e.kernel("nothing")
	e.Inject(cudaemu.Injection{Call: "cuLaunchKernel", Chance: 0.5, Result: cuda.ErrLaunchFailed})
	failed := 0
	for range 100 {
		if e.LaunchKernel(f, &cuda.Launch{}, nil) != nil {
			failed++
		}
	}
	require.InDelta(t, 50, failed, 30)
	e.ok(e.CtxSynchronize())

	e = start(t, cudaemu.Config{Devices: 2})
	e.Inject(cudaemu.Injection{Call: "kernel store", Nth: 2, Device: 2, Result: cuda.ErrECCUncorrectable})
	e.use(1)
	p := e.alloc(64, true)
	for range 2 {
		launch(e, "store", 0, &storeArgs{p, 1})
	}
	e.is(e.CtxSynchronize(), cuda.ErrECCUncorrectable)
}

func TestLostDevice(t *testing.T) {
	for _, r := range []cuda.Result{cuda.ErrDeviceUnavailable, cuda.ErrECCUncorrectable} {
		e := start(t, cudaemu.Config{Devices: 2})
		p := e.alloc(64, true)
		launch(e, "await", 0, &waitArgs{p}) // it would wait for ever
		time.AfterFunc(5*time.Millisecond, func() { e.LoseDevice(0, r) })
		e.is(e.CtxSynchronize(), r)
		e.is(must.Err(e.MemAlloc(1)), r)
		e.is(must.Err(e.DeviceGetName(0)), r)
		e.use(1)
		require.NotZero(t, e.alloc(64, true), "the other device goes on")
	}
}

// TestLazyRepeats compares all that two runs with the same seed do.
func TestLazyRepeats(t *testing.T) {
	run := func(seed uint64) (list []string, n uint64) {
		e := start(t, cudaemu.Config{Seed: seed, Lazy: true, CopyDelay: 3,
			Report: func(f *weakmem.Fault) bool { return true }})
		a, b := e.stream(cuda.StreamNonBlocking), e.stream(cuda.StreamNonBlocking)
		p := e.alloc(256, true)
		text := edited(t, "fence.acq_rel.gpu; // of the sender", "")
		for range 5 {
			launchOf(e, text, "message", 2, 1, a, &messageArgs{p, p + 64, p + 128})
			e.ok(e.MemcpyAsync(p+192, p+128, 4, b))
			e.ok(e.MemsetD8Async(p, 0, 128, a))
		}
		e.ok(e.CtxSynchronize())
		for _, f := range e.Reports() {
			list = append(list, f.Error())
		}
		return list, e.Instructions()
	}
	different := false
	var first uint64
	for seed := range uint64(10) {
		l1, n1 := run(seed)
		l2, n2 := run(seed)
		require.NotEmpty(t, l1)
		require.Equal(t, l1, l2, "seed %d", seed)
		require.Equal(t, n1, n2, "seed %d", seed)
		different = different || seed > 0 && n1 != first
		first = n1
	}
	require.True(t, different, "other seeds run otherwise")
}

// TestManyGoroutines uses one machine from many threads.
func TestManyGoroutines(t *testing.T) {
	for name, cfg := range map[string]cudaemu.Config{"own goroutine": {Devices: 4}, "lazy": {Devices: 4, Lazy: true},
		"plain": {Devices: 4, Plain: true}} {
		t.Run(name, func(t *testing.T) {
			e := start(t, cfg)
			for i := range e.ctx {
				e.use(i)
				e.kernel("store")
			}
			var g sync.WaitGroup
			for i := range e.ctx {
				g.Go(func() {
					err := cuda.With(e.Machine, e.ctx[i], func() error {
						f, err := e.ModuleGetFunction(e.modules[ptxText][i], "store")
						if err != nil {
							return err
						}
						p, err := e.MemAlloc(64)
						if err != nil {
							return err
						}
						defer e.MemFree(p)
						for v := range uint32(50) {
							args := storeArgs{p, v}
							if err := e.LaunchKernel(f, &cuda.Launch{Stream: cuda.StreamPerThread}, cuda.ArgsOf(&args)); err != nil {
								return err
							}
							if err := e.StreamSynchronize(cuda.StreamPerThread); err != nil {
								return err
							}
							var b [4]byte
							if err := e.MemcpyDtoH(b[:], p); err != nil {
								return err
							}
							if b[0] != byte(v) {
								t.Errorf("%d, want %d", b[0], v)
							}
						}
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			g.Wait()
			e.clean()
		})
	}
}
