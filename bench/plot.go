package bench

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// plotFormat is the format that a file's name asks for, "" if it is none of ours.
func plotFormat(file string) string {
	switch ext := strings.TrimPrefix(strings.ToLower(filepath.Ext(file)), "."); ext {
	case "svg", "png", "html":
		return ext
	}
	return ""
}

// Plot draws the rows of reports: for each collective time against size on the
// left and bus bandwidth against size on the right, one line a program. The
// name of the file gives the format: .svg, .png or .html, a page with the
// picture and the tables.
func Plot(file string, reports ...*Report) error {
	var b bytes.Buffer
	var err error
	switch format := plotFormat(file); format {
	case "html":
		err = writePage(&b, reports)
	case "svg", "png":
		err = drawAll(&b, format, reports)
	default:
		err = fmt.Errorf("%s: the name must end in .svg, .png or .html", file)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}

// A line is one program on one panel.
type line struct {
	label string
	peer  bool
	rows  []Row
}

// lines sorts the rows of one collective into lines. Labels say only what tells
// the lines apart.
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
			r.Beside = &Beside{Both: Span{Time: r.Beside.Ideal}, Slower: 1}
			ideal.rows = append(ideal.rows, r)
		}
		if len(shared.rows) > 0 {
			list = append(list, shared, ideal)
		}
	}
	return list
}

// palette is Okabe and Ito's, which colour-blind readers can tell apart; ours is
// the strong blue.
var palette = []color.RGBA{
	{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255},
	{230, 159, 0, 255}, {86, 180, 233, 255}, {90, 90, 90, 255},
}

// panel draws lines of y(row) against size.
func panel(title, yLabel string, ls []*line, y func(*Row) float64, logY bool) (*plot.Plot, error) {
	p := plot.New()
	setTypeface(p)
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "size (bytes)", yLabel
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, sizeTicks{}
	if logY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, timeTicks{}
	} else {
		p.Y.Tick.Marker = evenTicks{}
	}
	p.Title.Padding, p.Title.TextStyle.Font.Size = vg.Points(6), vg.Points(13)
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding = vg.Points(3)
	p.Legend.XOffs, p.Legend.YOffs = vg.Points(8), vg.Points(-4)
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{225}, color.Gray{235}
	p.Add(grid)
	for i, l := range ls {
		var pts plotter.XYs
		for _, r := range l.rows {
			if v := y(&r); v > 0 || v == 0 && !logY {
				pts = append(pts, plotter.XY{X: float64(r.Size), Y: v})
			}
		}
		if len(pts) == 0 {
			continue
		}
		curve, dots, err := plotter.NewLinePoints(pts)
		if err != nil {
			return nil, err
		}
		curve.Color, dots.Color = palette[i%len(palette)], palette[i%len(palette)]
		curve.Width, dots.Radius = vg.Points(1.4), vg.Points(2.2)
		if !l.peer {
			curve.Width = vg.Points(2.6)
		}
		dots.Shape = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{}}[i%4]
		p.Add(curve, dots)
		p.Legend.Add(l.label, curve, dots)
	}
	if p.X.Min == p.X.Max {
		p.X.Min, p.X.Max = p.X.Min/2, p.X.Max*2
	}
	if logY {
		// Whole decades, and room for the legend.
		p.Y.Min = math.Pow(10, math.Floor(math.Log10(p.Y.Min)))
		p.Y.Max = math.Pow(10, math.Ceil(math.Log10(p.Y.Max)+0.2)) * 1.2
	} else {
		p.Y.Min, p.Y.Max = 0, max(p.Y.Max, 1e-3)*1.25
	}
	return p, nil
}

// panels are the two of a collective: time and bus bandwidth, or if it was measured beside
// computing, the time of both and how much slower computing became.
func panels(title string, ls []*line) ([]*plot.Plot, error) {
	left, right := "time", "bus bandwidth (GB/s)"
	time, other := func(r *Row) float64 { return r.OutOfPlace.Time }, func(r *Row) float64 { return r.OutOfPlace.BusBW }
	if shared := besides(ls); len(shared) > 0 {
		ls, left, right = shared, "collectives and compute, time", "compute slower (times)"
		time, other = func(r *Row) float64 { return r.Beside.Both.Time }, func(r *Row) float64 { return r.Beside.Slower }
	}
	a, err := panel(title, left, ls, time, true)
	if err != nil {
		return nil, err
	}
	b, err := panel(title, right, ls, other, false)
	return []*plot.Plot{a, b}, err
}

const panelWidth, panelHeight = 6.2 * vg.Inch, 4.2 * vg.Inch

// drawAll draws one row of panels a collective.
func drawAll(w io.Writer, format string, reports []*Report) error {
	var names []string
	for _, rep := range reports {
		for _, r := range rep.Rows {
			if !slices.Contains(names, r.Collective) {
				names = append(names, r.Collective)
			}
		}
	}
	var plots [][]*plot.Plot
	for _, name := range names {
		ls := lines(name, reports)
		if len(ls) == 0 {
			continue
		}
		pair, err := panels(name+caption(name, reports), ls)
		if err != nil {
			return err
		}
		plots = append(plots, pair)
	}
	if len(plots) == 0 {
		return fmt.Errorf("plot: there are no rows with a size above 0 and a time")
	}
	width, height := 2*panelWidth, panelHeight*vg.Length(len(plots))
	var canvas interface {
		vg.CanvasSizer
		io.WriterTo
	}
	if format == "svg" {
		canvas = newSVG(width, height)
	} else {
		canvas = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(110))}
	}
	tiles := draw.Tiles{Rows: len(plots), Cols: 2, PadX: vg.Points(14), PadY: vg.Points(14),
		PadTop: vg.Points(8), PadBottom: vg.Points(8), PadLeft: vg.Points(8), PadRight: vg.Points(14)}
	cells := plot.Align(plots, tiles, draw.New(canvas))
	for i, row := range plots {
		for j, p := range row {
			p.Draw(cells[i][j])
		}
	}
	_, err := canvas.WriteTo(w)
	return err
}

// caption is what all lines of a collective have in common.
func caption(collective string, reports []*Report) string {
	parts := map[string]bool{}
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
			on := rep.GPU
			if on == "" {
				on = fmt.Sprintf("%d cores", rep.Cores)
			}
			if text += fmt.Sprintf(", %d ranks, %s", rep.Ranks, on); !parts[text] {
				parts[text] = true
				out = append(out, text)
			}
		}
	}
	if len(out) == 1 {
		return ": " + out[0]
	}
	return ""
}
