package chart

import (
	"io"
	"math"
	"slices"
)

// A Timeline is bars on tracks below each other, along one time in µs.
type Timeline struct {
	Title  string
	Legend []Key
	Tracks []Track
	From   float64 // where the picture begins and ends
	To     float64
}

// A Key says what a color means.
type Key struct {
	Color int
	Label string
}

// A Track is what one rank, GPU or model does.
type Track struct {
	Name string
	Bars []Bar // later ones lie above earlier ones
}

// A Bar lasts from one time to another. Its label is left out where there is no room for it.
type Bar struct {
	From, To float64
	Color    int
	Thin     bool // in the upper half; other bars have their labels in the lower half
	Label    string
}

// Sizes in points.
const (
	namesWidth, timeWidth = 150.0, 800.0
	trackHeight, barWidth = 34.0, 26.0
	letterWidth           = 5.8 // most letters of 10 points are narrower
)

// Write draws the picture.
func (t *Timeline) Write(w io.Writer) error {
	height := 2*margin + titleHeight + legendLine + trackHeight*float64(len(t.Tracks)) + below
	c := newSVG(2*margin+namesWidth+timeWidth+rightOf, height)
	c.text(point{margin + 6, margin + 24}, label{size: 17, ink: black}, t.Title)
	y, x := margin+titleHeight, margin+6
	for _, k := range t.Legend {
		if !t.has(k.Color) {
			continue
		}
		c.line([]point{{x, y + 8}, {x + 16, y + 8}}, 12, palette[k.Color])
		c.text(point{x + 22, y + 12.5}, label{size: 13, ink: black}, k.Label)
		x += 22 + 7.2*float64(len([]rune(k.Label))) + 20
	}
	y += legendLine + 6
	t.axis(c, y, trackHeight*float64(len(t.Tracks)))
	for _, track := range t.Tracks {
		mid := y + trackHeight/2
		c.text(point{margin + namesWidth - 8, mid + 4}, label{size: 12, ink: black, anchor: end}, track.Name)
		for _, b := range track.Bars {
			t.bar(c, mid, b)
		}
		y += trackHeight
	}
	return c.write(w)
}

// has reports whether a color is in use.
func (t *Timeline) has(color int) bool {
	return slices.ContainsFunc(t.Tracks, func(k Track) bool {
		return slices.ContainsFunc(k.Bars, func(b Bar) bool { return b.Color == color })
	})
}

// position is the x of a time in the picture.
func (t *Timeline) position(at float64) float64 {
	share := (at - t.From) / max(t.To-t.From, 1e-9)
	return margin + namesWidth + timeWidth*min(max(share, 0), 1)
}

func (t *Timeline) bar(c *svg, mid float64, b Bar) {
	if b.To < t.From || b.From > t.To {
		return
	}
	const gap = 0.7 // between bars that follow each other
	from, to := t.position(b.From), t.position(b.To)
	high, at := barWidth, mid
	base := mid + barWidth/2 - 3
	if b.Thin {
		high, at, base = barWidth/2, mid-barWidth/4, mid-2.5
	}
	to = max(to-gap, from+0.5)
	c.line([]point{{from, at}, {to, at}}, high, palette[b.Color])
	if room := to - from; b.Label != "" && room > letterWidth*float64(len([]rune(b.Label))) {
		c.text(point{(from + to) / 2, base}, label{size: 10, ink: black, anchor: middle}, b.Label)
	}
}

// axis draws the time, from 0 on, below tracks of a height.
func (t *Timeline) axis(c *svg, y, height float64) {
	step := math.Pow(10, math.Floor(math.Log10(max(t.To-t.From, 1e-3))))
	for _, less := range []float64{2, 2.5, 2} { // to at least 5 ticks
		if (t.To-t.From)/step < 5 {
			step /= less
		}
	}
	for i := 0; float64(i)*step <= t.To-t.From; i++ {
		at := float64(i) * step
		x := t.position(t.From + at)
		c.line([]point{{x, y}, {x, y + height}}, 0.6, pale)
		c.text(point{x, y + height + 16}, label{size: 12, ink: gray, anchor: middle}, num(at))
	}
	c.text(point{margin + namesWidth + timeWidth/2, y + height + 36}, label{size: 12, ink: gray, anchor: middle},
		"time (µs)")
}
