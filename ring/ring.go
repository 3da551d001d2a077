// Package ring holds the collectives in which every rank talks to two others
// only: it receives from the rank before it and sends to the rank after it.
// Rings use the least bytes there can be and no link twice, and need n-1 hops
// for it: they are the choice for large messages. To lay a ring along the wires
// of a machine, rename its ranks with sched.Relabel.
//
// Sources: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for
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
