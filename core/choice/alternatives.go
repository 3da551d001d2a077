package choice

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/sched/sim"
)

// An Alternative is an algorithm for a call, and the time that a model gives it.
type Alternative struct {
	Algo   string
	Time   float64 // in seconds; 0 where the model does not know the algorithm, or it has too many steps
	Chosen bool
}

// A Difference is a range of sizes in which the model has another algorithm take less time than
// the chosen one, by more than a twentieth.
type Difference struct {
	From, To int // bytes of Count elements, powers of two
	Chosen   string
	Model    string
	Less     float64 // by how much at most, as a share of the chosen one's time
}

// A paper is what a Choice needs to be compared with a model.
type paper struct {
	*Chooser
	question Question
	root     int32          // on one host; models of GPUs and of several hosts take rank 0 for it
	gpus     *modelQuestion // nil: the model is of host memory
	model    string
}

// on is a paper with the model of paths between GPUs, which knows no windows and no copies, or of hosts if f is nil.
func (c *Chooser) on(q Question, root int, f *Fabric) *paper {
	p := &paper{Chooser: c, question: q}
	switch {
	case f != nil:
		p.gpus, p.model = f.question(c.Kernels.LongestDirect()), "round figures of H200s, path "+f.Near.String()
		if f.Far != f.Near {
			p.model += ", between hosts " + f.Far.String()
		}
	case c.Topo.Nodes() > 1:
		m := c.Topo.between().model
		m.Name, m.Between = "hosts", fmt.Sprintf("TCP over %g Gb/s a host", float64(cmp.Or(c.Topo.wire.Mbps, usualMbps))/1000)
		p.model = m.String()
	default:
		p.root, p.model = int32(root), sim.SharedMemory.String()
	}
	return p
}

// names are the algorithms that could be asked for.
func (p *paper) names(bytes int) (list []string) {
	if p.question.OnGPU {
		return p.Names(p.question.Kind, bytes, p.question.Registered)
	}
	for _, t := range tables(p.question.Kind) {
		if t.offers(p.Topo) {
			list = append(list, t.algo.String())
		}
	}
	return list
}

// estimateSteps bounds the steps of schedules that are estimated whole, to about a second.
const estimateSteps = 400_000

// time is the seconds that the model gives an algorithm, infinite if it knows none.
func (p *paper) time(name string, bytes int) float64 {
	kind := p.question.Kind
	a, err := call.ParseAlgo(name)
	k := Key{Kind: kind, Algo: a, Peer: p.root}
	exists, long := err == nil && k.Exists(p.Topo), false
	if exists {
		long = stepsOf(k.Schedule(p.Topo), estimateSteps) > estimateSteps
	}
	switch {
	case p.gpus != nil && (!long || p.gpus.kernel(kind, a, bytes)):
		return p.gpus.estimate(kind, a, bytes)
	case p.gpus != nil, !exists:
		return math.Inf(1)
	case p.Topo.Nodes() > 1 && (!long || p.Topo.between().few != nil):
		return p.Topo.between().time(kind, a, bytes, math.Inf(1))
	case long:
		return math.Inf(1)
	}
	return estimate(k.Schedule(p.Topo), sim.SharedMemory, int64(bytes)*int64(kind.Shares(p.Topo.Ranks)), math.Inf(1))
}

// lookedAt is the size for which a model has given the answer for another, 0 where no model has: measurements have, or
// the user.
func lookedAt(ans *Answer, bytes int) int {
	switch ans.reason() {
	case fromSim, fromSimNear:
		return 1 << logOf(bytes)
	case fromModel:
		size := modelFirst
		for size < modelLast && bytes > size+size/2 {
			size *= modelFactor
		}
		return size
	}
	return 0
}

// Model says which model Alternatives and Differences are by, "" if there is none.
func (ch *Choice) Model() string {
	if ch.paper == nil {
		return ""
	}
	return ch.paper.model
}

// Alternatives are the chosen algorithm and the Others with their times, for Modelled bytes unless that is 0, the
// quickest first and those that the model does not know last. It takes some ms, and a second for hundreds of ranks.
func (ch *Choice) Alternatives() (list []Alternative) {
	if ch.paper == nil {
		return nil
	}
	for _, name := range append([]string{ch.Algo}, ch.Others...) {
		t := ch.paper.time(name, cmp.Or(ch.Modelled, ch.Bytes))
		if math.IsInf(t, 1) {
			t = 0
		}
		list = append(list, Alternative{Algo: name, Time: t, Chosen: name == ch.Algo})
	}
	slices.SortStableFunc(list, func(a, b Alternative) int {
		if (a.Time == 0) != (b.Time == 0) {
			return cmp.Compare(b.Time, a.Time)
		}
		return cmp.Compare(a.Time, b.Time)
	})
	return list
}

const differenceRanks = 64

// Differences compares what no model has chosen with the model, at all sizes from 8 bytes to 1 GiB, for at most 64
// ranks. It takes up to a few seconds.
func (ch *Choice) Differences() (list []Difference) {
	if ch.paper == nil || ch.Size > differenceRanks {
		return nil
	}
	p := ch.paper
	for size := 8; size <= 1<<30; size *= 2 {
		q := p.question
		q.Bytes = size
		ans := p.Choose(q)
		if lookedAt(&ans, size) > 0 {
			continue
		}
		chosen := ans.Algo.String()
		least, best := math.Inf(1), ""
		for _, name := range p.names(size) {
			if t := p.time(name, size); t < least {
				least, best = t, name
			}
		}
		took := p.time(chosen, size)
		if math.IsInf(took, 1) || least >= 0.95*took {
			continue
		}
		less := 1 - least/took
		if n := len(list); n > 0 && list[n-1].To == size/2 && list[n-1].Chosen == chosen && list[n-1].Model == best {
			list[n-1].To, list[n-1].Less = size, max(list[n-1].Less, less)
			continue
		}
		list = append(list, Difference{From: size, To: size, Chosen: chosen, Model: best, Less: less})
	}
	return list
}
