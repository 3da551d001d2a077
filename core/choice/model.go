package choice

import (
	"fmt"
	"math"
	"sync"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/sched/sim"
	"github.com/ringo-go/ringo/transport"
)

// A pathModel is what a path between GPUs costs, in round figures of H200s: to
// rank algorithms, not to foretell times.
type pathModel struct {
	kernel float64  // seconds of a hop of a direct kernel
	rate   float64  // bytes a second of a direct kernel's port
	steps  sim.Link // of the interpreter of schedules, all lanes together
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
	transport.OverP2P: {kernel: 1.5 * us, rate: 290 * gb,
		steps: sim.Link{Latency: 3 * us, Overhead: 0.2 * us, Bandwidth: 365 * gb}, slot: 2 << 20},
	transport.OverPCIe: {kernel: 3 * us, rate: 40 * gb,
		steps: sim.Link{Latency: 4 * us, Overhead: 0.3 * us, Bandwidth: 40 * gb}, slot: 2 << 20},
	transport.OverHost: {kernel: 3 * us, rate: 40 * gb,
		steps: sim.Link{Latency: 4 * us, Overhead: 0.5 * us, Bandwidth: 40 * gb}, slot: 1 << 20},
	transport.OverBridge: {steps: sim.Link{Latency: 20 * us, Overhead: 5 * us, Bandwidth: 8 * gb}, slot: 512 << 10},
}

// combineRate is how fast a GPU combines and copies in its own memory, in bytes a second.
const combineRate = 2000 * gb

const fromModel = "the sim model of the path"

// A modelQuestion is what an estimate depends on.
type modelQuestion struct {
	near, far transport.GPUPath
	topo      Topology // without Order
	longest   int      // message of direct kernels
}

// question asks for estimates on a Fabric.
func (f *Fabric) question(longest int) *modelQuestion {
	return &modelQuestion{f.Near, f.Far, Topology{Ranks: f.Topo.Ranks, Hosts: f.Topo.Hosts, wire: f.Topo.wire}, longest}
}

// modelRanks is for how many ranks times are estimated at most. For 32 that takes some
// 100 ms, once a process, and it grows with the square of the ranks.
const modelRanks = 32

// model appends rows for all sizes, by estimated times.
func (rows *Rows) model(f *Fabric, longest int) {
	if f.Topo.Ranks < 2 || f.Topo.Ranks > modelRanks {
		return
	}
	q := f.question(longest)
	key := fmt.Sprintf("%+v", *q)
	answer, ok := modelled.Load(key)
	if !ok {
		var made Rows
		for _, kind := range planKinds {
			made[kind][0] = q.rows(kind)
		}
		answer, _ = modelled.LoadOrStore(key, made)
	}
	for kind, made := range answer.(Rows) {
		rows[kind][0] = append(rows[kind][0], made[0]...)
	}
}

// modelled keeps what has been estimated, by the text of a modelQuestion.
var modelled sync.Map

// The sizes that are modelled, in bytes of Count elements. A choice counts up to one and
// a half times its size, the middle between two of them.
const (
	modelFirst  = 1 << 10
	modelLast   = 1 << 30
	modelFactor = 2
)

func (q *modelQuestion) rows(kind call.Kind) (rows []Row) {
	for size := modelFirst; size <= modelLast; size *= modelFactor {
		best, least := call.Steps, math.Inf(1)
		for a := call.Ring; a < call.Algos; a++ {
			if t := q.estimate(kind, a, size); t < least {
				best, least = a, t
			}
		}
		most := size + size/2
		if size == modelLast {
			most = call.MaxCount
		}
		if n := len(rows); n > 0 && rows[n-1].Algo == best {
			rows[n-1].Most = most
			continue
		}
		rows = append(rows, Row{Algo: best, Most: most, From: fromModel})
	}
	return rows
}

// inter is the connection of ranks on different nodes: what a bridge carries, or the network if
// that is less.
func (q *modelQuestion) inter() sim.Link {
	l := pathModels[q.far].steps
	if q.far == transport.OverBridge && q.topo.wire.Mbps > 0 {
		w := q.topo.wire.link(q.topo.most())
		l.Bandwidth, l.Shared = min(l.Bandwidth, w.Bandwidth), w.Shared
	}
	return l
}

// kernel reports whether a name stands for a direct kernel, as Chooser.kernel does.
func (q *modelQuestion) kernel(kind call.Kind, a call.Algo, bytes int) bool {
	d, ok := directKernel(kind, a)
	return ok && isDirect(d, q.topo.Ranks, bytes, q.longest)
}

// estimate is the time of an algorithm in seconds, infinite if it does not serve.
func (q *modelQuestion) estimate(kind call.Kind, a call.Algo, bytes int) float64 {
	bytes = int(min(int64(bytes), 1<<mostSize))
	n, near, far := q.topo.Ranks, &pathModels[q.near], &pathModels[q.far]
	if q.kernel(kind, a, bytes) {
		sent, hops := float64((n-1)*bytes), 1.0
		if a == call.TwoShot {
			sent, hops = 2*sent/float64(n), 2
		}
		return float64(hops*far.kernel) + sent/far.rate // rounded: see TestNothingIsFused
	}
	key := Key{Kind: kind, Algo: a}
	if a == call.Steps && (Default(kind) != call.Direct || !q.kernel(kind, call.Direct, bytes)) ||
		a != call.Steps && !key.Exists(q.topo) {
		return math.Inf(1) // not for these ranks, or the default by its other name
	}
	t, err := sim.Estimate(key.Schedule(q.topo), sim.Model{
		Nodes: q.topo.Hosts, Intra: near.steps, Inter: q.inter(), Reduce: 1 / combineRate, Copy: 1 / combineRate,
		SlotBytes: far.slot, Slots: 4,
	}, int64(bytes*kind.Shares(n)))
	if err != nil {
		return math.Inf(1)
	}
	return t
}
