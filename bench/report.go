package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ringo-go/ringo/internal/given"
)

// Schema names the format of a Report; it changes when old readers would err.
const Schema = "ringo-bench/1"

// A Report holds all measurements of one run.
type Report struct {
	Header
	Ranks      int      `json:"ranks"`
	Processes  int      `json:"processes"`
	GPU        string   `json:"gpu,omitempty"`        // of rank 0
	Driver     string   `json:"driver,omitempty"`     // of the GPUs
	Links      string   `json:"links,omitempty"`      // between the GPUs, such as NVLink
	Registered bool     `json:"registered,omitempty"` // the memory is, with an effect
	Transport  string   `json:"transport"`            // as chosen by the ranks
	Notes      []string `json:"notes,omitempty"`
	Cost       *Cost    `json:"cost,omitempty"` // of GPUs
	Rows       []Row    `json:"rows"`
}

// A Row is one operation at one size by one program.
type Row struct {
	Program    string `json:"program"` // "ringo" or a peer
	Collective string `json:"collective"`
	Size       int64  `json:"size"`  // bytes of the larger buffer
	Count      int    `json:"count"` // elements of a block
	Type       string `json:"type"`
	Op         string `json:"op"`   // "none" where there is none
	Root       int    `json:"root"` // -1 where there is none
	// OutOfPlace and InPlace are nil where the form does not exist.
	OutOfPlace *Measure `json:"out_of_place,omitempty"`
	InPlace    *Measure `json:"in_place,omitempty"`
	Beside     *Beside  `json:"beside,omitempty"` // nil when it was not asked for
	// Error is the Deviation of results out of place, nil when it was not asked for.
	Error *Deviation `json:"error,omitempty"`
}

// A Measure is the time of one operation, averaged over iterations and ranks.
// Of several repetitions Time is the median and Min the least.
type Measure struct {
	Time       float64 `json:"time_us"`
	Min        float64 `json:"min_us"`
	Iterations int     `json:"iterations"`
	AlgBW      float64 `json:"algbw_gbs"` // size/time, 10⁹ bytes a second
	BusBW      float64 `json:"busbw_gbs"`
	Wrong      *int64  `json:"wrong,omitempty"` // elements over all ranks; nil when not verified
}

// measure completes a Measure of an operation that takes us microseconds.
func measure(c Collective, size int64, ranks int, us float64, iterations int) *Measure {
	m := &Measure{Time: us, Min: us, Iterations: iterations}
	m.bandwidth(c, size, ranks)
	return m
}

func (m *Measure) bandwidth(c Collective, size int64, ranks int) {
	if m.Time > 0 {
		m.AlgBW = float64(size) / m.Time / 1e3
		m.BusBW = m.AlgBW * c.Bus(ranks)
	}
}

// A rowKey is the part that rows of different programs must share to be compared.
type rowKey struct {
	collective, typ, op string
	root                int
	count               int
}

func (r *Row) key() rowKey { return rowKey{r.Collective, r.Type, r.Op, r.Root, r.Count} }

// Save writes the report as JSON.
func (r *Report) Save(file string) error { return SaveReport(file, r) }

// Load reads a report that Save has written.
func Load(file string) (*Report, error) {
	b, err := given.Read(file)
	if err != nil {
		return nil, fmt.Errorf("load report: %w", err)
	}
	r, err := parseReport(b)
	if err != nil {
		return nil, fmt.Errorf("load report %s: %w", file, err)
	}
	return r, nil
}

func parseReport(b []byte) (*Report, error) {
	var r Report
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, err
	}
	if r.Schema != Schema {
		return nil, fmt.Errorf("schema is %q, want %q", r.Schema, Schema)
	}
	if r.GPU != "" && r.Links == "" {
		r.Links = r.links()
	}
	if r.Ranks < 1 {
		return nil, errors.New("ranks is not positive")
	}
	for i, row := range r.Rows {
		if row.Size < 0 || row.Count < 0 {
			return nil, fmt.Errorf("row %d: negative size", i)
		}
	}
	return &r, nil
}

// links are what joins the GPUs: the words in brackets of the note about their paths, or the
// transport where there are none.
func (r *Report) links() string {
	for _, note := range r.Notes {
		_, path, ok := strings.Cut(note, "GPU memory: p2p ")
		if _, link, more := strings.Cut(path, "("); ok && more {
			link, _, _ = strings.Cut(link, ")")
			return link
		}
	}
	return r.Transport
}

// Wrong is the number of wrong elements in all rows.
func (r *Report) Wrong() (n int64) {
	for _, row := range r.Rows {
		for _, m := range []*Measure{row.OutOfPlace, row.InPlace} {
			if m != nil && m.Wrong != nil {
				n += *m.Wrong
			}
		}
	}
	return n
}
