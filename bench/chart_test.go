package bench

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bench/chart"
)

// labelled are the labels of an axis of a panel, in order: anchor is "middle" for sizes and "end" for values.
func labelled(t *testing.T, anchor string, scale chart.Scale, y ...float64) (labels []string) {
	t.Helper()
	var b bytes.Buffer
	lines := []chart.Line{{X: []float64{8, 1 << 20}, Y: y}}
	f := chart.Figure{Rows: []chart.Row{{Panels: []chart.Panel{{Scale: scale, Lines: lines}}}}}
	require.NoError(t, f.Write(&b))
	var svg struct {
		Texts []struct {
			Anchor string `xml:"text-anchor,attr"`
			Text   string `xml:",chardata"`
		} `xml:"text"`
	}
	require.NoError(t, xml.Unmarshal(b.Bytes(), &svg))
	for _, m := range svg.Texts {
		if m.Anchor == anchor && m.Text != "size (bytes)" && m.Text != "" {
			labels = append(labels, m.Text)
		}
	}
	return labels
}

func TestTicks(t *testing.T) {
	require.Equal(t, []string{"8", "32", "128", "512", "2K", "8K", "32K", "128K", "512K"},
		labelled(t, "middle", chart.Time, 0.1, 1739.2))
	for _, c := range []struct {
		scale     chart.Scale
		low, high float64
		want      []string
	}{
		{chart.Time, 0.1, 1739.2, []string{"100 ns", "1 µs", "10 µs", "100 µs", "1 ms"}},
		{chart.Amount, 0, 320, []string{"0", "50", "100", "150", "200", "250", "300"}},
		{chart.Amount, 0, 0.2, []string{"0", "0.05", "0.1", "0.15", "0.2"}},
		{chart.Ratio, 0.91, 1.21, []string{"0.9", "1", "1.1", "1.2"}},
		{chart.Ratio, 0.99, 1.01, []string{"0.9", "1", "1.1"}},
		{chart.Ratio, 0.9, 250, []string{"0.9", "1", "1.1", "1.2", "1.3", "1.5", "1.7", "2", "2.5", "3", "4"}},
	} {
		require.Equal(t, c.want, labelled(t, "end", c.scale, c.low, c.high))
	}
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
			Legend: []chart.Key{{Color: 0, Label: "step"}, {Color: 1, Label: "waits"}, {Color: 2, Label: "room"},
				{Color: 3, Label: "unused"}},
			Tracks: []chart.Track{{Name: "rank 0", Bars: []chart.Bar{{From: 3, To: 1000, Label: "one"},
				{From: 1, To: 2, Label: "before"},
				{From: 900, To: 990, Color: 1, Thin: true, Label: "narrow"}, {From: 1200, To: 2600, Color: 2}}}, {Name: "rank 10"}},
		}).Write,
	} {
		var b bytes.Buffer
		require.NoError(t, write(&b))
		require.NoError(t, xml.Unmarshal(b.Bytes(), new(struct{})))
		golden(t, file, b.Bytes())
	}
}
