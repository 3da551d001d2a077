package bench

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bench/chart"
)

// figure is a figure with a panel of each Scale.
func figure() *chart.Figure {
	lines := []chart.Line{
		{Label: "ringo", Strong: true, X: []float64{8, 1024, 1 << 20}, Y: []float64{0.4, 2, 100}},
		{Label: "a & b", Color: 1, X: []float64{8, 1024, 1 << 20}, Y: []float64{100, 2.2, 90}},
	}
	ratio := []chart.Line{lines[0], lines[1]}
	ratio[0].Y, ratio[1].Y = []float64{1, 1, 1}, []float64{250, 1.1, 0.9}
	return &chart.Figure{Title: "t", Rows: []chart.Row{{Title: "row", Panels: []chart.Panel{
		{Title: "time", Scale: chart.Time, Lines: lines}, {Title: "amount", Scale: chart.Amount, Lines: lines},
		{Title: "ratio", Scale: chart.Ratio, Lines: ratio},
	}}}}
}

// An SVG is XML whose text is anchored, in fonts that viewers have.
func TestSVG(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, figure().Write(&b))
	require.NoError(t, xml.Unmarshal(b.Bytes(), new(struct{})))
	svg := b.String()
	require.Equal(t, strings.Count(svg, "<text "), strings.Count(svg, "text-anchor="))
	require.Contains(t, svg, "Helvetica, Arial, ")
	require.Contains(t, svg, "a &amp; b")
	require.Equal(t, 1, strings.Count(svg, ">ringo<"), "a legend for the whole row")
	require.NotContains(t, svg, "NaN")
}

// A mark is a text of a picture, or a line.
type mark struct {
	X      float64 `xml:"x,attr"`
	Y      float64 `xml:"y,attr"`
	Anchor string  `xml:"text-anchor,attr"`
	Text   string  `xml:",chardata"`
	Stroke string  `xml:"stroke,attr"`
	Points string  `xml:"points,attr"`
}

// drawn are the marks of a panel with lines.
func drawn(t *testing.T, scale chart.Scale, lines ...chart.Line) (texts, polylines []mark) {
	t.Helper()
	var b bytes.Buffer
	f := chart.Figure{Rows: []chart.Row{{Panels: []chart.Panel{{Scale: scale, Lines: lines}}}}}
	require.NoError(t, f.Write(&b))
	var svg struct {
		Texts []mark `xml:"text"`
		Lines []mark `xml:"polyline"`
	}
	require.NoError(t, xml.Unmarshal(b.Bytes(), &svg))
	return svg.Texts, svg.Lines
}

// labelled are the labels of an axis, in order, with where they are: anchor is "middle" for sizes and "end" for values.
func labelled(texts []mark, anchor string) (labels []string, at map[string]float64) {
	at = map[string]float64{}
	for _, m := range texts {
		if m.Anchor == anchor && m.Text != "size (bytes)" && m.Text != "" {
			labels = append(labels, m.Text)
			at[m.Text] = map[string]float64{"middle": m.X, "end": m.Y - 4}[anchor]
		}
	}
	return labels, at
}

// Sizes of a panel's plot, in points.
const plotWidth, plotHeight = 400.0, 270.0

// Ten per cent can be seen, and values far off are at the edge: a line ends there.
func TestRatioAxis(t *testing.T) {
	ratio := func(y ...float64) chart.Line { return chart.Line{X: []float64{8, 1 << 20}[:len(y)], Y: y} }
	texts, _ := drawn(t, chart.Ratio, ratio(1, 1), ratio(250, 0.9))
	_, at := labelled(texts, "end")
	position := func(v, lo, hi float64) float64 { return math.Log(v/lo) / math.Log(hi/lo) }
	require.InDelta(t, plotHeight*(1-position(1, 0.873, 4)), at["1"]-at["4"], 0.02, "from 0.873 to 4")
	require.Greater(t, at["1"]-at["1.1"], 15.0)

	texts, _ = drawn(t, chart.Ratio, ratio(1, 1), ratio(1.01, 0.99))
	labels, at := labelled(texts, "end")
	require.Contains(t, labels, "1")
	require.InDelta(t, plotHeight, at["0.9"]-at["1.1"], 0.02, "from 0.9 to 1.1")

	texts, lines := drawn(t, chart.Ratio, ratio(1, 8))
	_, at = labelled(texts, "end")
	_, left := labelled(texts, "middle")
	var last mark
	for _, l := range lines {
		last = l
	}
	var x0, y0, x1, y1 float64
	n, err := fmt.Sscanf(last.Points, "%f,%f %f,%f", &x0, &y0, &x1, &y1)
	require.NoError(t, err)
	require.Equal(t, 4, n)
	require.InDelta(t, left["8"], x0, 0.02)
	require.InDelta(t, at["1"], y0, 0.02)
	require.InDelta(t, at["4"], y1, 0.02, "the edge")
	require.InDelta(t, x0+plotWidth*math.Log(4)/math.Log(8), x1, 0.02)
	_, beyond := drawn(t, chart.Ratio, ratio(5, 8))
	require.Len(t, beyond, len(lines)-1, "no line between two points beyond the edge")
}

