//go:build linux && (amd64 || arm64) && !ringo_nogpu

package cuda

import (
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/must"
)

// A launch hands shape, stream and parameters to the driver.
func TestLaunch(t *testing.T) {
	d := openFake(t)
	got := saw[fakeLaunch](t, d, "fake_launch")
	args := struct {
		A uint8
		B uint64
		C float32
		D [5]uint16
		E uint8
	}{1, 2, 3, [5]uint16{4, 5, 6, 7, 8}, 9}
	want := slices.Clone(ArgsOf(&args))
	require.Len(t, want, 8+8+4+10+1, "no padding at the end")
	for _, cooperative := range []bool{false, true} {
		l := Launch{Grid: Dim3{7, 0, 2}, Block: Dim3{X: 256}, Shared: 4096, Stream: 55, Cooperative: cooperative}
		require.NoError(t, d.LaunchKernel(44, &l, want))
		require.Equal(t, [3]uint64{7, 1, 2}, got.Grid)
		require.Equal(t, [3]uint64{256, 1, 1}, got.Block)
		require.EqualValues(t, []uint64{4096, 55, 44}, []uint64{got.Shared, got.Stream, got.Function})
		require.EqualValues(t, len(want), got.Size)
		require.Equal(t, want, got.Params[:got.Size])
		require.Zero(t, got.HasParams)
		require.Equal(t, cooperative, got.Cooperative == 1)
	}
	require.NoError(t, d.LaunchKernel(44, &Launch{}, nil))
	require.Zero(t, got.Size)

	large := make([]byte, 4096)
	for i := range large {
		large[i] = byte(i * 3)
	}
	require.NoError(t, d.LaunchKernel(44, &Launch{}, large))
	require.Equal(t, large, got.Params[:])
	err := d.LaunchKernel(44, &Launch{}, make([]byte, 4097))
	require.ErrorIs(t, err, ErrInvalidValue)

	err = d.LaunchKernel(44, &Launch{Block: Dim3{X: 2048}, Shared: 5}, want[:12])
	require.ErrorIs(t, err, ErrInvalidValue)
	require.Contains(t, err.Error(), "grid 1×1×1, block 2048×1×1, 5 bytes of shared memory, 12 bytes of parameters")
}

// TestLaunchAndRecord wants an event behind a launch, from one call of libcuda and from two calls of another
// Driver, and none behind a launch that failed.
func TestLaunchAndRecord(t *testing.T) {
	f := openFake(t)
	got, recorded := saw[fakeLaunch](t, f, "fake_launch"), saw[[3]uint64](t, f, "fake_recorded")
	params := make([]byte, 16)
	for name, d := range map[string]Driver{"one": f.Driver, "each": struct{ Driver }{f.Driver}} {
		t.Run(name, func(t *testing.T) {
			*recorded = [3]uint64{}
			require.NoError(t, LaunchAndRecord(d, 44, &Launch{Stream: 55}, params, 66))
			require.Equal(t, [3]uint64{1, 66, 55}, *recorded)
			require.EqualValues(t, 44, got.Function)
			require.NoError(t, LaunchAndRecord(d, 44, &Launch{Stream: 55}, params, 0))
			require.NoError(t, d.LaunchKernel(44, &Launch{Stream: 55}, params))
			require.ErrorIs(t, LaunchAndRecord(d, 44, &Launch{Block: Dim3{X: 2048}}, params, 66), ErrInvalidValue)
			require.EqualValues(t, 1, recorded[0])
			require.ErrorContains(t, LaunchAndRecord(d, 44, &Launch{Stream: 99}, params, 66), "cuEventRecord")
		})
	}
	l := Launch{Stream: 55}
	require.Zero(t, testing.AllocsPerRun(100, func() { LaunchAndRecord(f.Driver, 44, &l, params, 66) }))
}

// A launch allocates nothing, and what it hands to C survives moving stacks.
func TestLaunchAllocatesNothing(t *testing.T) {
	d := openFake(t)
	l := Launch{Block: Dim3{X: 32}}
	args := struct{ a, b uint64 }{1, 2}
	n := testing.AllocsPerRun(1000, func() { d.LaunchKernel(44, &l, ArgsOf(&args)) })
	require.Zero(t, n)
	n = testing.AllocsPerRun(1000, func() { d.StreamQuery(77); d.CtxGetDevice() })
	require.Zero(t, n)
}

func TestLaunchesConcurrently(t *testing.T) {
	d := openFake(t)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 200 {
				p := make([]byte, 64)
				if err := d.LaunchKernel(Function(100+i), &Launch{}, p); err != nil {
					t.Error(err)
				}
				if v, w, err := d.CtxGetStreamPriorityRange(); v != 0 || w != -5 || err != nil {
					t.Error(v, w, err)
				}
				if j%50 == 0 {
					runtime.GC()
				}
			}
		})
	}
	group.Wait()
}

// A kernel that the driver knows the parameters of is launched with exactly those.
func TestParameterSizes(t *testing.T) {
	d := openFake(t)
	got := saw[fakeLaunch](t, d, "fake_launch")
	f := must.Get(d.ModuleGetFunction(5, "twelve"))
	require.NoError(t, d.LaunchKernel(f, &Launch{}, make([]byte, 12)))
	before := got.Count
	for _, n := range []int{0, 8, 16} {
		err := d.LaunchKernel(f, &Launch{}, make([]byte, n))
		require.ErrorIs(t, err, ErrLaunchOutOfResources)
		require.Contains(t, err.Error(), "exactly the 12 bytes")
	}
	require.Equal(t, before, got.Count, "they did not reach the driver")
	require.NoError(t, d.LaunchKernel(44, &Launch{}, make([]byte, 8)), "of this one nothing is known")
	err := d.LaunchKernel(9, &Launch{}, nil)
	require.ErrorIs(t, err, ErrLaunchOutOfResources)
	require.Contains(t, err.Error(), "registers")
}
