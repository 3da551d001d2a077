package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
)

// TestBorrow: all borrowers in a context share one Combiner, until each has closed it.
func TestBorrow(t *testing.T) {
	f := &fake{capability: 90}
	var all []*Combiner
	for range 3 {
		c, err := Borrow(f, 1)
		require.NoError(t, err)
		all = append(all, c)
		_, err = c.Kernel(reducer(t, kernels.Float32, kernels.Sum, 2))
		require.NoError(t, err)
	}
	other, err := Borrow(f, cuda.Context(2))
	require.NoError(t, err)
	require.NotSame(t, all[0], other)
	require.NoError(t, other.Close())
	require.Equal(t, 1, f.loads)
	for _, c := range all {
		require.Len(t, f.loaded, 1)
		require.NoError(t, c.Close())
	}
	require.Empty(t, f.loaded)
	_, err = Borrow(&fake{capability: 90, failing: map[string]error{"device": cuda.ErrNoDevice}}, 1)
	require.ErrorIs(t, err, cuda.ErrNoDevice)
}
