package grid

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
)

// TestDriverFails: whichever call of the driver fails, the error names it, and the engine leaves nothing behind.
func TestDriverFails(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("a real driver does not fail when it is told to")
	}
	sum, err := kernels.NewReducer(kernels.Float32, kernels.Sum, 2)
	require.NoError(t, err)
	for _, call := range []string{
		"cuDeviceGetAttribute", "cuCtxGetStreamPriorityRange", "cuMemAlloc", "cuMemHostAlloc", "cuMemHostGetDevicePointer",
		"cuMemsetD8Async", "cuMemcpyAsync", "cuStreamCreateWithPriority",
		"cuStreamSynchronize", "cuModuleLoadDataEx", "cuModuleGetFunction", "cuFuncSetAttribute", "cuFuncGetAttribute",
		"cuEventCreate", "cuLaunchKernel",
	} {
		t.Run(call, func(t *testing.T) {
			m := emulated(t, 1, cudaemu.Config{}).(*cudaemu.Machine)
			ctx, err := m.DevicePrimaryCtxRetain(0)
			require.NoError(t, err)
			defer m.DevicePrimaryCtxRelease(0)
			board := small(2)
			board.MailBytes = 1 << 14
			var memory []uint64
			with := func(f func() error) { require.NoError(t, cuda.With(m, ctx, f)) }
			for range 2 {
				with(func() error {
					p, err := m.MemAlloc(board.Bytes())
					memory = append(memory, uint64(p))
					return errors.Join(err, m.MemsetD8(p, 0, board.Bytes()), m.CtxSynchronize())
				})
			}
			use := func() error {
				o := options(2)
				o.Bulk, o.Linger = true, Linger{Time: time.Microsecond}
				e, err := New(m, ctx, 0, board.Links(0, memory), o)
				if err != nil {
					require.Nil(t, e)
					return err
				}
				for _, prepare := range []func() error{
					e.PrepareCopies, func() error { return e.Prepare(sum) }, func() error { return e.PrepareDirect(sum) },
					func() error { return e.PrepareWindow(sum) },
					func() error { return e.PrepareAside(1 << 20) }, e.PrepareSignals,
				} {
					first := prepare()
					if err = errors.Join(err, first); first != nil {
						require.NoError(t, prepare(), "the second time")
					}
				}
				return errors.Join(err, e.End(), e.Close())
			}
			for nth := 1; ; nth++ {
				m.Inject(cudaemu.Injection{Call: call, Nth: nth, Result: cuda.ErrUnknown})
				err := use()
				if err == nil {
					break
				}
				require.ErrorIs(t, err, cuda.ErrUnknown)
				require.ErrorContains(t, err, call)
			}
			with(func() error {
				for _, p := range memory {
					m.MemFree(uintptr(p))
				}
				return nil
			})
		})
	}
}
