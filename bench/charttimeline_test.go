package bench

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bench/chart"
)

// A picture has the labels that fit, the colors in use, and the bars from From to To.
func TestTimeline(t *testing.T) {
	line := chart.Timeline{
		Title: "AllReduce <1>", From: 100, To: 200,
		Legend: []chart.Key{{Color: 0, Label: "step"}, {Color: 1, Label: "waits"}, {Color: 2, Label: "unused"}},
		Tracks: []chart.Track{
			{Name: "rank 0", Bars: []chart.Bar{{From: 100, To: 150, Color: 0, Label: "whole"},
				{From: 120, To: 121, Color: 1, Thin: true, Label: "narrow"}, {From: 10, To: 20, Color: 0, Label: "before"}}},
			{Name: "rank 1", Bars: []chart.Bar{{From: 190, To: 300, Color: 0, Label: "beyond"}}},
		},
	}
	var svg bytes.Buffer
	require.NoError(t, line.Write(&svg))
	text := svg.String()
	for _, want := range []string{"AllReduce &lt;1&gt;", ">step<", ">waits<", ">rank 0<", ">rank 1<", ">whole<",
		">beyond<", ">time (µs)<",
		`points="160,93 559.3,93"`,   // half of the width, less the gap
		`points="880,127 959.3,127"`, // cut at the end
		`>80</text>`} {
		require.Contains(t, text, want)
	}
	for _, absent := range []string{"unused", "narrow", "before"} {
		require.NotContains(t, text, absent)
	}
	require.Equal(t, 7, strings.Count(text, `font-size="12" fill="#666666" text-anchor="middle"`),
		"6 ticks and what they are of")
}
