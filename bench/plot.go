package bench

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/bench/chart"
	"github.com/ringo-go/ringo/internal/cli"
)

// plotEnds are the ends of names of files that Plot writes.
var plotEnds = []string{".svg", ".html"}

// Plot draws the rows of reports: for each collective time against size, bus bandwidth
// against size, and where there are several programs, the time of each as a multiple of
// the first one's; a line a program. title stands above it all, if it is not empty. The
// name of the file gives the format: .svg or .html, a page with the picture and the
// tables. "-" is standard output, which gets SVG.
func Plot(file, title string, reports ...*Report) error {
	return plot("-o", file, os.Stdout, title, reports...)
}

// plot is Plot for a flag.
func plot(flag, file string, stdout io.Writer, title string, reports ...*Report) error {
	if _, err := cli.Outputs(stdout, cli.Output{Flag: flag, File: file, Ends: plotEnds}); err != nil {
		return err
	}
	return cli.Save(flag, file, stdout, func(w io.Writer) error {
		return Draw(w, strings.EqualFold(filepath.Ext(file), ".html"), title, reports...)
	})
}

// Draw writes what Plot draws, as a page or else as SVG.
func Draw(w io.Writer, page bool, title string, reports ...*Report) error {
	var b bytes.Buffer
	draw := drawAll
	if page {
		draw = writePage
	}
	if err := draw(&b, title, reports); err != nil {
		return err
	}
	_, err := b.WriteTo(w)
	return err
}

// A line is one program on one panel.
type line struct {
	label string
	peer  bool
	rows  []Row
}

// lines sorts the rows of one collective into lines. Labels have only the words
// that tell the lines apart.
func lines(collective string, reports []*Report) []*line {
	type id struct {
		report      int
		program     string
		typ, op     string
		root, ranks int
	}
	var order []id
	found := map[id]*line{}
	types, ops, roots, ranks := map[string]bool{}, map[string]bool{}, map[int]bool{}, map[int]bool{}
	for i, rep := range reports {
		for _, r := range rep.Rows {
			if r.Collective != collective || r.OutOfPlace == nil || r.OutOfPlace.Time <= 0 || r.Size <= 0 {
				continue
			}
			k := id{i, r.Program, r.Type, r.Op, r.Root, rep.Ranks}
			if found[k] == nil {
				found[k] = &line{peer: r.Program != "ringo"}
				order = append(order, k)
			}
			found[k].rows = append(found[k].rows, r)
			types[r.Type], ops[r.Op], roots[r.Root], ranks[rep.Ranks] = true, true, true, true
		}
	}
	var all []*line
	seen := map[string]int{}
	for _, k := range order {
		l := found[k]
		label := k.program
		if !l.peer {
			label += " " + reports[k.report].Transport
		}
		for _, part := range []struct {
			show bool
			text string
		}{
			{len(types) > 1, k.typ}, {len(ops) > 1, k.op}, {len(roots) > 1, fmt.Sprintf("root %d", k.root)},
			{len(ranks) > 1, fmt.Sprintf("%d ranks", k.ranks)},
		} {
			if part.show {
				label += ", " + part.text
			}
		}
		if seen[label]++; seen[label] > 1 {
			label += fmt.Sprintf(" (%d)", seen[label])
		}
		l.label = label
		slices.SortFunc(l.rows, func(a, b Row) int { return int(min(1, max(-1, a.Size-b.Size))) })
		all = append(all, l)
	}
	return all
}

// besides are the lines that were measured beside computing, each with its ideal after it.
func besides(ls []*line) (list []*line) {
	for _, l := range ls {
		shared, ideal := &line{label: l.label, peer: l.peer}, &line{label: "ideal of " + l.label, peer: true}
		for _, r := range l.rows {
			if r.Beside == nil {
				continue
			}
			shared.rows = append(shared.rows, r)
			r.Beside = &Beside{Both: Timing{Time: r.Beside.Ideal}, Slower: 1}
			ideal.rows = append(ideal.rows, r)
		}
		if len(shared.rows) > 0 {
			list = append(list, shared, ideal)
		}
	}
	return list
}

