package choice

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/sched"
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
	chooser  *Chooser
	question Question
	names    func(bytes int) []string
	model    string
	estimate func(a call.Algo, bytes int) float64 // in seconds, infinite if it is not known
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
		ans := p.chooser.Choose(q)
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

// time is the seconds that the model gives an algorithm, infinite if it knows none.
func (p *paper) time(name string, bytes int) float64 {
	a, err := call.ParseAlgo(name)
	if err != nil {
		return math.Inf(1)
	}
	return p.estimate(a, bytes)
}

// estimateSteps bounds the steps of schedules that are estimated, to about a second.
const estimateSteps = 400_000

// onHosts compares with a model of shared memory, and of the network between hosts; that one takes rank 0 for the root.
func (c *Chooser) onHosts(q Question, root int, names func(bytes int) []string) *paper {
	p := &paper{chooser: c, question: q, names: names, model: sim.SharedMemory.String()}
	var far *costs
	if c.Topo.Nodes() > 1 {
		far, root = c.Topo.between(), 0
		m := far.model
		m.Name, m.Between = "hosts", fmt.Sprintf("TCP over %g Gb/s a host", float64(cmp.Or(c.Topo.wire.Mbps, usualMbps))/1000)
		p.model = m.String()
	}
	p.estimate = func(a call.Algo, bytes int) float64 {
		k := Key{Kind: q.Kind, Algo: a, Peer: int32(root)}
		if !k.Exists(c.Topo) {
			return math.Inf(1)
		}
		s := k.Schedule(c.Topo)
		switch long := tooLong(s); {
		case far != nil && (far.few != nil || !long):
			return far.time(q.Kind, a, bytes, math.Inf(1))
		case long:
			return math.Inf(1)
		}
		return estimate(s, sim.SharedMemory, int64(bytes)*int64(q.Kind.Shares(c.Topo.Ranks)), math.Inf(1))
	}
	return p
}

func tooLong(s sched.Schedule) bool { return stepsOf(s, estimateSteps) > estimateSteps }

// onGPUs compares with the model of paths between GPUs, which knows no windows and no copies, and
// takes rank 0 for the root.
func (c *Chooser) onGPUs(q Question, f *Fabric, names func(bytes int) []string) *paper {
	mq := f.question(c.Kernels.LongestDirect())
	words := "round figures of H200s, path " + f.Near.String()
	if f.Far != f.Near {
		words += ", between hosts " + f.Far.String()
	}
	return &paper{
		chooser: c, question: q, names: names, model: words,
		estimate: func(a call.Algo, bytes int) float64 {
			k := Key{Kind: q.Kind, Algo: a}
			if !mq.kernel(q.Kind, a, bytes) && k.Exists(f.Topo) && tooLong(k.Schedule(f.Topo)) {
				return math.Inf(1)
			}
			return mq.estimate(q.Kind, a, bytes)
		},
	}
}
