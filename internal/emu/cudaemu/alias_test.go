package cudaemu_test

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// aliasText is kernels that pass a message, each by an address of its own, and one that uses two addresses.
const aliasText = `.version 7.5
.target sm_70
.address_size 64

.visible .entry send(.param .u64 p)
{
	.reg .pred %p<2>;
	.reg .b32 %r<2>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [p];
	st.global.u32 [%rd1], 42;
	fence.acq_rel.sys; // of the sender
	st.relaxed.sys.global.u32 [%rd1+64], 1;
stay:
	ld.relaxed.sys.global.u32 %r1, [%rd1+64];
	setp.ne.u32 %p1, %r1, 2;
	@%p1 bra stay;
	ret;
}

.visible .entry receive(.param .u64 p, .param .u64 out)
{
	.reg .pred %p<2>;
	.reg .b32 %r<3>;
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [p];
	ld.param.u64 %rd2, [out];
wait:
	ld.relaxed.sys.global.u32 %r1, [%rd1+64];
	setp.eq.u32 %p1, %r1, 0;
	@%p1 bra wait;
	fence.acq_rel.sys; // of the receiver
	ld.global.u32 %r2, [%rd1];
	st.global.u32 [%rd2], %r2;
	st.relaxed.sys.global.u32 [%rd1+64], 2;
	ret;
}

.visible .entry both(.param .u64 to, .param .u64 from)
{
	.reg .b32 %r<3>;
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [to];
	ld.param.u64 %rd2, [from];
	st.global.u32 [%rd1], 5;
	fence.proxy.alias;
	ld.global.u32 %r1, [%rd2];
	st.global.u32 [%rd1+4], %r1;
	ret;
}

.visible .entry move(.param .u64 to, .param .u64 from)
{
	.reg .b32 %r<3>;
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [to];
	ld.param.u64 %rd2, [from];
	ld.global.u32 %r1, [%rd2];
	st.global.u32 [%rd1], %r1;
	ret;
}
`

type receiveArgs struct{ p, out uintptr }

// again maps the memory at another address: by its handle, or by one that the process has imported.
func (e *env) again(v virtual, imported bool) virtual {
	e.Helper()
	a := virtual{n: v.n, h: v.h}
	if imported {
		fd, err := e.MemExportToShareableHandle(v.h)
		e.ok(err)
		a.h, err = e.MemImportFromShareableHandle(fd)
		e.ok(err)
		e.ok(os.NewFile(uintptr(fd), "memory").Close())
		e.Cleanup(func() { e.ok(e.MemRelease(a.h)) })
	}
	var err error
	a.p, err = e.MemAddressReserve(v.n, 0)
	e.ok(err)
	e.ok(e.MemMap(a.p, a.n, a.h))
	for i := range e.ctx {
		e.ok(e.MemSetAccess(a.p, a.n, cuda.Device(i)))
	}
	e.Cleanup(func() {
		e.MemUnmap(a.p, a.n) // a test may have done it
		e.ok(e.MemAddressFree(a.p, a.n))
	})
	return a
}

// eachAlias runs a test where memory has two addresses, in each way in which it can get them.
func eachAlias(t *testing.T, f func(t *testing.T, imported bool)) {
	for name, imported := range map[string]bool{"mapped twice": false, "imported": true} {
		if !imported || runtime.GOOS == "linux" {
			t.Run(name, func(t *testing.T) { f(t, imported) })
		}
	}
}

