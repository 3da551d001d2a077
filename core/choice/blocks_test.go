// Policies, budgets, and how many blocks a call takes.

package choice

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/transport"
)

func TestParsePolicy(t *testing.T) {
	for s, want := range map[string]Policy{
		"": PolicyDefault, "default": PolicyDefault, "0": PolicyDefault, " Efficiency ": PolicyEfficiency,
		"1":    PolicyEfficiency,
		"ZERO": PolicyZero, "2": PolicyZero, "3": PolicyZero, "3|0": PolicyZero, "efficiency|zero": PolicyZero,
		"EFFICIENCY | DEFAULT": PolicyEfficiency,
		"latency":              PolicyLatency, "Latency|0": PolicyDefault, "2|latency": PolicyZero,
	} {
		p, err := ParsePolicy(s)
		require.NoError(t, err, "%q", s)
		require.Equal(t, want, p, "%q", s)
	}
	for _, s := range []string{"none", "4", "-1", "zero|", "|", "latency|4"} {
		_, err := ParsePolicy(s)
		require.ErrorIs(t, err, call.ErrInvalid, "%q", s)
		require.ErrorContains(t, err, "is none of default, efficiency, zero")
	}
	require.Equal(t, "zero", PolicyZero.String())
	require.Equal(t, "policy(9)", Policy(9).String())
}

// How many blocks a call takes: what was measured for its row, else what there is work for or
// half of it, within the budget.
func TestBlocks(t *testing.T) {
	p, err := ParsePlan("my.plan", `ringo plan 2
allreduce  2 any        64K  oneshot
allreduce  2 any        1M   oneshot 40/20
allreduce  2 any        all  ring 96/48
allgather  2 registered 1M   window 24
allgather  2 registered all  copies 100/7
allgather  2 any        all  ring 32
`)
	require.NoError(t, err)
	f := &Fabric{GPUs: []string{"G", "G"}, Near: transport.OverP2P, Far: transport.OverP2P, Topo: Topology{Ranks: 2}}
	thrifty := Budget{Policy: PolicyEfficiency}
	for _, test := range []struct {
		name       string
		budget     Budget
		forced     call.Algo
		kind       call.Kind
		bytes      int
		registered bool
		want       int
		why        string
	}{
		{"one line", Budget{}, 0, call.AllReduce, 8, false, 1, byWork},
		{"as measured for the shape", Budget{}, 0, call.AllReduce, 64 << 10, false, 35, byWork},
		{"measured for the row", Budget{}, 0, call.AllReduce, 1 << 20, false, 40, byMeasure},
		{"less work than measured", Budget{}, call.OneShot, call.AllReduce, 128, false, 1, byWork},
		{"a ring", Budget{}, 0, call.AllReduce, 1 << 30, false, 96, byMeasure},
		{"a window", Budget{}, 0, call.AllGather, 512 << 10, true, 24, byMeasure},
		{"gates", Budget{}, 0, call.AllGather, 64 << 20, true, 1, byGates},
		{"modelled", Budget{}, 0, call.Broadcast, 1 << 30, false, 128, byWork},
		{"asked for, so not the row's", Budget{}, call.Tree, call.AllReduce, 1 << 20, false, 128, byWork},
		{"thrifty, measured", thrifty, 0, call.AllReduce, 1 << 30, false, 48, byThrift},
		{"thrifty, not measured", thrifty, 0, call.Broadcast, 1 << 30, false, 64, byHalf},
		{"thrifty, no more than by default", thrifty, 0, call.AllGather, 1 << 30, false, 32, byMeasure},
		{"thrifty, one line", thrifty, 0, call.AllReduce, 8, false, 1, byHalf},
		{"at most", Budget{Most: 16}, 0, call.AllReduce, 1 << 30, false, 16, andMost},
		{"at least", Budget{Least: 100}, 0, call.AllReduce, 1 << 30, false, 100, andLeast},
		{"at least, of what there is work for", Budget{Least: 100}, 0, call.AllReduce, 8, false, 1, byWork},
		{"at most goes before at least", Budget{Least: 100, Most: 50}, 0, call.AllReduce, 1 << 30, false, 50, andMost},
		{"narrow", Budget{Narrow: true}, 0, call.AllReduce, 64 << 20, false, 32, byBeside},
		{"narrow, larger", Budget{Narrow: true}, 0, call.AllReduce, 1 << 30, false, 64, byBeside},
		{"narrow, fewer measured", Budget{Narrow: true}, 0, call.AllGather, 1 << 30, false, 32, byMeasure},
		{"narrow, a kernel without steps", Budget{Narrow: true}, 0, call.AllReduce, 1 << 20, false, 40, byMeasure},
		{"narrow, much work", Budget{Narrow: true}, call.OneShot, call.AllReduce, 4 << 20, false, 64, byBeside},
		{"much work, not narrow", Budget{}, call.OneShot, call.AllReduce, 4 << 20, false, 128, byWork},
		{"narrow, work for fewer", Budget{Narrow: true}, call.OneShot, call.AllReduce, 64 << 10, false, 35, byWork},
		{"narrow, at most", Budget{Most: 16, Narrow: true}, 0, call.Broadcast, 1 << 30, false, 16, andMost},
		{"latency, whatever was measured", Budget{Policy: PolicyLatency}, 0, call.AllReduce, 1 << 30, false, 128, byWork},
		{"messages", Budget{}, 0, call.Send, 1 << 30, false, 0, ""},
		{"zero moves by copies", Budget{Policy: PolicyZero}, 0, call.AllGather, 8, true, 1, byGates},
		{"zero without windows", Budget{Policy: PolicyZero}, 0, call.AllGather, 1 << 30, false, 32, byMeasure},
		{"zero reduces by kernels", Budget{Policy: PolicyZero}, 0, call.AllReduce, 1 << 30, true, 48, byThrift},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := Chooser{Topo: f.Topo, Kernels: allKernels, Rows: RowsFor(p, f, collective.MaxMessage),
				Forced: test.forced, Budget: test.budget}
			q := Question{Kind: test.kind, Bytes: test.bytes, Type: kernels.Float32, OnGPU: true, Registered: test.registered}
			if test.kind == call.AllGather {
				q.Bytes /= 2
			}
			ans := c.Choose(q)
			require.Equal(t, test.want, ans.Blocks)
			require.Equal(t, test.why, ans.WhyBlocks)
			require.Zero(t, testing.AllocsPerRun(100, func() { c.Choose(q) }))
			rows, err := DecodeRows(c.Rows.Encode())
			require.NoError(t, err)
			require.Equal(t, c.Rows, rows)
		})
	}
	c := Chooser{Topo: f.Topo, Kernels: allKernels, Budget: Budget{Policy: PolicyZero}}
	ans := c.Choose(Question{Kind: call.AlltoAll, Bytes: 64, OnGPU: true, Registered: true})
	require.Equal(t, ByCopies, ans.By)
	require.Equal(t, byZero, ans.Why)
	c.Forced = call.Window
	require.Equal(t, ByWindow, c.Choose(Question{Kind: call.AlltoAll, Bytes: 64, OnGPU: true, Registered: true}).By,
		"what is asked for goes before")
	require.Zero(t, c.Choose(Question{Kind: call.AlltoAll, Bytes: 64}).Blocks, "on a host")
}

