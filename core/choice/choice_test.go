// The answers of a Chooser, on hosts and on GPUs.

package choice

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/transport"
)

var allKernels = paperKernels{collective.MaxMessage, true}

func kernelsIf(all bool) (k paperKernels) {
	if all {
		return allKernels
	}
	return k
}

// TestChooseOnGPUs: the first row counts that covers a call and can serve; Algo goes
// before, where the collective has it.
func TestChooseOnGPUs(t *testing.T) {
	p, err := ParsePlan("my.plan", `ringo plan 1
gpu      G
allreduce  4 registered all window
allreduce  4 any        1K  twoshot
allgather  4 registered 64K window
allgather  4 registered 1M  copies
broadcast  4 registered all window
alltoall   4 any        4K  direct
alltoall   4 any        all steps
scatter    4 registered all window
scatter    4 any        all steps
`)
	require.NoError(t, err)
	f := &Fabric{GPUs: []string{"G", "G", "G", "G"}, Near: transport.OverP2P, Far: transport.OverP2P,
		Topo: Topology{Ranks: 4}}
	for _, test := range []struct {
		name, algo string
		direct     bool
		kind       call.Kind
		bytes      int
		registered bool
		want       call.Algo
		because    string
	}{
		{"row", "", true, call.AllReduce, 1024, false, call.TwoShot, "my.plan, line 4"},
		{"registered", "", true, call.AllReduce, 1024, true, call.Window, "my.plan, line 3"},
		{"no window", "", false, call.AllReduce, 1024, true, call.TwoShot, "my.plan, line 4"},
		{"size in shares", "", true, call.AllGather, 16 << 10, true, call.Window, "my.plan, line 5"},
		{"next row", "", true, call.AllGather, 16<<10 + 1, true, call.Copies, "my.plan, line 6"},
		{"behind registered rows", "", true, call.AllGather, 1 << 20, true, call.Direct, fromModel},
		{"not by windows", "", false, call.Broadcast, 64, true, call.Binomial, fromModel},
		{"model", "", true, call.Reduce, 64, false, call.Direct, fromModel},
		{"steps", "", true, call.AlltoAll, 4 << 10, false, call.Steps, "my.plan, line 9"},
		{"root in place", "", true, call.Scatter, 64, true, call.Steps, "my.plan, line 11"},
		{"not in place", "window", true, call.Scatter, 64, true, call.Window, asked},
		{"forced", "tree", true, call.AllReduce, 64, true, call.Tree, asked},
		{"forced window", "window", true, call.AllGather, 1 << 30, true, call.Window, asked},
		{"cannot be forced", "window", true, call.AllReduce, 64, false, call.TwoShot, "my.plan, line 4"},
		{"has none of that name", "ring", true, call.AlltoAll, 64, false, call.Direct, "my.plan, line 8"},
		{"not in a plan", "", true, call.Send, 64, false, call.Direct, "the default of the collective"},
		{"too long for a kernel", "oneshot", true, call.AllReduce, 2 << 30, false, call.OneShot, asked},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := Chooser{Topo: f.Topo, Kernels: kernelsIf(test.direct),
				Rows: RowsFor(p, f, kernelsIf(test.direct).LongestDirect())}
			c.Forced, _ = call.ParseAlgo(test.algo)
			q := Question{Kind: test.kind, Bytes: test.bytes, OnGPU: true, Registered: test.registered}
			ans := c.Choose(q)
			require.Equal(t, test.want, ans.Algo)
			require.Equal(t, test.because, ans.Why)
			require.Zero(t, testing.AllocsPerRun(1000, func() { c.Choose(q) }))
			rows, err := DecodeRows(c.Rows.Encode())
			require.NoError(t, err)
			require.Equal(t, c.Rows, rows)
		})
	}
	f.GPUs[2] = "H"
	rows := RowsFor(p, f, collective.MaxMessage)
	require.Equal(t, fromModel, rows[call.AllReduce][0][0].From, "other GPUs")
}

