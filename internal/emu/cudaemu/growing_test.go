package cudaemu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/must"
)

// Where no addresses can be reserved, memory that grows is blocks, each twice the one before.
func TestGrowingWithoutPages(t *testing.T) {
	m, err := New(Config{Faults: []Injection{{Call: "cuMemAddressReserve", Nth: 1, Result: cuda.ErrNotSupported}}})
	require.NoError(t, err)
	ctx := must.Get(m.DevicePrimaryCtxRetain(0))
	g := cuda.NewGrowing(m, ctx, 0)
	places := map[uintptr]bool{}
	for n := 1000; n <= 100_000; n += 1000 {
		p := must.Get(g.AtLeast(n))
		places[p] = true
		require.GreaterOrEqual(t, g.Size(), n)
	}
	require.Len(t, places, 8)
	require.NoError(t, g.Close())
	require.NoError(t, m.DevicePrimaryCtxRelease(0))
	require.NoError(t, m.Close())
}
