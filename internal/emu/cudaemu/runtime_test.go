package cudaemu_test

import (
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/must"
)

// fatOf is a fat binary with plain texts, each for a capability.
func fatOf(texts map[int]string) []byte {
	var entries []byte
	for capability, text := range texts {
		h := make([]byte, 64)
		padded := append([]byte(text), make([]byte, 8-len(text)%8)...)
		binary.LittleEndian.PutUint16(h, 1)
		binary.LittleEndian.PutUint32(h[4:], 64)
		binary.LittleEndian.PutUint64(h[8:], uint64(len(padded)))
		binary.LittleEndian.PutUint32(h[28:], uint32(capability))
		entries = append(append(entries, h...), padded...)
	}
	h := make([]byte, 16)
	binary.LittleEndian.PutUint32(h, 0xba55ed50)
	binary.LittleEndian.PutUint16(h[6:], 16)
	binary.LittleEndian.PutUint64(h[8:], uint64(len(entries)))
	return append(h, entries...)
}

// The newest text of a fat binary that the device runs is taken.
func TestFatBinary(t *testing.T) {
	text := func(name, target string) string {
		return ".version 8.0\n.target " + target + "\n.address_size 64\n.visible .entry " + name + "() { ret; }\n"
	}
	fat := fatOf(map[int]string{70: text("old", "sm_70"), 80: text("middle", "sm_80"), 90: text("new", "sm_90")})
	for _, c := range []struct {
		major, minor int
		want         string
	}{{7, 5, "old"}, {8, 6, "middle"}, {9, 0, "new"}} {
		e := start(t, cudaemu.Config{Shapes: []cudaemu.Device{{Major: c.major, Minor: c.minor}}})
		m := must.Get(e.ModuleLoadData(fat))
		must.Get(e.ModuleGetFunction(m, c.want))
		e.ok(e.ModuleUnload(m))
	}
	e := start(t, cudaemu.Config{Shapes: []cudaemu.Device{{Major: 7, Minor: 0}}})
	_, err := e.ModuleLoadData(fatOf(map[int]string{90: text("new", "sm_90")}))
	e.is(err, cuda.ErrNoBinaryForGPU)
	require.ErrorContains(t, err, "PTX for newer devices alone")
}

// Copies of pageable memory are in the order of a stream: a copy to the device takes the bytes as they are at the call,
// in a graph as they are at the launch.
func TestPageable(t *testing.T) {
	e := start(t, cudaemu.Config{})
	s := must.Get(e.StreamCreate(cuda.StreamNonBlocking, 0))
	p := must.Get(e.MemAlloc(4))
	host, got := []byte{1, 2, 3, 4}, make([]byte, 4)
	e.ok(e.MemcpyHtoDAsync(p, host, s))
	host[0] = 9
	e.ok(e.MemcpyDtoHAsync(got, p, s))
	e.ok(e.StreamSynchronize(s))
	require.Equal(t, []byte{1, 2, 3, 4}, got)
	e.is(e.MemcpyHtoDAsync(p+4, host, s), cuda.ErrInvalidValue)

	e.ok(e.StreamBeginCapture(s, cuda.CaptureGlobal))
	e.ok(e.MemcpyHtoDAsync(p, host, s))
	e.ok(e.MemcpyDtoHAsync(got, p, s))
	g := must.Get(e.StreamEndCapture(s))
	x := must.Get(e.GraphInstantiate(g, 0))
	for i := range byte(3) {
		host[1] = 10 + i
		e.ok(e.GraphLaunch(x, s))
		e.ok(e.StreamSynchronize(s))
		require.Equal(t, []byte{9, 10 + i, 3, 4}, got)
	}
	e.ok(e.GraphExecDestroy(x))
	e.ok(e.GraphDestroy(g))
	e.ok(e.StreamDestroy(s))
	e.ok(e.MemFree(p))
}

// A reset frees all objects of a device, which is no leak.
func TestReset(t *testing.T) {
	m := must.Get(cudaemu.New(cudaemu.Config{}))
	runtime.LockOSThread()                         // the thread ends with the test
	require.NoError(t, m.DevicePrimaryCtxReset(0)) // where there is nothing
	c := must.Get(m.DevicePrimaryCtxRetain(0))
	require.NoError(t, m.CtxSetCurrent(c))
	p := must.Get(m.MemAlloc(100))
	require.NoError(t, m.DevicePrimaryCtxReset(0))
	require.ErrorIs(t, m.MemFree(p), cuda.ErrContextIsDestroyed)
	require.ErrorIs(t, m.DevicePrimaryCtxReset(1), cuda.ErrInvalidDevice)
	require.NoError(t, m.Close())
}

// Each attribute of CUDA 13 has a value, and a kind of GPU has its own.
func TestKinds(t *testing.T) {
	require.ErrorContains(t, must.Err(cudaemu.Kind("b300")), "known are a100, h100, h200, l4, t4, v100")
	d := must.Get(cudaemu.Kind("A100"))
	e := start(t, cudaemu.Config{Shapes: []cudaemu.Device{d}})
	for a := cuda.DeviceAttribute(1); a < 147; a++ {
		must.Get(e.DeviceGetAttribute(a, 0))
	}
	e.is(must.Err(e.DeviceGetAttribute(147, 0)), cuda.ErrInvalidValue)
	sms := must.Get(e.DeviceGetAttribute(cuda.AttrMultiprocessorCount, 0))
	require.Equal(t, 108, sms)
	major := must.Get(e.DeviceGetAttribute(cuda.AttrComputeCapabilityMajor, 0))
	require.Equal(t, 8, major)
	for kind, capability := range map[string][2]int{
		"v100": {7, 0}, "t4": {7, 5}, "a100": {8, 0}, "l4": {8, 9}, "h100": {9, 0}, "h200": {9, 0},
	} {
		d := must.Get(cudaemu.Kind(kind))
		require.Equal(t, capability, [2]int{d.Major, d.Minor}, kind)
	}
}
