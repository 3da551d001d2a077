// Package chart draws SVG for bench and the command ringo: lines over sizes in bytes, in rows of
// panels that have one legend (Figure), and bars on tracks along one time (Timeline). It is part of
// the command, and nothing here is promised to other modules.
//
// The trap: an SVG says how text is anchored and which fonts may be used, but only the viewer knows
// how wide text is. So nothing may depend on that width: the places of a legend's entries are
// estimated generously.
package chart

import (
	"fmt"
	"io"
	"math"
	"slices"
)

// A Figure is rows of panels below each other.
type Figure struct {
	Title string // "" for none
	Rows  []Row
}

// A Row is panels beside each other that show the same lines. Its legend names those of the first.
type Row struct {
	Title  string
	Panels []Panel
}

// A Panel is lines of one quantity.
type Panel struct {
	Title string
	Scale Scale
	Lines []Line
}

// A Line is one program or algorithm. X are sizes in bytes, above 0 and ascending.
type Line struct {
	Label  string
	Color  int  // lines of a Color have it in all panels
	Strong bool // a thicker line
	X, Y   []float64
}

// A Scale is how a panel shows values.
type Scale uint8

const (
	Time   Scale = iota // microseconds, by decades
	Amount              // from 0
	// by logarithm, between a quarter and four times, with a line at 1; values beyond are marked at the edge
	Ratio
)

// Sizes in points.
const (
	plotWidth, plotHeight = 400.0, 270.0
	leftOf, rightOf       = 74.0, 20.0
	above, below          = 32.0, 52.0
	rowTitle, legendLine  = 34.0, 22.0
	titleHeight           = 38.0
	margin                = 10.0
)

// Write draws a figure.
func (f *Figure) Write(w io.Writer) error {
	if err := f.check(); err != nil {
		return err
	}
	width, height := f.size()
	c := newSVG(width, height)
	y := margin
	if f.Title != "" {
		c.text(point{margin + 6, y + 24}, label{size: 19, ink: black}, f.Title)
		y += titleHeight
	}
	for i := range f.Rows {
		y = f.Rows[i].draw(c, y, width)
	}
	return c.write(w)
}

// check refuses values that no axis can show: the axis would have ticks without end.
func (f *Figure) check() error {
	for _, r := range f.Rows {
		for _, p := range r.Panels {
			points := 0
			for _, l := range p.Lines {
				points += len(l.X)
				for i, x := range l.X {
					if y := l.Y[i]; !(x >= 1 && x <= 1e18) || !(y > 1e-300 || y == 0 && p.Scale == Amount) || y > 1e300 {
						return fmt.Errorf("chart: %s, %s: %g at %g cannot be drawn", r.Title, p.Title, y, x)
					}
				}
			}
			if points == 0 {
				return fmt.Errorf("chart: %s, %s: there are no points with a size above 0 and a time", r.Title, p.Title)
			}
		}
	}
	return nil
}

// size is the size of the picture, in points.
func (f *Figure) size() (width, height float64) {
	for _, r := range f.Rows {
		width = max(width, float64(len(r.Panels))*(leftOf+plotWidth+rightOf))
	}
	width += 2 * margin
	height = 2 * margin
	if f.Title != "" {
		height += titleHeight
	}
	for i := range f.Rows {
		height += rowTitle + legendLine*float64(len(f.Rows[i].legend(width))) + above + plotHeight + below
	}
	return width, height
}

// An entry of a legend, and where it is drawn.
type entry struct {
	x    float64
	line *Line
}

// legend puts the lines of the first panel into lines of text.
func (r *Row) legend(width float64) (rows [][]entry) {
	const letter, sample = 7.2, 44.0 // points; most letters of 13 points are narrower
	if len(r.Panels) == 0 {
		return nil
	}
	x := math.Inf(1)
	for i := range r.Panels[0].Lines {
		l := &r.Panels[0].Lines[i]
		wide := sample + letter*float64(len([]rune(l.Label))) + 16
		if x+wide > width-margin {
			rows, x = append(rows, nil), margin+6
		}
		last := len(rows) - 1
		rows[last] = append(rows[last], entry{x, l})
		x += wide
	}
	return rows
}