// values are y of the rows against their sizes, where y is above 0.
func (l *line) values(y func(*Row) float64) (out chart.Line) {
	for i := range l.rows {
		if v := y(&l.rows[i]); v > 0 {
			out.X, out.Y = append(out.X, float64(l.rows[i].Size)), append(out.Y, v)
		}
	}
	return out
}

// panel draws lines of y(row) against size.
func panel(title string, scale chart.Scale, ls []*line, y func(*Row) float64) chart.Panel {
	p := chart.Panel{Title: title, Scale: scale}
	for i, l := range ls {
		c := l.values(y)
		c.Label, c.Color, c.Strong = l.label, i, !l.peer
		p.Lines = append(p.Lines, c)
	}
	return p
}

// ratios draws the times of lines as multiples of the first line's, at sizes that the first line has too.
func ratios(ls []*line, time func(*Row) float64) chart.Panel {
	p := chart.Panel{Title: "time, in multiples of " + ls[0].label, Scale: chart.Ratio}
	first := ls[0].values(time)
	for i, l := range ls {
		all := l.values(time)
		c := chart.Line{Label: l.label, Color: i, Strong: !l.peer}
		for k := range all.X {
			if at := slices.Index(first.X, all.X[k]); at >= 0 {
				c.X, c.Y = append(c.X, all.X[k]), append(c.Y, all.Y[k]/first.Y[at])
			}
		}
		p.Lines = append(p.Lines, c)
	}
	return p
}

// panels are the panels of a collective: time, bus bandwidth and ratios, or if it was measured beside
// computing, the time of both, how much slower computing became, and ratios.
func panels(ls []*line) []chart.Panel {
	left, right := "time", "bus bandwidth (GB/s)"
	time, other := func(r *Row) float64 { return r.OutOfPlace.Time }, func(r *Row) float64 { return r.OutOfPlace.BusBW }
	if shared := besides(ls); len(shared) > 0 {
		ls, left, right = shared, "time until the collectives and computing have ended", "computing slower (times)"
		time, other = func(r *Row) float64 { return r.Beside.Both.Time }, func(r *Row) float64 { return r.Beside.Slower }
	}
	list := []chart.Panel{panel(left, chart.Time, ls, time), panel(right, chart.Amount, ls, other)}
	if len(ls) > 1 {
		list = append(list, ratios(ls, time))
	}
	return list
}

// drawAll draws one row of panels a collective.
func drawAll(w io.Writer, title string, reports []*Report) error {
	f := chart.Figure{Title: title}
	var names []string
	for _, rep := range reports {
		for _, r := range rep.Rows {
			if !slices.Contains(names, r.Collective) {
				names = append(names, r.Collective)
			}
		}
	}
	for _, name := range names {
		if ls := lines(name, reports); len(ls) > 0 {
			f.Rows = append(f.Rows, chart.Row{Title: name + caption(name, reports), Panels: panels(ls)})
		}
	}
	if len(f.Rows) == 0 {
		return fmt.Errorf("plot: there are no rows with a size above 0 and a time")
	}
	return f.Write(w)
}

// caption is what all lines of a collective have in common: what was moved, by how many ranks, on
// which GPUs or cores, over which links.
func caption(collective string, reports []*Report) string {
	var out []string
	for _, rep := range reports {
		for _, r := range rep.Rows {
			if r.Collective != collective {
				continue
			}
			text := r.Type
			if r.Op != "none" {
				text += " " + r.Op
			}
			if text += ", " + rep.machine(); !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	if len(out) == 1 {
		return ": " + out[0]
	}
	return ""
}

// machine names the cores or GPUs of the ranks, and the links between GPUs.
func (r *Report) machine() string {
	if r.GPU == "" {
		on := fmt.Sprintf("%d ranks on %d cores", r.Ranks, r.Cores)
		if r.CPU != "" {
			on += " (" + r.CPU + ")"
		}
		return on
	}
	on := fmt.Sprintf("%d × %s", r.Ranks, r.GPU)
	if r.Links != "" {
		on += ", " + r.Links
	}
	if r.Registered {
		on += ", registered memory"
	}
	return on
}
