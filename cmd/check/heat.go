package check

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// A heatMap is a heat map of pairs: one quantity of the way from a row's component to a column's.
type heatMap struct {
	Title  string
	Unit   string
	Low    bool // low values are bad, else high ones
	Places []string
	Values map[[2]int]float64
	Bad    map[[2]int]bool // pairs with a finding
}

// mapped are the quantities that have heat maps, and whether low is bad.
var mapped = []struct {
	quantity string
	low      bool
}{{"bandwidth", true}, {"latency", false}}

// Maps are the heat maps of a report: of each stage that has measured pairs, by quantity. The best value of a pair
// of hosts counts where it was measured over several interfaces.
func (r *report) Maps() []heatMap {
	var maps []heatMap
	for _, s := range r.Stages {
		for _, q := range mapped {
			if m := r.mapOf(s.Name, q.quantity, q.low); m != nil {
				maps = append(maps, *m)
			}
		}
	}
	return maps
}

// mapOf is the heat map of one quantity in one stage; nil if no pair was measured.
func (r *report) mapOf(stage, quantity string, low bool) *heatMap {
	m := mapping{
		heatMap: &heatMap{Title: fmt.Sprintf("%s, %s (rows send to columns)", stage, quantity), Low: low,
			Values: map[[2]int]float64{}, Bad: map[[2]int]bool{}},
		index: map[string]int{},
	}
	pairs := slices.DeleteFunc(r.Of(stage, quantity), func(x measurement) bool { return !x.Subject.IsPair() })
	// Rows in the order of hosts, not in that in which pairs were measured.
	begins := map[string]bool{}
	for _, x := range pairs {
		begins[x.Subject.Host] = begins[x.Subject.Host] || !x.Subject.IsGPU()
	}
	for _, h := range r.Hosts {
		if begins[h.Name] {
			m.at(component{Host: h.Name})
		}
	}
	for _, x := range pairs {
		k := m.pair(x.Subject)
		old, ok := m.Values[k]
		if !ok || low && x.Value > old || !low && x.Value < old {
			m.Values[k] = x.Value
		}
		m.Unit = x.Unit
	}
	if len(m.Values) == 0 {
		return nil
	}
	for _, f := range r.Findings {
		if f.Stage == stage && (f.Quantity == "" || f.Quantity == quantity) {
			m.mark(f)
		}
	}
	return m.heatMap
}

// A mapping is a heat map that is being made, with the index of each of its places.
type mapping struct {
	*heatMap
	index map[string]int
}

// at is the index of a component's place, which is added to the map if it is new.
func (m *mapping) at(p component) int {
	name := p.Host
	if p.IsGPU() {
		name = p.Host + "/" + strings.TrimPrefix(p.Part, "GPU ")
	}
	i, ok := m.index[name]
	if !ok {
		i = len(m.Places)
		m.index[name] = i
		m.Places = append(m.Places, name)
	}
	return i
}

// pair is the row and the column of a subject.
func (m *mapping) pair(s subject) [2]int { return [2]int{m.at(s.component), m.at(s.To)} }

// mark marks the pairs that a finding is about.
func (m *mapping) mark(f finding) {
	if f.Severity == well {
		return
	}
	if f.Subject.IsPair() {
		m.Bad[m.pair(f.Subject)] = true
	}
	for _, w := range f.Ways {
		m.Bad[m.pair(w)] = true
	}
}

// parts are the maps to show in text for a map whose pairs all lie within hosts: one for each host with
// a bad pair, or that of the first host if there is none.
func (m *heatMap) parts() []*heatMap {
	var hosts []string
	host := func(i int) string { h, _, _ := strings.Cut(m.Places[i], "/"); return h }
	for k := range m.Values {
		if host(k[0]) != host(k[1]) {
			return []*heatMap{m}
		}
	}
	for i := range m.Places {
		if h := host(i); !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	if len(hosts) < 2 {
		return []*heatMap{m}
	}
	var bad, first []*heatMap
	for _, h := range hosts {
		var places []int
		for i := range m.Places {
			if host(i) == h {
				places = append(places, i)
			}
		}
		part := m.only(places, ", host "+h)
		if len(part.Bad) > 0 {
			bad = append(bad, part)
		}
		if first == nil {
			part.Title += fmt.Sprintf(", the first of %d; -html has all", len(hosts))
			first = []*heatMap{part}
		}
	}
	if len(bad) > 0 {
		return bad
	}
	return first
}

// The most places of a map in text, and in SVG and HTML, which would take hundreds of megabytes for a thousand hosts.
// JSON has all.
const (
	maxText  = 24
	maxDrawn = 256
)

// some is the map with n places at most: those with a finding, and then the first of the others, in order.
func (m *heatMap) some(n int) *heatMap {
	if len(m.Places) <= n {
		return m
	}
	bad := map[int]bool{}
	for k := range m.Bad {
		bad[k[0]], bad[k[1]] = true, true
	}
	var chosen []int
	for _, want := range []bool{true, false} {
		for i := range m.Places {
			if bad[i] == want && len(chosen) < n {
				chosen = append(chosen, i)
			}
		}
	}
	slices.Sort(chosen)
	return m.only(chosen, fmt.Sprintf(", %d of %d, those with findings first; -json has all", n, len(m.Places)))
}

// only is the map with some places alone, and with more words in its title.
func (m *heatMap) only(places []int, more string) *heatMap {
	part := &heatMap{Title: m.Title + more, Unit: m.Unit, Low: m.Low, Values: map[[2]int]float64{},
		Bad: map[[2]int]bool{}}
	for a, i := range places {
		part.Places = append(part.Places, m.Places[i])
		for b, k := range places {
			if v, ok := m.Values[[2]int{i, k}]; ok {
				part.Values[[2]int{a, b}] = v
			}
			if m.Bad[[2]int{i, k}] {
				part.Bad[[2]int{a, b}] = true
			}
		}
	}
	return part
}

// print writes the map as text; a pair with a finding has a !, and what was not measured is a point.
func (m *heatMap) print(b *bytes.Buffer) {
	m = m.some(maxText)
	fmt.Fprintf(b, "%s, %s\n", m.Title, m.Unit)
	cells, wide := make([][]string, len(m.Places)+1), 6
	add := func(row int, text string) {
		text = tail(text, 14)
		cells[row] = append(cells[row], text)
		wide = max(wide, utf8.RuneCountInString(text)+1)
	}
	add(0, "")
	for i, p := range m.Places {
		add(0, p)
		add(i+1, p)
		for k := range m.Places {
			add(i+1, m.cell(i, k))
		}
	}
	for _, row := range cells {
		for _, text := range row {
			fmt.Fprintf(b, "%*s", wide, text)
		}
		b.WriteString("\n")
	}
}

// cell is the text of a row and a column.
func (m *heatMap) cell(i, k int) string {
	v, ok := m.Values[[2]int{i, k}]
	bad := m.Bad[[2]int{i, k}]
	switch {
	case i == k && !ok:
		return "-"
	case bad && !ok:
		return "!"
	case !ok:
		return "."
	case bad:
		return "!" + digits(v)
	}
	return digits(v)
}

// tail is the end of a name that is too long, since hosts' names differ at the end.
func tail(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return "…" + string(r[len(r)-n+1:])
}
