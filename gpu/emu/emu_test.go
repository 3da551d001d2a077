package emu_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/gpu/emu"
	"github.com/ringo-go/ringo/internal/test/must"
)

func open(t *testing.T, c emu.Config) *emu.Machine {
	m := must.Get(emu.Open(c))
	t.Cleanup(func() { m.Close() })
	return m
}

func TestShapes(t *testing.T) {
	m := open(t, emu.Config{Driver: 12040, GPUs: []emu.GPU{{Name: "small", Major: 7, Memory: 1 << 20}, {}}})
	require.Len(t, m.Devices(), 2)
	d := m.Devices()[0]
	name := must.Get(d.Name())
	require.Equal(t, "small", name)
	require.Equal(t, "emulated CUDA 12.4", d.DriverVersion())
	_, total, err := d.Memory()
	require.NoError(t, err)
	require.Equal(t, 1<<20, total)
	require.ErrorIs(t, must.Err(d.Alloc(2<<20)), emu.OutOfMemory)
	_, err = d.Load([]byte(".version 9.0\n.target sm_70\n"))
	require.ErrorContains(t, err, "PTX 9.0, the driver knows up to 8.4")
	_, err = d.Load([]byte(".version 8.0\n.target sm_80\n"))
	require.ErrorContains(t, err, "target sm_80 is above the device's capability 7.0")
	require.NoError(t, m.Close())
}

func TestLinks(t *testing.T) {
	m := open(t, emu.Config{GPUs: make([]emu.GPU, 3), Link: func(a, b int) emu.Link {
		if a+b == 1 {
			return emu.PCIe
		}
		return emu.NoLink
	}})
	d := m.Devices()
	require.NoError(t, d[0].Reach(d[1]))
	require.ErrorContains(t, d[0].Reach(d[2]), "gpu: device 0 does not reach the memory of device 2")
	require.NoError(t, m.Close())
}

func TestFaults(t *testing.T) {
	m := open(t, emu.Config{GPUs: make([]emu.GPU, 2),
		Faults: []emu.Fault{{Call: "cuMemAlloc", Nth: 2, Result: emu.OutOfMemory}}})
	d := m.Devices()
	r := must.Get(d[0].Alloc(4))
	require.ErrorIs(t, must.Err(d[0].Alloc(4)), emu.OutOfMemory)
	m.Inject(emu.Fault{Call: "cuMemAlloc", Nth: 1, GPU: 2, Result: emu.Unknown})
	require.NoError(t, d[0].Free(r))
	require.ErrorIs(t, must.Err(d[1].Alloc(4)), emu.Unknown)
	m.Lose(1, emu.ECCUncorrectable)
	require.ErrorIs(t, must.Err(d[1].Alloc(4)), emu.ECCUncorrectable)
	require.ErrorContains(t, must.Err(emu.Open(emu.Config{Faults: []emu.Fault{{Call: "cuMemAlloc"}}})), "emu: ")
	_, err := emu.Open(emu.Config{Faults: []emu.Fault{{Call: "cuMemAlloc", Nth: 1, Hang: true}}})
	require.ErrorContains(t, err, "a fault that hangs is of a kernel")
	for _, c := range []emu.Cell{{GPU: 1}, {Byte: 1 << 40}, {Bit: 8}, {Bit: -1}} {
		require.ErrorContains(t, must.Err(emu.Open(emu.Config{Cells: []emu.Cell{c}})), "cell")
	}
	require.ErrorContains(t, must.Err(emu.Open(emu.Config{GPUs: []emu.GPU{{SMs: -1}}})), "GPU 0: a negative size")
}

// TestCellsAndSpeed: a broken bit keeps its value, and events tell computed times.
func TestCellsAndSpeed(t *testing.T) {
	m := open(t, emu.Config{
		Cells: []emu.Cell{{Byte: 3, Bit: 2, One: true}},
		Speed: func(from, to int) emu.Speed { return emu.Speed{Latency: time.Millisecond, Bandwidth: 1e9} },
	})
	d := m.Devices()[0]
	b := must.Get(gpu.Alloc[byte](d, 1000))
	start := must.Get(d.NewEvent())
	end := must.Get(d.NewEvent())
	require.NoError(t, d.Record(start, gpu.Legacy))
	require.NoError(t, d.Set(b.Region().Ptr(), 0, 1000, gpu.Legacy))
	require.NoError(t, d.Record(end, gpu.Legacy))
	got := make([]byte, 5)
	require.NoError(t, b.Slice(0, 5).Download(gpu.Legacy, got))
	require.Equal(t, []byte{0, 0, 0, 4, 0}, got)
	ms := must.Get(d.Elapsed(start, end))
	require.InDelta(t, 1, ms, 0.1)
}

// A race of two streams is a report, with its accesses, and an error of Close.
func TestReports(t *testing.T) {
	var told []*emu.Report
	m := open(t, emu.Config{Repeatable: true, Report: func(r *emu.Report) bool {
		told = append(told, r)
		return true
	}})
	d := m.Devices()[0]
	mod := must.Get(d.Load([]byte(addText)))
	add := must.Get(mod.Kernel("add"))
	x := must.Get(gpu.Alloc[float32](d, 4))
	require.NoError(t, x.Upload(gpu.Legacy, make([]float32, 4)))
	var streams [2]gpu.Stream
	for i := range streams {
		streams[i] = must.Get(d.NewStream())
		require.NoError(t, add.Launch(streams[i], gpu.Launch{Block: [3]int{4}}, x, float32(1)))
	}
	for _, s := range streams {
		require.NoError(t, d.Synchronize(s))
	}
	require.NotEmpty(t, told)
	r := m.Reports()[0]
	require.Equal(t, told[0].Error(), r.Error()[:len(told[0].Error())])
	require.Equal(t, emu.Race, r.Kind)
	require.Equal(t, "add", r.Access.Kernel)
	require.Equal(t, "add.cu:3", r.Access.Source)
	require.NotNil(t, r.Other)
	require.Equal(t, 4, r.Other.Bytes)
	require.Contains(t, r.Detail, "nothing orders it")
	require.Positive(t, m.Instructions())
	require.True(t, m.Idle())
	err := m.Close()
	require.ErrorContains(t, err, "race: ")
	require.ErrorContains(t, err, "not released")
	require.NotErrorIs(t, err, errors.ErrUnsupported)
}
