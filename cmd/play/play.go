package play

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/ring/book"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sched/sim"
)

// A Question asks for the play of a schedule.
type Question struct {
	Collective, Algo string
	Ranks, Node      int // Node: ranks of a node, for algorithms that have nodes and for the model; 0: the net's own
	Root             sched.Rank
	Bytes            int64  // of the larger buffer of a rank
	Net              string // a key of sim.Presets
	Edits            []Edit
	Table            *Table // the user's own schedule; nil for Algo's
}

// A Play is a schedule that was carried out. Times are in seconds.
type Play struct {
	Question Question
	Goal     sched.Goal
	Table    *Table // as changed by the edits
	Steps    [][]Step
	Turns    int   // the last turn of a step, plus one
	Err      error // what is wrong with the schedule, by sched.Watch; nil if it is proved

	Model  string
	Time   float64 // of the whole collective under the model
	Rounds int     // pieces of a chunk, which the model moves one after the other
	SimErr error   // why the model comes to no end; nil if it does
}

// A Step is a step of the schedule. Its Turn is -1 if it has not happened.
type Step struct {
	sched.Step
	Turn  int // from 0 on; see the package
	Hops  int // length of the longest chain of messages up to this step
	Value sched.Value

	Time *sim.Timed // in the first round of the model; nil if the model does not come to the step
}

// depth is how many messages fit between two ranks; proofs of schedules assume the same.
const depth = 2

// Answer plays a schedule. The error is about the question; an error of the schedule is Play.Err.
func (q Question) Answer() (*Play, error) {
	c, err := book.Find(q.Collective)
	if err != nil {
		return nil, err
	}
	if q.Ranks < 1 || q.Ranks > Most {
		return nil, fmt.Errorf("%d ranks: want 1 to %d", q.Ranks, Most)
	}
	if q.Root < 0 || int(q.Root) >= q.Ranks {
		return nil, fmt.Errorf("root %d is none of the %d ranks", q.Root, q.Ranks)
	}
	model, ok := sim.Presets[q.Net]
	if !ok {
		return nil, fmt.Errorf("no net %q", q.Net)
	}
	if q.Node > 0 && model.NodeRanks > 0 { // a net without nodes has no links between them
		model.NodeRanks = q.Node
	}
	table := q.Table
	switch {
	case table != nil && table.Shape().Ranks != q.Ranks:
		return nil, fmt.Errorf("a table of %d ranks for %d", table.Shape().Ranks, q.Ranks)
	case table == nil:
		a, err := c.Find(q.Algo)
		if err != nil {
			return nil, err
		}
		s, err := a.Schedule(q.Ranks, q.Node, q.Root)
		if err != nil {
			return nil, err
		}
		table = TableOf(s)
	}
	if table, err = table.Edit(q.Edits); err != nil {
		return nil, err
	}
	p := &Play{Question: q, Goal: c.Goal(q.Root), Table: table, Model: model.Name}
	p.watch()
	p.time(model)
	return p, nil
}

// modelSteps is the most steps that the model carries out, unless 8 rounds take more.
const modelSteps = 200_000

func (p *Play) time(model sim.Model) {
	steps := 0
	for _, row := range p.Steps {
		steps += len(row)
	}
	res, err := sim.Run(context.Background(), p.Table, model, p.Question.Bytes, sim.Options{
		MaxRounds: max(1, modelSteps/max(1, steps)),
		Step: func(t sim.Timed) {
			if t.Round == 0 {
				p.Steps[t.Rank][t.Step].Time = &t
			}
		},
	})
	p.Time, p.Rounds, p.SimErr = res.Time, res.Rounds, err
}

// A mark is how far a rank has come, or had come when it sent or received a message.
type mark struct{ turn, hops int }

// watch carries the schedule out and gives each step its turn.
func (p *Play) watch() {
	p.Steps = make([][]Step, p.Table.Shape().Ranks)
	for r, row := range p.Table.rows {
		for _, s := range row {
			p.Steps[r] = append(p.Steps[r], Step{Step: s, Turn: -1})
		}
	}
	type pair struct{ from, to sched.Rank }
	type queue struct{ sent, received []mark }
	queues := map[pair]*queue{}
	between := func(from, to sched.Rank) *queue {
		q := queues[pair{from, to}]
		if q == nil {
			q = &queue{}
			queues[pair{from, to}] = q
		}
		return q
	}
	now := make([]mark, len(p.Steps))
	for r := range now {
		now[r].turn = -1
	}
	p.Err = sched.Watch(p.Table, p.Goal, depth, false, func(e sched.Event) {
		at := &now[e.Rank]
		at.turn++
		var in, out *queue
		if e.Recv != sched.Nobody {
			in = between(e.Recv, e.Rank)
			m := in.sent[len(in.received)]
			at.turn, at.hops = max(at.turn, m.turn+1), max(at.hops, m.hops)
		}
		if e.Send != sched.Nobody {
			out = between(e.Rank, e.Send)
			if full := len(out.sent) - depth; full >= 0 && full < len(out.received) { // the rank has waited for room
				at.turn = max(at.turn, out.received[full].turn+1)
			}
			m := *at
			if e.Send != e.Rank {
				m.hops++
			}
			out.sent = append(out.sent, m)
		}
		if in != nil {
			in.received = append(in.received, *at)
		}
		s := &p.Steps[e.Rank][e.Index]
		s.Turn, s.Hops, s.Value = at.turn, at.hops, e.Value
		p.Turns = max(p.Turns, at.turn+1)
	})
}

// Places are the places where the schedule goes wrong; nil if it does not.
func (p *Play) Places() []sched.Fault {
	var r *sched.Refutation
	if errors.As(p.Err, &r) {
		return r.Faults
	}
	return nil
}