// draw draws a row below y, and returns where it ends.
func (r *Row) draw(c *svg, y, width float64) float64 {
	c.text(point{margin + 6, y + 20}, label{size: 15, ink: black}, r.Title)
	y += rowTitle
	for _, row := range r.legend(width) {
		for _, e := range row {
			mid := y + legendLine/2
			c.line([]point{{e.x, mid}, {e.x + 32, mid}}, e.line.width(), e.line.ink())
			c.dot(point{e.x + 16, mid}, e.line.shape(), 3, e.line.ink())
			c.text(point{e.x + 38, mid + 4.5}, label{size: 13, ink: black}, e.line.Label)
		}
		y += legendLine
	}
	x := r.sizes()
	for i := range r.Panels {
		r.Panels[i].draw(c, x, point{margin + float64(i)*(leftOf+plotWidth+rightOf) + leftOf, y + above})
	}
	return y + above + plotHeight + below
}

// draw draws a panel whose upper left corner is at, over the sizes x.
func (p *Panel) draw(c *svg, x axis, at point) {
	y := p.values()
	px := func(v float64) float64 { return at.x + plotWidth*x.position(v) }
	py := func(v float64) float64 { return at.y + plotHeight*(1-y.position(v)) }
	c.text(point{at.x, at.y - 13}, label{size: 13, ink: black}, p.Title)
	for _, t := range x.ticks {
		c.line([]point{{px(t.at), at.y}, {px(t.at), at.y + plotHeight}}, 0.6, pale)
		if t.label != "" {
			c.text(point{px(t.at), at.y + plotHeight + 18}, label{size: 12, ink: gray, anchor: middle}, t.label)
		}
	}
	for _, t := range y.ticks {
		ink, wide := pale, 0.6
		if p.Scale == Ratio && t.at == 1 {
			ink, wide = gray, 1.4
		}
		if t.label == "" {
			c.line([]point{{at.x - 4, py(t.at)}, {at.x, py(t.at)}}, 0.6, gray)
			continue
		}
		c.line([]point{{at.x, py(t.at)}, {at.x + plotWidth, py(t.at)}}, wide, ink)
		c.text(point{at.x - 8, py(t.at) + 4}, label{size: 12, ink: gray, anchor: end}, t.label)
	}
	c.line([]point{{at.x, at.y}, {at.x, at.y + plotHeight}, {at.x + plotWidth, at.y + plotHeight}}, 1, gray)
	c.text(point{at.x + plotWidth/2, at.y + plotHeight + 38}, label{size: 12, ink: gray, anchor: middle}, "size (bytes)")
	for i := range slices.Backward(p.Lines) { // the first lies above the others
		l := &p.Lines[i]
		var run []point
		flush := func() {
			if len(run) > 1 {
				c.line(run, l.width(), l.ink())
			}
			run = nil
		}
		for k := range l.X {
			v := l.Y[k]
			shown := min(max(v, y.lo), y.hi)
			if k > 0 { // up to the edge
				if from, to, ok := clip(point{l.X[k-1], l.Y[k-1]}, point{l.X[k], v}, x, y); ok {
					a, b := point{px(from.x), py(from.y)}, point{px(to.x), py(to.y)}
					if len(run) == 0 || run[len(run)-1] != a {
						flush()
						run = []point{a}
					}
					run = append(run, b)
				}
			}
			shape := l.shape()
			switch {
			case v > y.hi:
				shape = up
			case v < y.lo:
				shape = down
			}
			c.dot(point{px(l.X[k]), py(shown)}, shape, 3, l.ink())
		}
		flush()
	}
}

// clip is the part of the segment from a to b that lies between the ends of y, as drawn; false if there is none.
func clip(a, b point, x, y axis) (point, point, bool) {
	ax, ay, bx, by := x.position(a.x), y.position(a.y), x.position(b.x), y.position(b.y)
	t0, t1 := 0.0, 1.0
	switch d := by - ay; {
	case d == 0 && (ay < 0 || ay > 1):
		return a, b, false
	case d > 0:
		t0, t1 = max(t0, -ay/d), min(t1, (1-ay)/d)
	case d < 0:
		t0, t1 = max(t0, (1-ay)/d), min(t1, -ay/d)
	}
	if t0 >= t1 {
		return a, b, false
	}
	from, to := a, b
	if t0 > 0 {
		from = point{x.value(ax + t0*(bx-ax)), y.value(ay + t0*(by-ay))}
	}
	if t1 < 1 {
		to = point{x.value(ax + t1*(bx-ax)), y.value(ay + t1*(by-ay))}
	}
	return from, to, true
}

func (l *Line) width() float64 {
	if l.Strong {
		return 2.8
	}
	return 1.6
}

func (l *Line) ink() ink { return palette[l.Color%len(palette)] }

func (l *Line) shape() shape { return []shape{circle, square, triangle, diamond}[l.Color%4] }
