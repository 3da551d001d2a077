package cudaemu_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/must"
)

// runMessage passes a message between two blocks and gives what arrived.
func runMessage(e *env, text string) uint32 {
	p := e.alloc(256, true)
	launchOf(e, text, "message", 2, 1, 0, &messageArgs{p, p + 64, p + 128})
	e.ok(e.CtxSynchronize())
	return e.word(p + 128)
}

func runReverse(e *env, text string) error {
	in, out := e.alloc(256, false), e.alloc(256, false)
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i / 4)
	}
	e.ok(e.MemcpyHtoD(in, b))
	launchOf(e, text, "reverse", 1, 64, 0, &moveArgs{out, in})
	if err := e.CtxSynchronize(); err != nil {
		return err
	}
	e.ok(e.MemcpyDtoH(b, out))
	for i := range b {
		if b[i] != byte(63-i/4) {
			return fmt.Errorf("word %d is wrong", i/4)
		}
	}
	return nil
}

func TestBrokenIndex(t *testing.T) {
	text := edited(t, "st.global.u32 [%rd5], %r2;", "st.global.u32 [%rd5+4], %r2;")
	e := start(t, cudaemu.Config{})
	err := runReverse(e, text)
	e.is(err, cuda.ErrIllegalAddress)
	require.Equal(t, 1, e.kinds()[weakmem.OutOfBounds])
	f := e.Reports()[0]
	require.Equal(t, [3]int{63, 0, 0}, f.Thread)
	require.True(t, f.Write)
	require.Contains(t, err.Error(), "kernel reverse, line ")
	require.Contains(t, err.Error(), "MemAlloc")
	t.Log(err)

	// The context is dead until it is reset.
	e.is(must.Err(e.MemAlloc(16)), cuda.ErrIllegalAddress)
	e.is(e.StreamSynchronize(0), cuda.ErrIllegalAddress)
	e.ok(e.DevicePrimaryCtxRelease(0))
	e.is(must.Err(e.MemAlloc(16)), cuda.ErrContextIsDestroyed)
	clear(e.modules)
	e.ctx[0] = must.Get(e.DevicePrimaryCtxRetain(0))
	e.use(0)
	require.NoError(t, runReverse(e, ptxText))
}

// A report names the line of the kernel's source, if the PTX does.
func TestSourceLine(t *testing.T) {
	text := edited(t, "st.global.u32 [%rd5], %r2;", ".loc 3 93 5\n\tst.global.u32 [%rd5+4], %r2;") +
		"\n.file 3 \"/src/reverse.cu\"\n"
	e := start(t, cudaemu.Config{})
	err := runReverse(e, text)
	e.is(err, cuda.ErrIllegalAddress)
	require.Equal(t, "reverse.cu:93", e.Reports()[0].Source)
	require.Contains(t, err.Error(), "reverse.cu:93")
}

func TestBadAddresses(t *testing.T) {
	for name, c := range map[string]struct {
		kind   weakmem.FaultKind
		result cuda.Result
		p      func(*env) uintptr
	}{
		"null": {weakmem.OutOfBounds, cuda.ErrIllegalAddress, func(e *env) uintptr { return 0 }},
		"misaligned": {weakmem.Misaligned, cuda.ErrMisalignedAddress,
			func(e *env) uintptr { return e.alloc(64, true) + 2 }},
		"after the end": {weakmem.OutOfBounds, cuda.ErrIllegalAddress,
			func(e *env) uintptr { return e.alloc(64, true) + 64 }},
		"before": {weakmem.OutOfBounds, cuda.ErrIllegalAddress, func(e *env) uintptr { return e.alloc(64, true) - 4 }},
		"pageable host": {weakmem.OutOfBounds, cuda.ErrIllegalAddress,
			func(e *env) uintptr { return address(new([64]byte)) }},
		"freed": {weakmem.OutOfBounds, cuda.ErrIllegalAddress, func(e *env) uintptr {
			e.kernel("store") // its variables take no address from now on
			p := must.Get(e.MemAlloc(64))
			e.ok(e.MemFree(p))
			return p
		}},
		"of a device without access": {weakmem.NoAccess, cuda.ErrIllegalAddress, func(e *env) uintptr {
			e.use(1)
			defer e.use(0)
			return e.alloc(64, true)
		}},
		"mapped without access": {weakmem.NoAccess, cuda.ErrIllegalAddress,
			func(e *env) uintptr { return e.virtual(0, false).p }},
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t, cudaemu.Config{Devices: 2})
			launch(e, "store", 0, &storeArgs{c.p(e), 1})
			err := e.CtxSynchronize()
			e.is(err, c.result)
			require.Equal(t, 1, e.kinds()[c.kind], "%v", err)
			e.use(1)
			e.ok(e.CtxSynchronize()) // other devices go on
		})
	}
}

func TestUnwrittenMemory(t *testing.T) {
	e := start(t, cudaemu.Config{})
	p := e.alloc(64, false)
	launch(e, "move", 0, &moveArgs{p + 32, p})
	e.ok(e.CtxSynchronize())
	require.Equal(t, 1, e.kinds()[weakmem.Uninitialized])

	stopped := start(t, cudaemu.Config{Report: func(*weakmem.Fault) bool { return false }})
	p = stopped.alloc(64, false)
	launch(stopped, "move", 0, &moveArgs{p + 32, p})
	require.Error(t, stopped.CtxSynchronize())
	require.Len(t, stopped.Reports(), 1)
}

// TestDeadlock launches kernels that wait for a value that never comes.
func TestDeadlock(t *testing.T) {
	for name, cfg := range map[string]cudaemu.Config{
		"by instructions": {Lazy: true, StallInstructions: 100_000},
		"by time":         {Stall: 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t, cfg)
			p := e.alloc(64, true)
			launch(e, "await", 0, &waitArgs{p})
			e.is(e.CtxSynchronize(), cuda.ErrLaunchTimeout)
			require.Equal(t, 1, e.kinds()[weakmem.Deadlock])
			require.Contains(t, e.Reports()[0].Error(), "kernel await, line")
			t.Log(e.Reports()[0])
		})
	}
}

// TestResident needs two blocks at once where one fits: it hangs, as on hardware.
func TestResident(t *testing.T) {
	shape := cudaemu.Device{}
	shape.Shape.SMs, shape.Shape.BlocksPerSM = 1, 1
	e := start(t, cudaemu.Config{Shapes: []cudaemu.Device{shape}, Lazy: true, StallInstructions: 50_000})
	p := e.alloc(256, true)
	args := messageArgs{p, p + 64, p + 128}
	l := cuda.Launch{Grid: cuda.Dim3{X: 2}, Cooperative: true}
	e.is(e.LaunchKernel(e.kernel("message"), &l, cuda.ArgsOf(&args)), cuda.ErrCooperativeLaunchTooLarge)
	l.Cooperative = false
	e.ok(e.LaunchKernel(e.kernel("message"), &l, cuda.ArgsOf(&args)))
	e.is(e.CtxSynchronize(), cuda.ErrLaunchTimeout)
	t.Log(e.Reports()[0])
}
