package choice

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/sched/sim"
)

// A Wire is what connects nodes, as the ranks have agreed on it.
type Wire struct {
	Network string // "socket", or what moves bytes without a core's help
	Mbps    int    // of all cards of a node together, 0 if not known
	Cards   int    // of a node
}

// usualMbps is for nodes whose cards do not say how fast they are.
const usualMbps = 25_000

// rate is what the cards of a node carry, in bytes a second, after headers.
func (w Wire) rate() float64 {
	if w.Mbps == 0 {
		w.Mbps = usualMbps
	}
	return 0.94 * float64(w.Mbps) / 8 * 1e6
}

// link is the connection of two ranks on different nodes with local ranks each.
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
	fromSim   = "several nodes: the least time by the sim model of shared memory and the network"
	fromRules = "many nodes: by size, as the sim model ranks algorithms on 64 and 1,024 nodes"
)

// simRanks is for how many ranks host algorithms are timed. An estimate takes less than a
// ms for that many, and the first call of a size some ms.
const simRanks = 64

// across is the algorithm of a collective on host memory of several nodes, Auto if it makes no
// difference where the ranks are.
func (t *Topology) across(kind call.Kind, bytes int) (call.Algo, string) {
	if !(Key{Kind: kind, Algo: call.Hier}).Exists(*t) {
		return call.Auto, ""
	}
	if t.Ranks > simRanks {
		return t.byRules(kind, bytes), fromRules
	}
	times := t.times
	if times == nil {
		times = timesOf(t.Ranks, t.Local, t.wire)
	}
	size := min(bits.Len(uint(max(bytes, 1)-1)), mostSize)
	at := &times.best[kind][size]
	if a := at.Load(); a != 0 {
		return call.Algo(a), fromSim
	}
	a := times.find(kind, 1<<size)
	at.Store(uint32(a))
	return a, fromSim
}

// byRules are crossings of what "ringo sim" says of 64 to 8,192 nodes of 8.
func (t *Topology) byRules(kind call.Kind, bytes int) call.Algo {
	nodes := t.Nodes()
	switch kind {
	case call.AllReduce:
		switch {
		case bytes <= 512<<10:
			return call.HierLog
		case bytes <= nodes*128<<10:
			return call.HierTree
		}
	case call.AllGather, call.ReduceScatter:
		if bytes <= nodes*256<<10/t.Ranks {
			return call.HierLog
		}
	case call.Broadcast, call.Reduce:
		if bytes > 512<<10 {
			return call.HierTree
		}
	case call.AlltoAll:
		return call.Direct
	}
	return call.Hier
}

// times are which algorithms take the least time on a topology, by collective and the
// logarithm of the size; 0 is not known yet.
type times struct {
	ranks, local int
	model        sim.Model
	best         [call.Kinds][mostSize + 1]atomic.Uint32
}

// mostSize is the logarithm of the largest size that is looked at: more of it makes no other choice.
const mostSize = 40

// allTimes keeps times by ranks, local and wire.
var allTimes sync.Map

func timesOf(ranks, local int, w Wire) *times {
	type key struct {
		ranks, local int
		wire         Wire
	}
	k := key{ranks, local, w}
	if t, ok := allTimes.Load(k); ok {
		return t.(*times)
	}
	m := sim.SharedMemory
	m.NodeRanks, m.Inter = local, w.link(local)
	t, _ := allTimes.LoadOrStore(k, &times{ranks: ranks, local: local, model: m})
	return t.(*times)
}

// find times all algorithms of a collective whose Count elements take bytes. What a program has
// defined is chosen only if it is asked for.
func (x *times) find(kind call.Kind, bytes int) call.Algo {
	topo := Topology{Ranks: x.ranks, Local: x.local}
	best, least := Default(kind), math.Inf(1)
	for i := range lines[kind] {
		t := &lines[kind][i]
		if !t.offers(topo) {
			continue
		}
		s := Key{Kind: kind, Algo: t.algo}.Schedule(topo)
		if took, err := sim.Estimate(s, x.model, int64(bytes)*int64(kind.Shares(x.ranks))); err == nil && took < 0.99*least { // ties go to the first
			best, least = t.algo, took
		}
	}
	return best
}
