package command

import (
	"encoding/json"

	"github.com/ringo-go/ringo/sched/sim"
)

// A simReport is the JSON of "ringo sim -json".
type simReport struct {
	Schema     string          `json:"schema"`
	Collective string          `json:"collective"`
	Ranks      int             `json:"ranks"`
	NodeRanks  int             `json:"node_ranks"` // ranks of a node; 0: all are on one
	Type       string          `json:"type"`
	Root       int             `json:"root"` // -1 where there is none
	Model      json.RawMessage `json:"model"`
	Rows       []*simRow       `json:"rows"`
}

// A simRow is one algorithm at one size. Times are in microseconds.
type simRow struct {
	Size       int64     `json:"size"` // bytes of the larger buffer
	Algorithm  string    `json:"algorithm"`
	Chosen     bool      `json:"chosen"` // no algorithm takes less time in this model
	Time       float64   `json:"time_us"`
	AlgBW      float64   `json:"algbw_gbs"`
	BusBW      float64   `json:"busbw_gbs"`
	Messages   int64     `json:"messages"`
	IntraBytes int64     `json:"intra_bytes"`
	InterBytes int64     `json:"inter_bytes"`
	Pieces     int       `json:"pieces"`
	PiecesRun  int       `json:"pieces_run"` // simulated; each of the others is taken to last as long
	Parts      *simParts `json:"parts,omitempty"`
}

type simParts struct {
	Latency  float64 `json:"latency_us"`
	Overhead float64 `json:"overhead_us"`
	Wire     float64 `json:"wire_us"`
	Shared   float64 `json:"shared_us"`
	Compute  float64 `json:"compute_us"`
}

func newSimReport(q question, model sim.Model) (*simReport, error) {
	text, err := sim.Format(model)
	if err != nil {
		return nil, err
	}
	r := &simReport{Schema: "ringo-sim/1", Collective: q.Name, Ranks: q.ranks, NodeRanks: model.NodeRanks,
		Type: q.typ.String(), Root: -1, Model: text}
	if q.Kind.Rooted() {
		r.Root = q.root
	}
	return r, nil
}

// add appends a row.
func (r *simReport) add(q question, algo string, size int64, res *sim.Result) *simRow {
	row := &simRow{
		Size: size, Algorithm: algo, Time: res.Time * 1e6, Messages: res.Messages, IntraBytes: res.IntraBytes,
		InterBytes: res.InterBytes,
		Pieces:     res.Rounds, PiecesRun: len(res.Ends),
	}
	if res.Time > 0 {
		row.AlgBW = float64(size) / res.Time / 1e9
		row.BusBW = row.AlgBW * q.Bus(q.ranks)
	}
	r.Rows = append(r.Rows, row)
	return row
}
