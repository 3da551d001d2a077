package choice

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sched/sim"
)

// A Wire is what connects hosts, as the ranks have agreed on it.
type Wire struct {
	Network string // "socket" or "": a core moves the bytes; by any other a card does
	Mbps    int    // of all cards of a host together, 0 if not known
	Cards   int    // of a host
}

// usualMbps is for hosts whose cards do not say how fast they are.
const usualMbps = 25_000

// rate is what the cards of a host carry, in bytes a second, after headers.
func (w Wire) rate() float64 {
	if w.Mbps == 0 {
		w.Mbps = usualMbps
	}
	return 0.94 * float64(w.Mbps) / 8 * 1e6
}

// link is the connection of two ranks on different hosts, which have local ranks at most.
func (w Wire) link(local int) sim.Link {
	rate := w.rate()
	if w.Network == "" || w.Network == "socket" {
		return sim.Link{Latency: 12 * us, Overhead: 2 * us, Bandwidth: min(rate, 5*gb), Shared: rate, Busy: true}
	}
	l := sim.Link{Latency: 2 * us, Overhead: 0.5 * us, Bandwidth: rate / float64(max(1, w.Cards)), Shared: rate}
	if w.Cards >= local {
		l.Shared = 0 // a card for each rank
	}
	return l
}

const (
	fromSim     = "several hosts: the least time by the sim model of shared memory and the network"
	fromSimNear = fromSim + ", of the algorithms that connect a rank with at most 64 ranks of other hosts"
)

// across is the algorithm of a collective on several hosts, as for looksAt bytes of host memory.
func (t *Topology) across(kind call.Kind, bytes int) (call.Algo, string) {
	c, size := t.between(), logOf(bytes)
	at := &c.best[kind][size]
	if at.Load() == 0 {
		a, near := c.find(kind, 1<<size)
		found := uint32(a) << 1
		if near {
			found |= 1
		}
		at.Store(found)
	}
	found := at.Load()
	if found&1 != 0 {
		return call.Algo(found >> 1), fromSimNear
	}
	return call.Algo(found >> 1), fromSim
}

// logOf is the logarithm of a number of bytes, rounded up.
func logOf(bytes int) int { return min(bits.Len(uint(max(bytes, 1)-1)), mostSize) }

// costs are which algorithms take the least time across hosts. An entry depends on the layout and
// the wire alone, which all ranks know, so it does not matter who finds the entry, or when.
type costs struct {
	layout
	few  []layout                                // the samples of a large layout
	best [call.Kinds][mostSize + 1]atomic.Uint32 // twice the algorithm, one more for fromSimNear; 0: not found yet

	phases [call.Kinds][call.HierLog - call.Hier + 1]atomic.Int32 // 0: not counted yet
}

// phases returns in how many parts the schedule of an algorithm may be carried out, one after the other: inside the
// nodes, across them, inside. So parts inside the nodes have more lanes than the network has. It is 0 where parts hand
// each other scratch.
func (t *Topology) phases(kind call.Kind, a call.Algo) int {
	if t.Nodes() == 1 || kind != call.AllReduce && kind != call.AllGather || a < call.Hier || a > call.HierLog {
		return 0
	}
	n := &t.between().phases[kind][a-call.Hier]
	if n.Load() == 0 {
		n.Store(int32(len(sched.Phases(Key{Kind: kind, Algo: a}.Schedule(*t)))))
	}
	if all := int(n.Load()); all > 1 {
		return all
	}
	return 0
}

// between are the costs of several hosts.
func (t *Topology) between() *costs {
	if t.costs != nil {
		return t.costs
	}
	return costsOf(t.Hosts, t.wire)
}

// mostSize is the logarithm of the largest size that is looked at: more bytes make no other choice.
const mostSize = 40

// allCosts keeps costs by layout and wire.
var allCosts sync.Map

// costsOf are the costs of hosts and a wire, nil for one host.
func costsOf(hosts []int, w Wire) *costs {
	if len(hosts) < 2 {
		return nil
	}
	type key struct {
		layout string
		wire   Wire
	}
	k := key{layoutOf(hosts), w}
	if c, ok := allCosts.Load(k); ok {
		return c.(*costs)
	}
	l := newLayout(hosts, w, slices.Max(hosts))
	c, _ := allCosts.LoadOrStore(k, &costs{layout: l, few: l.samples(w)})
	return c.(*costs)
}

// layoutOf is a list of ranks a host as a key of maps.
func layoutOf(hosts []int) string {
	var b []byte
	for _, n := range hosts {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return string(b)
}

// find is the quickest of the book's algorithms for a collective whose Count elements take bytes, or, which near
// reports, one that connects few ranks: see worthPeers. A program's own are chosen only if asked for.
func (c *costs) find(kind call.Kind, bytes int) (a call.Algo, near bool) {
	times := c.times(kind, bytes)
	best, least := Default(kind), math.Inf(1) // of all
	few, took := best, least                  // of those that connect few ranks
	for i := range lines[kind] {
		a, time := lines[kind][i].algo, times[i]
		if time < 0.99*least { // ties go to the first
			best, least = a, time
		}
		if time < 0.99*took && c.reaches(Key{Kind: kind, Algo: a}.Schedule(c.topo)) <= farPeers {
			few, took = a, time
		}
	}
	if took <= worthPeers*least {
		return few, few != best
	}
	return best, false
}

// times are the seconds of the book's algorithms, infinite for one that is not for this layout or too slow to be
// chosen. Algorithms of few steps are timed first: then the estimate of a slow one with many ends early.
func (c *costs) times(kind call.Kind, bytes int) []float64 {
	const near = 1.02 * worthPeers
	times := make([]float64, len(lines[kind]))
	var order []int
	steps := make([]int, len(lines[kind]))
	for i := range lines[kind] {
		times[i] = math.Inf(1)
		if t := &lines[kind][i]; t.offers(c.topo) {
			order, steps[i] = append(order, i), Key{Kind: kind, Algo: t.algo}.Schedule(c.topo).Len(0)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return steps[a] - steps[b] })
	least := math.Inf(1)
	for _, i := range order {
		times[i] = c.time(kind, lines[kind][i].algo, bytes, near*least)
		least = min(least, times[i])
	}
	return times
}
