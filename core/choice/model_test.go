package choice

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/transport"
)

// TestModelRows: where nothing was measured, estimates give each collective rows
// for all sizes, small ones by kernels where there are any.
func TestModelRows(t *testing.T) {
	for _, f := range []Fabric{
		{Near: transport.OverP2P, Far: transport.OverP2P, Topo: Topology{Ranks: 2}},
		{Near: transport.OverP2P, Far: transport.OverP2P, Topo: Topology{Ranks: 8}},
		{Near: transport.OverHost, Far: transport.OverHost, Topo: Topology{Ranks: 4}},
		{Near: transport.OverP2P, Far: transport.OverBridge, Topo: Blocks(16, 8)},
		{Near: transport.OverBridge, Far: transport.OverBridge, Topo: Topology{Ranks: 32}},
	} {
		t.Run(fmt.Sprintf("%v-%v of %d", f.Near, f.Far, f.Topo.Ranks), func(t *testing.T) {
			longest := 0
			switch f.Far {
			case transport.OverP2P:
				longest = collective.MaxMessage
			case transport.OverHost:
				longest = collective.TornMessage(f.Topo.Ranks)
			}
			direct := longest > 0
			var rows Rows
			rows.model(&f, longest)
			for _, kind := range planKinds {
				list := rows[kind][0]
				require.NotEmpty(t, list, kind)
				require.LessOrEqual(t, len(list), 5, "%v: %v", kind, list)
				require.Equal(t, call.MaxCount, list[len(list)-1].Most)
				_, isKernel := directKernel(kind, list[0].Algo)
				require.True(t, isKernel || !direct, "%v begins with %v", kind, list[0].Algo)
				for _, r := range list[:len(list)-1] { // the size that was estimated is two thirds of the row's most
					size, by := r.Most/3*2, &Answer{Why: fromModel}
					require.Equal(t, []int{size, 2 * size}, []int{lookedAt(by, r.Most), lookedAt(by, r.Most+1)})
				}
			}
		})
	}
}
