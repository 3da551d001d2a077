package cudaemu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/simt"
	"github.com/ringo-go/ringo/internal/test/must"
)

const clusterText = `.version 7.8
.target sm_90
.address_size 64
.visible .entry plain() { barrier.cluster.arrive; barrier.cluster.wait; ret; }
.visible .entry explicit() .explicitcluster { ret; }
.visible .entry two() .explicitcluster .reqnctapercluster 2 { ret; }
.visible .entry most() .maxclusterrank 2 { ret; }
`

// What an H100 with driver 13.0 answered to launches of these kernels, in a row of blocks.
func TestLaunchClusters(t *testing.T) {
	e := start(t, cudaemu.Config{})
	const no = cuda.ErrInvalidClusterSize
	one := func(n uint32) cuda.Dim3 { return cuda.Dim3{X: n, Y: 1, Z: 1} }
	for _, c := range []struct {
		kernel  string
		blocks  uint32
		cluster cuda.Dim3
		want    cuda.Result
		active  int // clusters at once, in this emulated device of 8 multiprocessors
	}{
		{"plain", 8, cuda.Dim3{}, 0, 0},
		{"plain", 8, one(2), 0, 128},
		{"plain", 8, one(3), no, 0},
		{"plain", 8, cuda.Dim3{X: 2, Y: 2, Z: 1}, no, 0},
		{"plain", 8, cuda.Dim3{X: 2}, no, 0},
		{"plain", 6, one(3), 0, 85},
		{"plain", 7, one(7), 0, 36},
		{"plain", 16, one(8), 0, 32},
		{"plain", 9, one(9), no, 0},
		{"plain", 16, one(16), no, 0},
		{"explicit", 8, cuda.Dim3{}, no, 0},
		{"explicit", 8, one(1), 0, 256},
		{"explicit", 8, one(2), 0, 128},
		{"two", 8, cuda.Dim3{}, 0, 128},
		{"two", 7, cuda.Dim3{}, no, 0},
		{"two", 8, one(2), 0, 128},
		{"two", 8, one(4), no, 0},
		{"two", 8, one(1), no, 0},
		{"most", 8, one(2), 0, 128},
		{"most", 8, one(4), no, 0},
	} {
		f := e.kernelOf(clusterText, c.kernel)
		l := &cuda.Launch{Grid: cuda.Dim3{X: c.blocks}, Block: cuda.Dim3{X: 32}}
		err := e.LaunchClusters(f, l, c.cluster, nil)
		active, err2 := e.OccupancyMaxActiveClusters(f, l, c.cluster)
		most, err3 := e.OccupancyMaxPotentialClusterSize(f, l, c.cluster)
		e.ok(e.CtxSynchronize())
		require.Equal(t, c.active, active, c)
		if c.want != 0 {
			for _, err := range []error{err, err2, err3} {
				e.is(err, c.want)
			}
			continue
		}
		for _, err := range []error{err, err2, err3} {
			require.NoError(t, err, c)
		}
		require.Equal(t, 8, most, c)
	}

	f := e.kernelOf(clusterText, "plain")
	attribute := func(f cuda.Function, a cuda.FunctionAttribute) int {
		v := must.Get(e.FuncGetAttribute(a, f))
		return v
	}
	for name, want := range map[string][6]int{"plain": {}, "explicit": {1}, "two": {1, 2, 1, 1}, "most": {}} {
		var got [6]int
		for i := range got {
			got[i] = attribute(e.kernelOf(clusterText, name), cuda.FunctionAttribute(10+i))
		}
		require.Equal(t, want, got, name)
	}
	e.is(e.FuncSetAttribute(f, 10, 1), cuda.ErrInvalidValue)
	e.ok(e.FuncSetAttribute(f, 14, 1))
	require.Equal(t, 1, attribute(f, 14))
	l := &cuda.Launch{Grid: cuda.Dim3{X: 32}, Block: cuda.Dim3{X: 32}}
	e.ok(e.LaunchClusters(f, l, one(16), nil))
	e.is(e.LaunchClusters(f, l, one(32), nil), no)
	most := must.Get(e.OccupancyMaxPotentialClusterSize(f, l, one(16)))
	require.Equal(t, 16, most)
	for i := range 3 {
		e.ok(e.FuncSetAttribute(f, cuda.FunctionAttribute(11+i), 2-min(i, 1)))
	}
	e.ok(e.LaunchKernel(f, l, nil))
	l.Grid.X = 31
	e.is(e.LaunchKernel(f, l, nil), no)
	e.ok(e.CtxSynchronize())

	l.Grid.X, l.Shared = 8, 48<<10
	tight := start(t, cudaemu.Config{Shapes: []cudaemu.Device{{Major: 9, Shape: simt.Shape{SMs: 1}}}})
	tf := tight.kernelOf(clusterText, "plain")
	tight.is(tight.LaunchClusters(tf, l, one(8), nil), cuda.ErrLaunchOutOfResources)
	tight.ok(tight.LaunchClusters(tf, l, one(4), nil))
	tight.ok(tight.CtxSynchronize())
	old := start(t, cudaemu.Config{Shapes: []cudaemu.Device{{Major: 8}}})
	l.Shared = 0
	old.is(old.LaunchClusters(old.kernel("nothing"), l, one(2), nil), cuda.ErrNotSupported)
}
