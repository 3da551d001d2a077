// Package ring holds the ring algorithms, as schedules: collectives in which every rank
// receives from the rank before it and sends to the rank after it, and talks to no other. Rings send the
// least bytes there can be and use no link twice: they are the choice for large
// messages.
//
// The trap: they need n-1 hops or more, so small messages among many ranks are
// slow; and where neighbours are on other nodes every hop crosses the network,
// unless sched.Relabel lays the ring along the wires.
//
// Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for
// clusters of workstations", J. Parallel Distrib. Comput. 69 (2009), who also
// prove the lower bounds that the doc comments here speak of.
package ring

import "github.com/ringo-go/ringo/sched"

// neighbours of rank r in a ring of n.
func neighbours(r sched.Rank, n int) (prev, next sched.Rank) {
	return r.After(-1, n), r.After(1, n)
}

// alone is the one step of a communicator of one rank: copy In to Out.
var alone = sched.Step{Recv: sched.Nobody, Src: sched.In.At(0), Dst: sched.Out.At(0), Send: sched.Nobody}