func TestTicks(t *testing.T) {
	line := func(y ...float64) chart.Line { return chart.Line{X: []float64{8, 1 << 20}, Y: y} }
	texts, _ := drawn(t, chart.Time, line(0.1, 1739.2))
	labels, _ := labelled(texts, "middle")
	require.Equal(t, []string{"8", "32", "128", "512", "2K", "8K", "32K", "128K", "512K"}, labels)
	labels, _ = labelled(texts, "end")
	require.Equal(t, []string{"100 ns", "1 µs", "10 µs", "100 µs", "1 ms"}, labels)
	for most, want := range map[float64][]string{320: {"0", "50", "100", "150", "200", "250", "300"},
		0.2: {"0", "0.05", "0.1", "0.15", "0.2"}} {
		texts, _ = drawn(t, chart.Amount, line(0, most))
		labels, _ = labelled(texts, "end")
		require.Equal(t, want, labels)
	}
	texts, _ = drawn(t, chart.Ratio, line(0.91, 1.21))
	labels, _ = labelled(texts, "end")
	require.Equal(t, []string{"0.9", "1", "1.1", "1.2"}, labels)
}

// A value that has no place on an axis is refused.
func TestCannotBeDrawn(t *testing.T) {
	for _, l := range []chart.Line{{}, {X: []float64{0}, Y: []float64{1}}, {X: []float64{8}, Y: []float64{0}},
		{X: []float64{8}, Y: []float64{math.Inf(1)}}, {X: []float64{8}, Y: []float64{math.NaN()}}} {
		p := chart.Panel{Title: "time", Scale: chart.Time, Lines: []chart.Line{l}}
		f := chart.Figure{Rows: []chart.Row{{Title: "row", Panels: []chart.Panel{p}}}}
		require.ErrorContains(t, f.Write(new(bytes.Buffer)), "chart: row, time: ")
	}
}

// Pictures are what they were: look at a new one in a browser before -rewrite.
func TestPicturesAreAsTheyWere(t *testing.T) {
	all := &chart.Figure{Title: "title & more"}
	var lines []chart.Line
	for i := range 5 {
		k := float64(i + 1)
		lines = append(lines, chart.Line{Label: "line <" + string(rune('a'+i)) + ">", Color: i, Strong: i == 1,
			X: []float64{1, 900, 64 << 10}, Y: []float64{0.4 * k, 1.1 * k, 0.2 / k}})
	}
	lines[2].Y, lines[3].X, lines[3].Y = []float64{5, 0.1, 9}, []float64{4096}, []float64{1.5}
	all.Rows = []chart.Row{{Title: "row", Panels: []chart.Panel{{Title: "time", Scale: chart.Time, Lines: lines},
		{Title: "ratio", Scale: chart.Ratio, Lines: lines}}},
		{Title: "another", Panels: []chart.Panel{{Title: "amount", Scale: chart.Amount, Lines: lines[:2]}}}}
	for file, write := range map[string]func(io.Writer) error{
		"rows.svg": all.Write,
		"timeline.svg": (&chart.Timeline{
			Title: "tracks", From: 3, To: 2503,
			Legend: []chart.Key{{Color: 0, Label: "step"}, {Color: 1, Label: "waits"}, {Color: 2, Label: "room"}},
			Tracks: []chart.Track{{Name: "rank 0", Bars: []chart.Bar{{From: 3, To: 1000, Label: "one"},
				{From: 900, To: 990, Color: 1, Thin: true, Label: "narrow"}, {From: 1200, To: 2600, Color: 2}}}, {Name: "rank 10"}},
		}).Write,
	} {
		var b bytes.Buffer
		require.NoError(t, write(&b))
		golden(t, file, b.Bytes())
	}
}