// Where all orders have the same bits, the fastest algorithm is taken.
func TestOrderMatters(t *testing.T) {
	for _, tc := range []struct {
		kind call.Kind
		typ  kernels.DataType
		op   kernels.RedOp
		n    int
		want bool
	}{
		{call.AllReduce, kernels.Float32, kernels.Sum, 3, true},
		{call.AllReduce, kernels.Float32, kernels.Sum, 2, false},
		{call.AllReduce, kernels.Float32, kernels.PreMulSum(2), 2, false},
		{call.Reduce, kernels.BFloat16, kernels.Sum, 2, false},
		{call.Reduce, kernels.BFloat16, kernels.Avg, 2, true},
		{call.Reduce, kernels.BFloat16, kernels.Avg, 1, false},
		{call.ReduceScatter, kernels.Int8, kernels.Avg, 3, false},
		{call.ReduceScatter, kernels.Float64, kernels.Max, 3, false},
		{call.ReduceScatter, kernels.Float64, kernels.Prod, 3, true},
		{call.AllReduce, kernels.Int64, kernels.UserOp("", nil), 2, true},
		{call.AllGather, kernels.Float32, kernels.Sum, 3, false},
	} {
		require.Equal(t, tc.want, OrderMatters(tc.kind, tc.typ, tc.op.Kind, tc.n), "%+v", tc)
	}
}

