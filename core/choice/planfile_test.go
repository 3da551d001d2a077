package choice

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/transport"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// TestPlanFile: a plan is written as the golden says and read back.
func TestPlanFile(t *testing.T) {
	p := &Plan{
		Machine: "4 × NVIDIA H200", Driver: "CUDA 13.0", Date: "2026-11-20",
		GPUs: []string{"NVIDIA H200", "NVIDIA H100 80GB HBM3"}, Path: "p2p",
		Rows: []PlanRow{
			{Kind: call.AllReduce, From: 4, To: 4, UpTo: -1, Algo: "ring", Blocks: 128, Few: 64},
			{Kind: call.AllGather, From: 5, To: 8, Registered: true, UpTo: 3 << 20, Algo: "window", Blocks: 32,
				Note: "from the model"},
			{Kind: call.AllReduce, From: 4, To: 4, UpTo: 1000, Algo: "oneshot"},
			{Kind: call.AllReduce, From: 4, To: 4, Registered: true, UpTo: -1, Algo: "window"},
		},
	}
	p.Sort()
	text := p.String()
	golden := filepath.Join("testdata", "plan.txt")
	if *rewrite {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(text), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
	sameAfterRead(t, p)
}

func sameAfterRead(t require.TestingT, p *Plan) {
	q, err := ParsePlan("x", p.String())
	require.NoError(t, err)
	for i := range q.Rows {
		q.Rows[i].line = 0
	}
	q.name = p.name
	require.Equal(t, p, q)
}

func TestPlanRoundTrip(t *testing.T) {
	word := rapid.StringMatching(`[A-Za-z][A-Za-z0-9 ×.]{0,12}[a-z0-9]`)
	rapid.Check(t, func(t *rapid.T) {
		p := &Plan{Machine: word.Draw(t, "machine"), Driver: word.Draw(t, "driver"), Date: "2026-11-20"}
		p.Path = rapid.SampledFrom([]string{"", "p2p", "host memory", "bridge"}).Draw(t, "path")
		for range rapid.IntRange(0, 2).Draw(t, "gpus") {
			p.GPUs = append(p.GPUs, word.Draw(t, "gpu"))
		}
		for _, kind := range planKinds {
			upTo := int64(0)
			for upTo >= 0 && rapid.Bool().Draw(t, "row") {
				r := PlanRow{Kind: kind, From: rapid.IntRange(1, 9).Draw(t, "from"), To: 9,
					Registered: rapid.Bool().Draw(t, "registered")}
				r.Algo = rapid.SampledFrom(algorithmsOnGPUs(kind, r.Registered)).Draw(t, "algorithm")
				if rapid.Bool().Draw(t, "measured") {
					r.Blocks = rapid.IntRange(1, 128).Draw(t, "blocks")
					r.Few = rapid.IntRange(0, r.Blocks).Draw(t, "few")
				}
				upTo = rapid.Int64Range(upTo+1, upTo+1<<30).Draw(t, "up to")
				r.UpTo = upTo
				if rapid.Bool().Draw(t, "all") {
					upTo, r.UpTo = -1, -1
				}
				p.Rows = append(p.Rows, r)
			}
		}
		sameAfterRead(t, p)
	})
}

// TestPlanMistakes: every mistake is found at its line.
func TestPlanMistakes(t *testing.T) {
	const head = "ringo plan 1\n# comment\n\n"
	for name, test := range map[string]struct {
		text string
		line int
		want string
	}{
		"empty":           {"", 1, "the first line must be"},
		"other version":   {"ringo plan 3\n", 1, `the first line must be "ringo plan 1" or "ringo plan 2"`},
		"blocks":          {head + "allreduce 4 any all ring many\n", 4, `blocks "many": want 1 to 128`},
		"no blocks":       {head + "allreduce 4 any all ring 0\n", 4, `blocks "0"`},
		"many blocks":     {head + "allreduce 4 any all ring 129\n", 4, `blocks "129"`},
		"more if thrifty": {head + "allreduce 4 any all ring 32/64\n", 4, `blocks "32/64"`},
		"half of two":     {head + "allreduce 4 any all ring 32/\n", 4, `blocks "32/"`},
		"more words":      {head + "allreduce 4 any all ring 32 16\n", 4, "7 words"},
		"report":          {"{\n", 1, "the first line must be"},
		"unknown word":    {head + "machin x\n", 4, "2 words"},
		"collective":      {head + "allreduze 4 any all ring\n", 4, "neither a collective (allreduce, "},
		"send":            {head + "send 4 any all direct\n", 4, "neither a collective"},
		"words":           {head + "allreduce 4 any ring\n", 4, "4 words"},
		"ranks":           {head + "allreduce four any all ring\n", 4, "want a number, or two as in 5-8"},
		"ranks backward":  {head + "allreduce 8-5 any all ring\n", 4, `ranks "8-5"`},
		"no ranks":        {head + "allreduce 0 any all ring\n", 4, `ranks "0"`},
		"memory":          {head + "allreduce 4 some all ring\n", 4, "neither any nor registered"},
		"size":            {head + "allreduce 4 any 1X ring\n", 4, "want a size such as 64K, or all"},
		"algorithm":       {head + "allreduce 4 any all rong\n", 4, `"rong" is none of ring, tree`},
		"auto":            {head + "allreduce 4 any all auto\n", 4, `"auto" is none of`},
		"not its own": {head + "alltoall 4 any all ring\n", 4,
			"alltoall has no algorithm ring; it has direct, hier, steps"},
		"window": {head + "allgather 4 any all window\n", 4, "for memory that may not be registered"},
		"covered": {head + "reduce 2-8 any all ring\nreduce 4 any 64K direct\n", 5,
			"line 4 has all of this row's sizes"},
		"path": {head + "path rail\n", 4, `path "rail" is none of p2p, pcie, host memory, bridge`},
		"late": {head + "reduce 2 any all ring\npath p2p\n", 5, "after the first row"},
		"gpu":  {head + "gpu\n", 4, "gpu without a name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParsePlan("my.plan", test.text)
			require.ErrorIs(t, err, call.ErrInvalid)
			var wrong *PlanError
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, test.line, wrong.Line)
			require.ErrorContains(t, err, test.want)
			require.ErrorContains(t, err, "ringo tune")
		})
	}
}