// The thriftiest of two policies counts, whichever comes first.
func TestThriftier(t *testing.T) {
	order := []Policy{PolicyLatency, PolicyDefault, PolicyEfficiency, PolicyZero}
	for i, a := range order {
		for k, b := range order {
			require.Equal(t, order[max(i, k)], Thriftier(a, b), "%v and %v", a, b)
		}
	}
}

// TestLanes: few in a narrow budget, also for messages; batches of small calls have all blocks, or by thrift half.
func TestLanes(t *testing.T) {
	for _, test := range []struct {
		budget                 Budget
		lanes, batch, messages int
	}{
		{Budget{}, 128, 128, 128}, {Budget{Most: 40}, 40, 40, 40}, {Budget{Policy: PolicyEfficiency}, 128, 64, 64},
		{Budget{Most: 1, Policy: PolicyZero}, 1, 1, 1}, {Budget{Least: 100, Policy: PolicyZero}, 128, 100, 100},
		{Budget{Least: 100, Most: 30, Policy: PolicyZero}, 30, 30, 30},
		{Budget{Narrow: true}, 64, 128, 64}, {Budget{Most: 8, Narrow: true}, 8, 8, 8},
	} {
		b := &test.budget
		require.Equal(t, []int{test.lanes, test.batch, test.messages}, []int{b.Lanes(), b.SideBySide(), b.ForMessages()},
			"%+v", b)
	}
}

// Rows that no plan can have are refused when they arrive from rank 0.
func TestRowsWithWrongBlocks(t *testing.T) {
	for _, r := range []Row{{Blocks: 129}, {Blocks: -1}, {Blocks: 4, Few: 5}, {Few: 1}} {
		var rows Rows
		rows[call.AllReduce][0] = []Row{r}
		_, err := DecodeRows(rows.Encode())
		require.ErrorContains(t, err, "blocks", "%+v", r)
	}
}

// TestNarrowDirect: between two GPUs schedules take over from direct kernels at smaller sizes in a narrow budget.
func TestNarrowDirect(t *testing.T) {
	f := &Fabric{GPUs: []string{"NVIDIA H200", "NVIDIA H200"}, Near: transport.OverP2P, Far: transport.OverP2P,
		Topo: Blocks(2, 2)}
	for _, test := range []struct {
		kind         call.Kind
		bytes        int // of a rank's larger buffer
		wide, narrow Carrier
	}{
		{call.AllGather, 4 << 20, ByKernel, ByKernel},
		{call.AllGather, 8 << 20, ByKernel, BySchedule},
		{call.AllGather, 32 << 20, BySchedule, BySchedule},
		{call.ReduceScatter, 8 << 20, ByKernel, ByKernel},
		{call.ReduceScatter, 16 << 20, ByKernel, BySchedule},
		{call.AllReduce, 4 << 20, ByKernel, ByKernel},
		{call.AlltoAll, 8 << 20, ByKernel, ByKernel},
		{call.AlltoAll, 16 << 20, ByKernel, BySchedule},
	} {
		for _, narrow := range []bool{false, true} {
			c := Chooser{Topo: f.Topo, Kernels: allKernels, Rows: RowsFor(nil, f, collective.MaxMessage)}
			want := test.wide
			if narrow {
				c.Budget.Narrow, want = true, test.narrow
			}
			q := Question{Kind: test.kind, Bytes: test.bytes / test.kind.Shares(2), Type: kernels.Float32, OnGPU: true}
			ans := c.Choose(q)
			require.Equal(t, want, ans.By, "%v of %d bytes, narrow %v", test.kind, test.bytes, narrow)
			require.Equal(t, want != test.wide, strings.HasSuffix(ans.reason(), leftOut), ans.reason())
		}
	}
}