// TestCarriers: what carries a reduction out, in order of rank and otherwise, and that the choice
// allocates nothing.
func TestCarriers(t *testing.T) {
	rows := func(kind call.Kind, a call.Algo) (r Rows) {
		r[kind][0] = []Row{{Algo: a, Most: call.MaxCount, From: "a row"}}
		return r
	}
	const f32, scaledOp = kernels.Float32, kernels.KindPreMulSum
	ring := rows(call.AllReduce, call.Ring)
	for _, test := range []struct {
		name    string
		chooser Chooser
		q       Question
		want    Answer
	}{
		{"host", Chooser{}, Question{Kind: call.AllReduce, Bytes: 1 << 20, Type: f32},
			Answer{Algo: call.Ring, Why: "large data: the least bytes, streamed around the ring"}},
		{"host, forced", Chooser{Forced: call.Tree}, Question{Kind: call.AllReduce, Bytes: 1 << 20, Type: f32},
			Answer{Algo: call.Tree, Why: asked}},
		{"host, in order", Chooser{InOrder: true}, Question{Kind: call.AllReduce, Bytes: 1 << 20, Type: f32},
			Answer{Algo: call.ByRank, By: ByFold, Why: inOrder}},
		{"host, in order whatever is asked for", Chooser{InOrder: true, Forced: call.Tree},
			Question{Kind: call.AllReduce, Bytes: 8, Type: f32},
			Answer{Algo: call.ByRank, By: ByFold, Why: inOrder}},
		{"host, all orders give the same", Chooser{InOrder: true},
			Question{Kind: call.AllReduce, Bytes: 1 << 20, Type: kernels.Int32},
			Answer{Algo: call.Ring, Why: "large data: the least bytes, streamed around the ring"}},
		{"host, no reduction", Chooser{InOrder: true}, Question{Kind: call.AllGather, Bytes: 64, Type: f32},
			Answer{Algo: call.Direct, Why: "small data: one hop"}},
		{"GPU, no kernels and no rows", Chooser{}, Question{Kind: call.AllReduce, Bytes: 1 << 20, Type: f32, OnGPU: true},
			Answer{Algo: call.Ring, Why: "large data: the least bytes, streamed around the ring"}},
		{"GPU, row", Chooser{Kernels: allKernels, Rows: rows(call.AllReduce, call.TwoShot)},
			Question{Kind: call.AllReduce, Bytes: 64, Type: f32, OnGPU: true},
			Answer{Algo: call.TwoShot, By: ByKernel, Kernel: collective.TwoShot, Why: "a row"}},
		{"GPU, in order, a kernel has it", Chooser{InOrder: true, Kernels: allKernels,
			Rows: rows(call.AllReduce, call.OneShot)}, Question{Kind: call.AllReduce, Bytes: 64, Type: f32, OnGPU: true},
			Answer{Algo: call.OneShot, By: ByKernel, Kernel: collective.OneShot, Why: "a row"}},
		{"GPU, in order, a kernel instead of a ring", Chooser{InOrder: true, Kernels: allKernels, Rows: ring},
			Question{Kind: call.AllReduce, Bytes: 64, Type: f32, OnGPU: true},
			Answer{Algo: call.TwoShot, By: ByKernel, Kernel: collective.TwoShot, Why: ordered}},
		{"GPU, in order, a window instead of a ring", Chooser{InOrder: true, Kernels: allKernels, Rows: ring},
			Question{Kind: call.AllReduce, Bytes: 64, Type: f32, OnGPU: true, Registered: true},
			Answer{Algo: call.Window, By: ByWindow, Kernel: collective.TwoShot, Why: ordered}},
		{"GPU, in order, no kernels", Chooser{InOrder: true, Rows: ring},
			Question{Kind: call.AllReduce, Bytes: 64, Type: f32, OnGPU: true},
			Answer{Algo: call.ByRank, By: ByFold, Why: inOrder}},
		{"GPU, in order, step by step", Chooser{InOrder: true, Forced: call.Steps, Kernels: allKernels},
			Question{Kind: call.AllReduce, Bytes: 64, Type: f32, OnGPU: true},
			Answer{Algo: call.ByRank, By: ByFold, Why: inOrder}},
		{"GPU, in order, a large reduce", Chooser{InOrder: true, Kernels: allKernels},
			Question{Kind: call.Reduce, Bytes: 3 << 20, Type: f32, OnGPU: true},
			Answer{Algo: call.TwoShot, By: ByShares, Why: ordered}},
		{"GPU, in order, a small reduce", Chooser{InOrder: true, Kernels: allKernels,
			Rows: rows(call.Reduce, call.Direct)}, Question{Kind: call.Reduce, Bytes: 1 << 20, Type: f32, OnGPU: true},
			Answer{Algo: call.Direct, By: ByKernel, Kernel: collective.Reduce, Why: "a row"}},
		{"GPU, scaled", Chooser{Kernels: allKernels, Rows: rows(call.AllReduce, call.TwoShot)},
			Question{Kind: call.AllReduce, Bytes: 32 << 20, Type: f32, Op: scaledOp, OnGPU: true},
			Answer{Algo: call.TwoShot, By: ByKernel, Kernel: collective.TwoShot, Why: "a row"}},
		{"GPU, scaled in no window", Chooser{Forced: call.Window, Kernels: allKernels, Rows: ring},
			Question{Kind: call.AllReduce, Bytes: 64, Type: f32, Op: scaledOp, OnGPU: true, Registered: true},
			Answer{Algo: call.Ring, Why: "a row"}},
		{"GPU, copies", Chooser{Forced: call.Copies, Kernels: allKernels},
			Question{Kind: call.AllGather, Bytes: 64, Type: f32, OnGPU: true, Registered: true},
			Answer{Algo: call.Copies, By: ByCopies, Kernel: collective.AllGather, Why: asked}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := test.chooser
			c.Topo = Topology{Ranks: 4}
			ans := c.Choose(test.q)
			require.Equal(t, test.q.OnGPU, ans.Blocks > 0)
			ans.Blocks, ans.WhyBlocks, ans.row = 0, "", nil // see TestBlocks
			require.Equal(t, test.want, ans)
			require.Zero(t, testing.AllocsPerRun(100, func() { c.Choose(test.q) }))
		})
	}
}

// BenchmarkChoose is what each call pays for a choice: on a host by thresholds, across hosts by costs that are found
// once, on GPUs by the last row.
func BenchmarkChoose(b *testing.B) {
	f := &Fabric{Near: transport.OverP2P, Far: transport.OverP2P, Topo: Topology{Ranks: 4}, GPUs: []string{"NVIDIA H200"}}
	c := Chooser{Topo: f.Topo, Kernels: allKernels, Rows: RowsFor(nil, f, collective.MaxMessage)}
	b.Run("hosts", func(b *testing.B) {
		across := Chooser{Topo: Blocks(31, 8).Over(Wire{})}
		b.ReportAllocs()
		for b.Loop() {
			across.Choose(Question{Kind: call.AllReduce, Bytes: 1 << 20, Type: kernels.Float32})
		}
	})
	for _, onGPU := range []bool{false, true} {
		b.Run(map[bool]string{false: "host", true: "gpu"}[onGPU], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Choose(Question{Kind: call.AllReduce, Bytes: 1 << 30, Type: kernels.Float32, OnGPU: onGPU, Registered: true})
			}
		})
	}
}
