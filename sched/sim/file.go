package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"
)

// A file is a Model as text. Every field may be left out.
type file struct {
	Like      string   `json:"like,omitempty"` // one of Presets, which gives what is left out
	Name      string   `json:"name,omitempty"`
	NodeRanks *int     `json:"node_ranks,omitempty"`
	Nodes     []int    `json:"nodes,omitempty"`
	Inside    *linkOf  `json:"inside,omitempty"`
	Between   *linkOf  `json:"between,omitempty"`
	Combine   *rate    `json:"combine,omitempty"`
	Copy      *rate    `json:"copy,omitempty"`
	SlotBytes *int     `json:"slot_bytes,omitempty"`
	Slots     *int     `json:"slots,omitempty"`
	Weak      []int    `json:"weak,omitempty"`
	WeakBy    *float64 `json:"weak_by,omitempty"`
}

type linkOf struct {
	What      *string  `json:"what,omitempty"`
	Bandwidth *rate    `json:"bandwidth,omitempty"`
	Shared    *rate    `json:"shared,omitempty"`
	Latency   *seconds `json:"latency,omitempty"`
	Overhead  *seconds `json:"overhead,omitempty"`
	Busy      *bool    `json:"busy,omitempty"`
}

// rate is bytes a second, 0 for without bound, as ParseRate reads them.
type rate float64

func (r rate) MarshalText() ([]byte, error) {
	if r == 0 {
		return []byte("none"), nil
	}
	return []byte(FormatRate(float64(r))), nil
}

func (r *rate) UnmarshalText(text []byte) error {
	if string(text) == "none" {
		*r = 0
		return nil
	}
	v, err := ParseRate(string(text))
	*r = rate(v)
	return err
}

// seconds are written as a time.Duration, such as "1.3µs".
type seconds float64

func (s seconds) MarshalText() ([]byte, error) {
	return []byte(time.Duration(math.Round(float64(s) * 1e9)).String()), nil
}

func (s *seconds) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*s = seconds(d.Seconds())
	return err
}

// Parse reads a Model from JSON that Format writes. All may be left out but inside.bandwidth, or like,
// the name of one of Presets from which the rest is taken:
//
//	{"like": "nvlink", "name": "two cards a node", "between": {"bandwidth": "400G", "shared": "800G", "latency": "3us"}}
//
// combine and copy are how many bytes a second a rank's core combines and copies. A field that
// it does not know is an error. Run looks whether the Model makes sense.
func Parse(data []byte) (Model, error) {
	var f file
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return Model{}, fmt.Errorf("sim: model: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return Model{}, errors.New("sim: model: something follows its last brace")
	}
	m, ok := Presets[f.Like]
	if f.Like != "" && !ok {
		return Model{}, fmt.Errorf("sim: model: like %q: there is no such preset", f.Like)
	}
	if f.Name != "" {
		m.Name = f.Name
	}
	set(&m.NodeRanks, f.NodeRanks)
	set(&m.SlotBytes, f.SlotBytes)
	set(&m.Slots, f.Slots)
	set(&m.WeakBy, f.WeakBy)
	if f.Weak != nil {
		m.Weak = f.Weak
	}
	if f.Nodes != nil {
		m.Nodes = f.Nodes
	}
	for _, x := range []struct {
		to   *float64
		from *rate
	}{{&m.Reduce, f.Combine}, {&m.Copy, f.Copy}} {
		if x.from != nil {
			*x.to = inverse(float64(*x.from))
		}
	}
	f.Inside.apply(&m.Intra, &m.Inside)
	f.Between.apply(&m.Inter, &m.Between)
	return m, nil
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// inverse of 0 is 0: no time, without bound.
func inverse(x float64) float64 {
	if x == 0 {
		return 0
	}
	return 1 / x
}

func (f *linkOf) apply(l *Link, what *string) {
	if f == nil {
		return
	}
	set(what, f.What)
	set(&l.Bandwidth, (*float64)(f.Bandwidth))
	set(&l.Shared, (*float64)(f.Shared))
	set(&l.Latency, (*float64)(f.Latency))
	set(&l.Overhead, (*float64)(f.Overhead))
	set(&l.Busy, f.Busy)
}

func linkFile(l Link, what string) *linkOf {
	return &linkOf{
		What: &what, Bandwidth: (*rate)(&l.Bandwidth), Shared: (*rate)(&l.Shared),
		Latency: (*seconds)(&l.Latency), Overhead: (*seconds)(&l.Overhead), Busy: &l.Busy,
	}
}

// Format writes a Model as JSON that Parse reads. Times are rounded to nanoseconds.
func Format(m Model) ([]byte, error) {
	combine, copying := rate(inverse(m.Reduce)), rate(inverse(m.Copy))
	f := file{
		Name: m.Name, NodeRanks: &m.NodeRanks, Inside: linkFile(m.Intra, m.Inside), Combine: &combine, Copy: &copying,
		SlotBytes: &m.SlotBytes, Slots: &m.Slots, Weak: m.Weak, Nodes: m.Nodes,
	}
	if m.Inter.Bandwidth > 0 {
		f.Between = linkFile(m.Inter, m.Between)
	}
	if len(m.Weak) > 0 {
		f.WeakBy = &m.WeakBy
	}
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("sim: model: %w", err)
	}
	return append(b, '\n'), nil
}

// String describes a Model: what joins ranks inside a node and between nodes, how fast, how soon.
func (m Model) String() string {
	text := m.Name + ": "
	size := strconv.Itoa(m.NodeRanks)
	switch {
	case len(m.Nodes) > 1:
		if least, most := slices.Min(m.Nodes), slices.Max(m.Nodes); least < most {
			size = fmt.Sprintf("%d to %d", least, most)
		} else {
			size = strconv.Itoa(most)
		}
	case m.NodeRanks == 0:
		return text + "one node, " + describe(m.Intra, m.Inside, "a rank", "together")
	}
	return text + fmt.Sprintf("nodes of %s; inside %s; between them %s", size,
		describe(m.Intra, m.Inside, "a rank", "together"), describe(m.Inter, m.Between, "a rank", "a node"))
}

func describe(l Link, what, each, all string) string {
	text := what
	if text != "" {
		text += ", "
	}
	text += FormatRate(l.Bandwidth) + " " + each
	if l.Shared > 0 {
		text += fmt.Sprintf(", %s %s", FormatRate(l.Shared), all)
	}
	latency, _ := seconds(l.Latency).MarshalText()
	return text + fmt.Sprintf(", %s", latency)
}