func FuzzParsePlan(f *testing.F) {
	f.Add("ringo plan 2\nreduce 2 any 64K direct 8\nreduce 2 any all ring 128/16\n")
	f.Add("ringo plan 1\nmachine x\ngpu y\npath p2p\nallreduce 4 any 64K oneshot # z\nallreduce 2-8 registered all " +
		"window\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePlan("x", text)
		if err != nil {
			var wrong *PlanError
			require.True(t, errors.As(err, &wrong))
			return
		}
		q, err := ParsePlan("x", p.String())
		require.NoError(t, err, p.String())
		require.Equal(t, p.String(), q.String())
	})
}

// TestBuiltinPlans: they can be read, have all collectives for up to 8 ranks and
// all sizes, and say which rows were not measured.
func TestBuiltinPlans(t *testing.T) {
	require.NotEmpty(t, builtinPlans())
	for _, p := range builtinPlans() {
		require.NotEmpty(t, p.Machine)
		require.NotEmpty(t, p.Driver)
		require.NotEmpty(t, p.Date)
		require.NotEmpty(t, p.GPUs)
		for ranks := 2; ranks <= 8; ranks++ {
			var rows Rows
			rows.add(p, &Fabric{Topo: Topology{Ranks: ranks}})
			for _, kind := range planKinds {
				list := rows[kind][0]
				require.NotEmpty(t, list, "%v of %d", kind, ranks)
				require.GreaterOrEqual(t, list[len(list)-1].Most, call.MaxCount/ranks, "%v of %d", kind, ranks)
				for _, r := range list {
					require.True(t, ranks == 2 || ranks == 4 || strings.Contains(r.From, "extrapolated"))
				}
			}
		}
	}
}

// A given plan's rows count before the built-in ones, those for any memory too where memory is registered.
func TestGivenPlanFirst(t *testing.T) {
	f := &Fabric{GPUs: []string{"NVIDIA H200"}, Near: transport.OverP2P, Far: transport.OverP2P, Topo: Blocks(4, 4)}
	p, err := ParsePlan("mine", "ringo plan 1\nmachine x\ngpu NVIDIA H200\npath p2p\nallreduce 4 any all ring\n"+
		"allreduce 4 registered 4K oneshot\n")
	require.NoError(t, err)
	c := Chooser{Topo: f.Topo, Kernels: allKernels, Rows: RowsFor(p, f, collective.MaxMessage)}
	for bytes, want := range map[int]call.Algo{4 << 10: call.OneShot, 1 << 20: call.Ring} {
		ans := c.Choose(Question{Kind: call.AllReduce, Bytes: bytes, OnGPU: true, Registered: true})
		require.Equal(t, want, ans.Algo, "%d bytes: %s", bytes, ans.Why)
		require.Contains(t, ans.Why, "mine")
	}
}

// A plan that names a GPU on which it was not measured says so in its reasons.
func TestPlanElsewhere(t *testing.T) {
	for name, want := range map[string]string{"NVIDIA H200": "",
		"NVIDIA H100 80GB HBM3": "; measured on 4 × NVIDIA H200, NVSwitch, not on NVIDIA H100 80GB HBM3"} {
		ch, err := ExplainGPU(call.AllReduce, 4, 0, 1<<20, 0, GPUs{Name: name}, Options{})
		require.NoError(t, err)
		require.Equal(t, "twoshot", ch.Algo)
		require.Contains(t, ch.Reason, "h200.plan")
		if want == "" {
			require.NotContains(t, ch.Reason, "not on")
		} else {
			require.Contains(t, ch.Reason, want)
		}
	}
}

// Over PCIe and host memory the plan that was measured over NVLink does not count, and direct
// kernels are for short messages alone.
func TestExplainPCIe(t *testing.T) {
	ch, err := ExplainGPU(call.AllReduce, 4, 0, 1<<10, 0, GPUs{Path: "pcie", Registered: true}, Options{})
	require.NoError(t, err)
	require.NotContains(t, ch.Reason, "h200.plan")
	require.Contains(t, append(ch.Others, ch.Algo), "window")
	for _, path := range []string{"pcie", "host memory"} {
		for bytes, steps := range map[int]bool{64: false, collective.TornMessage(4): false, collective.TornMessage(4) +
			1: true} {
			ch, err = ExplainGPU(call.AllGather, 4, 0, bytes, 0, GPUs{Path: path}, Options{Algo: "direct"})
			require.NoError(t, err)
			require.Equal(t, steps, ch.Schedule != nil, "%d bytes over %s", bytes, path)
		}
	}
}
