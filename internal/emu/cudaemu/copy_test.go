package cudaemu_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
)

// TestUnfinishedCopies has a kernel on a non-blocking stream read what a copy or
// memset without a stream has written, right after that call has returned.
func TestUnfinishedCopies(t *testing.T) {
	seven := binary.LittleEndian.AppendUint32(nil, 7)
	write := func(e *env, p uintptr) error { return e.MemcpyHtoD(p, seven) }
	for _, c := range []struct {
		name  string
		f     func(e *env, p uintptr) error
		races bool
	}{
		{"host to device", write, true},
		{"and the legacy stream waited for", func(e *env, p uintptr) error { return cuda.Write(e.Machine, p, seven) }, false},
		{"and a wait for the legacy stream's event", func(e *env, p uintptr) error {
			e.ok(write(e, p))
			ev := e.event(cuda.EventDisableTiming)
			e.ok(e.EventRecord(ev, cuda.StreamLegacy))
			return e.EventSynchronize(ev)
		}, false},
		{"from pinned memory", func(e *env, p uintptr) error {
			g := e.gate()
			g.Store(7)
			return e.MemcpyHtoD(p, bytesAt(address(g), 4))
		}, false},
		{"with memory set to be waited for", func(e *env, p uintptr) error {
			e.ok(e.PointerSetSyncMemops(p, true))
			return write(e, p)
		}, false},
		{"device to device", func(e *env, p uintptr) error {
			e.ok(cuda.Write(e.Machine, p+32, seven))
			return e.MemcpyDtoD(p, p+32, 4)
		}, true},
		{"memset", func(e *env, p uintptr) error { return e.MemsetD8(p, 7, 4) }, true},
		{"memset and a read", func(e *env, p uintptr) error {
			e.ok(e.MemsetD8(p, 7, 4))
			return e.MemcpyDtoH(make([]byte, 4), p)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			stale := 0
			for seed := range uint64(20) {
				e := start(t, cudaemu.Config{Seed: seed, Lazy: true, CopyDelay: 8})
				s, p := e.stream(cuda.StreamNonBlocking), e.alloc(64, true)
				f := e.kernel("move")
				e.ok(c.f(e, p))
				e.ok(e.LaunchKernel(f, &cuda.Launch{Stream: s}, cuda.ArgsOf(&moveArgs{p + 16, p})))
				e.ok(e.CtxSynchronize())
				require.Equal(t, c.races, len(e.Reports()) > 0, "seed %d: %v", seed, e.Reports())
				if e.word(p+16) == 0 {
					stale++
				}
			}
			require.Equal(t, c.races, stale > 0, "the kernel came first %d times", stale)
		})
	}
}

// TestCopiesToHost shows that sets and copies of pinned memory alone are done
// when the call returns.
func TestCopiesToHost(t *testing.T) {
	e := start(t, cudaemu.Config{Lazy: true, CopyDelay: 8})
	g := e.gate()
	p := address(g)
	e.ok(e.MemsetD8(p, 1, 4))
	require.Equal(t, uint32(0x01010101), g.Load())
	e.ok(e.MemcpyHtoD(p, []byte{2, 0, 0, 0}))
	require.Equal(t, uint32(2), g.Load())
	e.ok(e.MemcpyDtoD(p+8, p, 4))
	require.Equal(t, byte(2), bytesAt(p+8, 1)[0])
}
