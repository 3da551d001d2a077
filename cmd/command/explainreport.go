package command

import "github.com/ringo-go/ringo/sched"

// An explainReport is the JSON of "ringo explain -json". Sizes are bytes of the larger buffer of a
// rank, times are microseconds.
type explainReport struct {
	Schema       string        `json:"schema"`
	Collective   string        `json:"collective"`
	Ranks        int           `json:"ranks"`
	NodeRanks    int           `json:"node_ranks"` // ranks of a host; 0: all are on one
	Size         int64         `json:"size"`
	Type         string        `json:"type"`
	GPU          bool          `json:"gpu"`
	Algorithm    string        `json:"algorithm"`
	Because      string        `json:"because"`
	Blocks       int           `json:"blocks,omitempty"`
	WhyBlocks    string        `json:"why_blocks,omitempty"`
	Carrier      string        `json:"carrier"`
	Bulk         bool          `json:"bulk,omitempty"`
	Lingers      bool          `json:"lingers,omitempty"`
	Phases       int           `json:"phases,omitempty"`
	Others       []string      `json:"others,omitempty"`
	Model        string        `json:"model,omitempty"`
	Modelled     int64         `json:"modelled,omitempty"` // the size for which the model has chosen; 0 if it has not
	Alternatives []alternative `json:"alternatives,omitempty"`
	Differences  []difference  `json:"differences,omitempty"`
	Schedules    []scheduleOf  `json:"schedules,omitempty"` // carried out one after the other
}

type alternative struct {
	Algorithm string  `json:"algorithm"`
	Time      float64 `json:"time_us,omitempty"` // by the model; absent where the model has no time
	Chosen    bool    `json:"chosen,omitempty"`
}

// A difference is a range of sizes at which the model would choose otherwise.
type difference struct {
	From   int64   `json:"from"`
	To     int64   `json:"to"`
	Chosen string  `json:"chosen"`
	Model  string  `json:"model"`
	Less   float64 `json:"less"` // the most time saved, as a share of the chosen algorithm's
}

type scheduleOf struct {
	Hops     int         `json:"hops"`
	Steps    int         `json:"steps"`    // of the busiest rank
	Sent     int         `json:"sent"`     // chunks, of the busiest rank
	Received int         `json:"received"` // the same
	Combined int         `json:"combined"` // the same
	Chunks   int         `json:"chunks"`   // of the larger buffer
	Table    [][]string  `json:"table,omitempty"`
	Messages []messageOf `json:"messages,omitempty"`
}

type messageOf struct {
	Hop   int `json:"hop"`
	From  int `json:"from"`
	To    int `json:"to"`
	Chunk int `json:"chunk"`
}

func (e *explanation) report() *explainReport {
	ch := e.ch
	r := &explainReport{
		Schema: "ringo-explain/1", Collective: e.q.Name, Ranks: e.q.ranks, NodeRanks: e.q.node, Size: e.bytes,
		Type: e.q.typ.String(), GPU: e.q.gpus != nil,
		Algorithm: ch.Algo, Because: ch.Reason, Blocks: ch.Blocks, WhyBlocks: ch.WhyBlocks, Carrier: ch.Carrier,
		Bulk: ch.Bulk, Lingers: ch.Lingers, Phases: ch.Phases, Others: ch.Others,
		Model: ch.Model(), Modelled: int64(ch.Modelled) * int64(e.q.Kind.Shares(e.q.ranks)),
	}
	for _, a := range ch.Alternatives() {
		r.Alternatives = append(r.Alternatives, alternative{a.Algo, a.Time * 1e6, a.Chosen})
	}
	if e.q.algo == "" {
		shares := int64(e.q.Kind.Shares(e.q.ranks))
		for _, d := range ch.Differences() {
			r.Differences = append(r.Differences, difference{int64(d.From) * shares, int64(d.To) * shares, d.Chosen,
				d.Model, d.Less})
		}
	}
	for _, s := range []sched.Schedule{ch.Schedule, ch.Then} {
		if s != nil && stepsOf(s) <= costSteps {
			r.Schedules = append(r.Schedules, newScheduleOf(s))
		}
	}
	return r
}

// newScheduleOf has the counts of a schedule, and up to svgRanks ranks also its steps and messages.
func newScheduleOf(s sched.Schedule) scheduleOf {
	shape := s.Shape()
	out := scheduleOf{Chunks: max(shape.In, shape.Out)}
	if c, err := sched.CostOf(s, 8); err == nil {
		out.Hops, out.Steps, out.Sent, out.Received, out.Combined = c.Hops, c.Steps, c.Sent, c.Received, c.Reduced
	}
	if shape.Ranks > svgRanks {
		return out
	}
	for r := range shape.Ranks {
		column := []string{}
		for i := range s.Len(sched.Rank(r)) {
			column = append(column, s.At(sched.Rank(r), i).String())
		}
		out.Table = append(out.Table, column)
	}
	list, err := sched.Messages(s, 8)
	if err != nil {
		return out
	}
	for _, m := range list {
		out.Messages = append(out.Messages, messageOf{m.Hop, int(m.From), int(m.To), int(m.Sent.Chunk)})
	}
	return out
}
