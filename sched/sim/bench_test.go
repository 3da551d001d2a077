package sim_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sched/sim"
)

func BenchmarkRun(b *testing.B) {
	for _, tc := range []struct {
		name  string
		sched sched.Schedule
		model sim.Model
		bytes int64
	}{
		{"ring of 2048, 1 GB", ring.AllReduce{N: 2048}, sim.InfiniBandNDR, 1e9},
		{"ring of 10240, 1 GB", ring.AllReduce{N: 10_240}, sim.InfiniBandNDR, 1e9},
		{"ring of 10240, 1 GB, own ports", ring.AllReduce{N: 10_240}, hockney, 1e9},
		{"tree of 1000000, 1 MB", tree.AllReduce{N: 1_000_000}, sim.InfiniBandNDR, 1e6},
	} {
		b.Run(tc.name, func(b *testing.B) {
			if testing.Short() && tc.sched.Shape().Ranks > 5000 {
				b.Skip("takes a quarter of a minute")
			}
			steps := 0
			for r := range tc.sched.Shape().Ranks {
				steps += tc.sched.Len(sched.Rank(r))
			}
			for b.Loop() {
				_, err := sim.Run(context.Background(), tc.sched, tc.model, tc.bytes, sim.Options{})
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(steps), "ns/step")
		})
	}
}

func BenchmarkEstimate(b *testing.B) {
	for _, n := range []int{2, 8, 64} {
		for _, bytes := range []int64{8, 1 << 20, 1 << 30} {
			for _, preset := range []string{"nvlink", "shm"} {
				b.Run(fmt.Sprintf("ring of %d, %d bytes, %s", n, bytes, preset), func(b *testing.B) {
					var s sched.Schedule = ring.AllReduce{N: n}
					for b.Loop() {
						_, err := sim.Estimate(s, sim.Presets[preset], bytes)
						require.NoError(b, err)
					}
				})
			}
		}
	}
}
