package cudaemu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/must"
)

// heaps has a kernel that takes n bytes from the heap and stores their address at out, and one that gives them back.
const heaps = `.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.visible .entry take(.param .u64 out, .param .u64 n)
{
	.reg .b64 %o, %n;
	ld.param.u64 %o, [out];
	ld.param.u64 %n, [n];
	{
	.param .b64 p0; .param .b64 r0;
	st.param.b64 [p0], %n;
	call.uni (r0), malloc, (p0);
	ld.param.b64 %n, [r0];
	}
	st.global.u64 [%o], %n;
	ret;
}
.visible .entry give(.param .u64 out, .param .u64 n)
{
	.reg .b64 %o, %n;
	ld.param.u64 %o, [out];
	ld.global.u64 %n, [%o];
	{
	.param .b64 p0;
	st.param.b64 [p0], %n;
	call.uni free, (p0);
	}
	ret;
}
`

// Limits are rounded and refused as by an H100.
func TestContextLimits(t *testing.T) {
	e := start(t, cudaemu.Config{})
	for _, c := range []struct {
		limit, set, then int
		want             cuda.Result
	}{
		{0, 0, 0, 0}, {0, 1, 16, 0}, {0, 100, 112, 0}, {0, 262145, 262160, 0}, {0, 524288, 262160, cuda.ErrInvalidValue},
		{2, 1, 4 << 20, 0}, {2, 16 << 20, 16 << 20, 0}, {9, 1, 0, cuda.ErrUnsupportedLimit},
	} {
		err := e.CtxSetLimit(c.limit, c.set)
		if c.want != 0 {
			e.is(err, c.want)
		} else {
			e.ok(err)
		}
		if c.limit == 9 {
			continue
		}
		n := must.Get(e.CtxGetLimit(c.limit))
		require.Equal(t, c.then, n, "%d of limit %d", c.set, c.limit)
	}
}

// Memory of malloc in a kernel is within the limit, out of the host's reach, and given back once.
func TestHeap(t *testing.T) {
	e := start(t, cudaemu.Config{})
	out := e.alloc(8, true)
	run := func(kernel string, n int) {
		launchOf(e, heaps, kernel, 1, 1, cuda.StreamLegacy, &struct{ out, n uintptr }{out, uintptr(n)})
		e.ok(e.CtxSynchronize())
	}
	address := func() uint64 { return uint64(e.word(out)) | uint64(e.word(out+4))<<32 }
	e.ok(e.CtxSetLimit(2, 4<<20))
	run("take", 8<<20)
	require.Zero(t, address())
	run("give", 0) // of nothing
	run("take", 3<<20)
	first := address()
	require.NotZero(t, first)
	e.is(e.MemcpyDtoH(make([]byte, 4), uintptr(first)), cuda.ErrInvalidValue)
	e.is(e.MemFree(uintptr(first)), cuda.ErrInvalidValue)
	e.is(e.CtxSetLimit(2, 8<<20), cuda.ErrInvalidValue)
	run("give", 0)
	run("take", 3<<20)
	require.NotZero(t, address())
	run("give", 0)
	e.clean()
	launchOf(e, heaps, "give", 1, 1, cuda.StreamLegacy, &struct{ out, n uintptr }{out, 0})
	e.is(e.CtxSynchronize(), cuda.ErrLaunchFailed)
	require.Equal(t, 1, e.kinds()[weakmem.BadFree])
}
