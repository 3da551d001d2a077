package sim_test

import (
	"fmt"
	"math"
	"math/bits"
	"testing"

	"github.com/ringo-go/ringo/direct"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sim"
	"github.com/ringo-go/ringo/tree"
	"github.com/stretchr/testify/require"
)

const (
	alpha = 2e-6  // s
	beta  = 1e-10 // s a byte
	gamma = 3e-11 // s a byte
)

// hockney is a machine in which the closed forms of Thakur et al. are exact.
var hockney = sim.Model{
	Name:      "α-β-γ",
	Intra:     sim.Link{Latency: alpha, Bandwidth: 1 / beta},
	Reduce:    gamma,
	SlotBytes: 1 << 20,
}

func lg(n int) float64 { return float64(bits.Len(uint(n - 1))) }

// The closed forms of Thakur, Rabenseifner and Gropp (2005), section 4, for
// messages of one slice.
func TestClosedForms(t *testing.T) {
	for _, n := range []int{2, 3, 4, 7, 8, 16, 64} {
		const s = 840 * 64 // divides by all n
		m := float64(s) / float64(n)
		p := float64(n)
		for _, tc := range []struct {
			name  string
			sched sched.Schedule
			want  float64
		}{
			{"ring all-gather", ring.AllGather{N: n}, (p - 1) * (alpha + m*beta)},
			{"ring reduce-scatter", ring.ReduceScatter{N: n}, (p - 1) * (alpha + m*beta + m*gamma)},
			{"ring all-reduce", ring.AllReduce{N: n}, 2*(p-1)*(alpha+m*beta) + (p-1)*m*gamma},
			{"binomial broadcast", broadcast{n}, lg(n) * (alpha + s*beta)},
			{"recursive doubling", doubling{n}, lg(n) * (alpha + s*beta + s*gamma)},
			{"pairwise all-to-all", direct.AllToAll{N: n}, (p - 1) * (alpha + m*beta)},
		} {
			if tc.name == "recursive doubling" && n&(n-1) != 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s of %d", tc.name, n), func(t *testing.T) {
				res, err := sim.Run(tc.sched, hockney, s)
				require.NoError(t, err)
				require.InEpsilon(t, tc.want, res.Time, 1e-9)
			})
		}
	}
}

// broadcast is a binomial tree from rank 0: larger subtrees first.
type broadcast struct{ n int }

func (b broadcast) Shape() sched.Shape { return sched.Shape{Ranks: b.n, In: 1, Out: 1} }

func (b broadcast) children(r sched.Rank) (to []sched.Rank) {
	for bit := 1; bit < b.n; bit *= 2 {
		if int(r)&bit != 0 {
			break
		}
		if c := int(r) | bit; c < b.n {
			to = append([]sched.Rank{sched.Rank(c)}, to...)
		}
	}
	return to
}

func (b broadcast) Len(r sched.Rank) int { return max(1, len(b.children(r))) + min(1, int(r))*min(1, len(b.children(r))) }

func (b broadcast) At(r sched.Rank, i int) sched.Step {
	out := sched.Ref{Buf: sched.Out}
	if r != 0 && i == 0 {
		return sched.Step{Recv: r & (r - 1), Dst: out, Send: sched.Nobody}
	}
	if r != 0 {
		i--
	}
	return sched.Step{Recv: sched.Nobody, Src: out, Send: b.children(r)[i]}
}

// doubling exchanges all data with a partner 1, 2, 4 … away; n is a power of 2.
type doubling struct{ n int }

func (d doubling) Shape() sched.Shape    { return sched.Shape{Ranks: d.n, In: 1, Out: 1} }
func (d doubling) Len(sched.Rank) int    { return 2 * int(lg(d.n)) }
func (d doubling) At(r sched.Rank, i int) sched.Step {
	src := sched.Ref{Buf: sched.Out}
	if i == 0 {
		src.Buf = sched.In
	}
	peer := r ^ 1<<(i/2)
	if i%2 == 0 {
		return sched.Step{Recv: sched.Nobody, Src: src, Send: peer}
	}
	return sched.Step{Recv: peer, Src: sched.Ref{Buf: sched.Out}, Dst: sched.Ref{Buf: sched.Out}, Send: sched.Nobody}
}

var _ = math.Pi
var _ = tree.AllReduce{}

func BenchmarkRing2560(b *testing.B) {
	for b.Loop() {
		_, err := sim.Run(ring.AllReduce{N: 2560}, hockney, 1<<30)
		require.NoError(b, err)
	}
}

func BenchmarkRing10240(b *testing.B) {
	for b.Loop() {
		_, err := sim.Run(ring.AllReduce{N: 10240}, hockney, 1<<30)
		require.NoError(b, err)
	}
}

func BenchmarkEstimate(b *testing.B) {
	for _, n := range []int{2, 8, 64} {
		for _, bytes := range []int64{8, 1 << 20, 1 << 30} {
			for name, m := range map[string]sim.Model{"hockney": hockney, "shared": sim.SharedMemory} {
				b.Run(fmt.Sprintf("%s/%d/%d", name, n, bytes), func(b *testing.B) {
					b.ReportAllocs()
					var s sched.Schedule = ring.AllReduce{N: n}
					for b.Loop() {
						_, err := sim.Estimate(s, m, bytes)
						require.NoError(b, err)
					}
				})
			}
		}
	}
}
