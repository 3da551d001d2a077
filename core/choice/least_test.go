package choice

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/transport"
)

// TestModelledIsLeast explains random calls on hosts and GPUs: where a model has chosen, no algorithm that it lists
// takes less time, but for a hundredth, which is a tie, and a network's peers. Where none has, the text says so.
func TestModelledIsLeast(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	models, others := map[string]int{}, 0
	for range tier.Count(200, 800) {
		kind := call.Broadcast + call.Kind(r.IntN(int(call.Scatter-call.Broadcast)+1))
		n, bytes := 2+max(0, r.IntN(tier.Count(20, 41))-10), 1<<(3+r.IntN(27))
		bytes += bytes / 5 * r.IntN(5)
		local, root := r.IntN(n+1), r.IntN(n)
		o := Options{HostMbps: []int{0, 1000, 400_000}[r.IntN(3)], Budget: Budget{Policy: Policy(r.IntN(int(policies)))}}
		explain := func() (Choice, error) { return Explain(kind, n, local, bytes, root, o) }
		if r.IntN(2) == 0 {
			gpus := GPUs{Name: []string{"", "NVIDIA B300", "NVIDIA A100"}[r.IntN(3)],
				Path: transport.GPUPathNames[1:][r.IntN(4)], Registered: r.IntN(2) == 0}
			explain = func() (Choice, error) { return ExplainGPU(kind, n, local, bytes, root, gpus, o) }
		}
		ch, err := explain()
		require.NoError(t, err)
		list := ch.Alternatives()
		if ch.Modelled == 0 || len(list) == 0 {
			others++
			require.NotContains(t, []string{fromSim, fromSimNear, fromModel}, ch.Reason)
			continue
		}
		models[ch.Reason]++
		require.Less(t, ch.Bytes, ch.Modelled*2, "the size that it looks at is near")
		for _, a := range list {
			if a.Chosen {
				require.NotZero(t, a.Time, "%+v", ch)
				require.LessOrEqual(t, 0.99*a.Time, list[0].Time, "%+v: %s takes less", ch, list[0].Algo)
			}
		}
	}
	require.Positive(t, models[fromSim])
	require.Positive(t, models[fromModel])
	require.Positive(t, others)
}
