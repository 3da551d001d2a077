package device

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
)

func reducer(t testing.TB, ty kernels.DataType, op kernels.RedOp, ranks int) *kernels.Reducer {
	t.Helper()
	r, err := kernels.NewReducer(ty, op, ranks)
	require.NoError(t, err)
	return r
}

func TestVariant(t *testing.T) {
	tests := []struct {
		name       string
		t          kernels.DataType
		capability int
		refuse     map[string]cuda.Result
		want       string // .target of the loaded variant, or
		err        string // in the error
	}{
		{name: "old", t: kernels.BFloat16, capability: 75, want: "sm_70"},
		{name: "new", t: kernels.BFloat16, capability: 90, want: "sm_80"},
		{name: "newest", t: kernels.Float8E4M3, capability: 89, want: "sm_89"},
		{name: "one for all", t: kernels.Float32, capability: 120, want: "sm_70"},
		{name: "driver too old for it", t: kernels.Float8E5M2, capability: 90,
			refuse: map[string]cuda.Result{"sm_89": cuda.ErrUnsupportedPTXVersion}, want: "sm_70"},
		{name: "driver refuses all", t: kernels.Float8E5M2, capability: 90,
			refuse: map[string]cuda.Result{"sm_89": cuda.ErrUnsupportedPTXVersion, "sm_70": cuda.ErrInvalidPTX},
			err: "device: no kernel for sum of float8e5m2 at compute capability 9.0: " +
				"float8e5m2_sum_sm_89: cuModuleLoadData: device 3: CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
		{name: "device too old", t: kernels.Float32, capability: 61,
			err: "device: no kernel for sum of float32 at compute capability 6.1: a GPU of 7.0 (Volta) or newer is needed"},
		{name: "no memory is no refusal", t: kernels.BFloat16, capability: 90,
			refuse: map[string]cuda.Result{"sm_80": cuda.ErrOutOfMemory},
			err:    "device: load bfloat16_sum_sm_80: cuModuleLoadData: device 3: CUDA_ERROR_OUT_OF_MEMORY"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := &fake{capability: test.capability, refuse: test.refuse}
			c, err := New(f, 1)
			require.NoError(t, err)
			k, err := c.Kernel(reducer(t, test.t, kernels.Sum, 2))
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				for _, r := range test.refuse {
					require.ErrorIs(t, err, r)
				}
				require.Empty(t, f.loaded)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, f.loaded[k.m.handle])
			require.Equal(t, cuda.CaptureGlobal, f.mode, "put back")
			require.NoError(t, c.Close())
			require.NoError(t, c.Close())
			require.Empty(t, f.loaded)
			_, err = c.Kernel(reducer(t, test.t, kernels.Sum, 2))
			require.ErrorIs(t, err, ErrClosed)
		})
	}
}

// TestLoadsOnce has many goroutines ask for few kernels, each of which is loaded once.
func TestLoadsOnce(t *testing.T) {
	f := &fake{capability: 90}
	c, err := New(f, 1)
	require.NoError(t, err)
	var g errgroup.Group
	for i := range 64 {
		g.Go(func() error {
			// An average of floats is a premulsum.
			op := []kernels.RedOp{kernels.Sum, kernels.Avg, kernels.PreMulSum(2), kernels.PreMulSum(3)}[i%4]
			_, err := c.Kernel(reducer(t, kernels.Float32, op, 2))
			return err
		})
	}
	require.NoError(t, g.Wait())
	require.Equal(t, 2, f.loads)
	require.Len(t, f.loaded, 2)
	r := reducer(t, kernels.Float32, kernels.Sum, 2)
	require.Zero(t, testing.AllocsPerRun(100, func() { _, err = c.Kernel(r) }))
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Empty(t, f.loaded)
}

func TestFailures(t *testing.T) {
	sad := errors.New("sad")
	for _, call := range []string{"push", "device", "attribute"} {
		_, err := New(&fake{capability: 90, failing: map[string]error{call: sad}}, 1)
		require.ErrorIs(t, err, sad, call)
	}
	f := &fake{capability: 90, failing: map[string]error{"function": sad}}
	c, err := New(f, 1)
	require.NoError(t, err)
	_, err = c.Kernel(reducer(t, kernels.Int8, kernels.Sum, 2))
	require.ErrorIs(t, err, sad)
	require.Empty(t, f.loaded, "unloaded again")

	_, err = c.Kernel(reducer(t, kernels.Int8, kernels.UserOp("mine", func(kernels.DataType, []byte, []byte) {}), 2))
	var invalid *kernels.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.ErrorContains(t, err, "a function in Go cannot run on a GPU")
}
