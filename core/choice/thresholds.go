package choice

import "github.com/ringo-go/ringo/core/call"

// Threshold is the algorithm of a collective by its size, in bytes of Count elements, with the reason; forced, unless
// Auto, goes before where the collective has it. The sizes were measured in the shared memory of one host, and are for
// one host alone: across hosts the cost of each algorithm decides.
func Threshold(kind call.Kind, topo Topology, bytes int, forced call.Algo) (call.Algo, string) {
	list, n := tables(kind), topo.Ranks
	if forced != call.Auto {
		for i := range list {
			if t := &list[i]; t.algo == forced && t.offers(topo) {
				return forced, asked
			}
		}
	}
	if topo.Nodes() > 1 && len(list) > 1 {
		return topo.across(kind, bytes)
	}
	switch kind {
	case call.AllReduce:
		switch {
		case n == 2 && bytes <= 16<<10:
			return call.OneShot, "two ranks exchange small data whole: one hop"
		case n > 2 && bytes <= 32<<10:
			return call.Doubling, "small data: the fewest hops"
		case n > 2 && bytes < n*32<<10:
			return call.TwoShot, "middle sizes: two hops and the least bytes; chunks are too small for a ring"
		}
		return call.Ring, "large data: the least bytes, streamed around the ring"
	case call.Reduce, call.Broadcast:
		if bytes <= 64<<10 {
			return call.Binomial, "small data: log n hops"
		}
	case call.AllGather, call.ReduceScatter:
		if bytes <= 64<<10 {
			return call.Direct, "small data: one hop"
		}
	}
	return list[0].algo, "the default of the collective"
}
