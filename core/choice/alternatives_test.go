// Alternatives to a choice with their times, and what plans and definitions refuse.

package choice

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sched/sim"
	"github.com/ringo-go/ringo/transport"
)

// explainers are ways to ask for a choice of some bytes.
var explainers = map[string]func(bytes int) (Choice, error){
	"one host":  func(bytes int) (Choice, error) { return Explain(call.AllReduce, 4, 0, bytes, 0, Options{}) },
	"two hosts": func(bytes int) (Choice, error) { return Explain(call.AllReduce, 8, 4, bytes, 0, Options{}) },
	"rooted":    func(bytes int) (Choice, error) { return Explain(call.Broadcast, 5, 0, bytes, 3, Options{}) },
	"forced": func(bytes int) (Choice, error) {
		return Explain(call.AllGather, 4, 0, bytes, 0, Options{Algo: "ring"})
	},
	"GPUs": func(bytes int) (Choice, error) { return ExplainGPU(call.AllReduce, 4, 0, bytes, 0, GPUs{}, Options{}) },
	"GPUs with windows": func(bytes int) (Choice, error) {
		return ExplainGPU(call.AllGather, 4, 0, bytes, 0, GPUs{Registered: true}, Options{})
	},
}

// TestAlternatives: the list has the choice and each other name once, the known ones by their time.
func TestAlternatives(t *testing.T) {
	for name, explain := range explainers {
		ch, err := explain(1 << 20)
		require.NoError(t, err)
		var names []string
		last, unknown := 0.0, false
		for _, a := range ch.Alternatives() {
			names = append(names, a.Algo)
			require.Equal(t, a.Algo == ch.Algo, a.Chosen, "%s: %s", name, a.Algo)
			if unknown = unknown || a.Time == 0; unknown {
				require.Zero(t, a.Time, "%s: %s", name, a.Algo)
				continue
			}
			require.LessOrEqual(t, last, a.Time, "%s: %s", name, a.Algo)
			require.Less(t, a.Time, 1.0, "seconds")
			last = a.Time
		}
		require.ElementsMatch(t, append([]string{ch.Algo}, ch.Others...), names, name)
		require.NotZero(t, last, name)
	}
	ch, err := Explain(call.Broadcast, 5, 0, 1<<20, 3, Options{})
	require.NoError(t, err)
	require.Equal(t, sim.SharedMemory.String(), ch.Model())
	for _, a := range ch.Alternatives() {
		algo, err := call.ParseAlgo(a.Algo)
		require.NoError(t, err)
		want, err := sim.Estimate(Key{Kind: call.Broadcast, Algo: algo, Peer: 3}.Schedule(Blocks(5, 0)), sim.SharedMemory,
			1<<20)
		require.NoError(t, err)
		require.Equal(t, want, a.Time, a.Algo)
	}
}

// TestDifferences: the ranges are those where the model's best is another by more than a twentieth.
func TestDifferences(t *testing.T) {
	for name, explain := range explainers {
		ch, err := explain(1 << 20)
		require.NoError(t, err)
		differences := ch.Differences()
		if name == "forced" {
			require.NotEmpty(t, differences)
		}
		for i, d := range differences {
			require.LessOrEqual(t, d.From, d.To)
			if i > 0 && differences[i-1].To*2 == d.From {
				require.NotEqual(t, differences[i-1].Chosen+" "+differences[i-1].Model, d.Chosen+" "+d.Model, "ranges that are one")
			}
		}
		less := make([]float64, len(differences))
		for bytes := 8; bytes <= 1<<30; bytes *= 2 {
			at, err := explain(bytes)
			require.NoError(t, err)
			best, chosen := at.Alternatives()[0], 0.0
			for _, a := range at.Alternatives() {
				if a.Chosen {
					chosen = a.Time
				}
			}
			in := -1
			for i, d := range differences {
				if d.From <= bytes && bytes <= d.To {
					in = i
				}
			}
			if chosen == 0 || best.Time >= 0.95*chosen {
				require.Equal(t, -1, in, "%s: %d bytes", name, bytes)
				continue
			}
			require.NotEqual(t, -1, in, "%s: %d bytes", name, bytes)
			d := differences[in]
			require.Equal(t, [2]string{at.Algo, best.Algo}, [2]string{d.Chosen, d.Model}, "%s: %d bytes", name, bytes)
			less[in] = max(less[in], 1-best.Time/chosen)
		}
		for i, d := range differences {
			require.InDelta(t, less[i], d.Less, 1e-9, name)
		}
	}
}

// TestNoAlternatives: a choice that has none says so.
func TestNoAlternatives(t *testing.T) {
	ch, err := Explain(call.AllReduce, 4, 0, 64, 0, Options{InOrder: true})
	require.NoError(t, err)
	require.Empty(t, ch.Others)
	require.Empty(t, ch.Model())
	require.Nil(t, ch.Alternatives())
	require.Nil(t, ch.Differences())
	many, err := Explain(call.Barrier, differenceRanks+1, 0, 0, 0, Options{})
	require.NoError(t, err)
	require.Nil(t, many.Differences(), "too many ranks to compare")
}

