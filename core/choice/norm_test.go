package choice

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
)

// TestNorm: which kernel finishes rows, and where other collectives move them.
func TestNorm(t *testing.T) {
	const row = 16 << 10
	near, far := allKernels, Kernels(paperKernels{collective.TornMessage(4), true})
	for _, x := range []struct {
		ranks   int
		kernels Kernels
		forced  call.Algo
		kind    call.Kind
		rows    int
		host    bool
		want    Answer
	}{
		{2, near, call.Auto, call.AllReduce, 1024, false,
			Answer{Algo: call.OneShot, By: ByNorm, Kernel: collective.OneShot, Why: rowsByKernel}},
		{4, near, call.Auto, call.AllReduce, 8, false,
			Answer{Algo: call.OneShot, By: ByNorm, Kernel: collective.OneShot, Why: rowsByKernel}},
		{4, near, call.Auto, call.AllReduce, 64, false,
			Answer{Algo: call.TwoShot, By: ByNorm, Kernel: collective.TwoShot, Why: rowsInTwoHops}},
		{2, near, call.TwoShot, call.AllReduce, 1, false,
			Answer{Algo: call.TwoShot, By: ByNorm, Kernel: collective.TwoShot, Why: asked}},
		{4, near, call.OneShot, call.AllReduce, 64, false,
			Answer{Algo: call.OneShot, By: ByNorm, Kernel: collective.OneShot, Why: asked}},
		{4, near, call.Auto, call.ReduceScatter, 64, false,
			Answer{Algo: call.Direct, By: ByNorm, Kernel: collective.ReduceScatter, Why: rowsByKernel}},
		{4, near, call.Steps, call.AllReduce, 8, false, Answer{Algo: call.ByRank, By: ByFold, Why: rowsInOrder}},
		{4, far, call.Auto, call.AllReduce, 1, false,
			Answer{Algo: call.OneShot, By: ByNorm, Kernel: collective.OneShot, Why: rowsByKernel}},
		{4, far, call.Auto, call.AllReduce, 4096, false, Answer{Algo: call.ByRank, By: ByFold, Why: rowsInOrder}},
		{4, paperKernels{}, call.Auto, call.AllReduce, 8, false,
			Answer{Algo: call.ByRank, By: ByFold, Why: rowsInOrder}},
		{4, nil, call.Auto, call.AllReduce, 8, true, Answer{Algo: call.ByRank, By: ByFold, Why: rowsInOrder}},
	} {
		c := Chooser{Topo: Blocks(x.ranks, 0), Forced: x.forced, Kernels: x.kernels}
		ans := c.Choose(Question{Kind: x.kind, Bytes: x.rows * row, Type: kernels.BFloat16, OnGPU: !x.host, Row: row})
		blocks := ans.Blocks
		ans.Blocks, ans.WhyBlocks = 0, ""
		require.Equal(t, x.want, ans, "%+v", x)
		require.Equal(t, !x.host, blocks > 0)
	}
}
