package choice

import (
	"cmp"
	"time"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
)

// A Carrier is what carries a call out.
type Carrier uint8

const (
	BySchedule Carrier = iota // an engine, step by step; on a GPU see Answer.Way
	ByKernel                  // a direct kernel
	ByWindow                  // a kernel in registered memory
	ByCopies                  // copy engines between registered memory
	ByShares                  // two direct kernels: each rank combines a share, the root gathers them
	ByFold                    // other collectives move the contributions, which are combined in order of rank
	ByNorm                    // a direct kernel that finishes rows
	Alone                     // the only rank's GPU: a copy, or nothing where the data lie there already
	carriers
)

var carrierNames = [carriers]string{"steps", "direct kernel", "window kernel", "copy engines",
	"direct kernels in shares", "other collectives, combined in order of rank", "norm kernel", "copy"}

// String is what Choice.Carrier says.
func (c Carrier) String() string { return carrierNames[c] }

// Lingering kernels carry out one schedule after the other, where these follow each other within LingerTime and have
// LingerLeast to FewLanesMost bytes. Measured beside products of matrices and in steps of training:
// docs/gpu-inside.md, "Beside matrix products".
const (
	LingerTime  = 20 * time.Microsecond
	LingerLeast = 1 << 20
)

// LingerLanes returns how many lanes lingering kernels have, 0 if there are none.
func (b *Budget) LingerLanes() int {
	if !b.Narrow {
		return 0
	}
	return min(FewLanes, b.most())
}

// phasesFrom is the size from which GPUs of several hosts work in phases, in bytes of the larger buffer: each further
// launch takes some 10 µs, and phases do not overlap.
const phasesFrom = 4 << 20

// alone reports whether a call on GPU memory is the only rank's and needs no arithmetic. V-variants are left to the
// engine, which knows their offsets.
func (c *Chooser) alone(q *Question) bool {
	scales := q.Kind.Reduces() && q.Op == kernels.KindPreMulSum
	return c.Topo.Ranks == 1 && q.Row == 0 && !scales && !q.Kind.Variable() && !q.Kind.Pairwise()
}

// steps says how the schedules of an answer for GPU memory are carried out, as far as all ranks know it.
func (c *Chooser) steps(q *Question, ans *Answer) {
	bytes := q.Bytes * q.Kind.Shares(c.Topo.Ranks)
	switch ans.By {
	case BySchedule:
		ans.Lingers = c.Budget.Narrow && LingerLeast <= bytes && bytes <= FewLanesMost
		if bytes >= cmp.Or(c.PhasesFrom, phasesFrom) {
			ans.Phases = uint8(c.Topo.phases(q.Kind, ans.Algo))
		}
	case ByFold:
	case ByCopies:
		if q.Kind != call.AllReduce { // which begins with a reduce-scatter
			return
		}
	default:
		return
	}
	ans.Bulk = c.Budget.Bulk
}

// Way returns what carries out a job of the answer's schedules on a rank, which may differ from other ranks in it but
// for messages.
//
// Several launches would carry out some messages whole before others, and a peer that takes one step after the other,
// a piece at a time, would wait for the others. A graph may run at any time, so a captured job has a kernel of its own.
func (ans *Answer) Way(f *collective.Facts) collective.Way {
	bulk := ans.Bulk && f.Bulk
	lingers := bulk && ans.Lingers && f.Vectors && !f.Captured && !f.Uneven && f.Lanes <= f.LingerLanes
	switch {
	case f.Message:
		return collective.ByMessages
	case f.Messages, f.Independent && !lingers && f.OneLaunch && f.Disjoint:
		return collective.BySideBySide
	case lingers:
		return collective.ByLinger
	case bulk:
		return collective.ByBulk
	}
	return collective.ByThreads
}
