package simt_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/must"
)

// peers are devices that reach each other's memory, with the kernels of testdata/bulk.cu: emulated
// ones, or GPUs under REQUIRE=cuda.
type peers struct {
	cuda.Driver
	t       *testing.T
	ctx     []cuda.Context
	kernels []map[string]cuda.Function
}

func joined(t *testing.T, n int) *peers {
	d := gputest.Driver(t, gputest.Devices(n))
	p := &peers{Driver: d, t: t}
	for i := range n {
		dev, ctx := gputest.Context(t, d, i)
		if c, err := cuda.Capability(d, dev); err != nil || c < 90 {
			t.Skipf("bulk copies need capability 9.0, device %d has %d: %v", i, c, err)
		}
		p.ctx = append(p.ctx, ctx)
	}
	for i := range n {
		p.on(i, func() {
			mod := must.Get(d.ModuleLoadData([]byte(source(t, "bulk.ptx"))))
			t.Cleanup(func() { p.on(i, func() { require.NoError(t, d.ModuleUnload(mod)) }) })
			p.kernels = append(p.kernels, map[string]cuda.Function{})
			for _, name := range []string{"push", "pushAdd", "ring"} {
				f := must.Get(d.ModuleGetFunction(mod, name))
				p.kernels[i][name] = f
			}
			for j := range n {
				if j == i {
					continue
				}
				if ok, err := d.DeviceCanAccessPeer(cuda.Device(i), cuda.Device(j)); err != nil || !ok {
					t.Skipf("device %d has no access to the memory of device %d", i, j)
				}
				require.NoError(t, d.CtxEnablePeerAccess(p.ctx[j]))
				t.Cleanup(func() { p.on(i, func() { require.NoError(t, d.CtxDisablePeerAccess(p.ctx[j])) }) })
			}
		})
	}
	return p
}

func (p *peers) on(device int, f func()) {
	require.NoError(p.t, cuda.With(p.Driver, p.ctx[device], func() error { f(); return nil }))
}

// put is words in the memory of a device.
func (p *peers) put(device int, v []uint32) (addr uintptr) {
	p.on(device, func() {
		var err error
		addr, err = p.MemAlloc(4 * len(v))
		require.NoError(p.t, err)
		require.NoError(p.t, cuda.Write(p.Driver, addr, bytesOf(v)))
	})
	p.t.Cleanup(func() { p.on(device, func() { require.NoError(p.t, p.MemFree(addr)) }) })
	return addr
}

func (p *peers) launch(device int, kernel string, blocks, threads int, arguments ...any) {
	p.on(device, func() {
		for i, a := range arguments {
			if a, ok := a.(uintptr); ok {
				arguments[i] = uint64(a)
			}
		}
		l := &cuda.Launch{Grid: cuda.Dim3{X: uint32(blocks)}, Block: cuda.Dim3{X: uint32(threads)}, Shared: ringRoom}
		require.NoError(p.t, p.LaunchKernel(p.kernels[device][kernel], l, args(arguments...)))
	})
}

// get waits for a device and reads its words.
func (p *peers) get(device int, addr uintptr, n int) []uint32 {
	b := make([]byte, 4*n)
	p.on(device, func() {
		require.NoError(p.t, p.CtxSynchronize())
		require.NoError(p.t, p.MemcpyDtoH(b, addr))
	})
	v := make([]uint32, n)
	for i := range v {
		v[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return v
}

// Bulk copies out of, into, and added to the memory of another device, and a ring.
func TestBulkPeers(t *testing.T) {
	const tiles, n = 40, 40 * tileWords
	p := joined(t, 2)
	src, dst := p.put(0, sequence(n, 3)), p.put(0, make([]uint32, n))
	theirs, sums := p.put(1, make([]uint32, n)), p.put(1, sequence(n, 5))
	flags, ready := p.put(1, make([]uint32, tiles)), p.put(0, make([]uint32, tiles))
	p.launch(0, "push", 3, 32, theirs, src, tiles)
	p.launch(0, "pushAdd", 3, 32, sums, src, tiles)
	p.launch(0, "push", 3, 32, dst, sums, tiles)
	require.Equal(t, sequence(n, 8), p.get(0, dst, n))
	require.Equal(t, sequence(n, 3), p.get(1, theirs, n))
	require.Equal(t, sequence(n, 8), p.get(1, sums, n))

	p.launch(0, "ring", 3, 96, theirs, flags, src, uint64(0), uint64(0), tiles, 1)
	p.launch(1, "ring", 3, 160, dst, ready, sums, theirs, flags, tiles, 0)
	p.on(1, func() { require.NoError(t, p.CtxSynchronize()) })
	require.Equal(t, sequence(n, 11), p.get(0, dst, n))
}

// Bulk copies out of and into pinned memory of the host.
func TestBulkHost(t *testing.T) {
	const tiles, n = 10, 10 * tileWords
	p := joined(t, 1)
	dst := p.put(0, make([]uint32, n))
	p.on(0, func() {
		host := must.Get(p.MemHostAlloc(8*n, 0))
		defer func() { require.NoError(t, p.MemFreeHost(host)) }()
		src := p.put(0, sequence(n, 3))
		p.launch(0, "push", 2, 32, host, src, tiles)
		p.launch(0, "push", 2, 32, dst, host, tiles)
		require.Equal(t, sequence(n, 3), p.get(0, dst, n))
	})
}
