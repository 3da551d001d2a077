package choice

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestModelRows: where nothing was measured, estimates give each collective rows
// for all sizes, small ones by kernels where there are any.
func TestModelRows(t *testing.T) {
	for _, f := range []fabric{
		{near: overP2P, far: overP2P, topo: Topology{ranks: 2, local: 2}},
		{near: overP2P, far: overP2P, topo: Topology{ranks: 8, local: 8}},
		{near: overHost, far: overHost, topo: Topology{ranks: 4, local: 4}},
		{near: overP2P, far: overBridge, topo: Topology{ranks: 16, local: 8}},
		{near: overBridge, far: overBridge, topo: Topology{ranks: 32, local: 32}},
	} {
		t.Run(fmt.Sprintf("%s-%s of %d", gpuPathNames[f.near], gpuPathNames[f.far], f.topo.ranks), func(t *testing.T) {
			direct := f.far == overP2P
			var rows Rows
			rows.model(&f, direct)
			for _, kind := range planKinds {
				list := rows[kind][0]
				require.NotEmpty(t, list, kind)
				require.LessOrEqual(t, len(list), 5, "%v: %v", kind, list)
				require.Equal(t, call.MaxCount, list[len(list)-1].Most)
				_, isKernel := directKernel(kind, list[0].Algo)
				require.True(t, isKernel || !direct, "%v begins with %v", kind, list[0].Algo)
				t.Log(kind, list)
			}
		})
	}
}