// Kernels of one device and of two pass a message through memory that each knows by an address of its own. Without the
// sender's fence or the receiver's there is a race as at one address, and without the sender's the message is lost.
func TestMessageThroughAliases(t *testing.T) {
	tier.Long(t)
	eachAlias(t, func(t *testing.T, imported bool) {
		for _, devices := range []int{1, 2} {
			for _, without := range []string{"", "sender", "receiver"} {
				text := aliasText
				if without != "" {
					text = strings.Replace(text, "fence.acq_rel.sys; // of the "+without, "", 1)
					require.NotEqual(t, aliasText, text)
				}
				lost := 0
				for seed := range uint64(tier.Count(50, 200)) {
					ok := t.Run("seed", func(t *testing.T) { // frees what it made at its end
						e := start(t, cudaemu.Config{Devices: devices, Seed: seed, Lazy: true})
						v := e.virtual(0, true)
						a := e.again(v, imported)
						out := e.alloc(64, true)
						e.ok(e.MemsetD8(v.p, 0, 128))
						e.ok(e.CtxSynchronize())
						launchOf(e, text, "receive", 1, 1, e.stream(cuda.StreamNonBlocking), &receiveArgs{a.p, out})
						e.use(devices - 1)
						launchOf(e, text, "send", 1, 1, e.stream(cuda.StreamNonBlocking), &waitArgs{v.p})
						e.ok(e.CtxSynchronize())
						e.use(0)
						e.ok(e.CtxSynchronize())
						if e.word(out) != 42 {
							lost++
						}
						if without == "" {
							e.clean()
							return
						}
						require.Equal(t, 1, e.kinds()[weakmem.Race], "seed %d", seed)
						require.Contains(t, e.Reports()[0].Error(), "through the memory's other address")
					})
					require.True(t, ok)
				}
				require.Equal(t, without == "sender", lost > 0)
			}
		}
	})
}

// A thread that stores by one address and loads by another needs a fence.proxy.alias.
func TestFenceProxyAlias(t *testing.T) {
	eachAlias(t, func(t *testing.T, imported bool) {
		for _, fence := range []string{"fence.proxy.alias;", "membar.proxy.alias;", "fence.acq_rel.sys;", ""} {
			e := start(t, cudaemu.Config{Lazy: true})
			v := e.virtual(0, true)
			a := e.again(v, imported)
			launchOf(e, strings.Replace(aliasText, "fence.proxy.alias;", fence, 1), "both", 1, 1, 0, &moveArgs{v.p, a.p})
			e.ok(e.CtxSynchronize())
			require.Equal(t, uint32(5), e.word(a.p+4))
			if strings.Contains(fence, "alias") {
				e.clean()
				continue
			}
			require.Len(t, e.Reports(), 1)
			require.Equal(t, weakmem.NoAliasFence, e.Reports()[0].Kind)
		}
	})
}

// Kernels and copies that nothing orders race through aliases, also on two devices.
func TestRaceOfAliases(t *testing.T) {
	eachAlias(t, func(t *testing.T, imported bool) {
		e := start(t, cudaemu.Config{Devices: 2, Lazy: true})
		v := e.virtual(0, true)
		a := e.again(v, imported)
		launchOf(e, ptxText, "store", 1, 1, e.stream(cuda.StreamNonBlocking), &storeArgs{v.p, 5})
		e.use(1)
		launchOf(e, ptxText, "store", 1, 1, e.stream(cuda.StreamNonBlocking), &storeArgs{a.p, 6})
		e.ok(e.MemsetD8Async(a.p+64, 1, 64, e.stream(cuda.StreamNonBlocking)))
		e.ok(e.MemsetD8Async(v.p+64, 1, 64, e.stream(cuda.StreamNonBlocking)))
		e.ok(e.CtxSynchronize())
		e.use(0)
		e.ok(e.CtxSynchronize())
		require.Equal(t, 2, e.kinds()[weakmem.Race])
	})
}

// What nothing wrote by any address is unwritten at all.
func TestUnwrittenAlias(t *testing.T) {
	eachAlias(t, func(t *testing.T, imported bool) {
		e := start(t, cudaemu.Config{Lazy: true})
		v := e.virtual(0, true)
		a := e.again(v, imported)
		out := e.alloc(64, true)
		launchOf(e, ptxText, "store", 1, 1, 0, &storeArgs{v.p, 5})
		launchOf(e, aliasText, "move", 1, 1, 0, &moveArgs{out, a.p})
		e.ok(e.CtxSynchronize())
		e.clean()
		launchOf(e, aliasText, "move", 1, 1, 0, &moveArgs{out, a.p + 4})
		e.ok(e.CtxSynchronize())
		require.Equal(t, 1, e.kinds()[weakmem.Uninitialized])
	})
}