// TestExplainGPUs: the path, the plan and the hosts of GPUs that need not exist.
func TestExplainGPUs(t *testing.T) {
	model := func(local int, path string) string {
		ch, err := ExplainGPU(call.AllReduce, 4, local, 1<<20, 0, GPUs{Path: path}, Options{})
		require.NoError(t, err)
		return ch.Model()
	}
	require.Equal(t, "round figures of H200s, path p2p", model(0, ""))
	require.Equal(t, "round figures of H200s, path pcie", model(0, "pcie"))
	require.Equal(t, "round figures of H200s, path p2p, between hosts bridge", model(2, ""))
	missing := filepath.Join(t.TempDir(), "no.plan")
	for _, test := range []struct {
		gpus    GPUs
		options Options
		want    string
	}{
		{GPUs{Path: "nvlink"}, Options{}, `invalid argument: path "nvlink" is none of p2p, pcie, host memory, bridge`},
		{GPUs{}, Options{Algo: "quantum"}, `invalid argument: algorithm "quantum" is none of`},
		{GPUs{}, Options{Plan: missing}, "plan of rank 0: " + missing + ": "},
	} {
		_, err := ExplainGPU(call.AllReduce, 4, 0, 1<<20, 0, test.gpus, test.options)
		require.ErrorIs(t, err, call.ErrInvalid)
		require.ErrorContains(t, err, test.want)
	}
	for _, bad := range [][5]int{{0, 0, 1, 0}, {2, -1, 1, 0}, {2, 0, -1, 0}, {2, 0, 1, -1}, {2, 0, 1, 2}} {
		_, err := ExplainGPU(call.Reduce, bad[0], bad[1], bad[2], bad[3], GPUs{}, Options{})
		require.EqualError(t, err, fmt.Sprintf("invalid argument: explain Reduce of %d bytes on %d ranks, root %d", bad[2],
			bad[0], bad[3]))
	}
}

// TestPlanWords: what plans and fabrics are called.
func TestPlanWords(t *testing.T) {
	p, err := ParsePlan("my.plan", "ringo plan 1\n")
	require.NoError(t, err)
	require.Equal(t, "my.plan", p.Name())
	require.Equal(t, "any GPU, any path", (&Plan{}).Scope())
	require.Equal(t, "A, B, pcie", (&Plan{GPUs: []string{"A", "B"}, Path: "pcie"}).Scope())
	f := &Fabric{GPUs: []string{"B", "A", "B"}, Near: transport.OverP2P, Far: transport.OverP2P}
	require.Equal(t, "A, B, p2p", f.String())
	f.Far = transport.OverBridge
	require.Equal(t, "A, B, several paths", f.String())

	none := LoadPlan("")
	plan, err := none.Parse()
	require.NoError(t, err)
	require.Nil(t, plan)
	_, err = ParsePlan("long", strings.Repeat("#", maxPlan+1))
	require.EqualError(t, err,
		`invalid argument: plan of rank 0: long: 1048577 bytes are no plan; "ringo tune" writes a new one, and without RINGO_PLAN and Config.Plan the built-in one counts`)
	_, err = ParsePlan("long", strings.Repeat("#", maxPlan))
	require.ErrorContains(t, err, "rank 0: long:1: ", "of as many bytes as it may have")
	_, err = DecodeRows([]byte("x"))
	require.ErrorContains(t, err, "rank 0's plan: ")
}

// TestDefineRefuses: an algorithm that does not do what it says has no name afterwards.
func TestDefineRefuses(t *testing.T) {
	ring := func(n int, _ sched.Rank) sched.Schedule {
		return Key{Kind: call.AllReduce, Algo: call.Ring}.Schedule(Blocks(n, 0))
	}
	before := call.Defined()
	for want, d := range map[string]Definition{
		`define "mine": Barrier is not a collective that a schedule can be proved for`: {Name: "mine", Kind: call.Barrier,
			Schedule: ring},
		`define "mine": Send is not a collective that a schedule can be proved for`: {Name: "mine", Kind: call.Send,
			Schedule: ring},
		`define "mine": no Schedule`:    {Name: "mine", Kind: call.AllReduce},
		`define "mine" for AllGather: `: {Name: "mine", Kind: call.AllGather, Schedule: ring},
		`define "mine" for AllGather: 3 ranks: `: {Name: "mine", Kind: call.AllGather, Schedule: ring,
			Ranks: func(n int) bool { return n == 3 }},
		`algorithm "two words": want a word`: {Name: "two words", Kind: call.AllReduce, Schedule: ring},
		`algorithm "tree" is there already`:  {Name: "tree", Kind: call.AllReduce, Schedule: ring},
	} {
		err := Define(d)
		require.ErrorIs(t, err, call.ErrInvalid)
		require.ErrorContains(t, err, "invalid argument: "+want)
	}
	require.Equal(t, before, call.Defined())
	require.Equal(t, lines[call.AllReduce], tables(call.AllReduce))
}
