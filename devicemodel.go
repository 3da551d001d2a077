package ringo

import (
	"math"
	"sync"

	"github.com/ringo-go/ringo/sim"
)

// A pathModel is what a path between GPUs costs, in round figures of H200s: to
// rank algorithms, not to foretell times.
type pathModel struct {
	kernel float64  // seconds of a hop of a direct kernel
	rate   float64  // bytes a second of a direct kernel's port
	steps  sim.Link // of the kernel that interprets steps; a lane's queues side by side
	slot   int      // bytes of all lanes' slots
}

const (
	us = 1e-6
	gb = 1e9
)

// pathModels are fitted to what was measured on 2 and 4 H200s: over P2P, choices by
// them lose 1 to 2 % of the time on average. Of the others only the bandwidth is
// measured, the latency is guessed.
var pathModels = [...]pathModel{
	overP2P:    {kernel: 1.5 * us, rate: 290 * gb, steps: sim.Link{Latency: 3 * us, Overhead: 0.2 * us, Bandwidth: 365 * gb}, slot: 2 << 20},
	overHost:   {steps: sim.Link{Latency: 4 * us, Overhead: 0.5 * us, Bandwidth: 40 * gb}, slot: 1 << 20},
	overBridge: {steps: sim.Link{Latency: 20 * us, Overhead: 5 * us, Bandwidth: 8 * gb}, slot: 512 << 10},
}

// combineRate is how fast a GPU combines and copies in its own memory, in bytes a second.
const combineRate = 2000 * gb

const fromModel = "the sim model of the path"

// A modelQuestion is what an estimate depends on.
type modelQuestion struct {
	near, far gpuPath
	topo      topology
	direct    bool // there are direct kernels
}

// modelRanks bounds the ranks for which times are estimated: it takes some 100 ms
// for so many, once a process, and grows with their square.
const modelRanks = 32

// model appends rows for all sizes, by estimated times.
func (rows *planRows) model(f *fabric, direct bool) {
	if f.topo.ranks < 2 || f.topo.ranks > modelRanks {
		return
	}
	q := modelQuestion{f.near, f.far, f.topo, direct}
	answer, ok := modelled.Load(q)
	if !ok {
		var made planRows
		for _, kind := range planKinds {
			made[kind][0] = q.rows(kind)
		}
		answer, _ = modelled.LoadOrStore(q, made)
	}
	for kind, made := range answer.(planRows) {
		rows[kind][0] = append(rows[kind][0], made[0]...)
	}
}

// modelled keeps what has been estimated.
var modelled sync.Map

// modelSizes are Count elements' bytes, each for the sizes up to half as much more.
const (
	modelFirst  = 1 << 10
	modelLast   = 1 << 30
	modelFactor = 2
)

func (q *modelQuestion) rows(kind Kind) (rows []planRow) {
	for size := modelFirst; size <= modelLast; size *= modelFactor {
		best, least := algoSteps, math.Inf(1)
		for a := algoRing; a < algos; a++ {
			if t := q.estimate(kind, a, size); t < least {
				best, least = a, t
			}
		}
		most := size + size/2
		if size == modelLast {
			most = maxCount
		}
		if n := len(rows); n > 0 && rows[n-1].Algo == best {
			rows[n-1].Most = most
			continue
		}
		rows = append(rows, planRow{best, most, fromModel})
	}
	return rows
}

// estimate is the time of an algorithm in seconds, infinite if it does not serve.
func (q *modelQuestion) estimate(kind Kind, a algo, bytes int) float64 {
	n, near, far := q.topo.ranks, &pathModels[q.near], &pathModels[q.far]
	if _, ok := directKernel(kind, a); ok && q.direct {
		sent, hops := float64((n-1)*bytes), 1.0
		if a == algoTwoShot {
			sent, hops = 2*sent/float64(n), 2
		}
		return hops*far.kernel + sent/far.rate
	}
	key := programKey{kind: kind, algo: a}
	if a == algoSteps && (!q.direct || book[kind][0].algo != algoDirect) || a != algoSteps && !key.exists(q.topo) {
		return math.Inf(1) // a name of another algorithm
	}
	t, err := sim.Estimate(key.schedule(q.topo), sim.Model{
		NodeRanks: q.topo.local, Intra: near.steps, Inter: far.steps, Reduce: 1 / combineRate, Copy: 1 / combineRate,
		SlotBytes: far.slot, Slots: 4,
	}, int64(bytes*kind.shares(n)))
	if err != nil {
		return math.Inf(1)
	}
	return t
}