// Memory that was unmapped at one address is out of bounds there, and lives on at the other, with what is known of it.
func TestUnmappedAlias(t *testing.T) {
	eachAlias(t, func(t *testing.T, imported bool) {
		e := start(t, cudaemu.Config{Devices: 2, Lazy: true, FreshAddresses: true})
		v := e.virtual(0, true)
		a := e.again(v, imported)
		out := e.alloc(64, true)
		e.use(1)
		launchOf(e, ptxText, "store", 1, 1, e.stream(cuda.StreamNonBlocking), &storeArgs{a.p, 5})
		e.ok(e.CtxSynchronize())
		e.ok(e.MemUnmap(a.p, a.n))
		e.use(0)
		launchOf(e, aliasText, "move", 1, 1, 0, &moveArgs{out, v.p})
		e.ok(e.CtxSynchronize())
		e.clean()
		require.Equal(t, uint32(5), e.word(out))
		launchOf(e, aliasText, "move", 1, 1, 0, &moveArgs{out, a.p})
		err := e.CtxSynchronize()
		e.is(err, cuda.ErrIllegalAddress)
		require.Equal(t, weakmem.OutOfBounds, e.Reports()[0].Kind)
		require.Contains(t, e.Reports()[0].Error(), ", freed")
	})
}

// Memory that a process has imported from itself lives until the last handle and mapping are gone.
func TestImportOutlives(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory is shared on Linux alone")
	}
	e := start(t, cudaemu.Config{Lazy: true})
	before, _, err := e.MemGetInfo()
	e.ok(err)
	h, err := e.MemCreate(2<<20, cuda.AllocationProp{Shareable: true})
	e.ok(err)
	fd, err := e.MemExportToShareableHandle(h)
	e.ok(err)
	own, err := e.MemImportFromShareableHandle(fd)
	e.ok(err)
	require.Zero(t, e.Opened(), "the memory is of this process")
	e.ok(os.NewFile(uintptr(fd), "memory").Close())
	e.ok(e.MemRelease(h))
	p, err := e.MemAddressReserve(2<<20, 0)
	e.ok(err)
	e.ok(e.MemMap(p, 2<<20, own))
	e.ok(e.MemSetAccess(p, 2<<20, 0))
	e.ok(e.MemsetD8(p, 5, 64))
	require.Equal(t, uint32(0x05050505), e.word(p))
	free, _, err := e.MemGetInfo()
	e.ok(err)
	require.Equal(t, before-2<<20, free)
	e.ok(e.MemUnmap(p, 2<<20))
	e.ok(e.MemAddressFree(p, 2<<20))
	e.ok(e.MemRelease(own))
	free, _, err = e.MemGetInfo()
	e.ok(err)
	require.Equal(t, before, free)
}

// An IPC handle that is opened in two contexts gives one memory two addresses.
func TestRaceOfOpened(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory is shared on Linux alone")
	}
	owner := start(t, cudaemu.Config{Devices: 2})
	owner.use(0)
	h, err := owner.IpcGetMemHandle(owner.alloc(256, true))
	owner.ok(err)
	e := start(t, cudaemu.Config{Devices: 2, Lazy: true})
	var p [2]uintptr
	for i := range p {
		e.use(i)
		p[i], err = e.IpcOpenMemHandle(h)
		e.ok(err)
		launchOf(e, ptxText, "store", 1, 1, e.stream(cuda.StreamNonBlocking), &storeArgs{p[i], 5})
	}
	for i := range p {
		e.use(i)
		e.ok(e.CtxSynchronize())
		e.ok(e.IpcCloseMemHandle(p[i]))
	}
	require.NotEqual(t, p[0], p[1])
	require.Equal(t, 1, e.kinds()[weakmem.Race])
	owner.use(0)
}
