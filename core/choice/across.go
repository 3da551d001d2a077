package choice

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/sched/sim"
)

// A Wire is what connects hosts, as the ranks have agreed on it.
type Wire struct {
	Network string // "socket", or what moves bytes without a core's help
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

// link is the connection of two ranks on different hosts with local ranks each at most.
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
	fromSim   = "several hosts: the least time by the sim model of shared memory and the network"
	fromRules = "many hosts: by size, as the sim model ranks algorithms on 64 and 1,024 hosts"
)

// simRanks is for how many ranks host algorithms are timed. An estimate takes less than a
// ms for that many, and the first call of a size some ms.
const simRanks = 64

// across is the algorithm of a collective on host memory of several hosts.
func (t *Topology) across(kind call.Kind, bytes int) (call.Algo, string) {
	if t.Ranks > simRanks {
		return t.byRules(kind, bytes), fromRules
	}
	c := t.costs
	if c == nil {
		c = costsOf(t.Hosts, t.wire)
	}
	size := min(bits.Len(uint(max(bytes, 1)-1)), mostSize)
	at := &c.best[kind][size]
	if a := at.Load(); a != 0 {
		return call.Algo(a), fromSim
	}
	a := c.find(kind, 1<<size)
	at.Store(uint32(a))
	return a, fromSim
}

// byRules are crossings of what "ringo sim" says of 64 to 8,192 hosts of 8, and for ranks without hierarchy
// the nearest algorithm that few others of each rank take part in.
func (t *Topology) byRules(kind call.Kind, bytes int) call.Algo {
	hosts := t.Nodes()
	pick := func(hier, flat call.Algo) call.Algo {
		if t.grouped() {
			return hier
		}
		return flat
	}
	switch kind {
	case call.AllReduce:
		switch {
		case bytes <= 512<<10:
			return pick(call.HierLog, call.Doubling)
		case bytes <= hosts*128<<10:
			return pick(call.HierTree, call.Tree)
		}
	case call.AllGather, call.ReduceScatter:
		if bytes <= hosts*256<<10/t.Ranks {
			return pick(call.HierLog, call.LogStep)
		}
	case call.Broadcast, call.Reduce:
		if bytes > 512<<10 {
			return pick(call.HierTree, call.Tree)
		}
		return pick(call.Hier, call.Binomial)
	case call.AlltoAll:
		return call.Direct
	}
	return pick(call.Hier, Default(kind))
}

// costs are which algorithms take the least time across hosts, by collective and the
// logarithm of the size; 0 is not known yet. It depends on the layout and the wire alone, which all
// ranks know, so it does not matter who finds an entry, or when.
type costs struct {
	topo  Topology // in order
	model sim.Model
	best  [call.Kinds][mostSize + 1]atomic.Uint32
}

// mostSize is the logarithm of the largest size that is looked at: more of it makes no other choice.
const mostSize = 40

// allCosts keeps costs by layout and wire.
var allCosts sync.Map

// costsOf is nil for one host.
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
	topo := Topology{Hosts: hosts}
	for _, n := range hosts {
		topo.Ranks += n
	}
	m := sim.SharedMemory
	m.Nodes, m.Inter = hosts, w.link(topo.most())
	c, _ := allCosts.LoadOrStore(k, &costs{topo: topo, model: m})
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

// find times all algorithms of a collective whose Count elements take bytes. What a program has
// defined is chosen only if it is asked for.
func (c *costs) find(kind call.Kind, bytes int) call.Algo {
	best, least := Default(kind), math.Inf(1)
	for i := range lines[kind] {
		t := &lines[kind][i]
		if kind.Pairwise() || !t.offers(c.topo) {
			continue
		}
		if took := c.time(kind, t.algo, bytes, 0); took < 0.99*least { // ties go to the first
			best, least = t.algo, took
		}
	}
	return best
}

// time is that of an algorithm in seconds, infinite if it cannot be.
func (c *costs) time(kind call.Kind, a call.Algo, bytes int, root int32) float64 {
	s := Key{Kind: kind, Algo: a, Peer: root}.Schedule(c.topo)
	took, err := sim.Estimate(s, c.model, int64(bytes)*int64(kind.Shares(c.topo.Ranks)))
	if err != nil {
		return math.Inf(1)
	}
	return took
}
