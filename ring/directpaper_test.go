package ring_test

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/schedtest"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/sched"
)

func floorLog(n int) int { return bits.Len(uint(n)) - 1 }

// The numbers that the doc comments begin with, computed from the schedules.
// Sent is in chunks, Shape says how many make the data.
func TestDirectPapers(t *testing.T) {
	for name, c := range map[string]struct {
		build             func(n int) sched.Schedule
		hops, sent, parts func(n int) int
	}{
		"OneShot": {
			build: func(n int) sched.Schedule { return direct.OneShot{N: n} },
			hops:  func(int) int { return 1 },
			sent:  func(n int) int { return n - 1 },
			parts: func(int) int { return 1 },
		},
		"TwoShot": { // Patarasuk and Yuan, lower bound: 2(n-1)/n is the least
			build: func(n int) sched.Schedule { return direct.TwoShot{N: n} },
			hops:  func(int) int { return 2 },
			sent:  func(n int) int { return 2 * (n - 1) },
			parts: func(n int) int { return n },
		},
		"AlltoAll": {
			build: func(n int) sched.Schedule { return direct.AlltoAll{N: n} },
			hops:  func(n int) int { return round(n - 1) },
			sent:  func(n int) int { return n - 1 },
			parts: func(n int) int { return n },
		},
		"AllGather": {
			build: func(n int) sched.Schedule { return direct.AllGather{N: n} },
			hops:  func(int) int { return 1 },
			sent:  func(n int) int { return n - 1 },
			parts: func(n int) int { return n },
		},
		"ReduceScatter": {
			build: func(n int) sched.Schedule { return direct.ReduceScatter{N: n} },
			hops:  func(int) int { return 1 },
			sent:  func(n int) int { return n - 1 },
			parts: func(n int) int { return n },
		},
		"Gather": {
			build: func(n int) sched.Schedule { return direct.Gather{N: n} },
			hops:  func(int) int { return 1 },
			sent:  func(int) int { return 1 },
			parts: func(n int) int { return n },
		},
		"Scatter": {
			build: func(n int) sched.Schedule { return direct.Scatter{N: n} },
			hops:  func(int) int { return 1 },
			sent:  func(n int) int { return n - 1 },
			parts: func(n int) int { return n },
		},
		"RecursiveDoubling": { // Thakur, Rabenseifner and Gropp, section 4.5: lg p α + n lg p β
			build: func(n int) sched.Schedule { return direct.RecursiveDoubling{N: n} },
			hops: func(n int) int {
				if p := 1 << floorLog(n); n-p <= p/2 { // ranks with a folded half get the last sum from ranks without
					return floorLog(n) + folds(n, 1)
				}
				return floorLog(n) + folds(n, 2)
			},
			sent:  func(n int) int { return floorLog(n) + folds(n, 1) },
			parts: func(int) int { return 1 },
		},
		"HalvingDoubling": { // Thakur, Rabenseifner and Gropp, section 4.5: 2 lg p rounds, 2(p-1)/p n β
			build: func(n int) sched.Schedule { return direct.HalvingDoubling{N: n} },
			hops: func(n int) int {
				hops := folds(n, 2)
				for m := 1 << floorLog(n) / 2; m > 0; m /= 2 {
					hops += 2 * round(m)
				}
				return hops
			},
			sent:  func(n int) int { p := 1 << floorLog(n); return 2*(p-1) + folds(n, p) },
			parts: func(n int) int { return 1 << floorLog(n) },
		},
		"LogAllGather": { // Bruck et al., section 4 (concatenation), one port: ⌈log₂ n⌉ rounds and n-1 blocks
			build: func(n int) sched.Schedule { return direct.LogAllGather{N: n} },
			hops:  logHops,
			sent:  func(n int) int { return n - 1 },
			parts: func(n int) int { return n },
		},
		"LogReduceScatter": { // Träff, reduce-scatter: ⌈log₂ p⌉ rounds and p-1 blocks
			build: func(n int) sched.Schedule { return direct.LogReduceScatter{N: n} },
			hops:  logHops,
			sent:  func(n int) int { return n - 1 },
			parts: func(n int) int { return n },
		},
	} {
		t.Run(name, func(t *testing.T) {
			for n := 2; n <= schedtest.MaxRanks; n++ {
				s := c.build(n)
				cost, err := sched.CostOf(s, n)
				require.NoError(t, err)
				require.Equal(t, c.hops(n), cost.Hops, "hops of %d ranks", n)
				require.Equal(t, c.sent(n), cost.Sent, "chunks sent of %d ranks", n)
				require.Equal(t, c.parts(n), max(s.Shape().In, s.Shape().Out), "chunks of %d ranks", n)
			}
		})
	}
}

// round is the hops of a round in which two ranks exchange m messages each.
func round(m int) int { return (m + 1) / 2 }

// logHops is of ⌈log₂ n⌉ rounds, which move half of what is left each.
func logHops(n int) (hops int) {
	for left := n; left > 1; left = (left + 1) / 2 {
		hops += round(left / 2)
	}
	return hops
}

// folds is what n costs more because it is no power of two.
func folds(n, more int) int {
	if n&(n-1) == 0 {
		return 0
	}
	return more
}
