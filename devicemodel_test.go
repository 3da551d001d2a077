package ringo

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestModelRows: where nothing was measured, estimates give each collective rows
// for all sizes, small ones by kernels where there are any.
func TestModelRows(t *testing.T) {
	for _, f := range []fabric{
		{near: overP2P, far: overP2P, topo: topology{ranks: 2, local: 2}},
		{near: overP2P, far: overP2P, topo: topology{ranks: 8, local: 8}},
		{near: overHost, far: overHost, topo: topology{ranks: 4, local: 4}},
		{near: overP2P, far: overBridge, topo: topology{ranks: 16, local: 8}},
		{near: overBridge, far: overBridge, topo: topology{ranks: 32, local: 32}},
	} {
		t.Run(fmt.Sprintf("%s-%s of %d", gpuPathNames[f.near], gpuPathNames[f.far], f.topo.ranks), func(t *testing.T) {
			direct := f.far == overP2P
			var rows planRows
			rows.model(&f, direct)
			for _, kind := range planKinds {
				list := rows[kind][0]
				require.NotEmpty(t, list, kind)
				require.LessOrEqual(t, len(list), 5, "%v: %v", kind, list)
				require.Equal(t, maxCount, list[len(list)-1].Most)
				_, isKernel := directKernel(kind, list[0].Algo)
				require.True(t, isKernel || !direct, "%v begins with %v", kind, list[0].Algo)
				t.Log(kind, list)
			}
		})
	}
}
