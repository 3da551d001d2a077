package choice

import (
	"math"
	"math/bits"
	"slices"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sched/sim"
)

// A layout is hosts with their ranks in order, and their model.
type layout struct {
	topo  Topology
	model sim.Model
}

func newLayout(hosts []int, w Wire, most int) layout {
	l := layout{topo: Topology{Hosts: hosts}, model: sim.SharedMemory}
	for _, n := range hosts {
		l.topo.Ranks += n
	}
	l.model.Nodes, l.model.Inter = hosts, w.link(most)
	return l
}

// A schedule is simulated whole on at most so many ranks, hosts or steps, and otherwise on samples. Of chunks above
// largeChunk, which take several rounds, fewOfLarge steps are the limit.
const (
	simRanks   = 64
	fewHosts   = 16
	fewSteps   = 16_000
	fewOfLarge = 5_000
	largeChunk = 512 << 10
)

// farPeers is with how many ranks of other hosts a rank should be connected at most, and worthPeers how many times as
// quick a schedule with more has to be. Over verbs a peer takes 3 MiB of memory that cannot be paged: 192 MiB in all.
const (
	farPeers   = 64
	worthPeers = 1.25
)

// alike reports whether all hosts have the same number of ranks.
func (l *layout) alike() bool { return slices.Min(l.topo.Hosts) == l.topo.most() }

// samples are three layouts of few hosts like these, at equal distances in the list from the smallest to the largest.
// They have a power of two of hosts only if the layout has: algorithms of log steps depend on that.
func (l *layout) samples(w Wire) (few []layout) {
	hosts := len(l.topo.Hosts)
	if l.topo.Ranks <= simRanks || hosts <= fewHosts {
		return nil
	}
	sorted := slices.Sorted(slices.Values(l.topo.Hosts))
	for _, count := range sampleHosts(hosts, l.alike()) {
		var list []int
		for i := range count {
			list = append(list, sorted[i*(hosts-1)/(count-1)])
		}
		few = append(few, newLayout(list, w, l.topo.most()))
	}
	return few
}

// sampleHosts is how many hosts each sample of a layout has: twice as many as the one before, as algorithms of log
// steps have as many chunks as the power of two below their ranks.
func sampleHosts(hosts int, alike bool) [3]int {
	power := hosts&(hosts-1) == 0
	switch {
	case alike && power:
		return [3]int{4, 8, 16}
	case power:
		return [3]int{2, 4, 8}
	}
	return [3]int{3, 6, 12}
}

// time is the seconds that an algorithm takes, infinite if it cannot be simulated or takes more than limit. Of a large
// schedule the samples are timed, with chunks as long as the whole has, and carry finds the time of all ranks: every
// algorithm of the book takes so much for each rank, so much for each doubling of ranks, and the rest once.
func (c *costs) time(kind call.Kind, a call.Algo, bytes int, limit float64) float64 {
	key := Key{Kind: kind, Algo: a}
	total := int64(bytes) * int64(kind.Shares(c.topo.Ranks))
	whole := key.Schedule(c.topo)
	chunks := chunksOf(whole)
	few := fewSteps
	if total/chunks > largeChunk {
		few = fewOfLarge
	}
	if c.few == nil || stepsOf(whole, few) <= few {
		return estimate(whole, c.model, total, limit)
	}
	var x [3]growth
	for i, l := range c.few {
		s := key.Schedule(l.topo)
		share := max(1, (total+chunks-1)/chunks) * chunksOf(s)
		if total < chunks {
			share = total
		}
		x[i] = growth{float64(l.topo.Ranks), float64(bits.Len(uint(l.topo.Ranks - 1))), estimate(s, l.model, share, limit)}
		if math.IsInf(x[i].time, 1) {
			return x[i].time
		}
	}
	return carry(x, float64(c.topo.Ranks), float64(bits.Len(uint(c.topo.Ranks-1))))
}

func estimate(s sched.Schedule, m sim.Model, bytes int64, limit float64) float64 {
	t, err := sim.EstimateWithin(s, m, bytes, limit)
	if err != nil {
		return math.Inf(1)
	}
	return t
}

// stepsOf counts the steps of all ranks, and stops when there are more than most.
func stepsOf(s sched.Schedule, most int) (steps int) {
	for r := 0; r < s.Shape().Ranks && steps <= most; r++ {
		steps += s.Len(sched.Rank(r))
	}
	return steps
}

// reaches is how many ranks of other hosts a rank of the first or the last host is connected with at most: the root is
// one of these, and where a schedule reaches many, all ranks are alike.
func (l *layout) reaches(s sched.Schedule) (most int) {
	n, first := l.topo.Ranks, l.topo.Hosts[0]
	last := n - l.topo.Hosts[len(l.topo.Hosts)-1]
	for r := range n {
		if r >= first && r < last {
			continue
		}
		peers := map[sched.Rank]bool{}
		for i := range s.Len(sched.Rank(r)) {
			step := s.At(sched.Rank(r), i)
			for _, p := range []sched.Rank{step.Recv, step.Send} {
				if p != sched.Nobody && ((int(p) < first) != (r < first) || (int(p) >= last) != (r >= last)) {
					peers[p] = true
				}
			}
		}
		most = max(most, len(peers))
	}
	return most
}

func chunksOf(s sched.Schedule) int64 {
	shape := s.Shape()
	return int64(max(shape.In, shape.Out))
}

// A growth is the time that a number of ranks takes. Doublings are the logarithm of ranks, rounded up.
type growth struct{ ranks, doublings, time float64 }

// carry is the time of more ranks, by the function a + b·ranks + c·doublings through three. If b or c is negative, it
// is taken for 0. Products are rounded before they are added, so that all processors find the same.
func carry(x [3]growth, ranks, doublings float64) float64 {
	d1, d2 := x[1].doublings-x[0].doublings, x[2].doublings-x[1].doublings
	r1, r2 := x[1].ranks-x[0].ranks, x[2].ranks-x[1].ranks
	t1, t2 := x[1].time-x[0].time, x[2].time-x[1].time
	each, double := 0.0, 0.0
	if det := float64(r1*d2) - float64(r2*d1); det != 0 {
		each = (float64(t1*d2) - float64(t2*d1)) / det
		double = (float64(r1*t2) - float64(r2*t1)) / det
	}
	switch {
	case each < 0:
		each, double = 0, max(0, t2/max(1, d2))
	case double < 0:
		each, double = max(0, t2/r2), 0
	}
	return x[2].time + float64(each*(ranks-x[2].ranks)) + float64(double*(doublings-x[2].doublings))
}
